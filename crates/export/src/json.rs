//! Neuron's JSON document, `data_version` 2.
//!
//! `{"events":[…],"data_version":2}` without white space. An event's keys, always in this order: `event_type`, `phase`,
//! `id`, `nc_idx`, `nc_local_id`, `tracking_id`, `thread_id`, `worker_gid`, `data`, `timestamp_ns`, then `nrta_seq_id`
//! where set. Ours follow: `process_id` as [`ProcessIdMode`] says, `host_nc_idx` where the process's visible cores are
//! known. Identity (NC, process, worker) comes from the part that carries a record, never from the record's own words,
//! which a producer could have written.
//!
//! [`read_json`] reads such documents, and those of newer runtimes, back.
//!
//! Integers are formatted straight into one buffer: an event costs a few dozen copies and no allocation. A serializer
//! driven by derive took three times as long.

mod document;
#[cfg(feature = "read")]
mod event;
#[cfg(feature = "read")]
mod fields;
mod pen;
pub(crate) mod plan;
#[cfg(feature = "read")]
mod read;
pub(crate) mod text;

use std::io::{self, Write};

use hashbrown::HashMap;
use nrt_trace_abi::record::{RECORD_BYTES, Record};
use nrt_trace_proto::FORMAT_VERSION;
use nrt_trace_proto::v1::{
    Correlations, FetchBegin, Producer, Records, TracePart, trace_part::Part,
};

use self::document::{Document, RingText};
use crate::resolve::{Learned, Resolver};

#[cfg(feature = "read")]
pub use self::event::{EventName, JsonEvent};
#[cfg(feature = "read")]
pub use self::read::{JsonError, read_json};

/// When events carry `process_id`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProcessIdMode {
    /// If the document holds more than one process.
    #[default]
    WhenSeveral,
    /// Always.
    Always,
    /// Never, nor the host's core: exactly Neuron's keys.
    Never,
}

/// What the caller may choose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JsonOptions {
    /// When events carry `process_id`: the host's pid, or the negative producer number where the host cannot see the
    /// process, so that pairs stay unique by process.
    pub process_id: ProcessIdMode,
    /// Write numbers above 2^53 - 1 as strings of digits: JavaScript readers round them otherwise.
    pub large_as_strings: bool,
    /// Show names beside numbers that are a string's id: `name` for a `generic` span that carries one, `tracking_name`
    /// for a tracking id. Both stand in front of `process_id`.
    pub names: bool,
}

/// What a document's events told of executions, for the next document of the same rings: a reader that consumes as it goes
/// finds there what its events refer to. At most 65,536 executions a ring.
#[derive(Debug, Default)]
pub struct Memory {
    rings: HashMap<(u32, u32), Learned>,
}

/// Writes the parts of one fetch, or of a regrouped recording, as a JSON document.
///
/// Memory: the names, 65,536 executions and at most 65,536 held events of one ring.
#[derive(Debug)]
pub struct JsonWriter<W: Write> {
    document: Document<W>,
    options: JsonOptions,
    producers: HashMap<u32, Process>,
    /// Producers that the fetch announced.
    announced: u32,
    ring: Option<Ring>,
    /// What the last ring's events were resolved with, empty: its memory serves the next ring.
    spare: Option<Resolver<Record>>,
    memory: Option<Memory>,
}

/// What of a producer its events show.
#[derive(Debug)]
struct Process {
    process_id: i64,
    worker_gid: i32,
    visible_cores: Vec<u32>,
}

#[derive(Debug)]
struct Ring {
    key: (u32, u32),
    resolver: Resolver<Record>,
    text: RingText,
}

impl<W: Write> JsonWriter<W> {
    /// A document that goes to `writer` in large pieces; no buffer around it is needed.
    pub fn new(writer: W, options: JsonOptions) -> Self {
        let document = Document::new(writer, options);
        Self {
            document,
            options,
            producers: HashMap::new(),
            announced: 0,
            ring: None,
            spare: None,
            memory: None,
        }
    }

    /// A document that goes on where another one of the same rings ended.
    pub fn remembering(writer: W, options: JsonOptions, memory: Memory) -> Self {
        Self {
            memory: Some(memory),
            ..Self::new(writer, options)
        }
    }

    /// No document, but a line for each event: of a stream that is followed. Events that wait for others are written when
    /// their ring's turn ends, and what was learned of executions stays for its next turn.
    pub fn lines(writer: W, options: JsonOptions) -> Self {
        let mut writer = Self::remembering(writer, options, Memory::default());
        writer.document.make_lines();
        writer
    }

    /// Writes what there is, also of events that wait for others.
    ///
    /// # Errors
    /// Of the writer.
    pub fn flush(&mut self) -> io::Result<()> {
        self.end_ring()?;
        self.document.flush()
    }

    /// Takes the next part.
    ///
    /// # Errors
    /// Of the writer; [`io::ErrorKind::InvalidData`] for a stream of another format version and for a part that is
    /// not whole records.
    pub fn part(&mut self, part: &TracePart) -> io::Result<()> {
        match &part.part {
            Some(Part::Begin(begin)) => self.begin(begin),
            Some(Part::Producer(producer)) => self.producer(producer),
            Some(Part::Strings(strings)) => {
                for entry in &strings.entries {
                    self.document.name(entry.id, &entry.text);
                }
                Ok(())
            }
            Some(Part::Correlations(correlations)) => self.correlations(correlations),
            Some(Part::Records(records)) => self.records(records),
            Some(Part::Account(_) | Part::ProducerAccount(_) | Part::End(_)) => self.end_ring(),
            // Neuron's document has no place for them: `host` makes one of its own.
            Some(Part::HostInfo(_) | Part::HostSample(_)) | None => Ok(()),
        }
    }

