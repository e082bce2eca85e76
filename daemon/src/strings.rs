//! Names: each producer's table, checked, merged into one that only grows.
//!
//! The id of a name is a hash of its bytes, so all producers agree on it, and a name outlives the process that told it
//! and any number of ring laps. The merged table is a list, so that a reader asks for "those from n on".

use std::sync::{Mutex, MutexGuard, PoisonError};

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use nrt_trace_model::strings::get_id;
use nrt_trace_proto::v1;
use nrt_trace_shm::strings::StringReader;

/// Why a name was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refused {
    /// Its bytes are no text.
    NotUtf8,
    /// Its id is not the hash of its bytes.
    WrongId,
    /// The merged table is full.
    NoRoom,
}

/// The merged table of all producers' names.
#[derive(Debug)]
pub(crate) struct Names {
    merged: Mutex<Merged>,
}

#[derive(Debug)]
struct Merged {
    /// Position in `list` of each id.
    places: HashMap<u64, usize>,
    list: Vec<(u64, Box<str>)>,
    /// Bytes that the table may still grow by.
    room: u64,
    told_full: bool,
}

/// Bytes that an entry takes beside its text, roughly.
const ENTRY_BYTES: u64 = 64;

impl Names {
    /// An empty table that takes at most about `budget` bytes.
    pub(crate) fn new(budget: u64) -> Self {
        let merged = Merged {
            places: HashMap::new(),
            list: Vec::new(),
            room: budget,
            told_full: false,
        };
        Self {
            merged: Mutex::new(merged),
        }
    }

    /// Names in the table.
    pub(crate) fn len(&self) -> usize {
        lock(&self.merged).list.len()
    }

    /// The names from position `from` on, as many as `max_bytes` of text hold, at least one if there is one.
    pub(crate) fn from(&self, from: usize, max_bytes: usize) -> Vec<v1::StringEntry> {
        let merged = lock(&self.merged);
        let mut bytes = 0;
        let some = merged
            .list
            .get(from..)
            .unwrap_or_default()
            .iter()
            .take_while(|(_, text)| {
                let first = bytes == 0;
                bytes += text.len() + 16;
                first || bytes <= max_bytes
            });
        some.map(|(id, text)| v1::StringEntry {
            id: *id,
            text: text.to_string(),
        })
        .collect()
    }

    /// The name with this id.
    pub(crate) fn get(&self, id: u64) -> Option<v1::StringEntry> {
        let merged = lock(&self.merged);
        let (id, text) = &merged.list[*merged.places.get(&id)?];
        Some(v1::StringEntry {
            id: *id,
            text: text.to_string(),
        })
    }

    /// Takes names that an earlier daemon knew.
    pub(crate) fn learn(&self, texts: &[String]) {
        for text in texts {
            // One that finds no room, or conflicts, is told of as any other.
            let _refused = self.take(get_id(text.as_bytes()), text.as_bytes());
        }
    }

    /// Takes a name that a producer published.
    fn take(&self, id: u64, bytes: &[u8]) -> Result<(), Refused> {
        let text = std::str::from_utf8(bytes).map_err(|_| Refused::NotUtf8)?;
        if id != get_id(bytes) {
            return Err(Refused::WrongId);
        }
        let merged = &mut *lock(&self.merged);
        match merged.places.entry(id) {
            Entry::Occupied(place) => {
                let first = &merged.list[*place.get()].1;
                if **first != *text {
                    tracing::warn!(
                        "conflicting id {id} with name {first:?} and {text:?}: the first stays"
                    );
                }
            }
            Entry::Vacant(place) => {
                let cost = text.len() as u64 + ENTRY_BYTES;
                if cost > merged.room {
                    if !std::mem::replace(&mut merged.told_full, true) {
                        tracing::warn!(
                            "the table of names is full (names_budget_bytes): new names stay unresolved"
                        );
                    }
                    return Err(Refused::NoRoom);
                }
                merged.room -= cost;
                place.insert(merged.list.len());
                merged.list.push((id, text.into()));
            }
        }
        Ok(())
    }
}

/// One producer's table, as the daemon reads it.
#[derive(Debug)]
pub(crate) struct ProducerNames {
    state: Mutex<Table>,
}

#[derive(Debug)]
struct Table {
    /// Gone when the producer is.
    reader: Option<StringReader>,
    refused: u64,
    /// The reader's own counts, once it is gone.
    last_full: u64,
}

impl ProducerNames {
    /// The names that `reader` reads.
    pub(crate) fn new(reader: StringReader) -> Self {
        Self {
            state: Mutex::new(Table {
                reader: Some(reader),
                refused: 0,
                last_full: 0,
            }),
        }
    }

