//! Reading a document, event by event.
//!
//! One event is in memory at a time. Readers of a later version's documents have to be forgiving: names of events and
//! keys that nothing here knows are kept, a name may be a type's display name or an alias, keys may come in any order,
//! and a number may be a string of digits (some programs write what is above 2^53 so). What makes no sense as an event
//! is an error with the event's number and the byte where it was found.

use std::cell::Cell;
use std::fmt;
use std::io::{self, BufReader, Read};
use std::rc::Rc;

use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor,
};

use super::event::JsonEvent;
use super::fields::EventSeed;

/// The version of documents that is read and written.
pub(super) const DATA_VERSION: u64 = 2;

/// What keeps a document from being read on. The events before it were handed out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JsonError {
    /// The document ends in the middle.
    #[error(
        "the document is cut after byte {offset}: {events} events were read, what came later is missing"
    )]
    Cut {
        /// Events handed out.
        events: u64,
        /// Bytes of the document.
        offset: u64,
    },
    /// It is no JSON, or not that of a trace.
    #[error("byte {offset}, {}: {what}", position(*.events))]
    Malformed {
        /// Events handed out before.
        events: u64,
        /// Where it was found.
        offset: u64,
        /// What is wrong.
        what: String,
    },
    /// A document of another version.
    #[error("the document has data_version {found}; this program reads {DATA_VERSION}")]
    Version {
        /// Its version.
        found: u64,
    },
    /// It could not be read.
    #[error("the document cannot be read")]
    Read(#[source] io::Error),
    /// Whoever took the events failed.
    #[error(transparent)]
    Sink(io::Error),
}

fn position(events: u64) -> String {
    match events {
        0 => "before the first event ended".to_owned(),
        n => format!("after {n} events"),
    }
}

/// Reads a document and gives `sink` its events one by one; the answer is how many there were.
///
/// # Errors
/// [`JsonError`]; what stands before the error was given to `sink`.
pub fn read_json(
    input: impl Read,
    mut sink: impl FnMut(JsonEvent) -> io::Result<()>,
) -> Result<u64, JsonError> {
    let offset = Rc::new(Cell::new(0));
    let counted = Counted {
        input: BufReader::with_capacity(64 * 1024, input),
        offset: Rc::clone(&offset),
    };
    let mut reading = Reading {
        events: 0,
        found: false,
        refused: None,
        foreign: None,
        sink: &mut sink,
    };
    let mut json = serde_json::Deserializer::from_reader(counted);
    let read = json
        .deserialize_map(DocumentVisitor(&mut reading))
        .and_then(|()| json.end());
    let (events, offset) = (reading.events, offset.get());
    if let Some(error) = reading.refused {
        return Err(JsonError::Sink(error));
    }
    if let Some(found) = reading.foreign {
        return Err(JsonError::Version { found });
    }
    match read {
        Ok(()) if reading.found => Ok(events),
        Ok(()) => Err(JsonError::Malformed {
            events,
            offset,
            what: "the document has no `events`".to_owned(),
        }),
        Err(error) if error.is_io() => Err(JsonError::Read(error.into())),
        Err(error) if error.is_eof() => Err(JsonError::Cut { events, offset }),
        Err(error) => Err(JsonError::Malformed {
            events,
            offset,
            what: without_line(&error),
        }),
    }
}

/// `serde_json` appends line and column; a document is one line, so the byte says more.
fn without_line(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rfind(" at line ") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

/// Counts what the parser has taken.
struct Counted<R> {
    input: R,
    offset: Rc<Cell<u64>>,
}

impl<R: Read> Read for Counted<R> {
    #[inline]
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(bytes)?;
        self.offset.set(self.offset.get() + read as u64);
        Ok(read)
    }
}

/// What is known of the document so far.
struct Reading<'a> {
    events: u64,
    /// Whether `events` was there.
    found: bool,
    refused: Option<io::Error>,
    /// Another version than ours.
    foreign: Option<u64>,
    sink: &'a mut dyn FnMut(JsonEvent) -> io::Result<()>,
}

struct DocumentVisitor<'a, 'b>(&'a mut Reading<'b>);

impl<'de> Visitor<'de> for DocumentVisitor<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a trace document, {\"events\":[…],\"data_version\":2}")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "events" if self.0.found => {
                    return Err(A::Error::custom("`events` stands there twice"));
                }
                "events" => {
                    self.0.found = true;
                    map.next_value_seed(EventsSeed(self.0))?;
                }
                "data_version" => {
                    let version = map.next_value()?;
                    if version != DATA_VERSION {
                        self.0.foreign = Some(version);
                        return Err(A::Error::custom("another version"));
                    }
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

struct EventsSeed<'a, 'b>(&'a mut Reading<'b>);

impl<'de> DeserializeSeed<'de> for EventsSeed<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for EventsSeed<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of events")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while let Some(event) = seq.next_element_seed(EventSeed)? {
            self.0.events += 1;
            if let Err(error) = (self.0.sink)(event) {
                self.0.refused = Some(error);
                return Err(A::Error::custom("the event was not taken"));
            }
        }
        Ok(())
    }
}