    /// Events written or held so far.
    pub fn events(&self) -> u64 {
        self.document.events + self.ring.as_ref().map_or(0, |r| r.resolver.held())
    }

    /// Events whose phase has no payload for their type: their `data` is empty, and the log warned once for each such
    /// combination.
    pub fn without_payload(&self) -> u64 {
        self.document.without_payload
    }

    /// Completes the document and gives the writer back, flushed.
    ///
    /// # Errors
    /// Of the writer.
    pub fn finish(mut self) -> io::Result<W> {
        self.end_ring()?;
        self.document.finish()
    }

    /// [`JsonWriter::finish`], with what the document's events told for the next one.
    ///
    /// # Errors
    /// Of the writer.
    pub fn finish_remembering(mut self) -> io::Result<(W, Memory)> {
        self.end_ring()?;
        let memory = self.memory.take().unwrap_or_default();
        Ok((self.document.finish()?, memory))
    }

    fn begin(&mut self, begin: &FetchBegin) -> io::Result<()> {
        self.end_ring()?;
        if begin.format_version > FORMAT_VERSION {
            let found = begin.format_version;
            return Err(invalid(format!(
                "the trace has format version {found}; this program reads {FORMAT_VERSION}"
            )));
        }
        self.announced = self.announced.max(begin.producers);
        Ok(())
    }

    fn producer(&mut self, producer: &Producer) -> io::Result<()> {
        self.end_ring()?;
        let process = Process {
            process_id: producer
                .pid
                .map_or_else(|| -i64::from(producer.producer_id), i64::from),
            worker_gid: producer.worker_gid,
            visible_cores: producer.visible_cores.clone(),
        };
        self.producers.insert(producer.producer_id, process);
        Ok(())
    }

    fn correlations(&mut self, correlations: &Correlations) -> io::Result<()> {
        let ring = self.ring((correlations.producer_id, correlations.nc_idx))?;
        ring.resolver.correlations(correlations);
        Ok(())
    }

    fn records(&mut self, records: &Records) -> io::Result<()> {
        let (packed, rest) = records.packed.as_chunks::<RECORD_BYTES>();
        if !rest.is_empty() {
            return Err(invalid(format!(
                "a records part of {} bytes is not whole records",
                records.packed.len()
            )));
        }
        self.ring((records.producer_id, records.nc_idx))?;
        if let Self {
            document,
            ring: Some(Ring { resolver, text, .. }),
            ..
        } = self
        {
            for bytes in packed {
                let mut sink = |record: &Record, resolved| document.event(record, resolved, text);
                resolver.record(&Record::from_bytes(bytes), &mut sink)?;
            }
        }
        Ok(())
    }

    /// The ring that comes now; ends another one before it.
    fn ring(&mut self, key: (u32, u32)) -> io::Result<&mut Ring> {
        if self.ring.as_ref().is_none_or(|r| r.key != key) {
            self.end_ring()?;
        }
        let text = self.ring_text(key);
        let Self {
            ring,
            spare,
            memory,
            ..
        } = self;
        Ok(ring.get_or_insert_with(|| {
            let learned = memory.as_mut().and_then(|memory| memory.rings.remove(&key));
            let resolver = match learned {
                Some(learned) => Resolver::knowing(true, learned),
                None => spare.take().unwrap_or_else(|| Resolver::new(true)),
            };
            Ring {
                key,
                resolver,
                text,
            }
        }))
    }

    fn ring_text(&self, (producer_id, nc_idx): (u32, u32)) -> RingText {
        let process = self.producers.get(&producer_id);
        let with_id = match self.options.process_id {
            ProcessIdMode::Always => true,
            ProcessIdMode::Never => false,
            ProcessIdMode::WhenSeveral => self.announced > 1 || self.producers.len() > 1,
        };
        let process_id = process.map_or_else(|| -i64::from(producer_id), |p| p.process_id);
        let index = usize::try_from(nc_idx).ok();
        let host_nc_idx = process
            .zip(index)
            .filter(|_| self.options.process_id != ProcessIdMode::Never)
            .and_then(|(p, i)| p.visible_cores.get(i).copied());
        RingText::new(
            nc_idx,
            process.map_or(-1, |p| p.worker_gid),
            with_id.then_some(process_id),
            host_nc_idx,
        )
    }

    /// Nothing more comes of the ring: what is held is written as it is.
    fn end_ring(&mut self) -> io::Result<()> {
        if let Some(mut ring) = self.ring.take() {
            let document = &mut self.document;
            ring.resolver
                .flush(&mut |record, resolved| document.event(record, resolved, &ring.text))?;
            if let Some(memory) = &mut self.memory {
                memory.rings.insert(ring.key, ring.resolver.into_learned());
            } else {
                ring.resolver.clear();
                self.spare = Some(ring.resolver);
            }
        }
        Ok(())
    }
}

fn invalid(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}
