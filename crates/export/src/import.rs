//! A JSON document as a native file: its events become records again.
//!
//! What the document does not say stays unknown: clocks, accounts, names that no event shows. A value that it shows as a name (an
//! algorithm, a memory type) becomes the first number of that name. An event of a type that this version does not know
//! is left out, and counted, unless it is written `unknown_N`.

use std::io::{self, Read, Write};

use hashbrown::{HashMap, HashSet};
use nrt_trace_abi::record::{Draft, Record};
use nrt_trace_model::payload::{self, FieldKind, JsonKey, PayloadLayout, Rendering};
use nrt_trace_model::{EventType, correlation, names, strings};
use nrt_trace_proto::FORMAT_VERSION;
use nrt_trace_proto::v1::{
    Correlation, Correlations, FetchBegin, FetchEnd, Producer, Records, StringEntry, Strings,
    TracePart, trace_part::Part,
};
use serde_json::Value;

use crate::json::{EventName, JsonError, JsonEvent, read_json};
use crate::native::NativeWriter;

/// Bytes of a ring's records that are gathered before they are written.
const GATHERED: usize = 512 * 1024;

/// The same over all rings.
const GATHERED_MAX: usize = 32 << 20;

/// What was read of a document.
#[derive(Debug)]
pub struct Imported {
    /// Events written.
    pub events: u64,
    /// Events of types that have no number.
    pub unknown: u64,
    /// Why reading ended before the document's end, if it did. What stands before is written.
    pub cut: Option<JsonError>,
}

/// Reads a document and writes its events as a native file.
///
/// # Errors
/// [`JsonError`] but for a cut document, which is told in the answer; of the writer as [`JsonError::Sink`].
pub fn import_json(input: impl Read, output: impl Write) -> Result<Imported, JsonError> {
    let mut import = Import {
        writer: NativeWriter::new(output).map_err(JsonError::Sink)?,
        producers: HashMap::new(),
        rings: HashMap::new(),
        named: HashSet::new(),
        gathered: 0,
        unknown: 0,
        events: 0,
    };
    import
        .part(Part::Begin(FetchBegin {
            format_version: FORMAT_VERSION,
            ..FetchBegin::default()
        }))
        .map_err(JsonError::Sink)?;
    let cut = match read_json(input, |event| import.event(&event)) {
        Ok(_) => None,
        Err(cut @ JsonError::Cut { .. }) => Some(cut),
        Err(other) => return Err(other),
    };
    let (events, unknown) = (import.events, import.unknown);
    import.finish().map_err(JsonError::Sink)?;
    Ok(Imported {
        events,
        unknown,
        cut,
    })
}

struct Import<W: Write> {
    writer: NativeWriter<W>,
    /// By the document's process number.
    producers: HashMap<Option<i64>, Known>,
    rings: HashMap<(u32, u32), Gathered>,
    named: HashSet<u64>,
    gathered: usize,
    unknown: u64,
    events: u64,
}

struct Known {
    producer: Producer,
    /// Host cores by NC.
    cores: HashMap<u32, u32>,
}

#[derive(Default)]
struct Gathered {
    packed: Vec<u8>,
    seq: u64,
    told: Vec<Correlation>,
}

impl<W: Write> Import<W> {
    fn part(&mut self, part: Part) -> io::Result<()> {
        self.writer.part(&TracePart { part: Some(part) })
    }

    fn event(&mut self, event: &JsonEvent) -> io::Result<()> {
        let Some(trace_type) = type_of(&event.event_type) else {
            self.unknown += 1;
            return Ok(());
        };
        self.names_of(event)?;
        let producer_id = self.producer(event)?;
        let key = (producer_id, event.nc_idx);
        let ring = self.rings.entry(key).or_default();
        let record = record(event, trace_type, ring);
        let bytes = record.to_bytes();
        ring.packed.extend_from_slice(&bytes);
        self.gathered += bytes.len();
        self.events += 1;
        if ring.packed.len() >= GATHERED {
            self.flush(key)?;
        }
        if self.gathered >= GATHERED_MAX {
            let keys: Vec<(u32, u32)> = self.rings.keys().copied().collect();
            for key in keys {
                self.flush(key)?;
            }
        }
        Ok(())
    }

    fn producer(&mut self, event: &JsonEvent) -> io::Result<u32> {
        let next = u32::try_from(self.producers.len() + 1).map_err(io::Error::other)?;
        let mut new = None;
        let known = self.producers.entry(event.process_id).or_insert_with(|| {
            let pid = event.process_id.and_then(|id| i32::try_from(id).ok());
            let producer = Producer {
                producer_id: next,
                pid: pid.filter(|pid| *pid > 0),
                worker_gid: event.worker_gid,
                ..Producer::default()
            };
            new = Some(producer.clone());
            Known {
                producer,
                cores: HashMap::new(),
            }
        });
        if let Some(core) = event.host_nc_idx {
            known.cores.insert(event.nc_idx, core);
        }
        let id = known.producer.producer_id;
        if let Some(producer) = new {
            self.part(Part::Producer(producer))?;
        }
        Ok(id)
    }

    fn names_of(&mut self, event: &JsonEvent) -> io::Result<()> {
        let model = event.number("model_id").zip(event.model_name());
        let span = event.name.as_deref();
        let span = span.map(|name| (strings::get_id(name.as_bytes()), name));
        let tracking = event.tracking_name.as_deref();
        let tracking = tracking.map(|name| (event.tracking_id, name));
        let mut entries = Vec::new();
        for (id, name) in [model, span, tracking].into_iter().flatten() {
            if self.named.insert(id) {
                entries.push(StringEntry {
                    id,
                    text: name.to_owned(),
                });
            }
        }
        if entries.is_empty() {
            return Ok(());
        }
        let first = (self.named.len() - entries.len()) as u64;
        self.part(Part::Strings(Strings { first, entries }))
    }