    /// The names of a process that ended before this daemon began: they were told, and these are the counts.
    pub(crate) fn of_ended((last_full, refused): (u64, u64)) -> Self {
        Self {
            state: Mutex::new(Table {
                reader: None,
                refused,
                last_full,
            }),
        }
    }

    /// All names in the table that are text, and have the id that they should.
    pub(crate) fn texts(&self) -> Vec<String> {
        let mut texts = Vec::new();
        if let Some(reader) = &lock(&self.state).reader {
            reader.all(|id, bytes, _nc| {
                let text = std::str::from_utf8(bytes).ok();
                texts.extend(text.filter(|_| id == get_id(bytes)).map(str::to_owned));
            });
        }
        texts
    }

    /// Merges what was published since the last time into `names`.
    pub(crate) fn merge_into(&self, names: &Names) {
        let table = &mut *lock(&self.state);
        let Some(reader) = &mut table.reader else {
            return;
        };
        let refused = &mut table.refused;
        reader.poll(|id, bytes, _nc| *refused += u64::from(names.take(id, bytes).is_err()));
    }

    /// Merges the last names and lets the table's memory go.
    pub(crate) fn close(&self, names: &Names) {
        self.merge_into(names);
        let table = &mut *lock(&self.state);
        if let Some(reader) = table.reader.take() {
            table.refused += reader.refused();
            table.last_full = reader.full();
        }
    }

    /// Names that found no room in the producer's table, and names that were refused.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let table = lock(&self.state);
        match &table.reader {
            Some(reader) => (reader.full(), table.refused + reader.refused()),
            None => (table.last_full, table.refused),
        }
    }
}

/// A panic while a table was locked leaves it valid: every change is one push.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use nrt_trace_abi::layout::StringTableLayout;
    use nrt_trace_ring::strings::append;
    use nrt_trace_shm::WriteMapping;

    use super::*;

    fn texts(names: &Names, from: usize) -> Vec<String> {
        names
            .from(from, 1 << 20)
            .into_iter()
            .map(|entry| entry.text)
            .collect()
    }

    #[test]
    fn names_merge_once_whoever_tells_them() {
        let names = Names::new(1 << 20);
        for text in ["a", "b", "a", "日本語"] {
            names
                .take(get_id(text.as_bytes()), text.as_bytes())
                .unwrap();
        }
        assert_eq!(texts(&names, 0), ["a", "b", "日本語"]);
        assert_eq!(texts(&names, 2), ["日本語"]);
        assert!(texts(&names, 3).is_empty() && texts(&names, 99).is_empty());
        assert_eq!(names.len(), 3);
        assert_eq!(names.get(get_id(b"b")).unwrap().text, "b");
        assert_eq!(names.get(7), None);
    }

    #[test]
    fn a_piece_of_the_table_has_a_size() {
        let names = Names::new(1 << 20);
        for n in 0..100 {
            let text = format!("{n:0100}");
            names
                .take(get_id(text.as_bytes()), text.as_bytes())
                .unwrap();
        }
        let piece = names.from(0, 1000);
        assert_eq!(piece.len(), 8, "116 bytes each");
        assert_eq!(
            names.from(0, 1).len(),
            1,
            "a name longer than a piece still goes"
        );
    }

    #[test]
    fn what_is_no_name_is_refused() {
        let names = Names::new(2 * ENTRY_BYTES);
        assert_eq!(names.take(get_id(b"\xFF"), b"\xFF"), Err(Refused::NotUtf8));
        assert_eq!(names.take(7, b"a"), Err(Refused::WrongId));
        names.take(get_id(b"a"), b"a").unwrap();
        assert_eq!(names.take(get_id(b"b"), b"b"), Err(Refused::NoRoom));
        names.take(get_id(b"a"), b"a").unwrap();
        assert_eq!(texts(&names, 0), ["a"]);
    }

    #[test]
    fn a_producers_names_stay_when_it_is_gone() {
        let names = Names::new(1 << 20);
        let (reader, fd) = StringReader::create(1 << 16).unwrap();
        let layout = StringTableLayout::new(1 << 16).unwrap();
        let map = WriteMapping::map(&fd, 1 << 16).unwrap();
        let table = ProducerNames::new(reader);
        append(map.words(), &layout, get_id(b"x"), b"x", 0).unwrap();
        append(map.words(), &layout, 9, b"liar", 0).unwrap();
        table.merge_into(&names);
        assert_eq!(
            (texts(&names, 0), table.counts()),
            (vec!["x".to_owned()], (0, 1))
        );
        append(map.words(), &layout, get_id(b"last"), b"last", 0).unwrap();
        table.close(&names);
        table.close(&names);
        assert_eq!(
            (texts(&names, 1), table.counts()),
            (vec!["last".to_owned()], (0, 1))
        );
    }
}