    fn flush(&mut self, key: (u32, u32)) -> io::Result<()> {
        let Some(ring) = self.rings.get_mut(&key) else {
            return Ok(());
        };
        let (packed, entries) = (
            std::mem::take(&mut ring.packed),
            std::mem::take(&mut ring.told),
        );
        self.gathered -= packed.len();
        let (producer_id, nc_idx) = key;
        if !entries.is_empty() {
            self.part(Part::Correlations(Correlations {
                producer_id,
                nc_idx,
                entries,
            }))?;
        }
        if packed.is_empty() {
            return Ok(());
        }
        self.part(Part::Records(Records {
            producer_id,
            nc_idx,
            packed: packed.into(),
        }))
    }

    fn finish(mut self) -> io::Result<()> {
        let mut keys: Vec<(u32, u32)> = self.rings.keys().copied().collect();
        keys.sort_unstable();
        for key in keys {
            self.flush(key)?;
        }
        let mut known: Vec<Known> = self.producers.drain().map(|(_, known)| known).collect();
        known.sort_by_key(|known| known.producer.producer_id);
        for Known {
            mut producer,
            cores,
        } in known
        {
            // Only all of them in a row can be told.
            let count = u32::try_from(cores.len()).unwrap_or(0);
            let row = (0..count).map_while(|nc| cores.get(&nc).copied());
            producer.visible_cores = row.collect();
            if producer.visible_cores.len() == cores.len() && !cores.is_empty() {
                self.part(Part::Producer(producer))?;
            }
        }
        let events = self.events;
        self.part(Part::End(FetchEnd {
            events,
            ..FetchEnd::default()
        }))?;
        self.writer.finish().map(|_| ())
    }
}

fn type_of(name: &EventName) -> Option<u32> {
    let name = name.name();
    match EventType::from_name(name) {
        Some(kind) => Some(kind.value()),
        None => name.strip_prefix("unknown_")?.parse().ok(),
    }
}

fn record(event: &JsonEvent, trace_type: u32, ring: &mut Gathered) -> Record {
    let mut data = [0; 5];
    let kind = EventType::from_value(trace_type);
    let layout = kind
        .zip(event.phase)
        .and_then(|(kind, phase)| payload::layout(kind, phase));
    if let Some(layout) = layout {
        for key in layout.json_keys {
            if let Some(value) = event.value(key.name) {
                put(&mut data, layout, key, value);
            }
        }
        // The payload has no place for the model: it was another event's.
        let elsewhere = layout
            .json_keys
            .iter()
            .any(|key| key.name == "model_id" && key.field.is_none());
        if elsewhere
            && let (Some(model_id), Some(exec_id)) =
                (event.number("model_id"), event.number("exec_id"))
        {
            let exec_id = correlation::exec_key(exec_id);
            let last = ring.told.last();
            if last.is_none_or(|last| (last.exec_id, last.model_id) != (exec_id, Some(model_id))) {
                ring.told.push(Correlation {
                    exec_id,
                    model_id: Some(model_id),
                    sync: None,
                });
            }
        }
    }
    if let Some(name) = &event.name {
        data[0] = strings::get_id(name.as_bytes());
    }
    ring.seq = match event.nc_local_id {
        0 => ring.seq + 1,
        seq => seq,
    };
    let draft = Draft {
        trace_type,
        phase: event.phase.map_or(u32::MAX, |phase| phase.value()),
        nc_idx: event.nc_idx,
        thread_id: event.thread_id,
        tracking_id: event.tracking_id,
        timestamp_ns: event.timestamp_ns,
        data,
        nrta_seq_id: event.nrta_seq_id,
    };
    let mut record = draft.finish(ring.seq);
    if event.id != 0 {
        record.words[2] = event.id;
    }
    record
}

/// Puts a value of the document where its field is; what does not fit there stays zero.
fn put(data: &mut [u64; 5], layout: &PayloadLayout, key: &JsonKey, value: &Value) {
    let Some(field) = key.field.and_then(|place| layout.fields.get(place)) else {
        return;
    };
    let number = match (key.rendering, value) {
        (Rendering::Algorithm, Value::String(name)) => number_of(name, names::algorithm),
        (Rendering::UsageType, Value::String(name)) => number_of(name, names::usage_type),
        (Rendering::MemType, Value::String(name)) => number_of(name, names::mem_type),
        (Rendering::Hex, Value::String(text)) => text
            .strip_prefix("0x")
            .and_then(|digits| u64::from_str_radix(digits, 16).ok()),
        (_, Value::Bool(truth)) => Some((*truth).into()),
        (_, Value::String(digits)) => digits.parse().ok(),
        (_, value) => value
            .as_u64()
            .or_else(|| value.as_i64().map(i64::cast_unsigned)),
    };
    let bits = match field.kind {
        FieldKind::Bool | FieldKind::U8 => 8,
        FieldKind::U16 => 16,
        FieldKind::U32 | FieldKind::I32 => 32,
        FieldKind::U64 => 64,
    };
    let number = number.unwrap_or(0) & (u64::MAX >> (64 - bits));
    data[field.offset / 8] |= number << (field.offset % 8 * 8);
}

/// The first number that has this name; for a name of no number, one that has none.
fn number_of(name: &str, of: fn(u64) -> &'static str) -> Option<u64> {
    (0..=255).find(|number| of(*number) == name)
}
