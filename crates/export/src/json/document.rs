//! The text of the document: buffer, events, names.

use std::io::{self, Write};
use std::ops::Range;

use hashbrown::HashMap;
use nrt_trace_abi::record::Record;
use nrt_trace_model::{EventType, Phase, strings};

use super::pen::{Again, Pen, Piece};
use super::plan::{Key, Plan, Plans, Value};
use super::{JsonOptions, text};
use crate::resolve::Resolved;

/// The largest number that a JavaScript reader keeps whole.
const SAFE_MAX: u64 = (1 << 53) - 1;

/// Models whose text is kept ready.
const MODELS_MAX: usize = 256;

/// The writer gets pieces of about this size.
const PIECE_BYTES: usize = 128 * 1024;

#[derive(Debug)]
pub(crate) struct Document<W> {
    writer: W,
    pen: Pen,
    plans: Plans,
    warned: Vec<bool>,
    names: Names,
    /// Whether spans and tracking ids show names.
    show_names: bool,
    /// Each event is a line, and nothing stands around them.
    lines: bool,
    /// Numbers that come in rows: an id that is its own tracking id, threads, executions.
    id: Again,
    thread_id: Again,
    pub(crate) events: u64,
    pub(crate) without_payload: u64,
}

/// What is the same in all events of a ring.
#[derive(Debug)]
pub(crate) struct RingText {
    /// `,"nc_idx":…,"nc_local_id":`
    nc: Piece,
    /// `,"worker_gid":…,"data":`
    worker: Piece,
    /// The keys after `nrta_seq_id`, and `}`.
    tail: Piece,
    /// Bytes of all three.
    room: usize,
}

impl RingText {
    pub(crate) fn new(
        nc_idx: u32,
        worker_gid: i32,
        process_id: Option<i64>,
        host_nc_idx: Option<u32>,
    ) -> Self {
        let process = process_id.map_or_else(String::new, |id| format!(",\"process_id\":{id}"));
        let host = host_nc_idx.map_or_else(String::new, |nc| format!(",\"host_nc_idx\":{nc}"));
        let nc = Piece::new(format!(",\"nc_idx\":{nc_idx},\"nc_local_id\":").as_bytes());
        let worker = Piece::new(format!(",\"worker_gid\":{worker_gid},\"data\":").as_bytes());
        let tail = Piece::new(format!("{process}{host}}}").as_bytes());
        let room = nc.len() + worker.len() + tail.len();
        Self {
            nc,
            worker,
            tail,
            room,
        }
    }
}

impl<W: Write> Document<W> {
    pub(crate) fn new(writer: W, options: JsonOptions) -> Self {
        let mut pen = Pen::new(if options.large_as_strings {
            SAFE_MAX
        } else {
            u64::MAX
        });
        pen.text(b"{\"events\":[");
        let warned = vec![false; Plans::COUNT];
        let (plans, names) = (Plans::new(), Names::default());
        Self {
            writer,
            pen,
            plans,
            warned,
            names,
            show_names: options.names,
            lines: false,
            id: Again::default(),
            thread_id: Again::default(),
            events: 0,
            without_payload: 0,
        }
    }

    /// Each event becomes a line of its own.
    pub(crate) fn make_lines(&mut self) {
        self.lines = true;
        self.pen.clear();
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.write_out()?;
        self.writer.flush()
    }

    pub(crate) fn name(&mut self, id: u64, text: &str) {
        self.names.insert(id, text);
    }

    /// Appends an event.
    #[inline]
    pub(crate) fn event(
        &mut self,
        record: &Record,
        resolved: Resolved,
        ring: &RingText,
    ) -> io::Result<()> {
        let position = Plans::position(record.trace_type(), record.phase());
        let plan = self.plans.at(position);
        if plan.gated {
            self.without_payload += 1;
            if !std::mem::replace(&mut self.warned[position], true) {
                warn_of_gate(record);
            }
        }
        let out = &mut self.pen;
        out.reserve(plan.room + ring.room);
        if self.events > 0 && !self.lines {
            out.literal(b",");
        }
        head(out, plan, record);
        out.number_again(record.id(), &mut self.id);
        out.piece(&ring.nc);
        out.number(record.seq());
        out.literal(b",\"tracking_id\":");
        out.number_again(record.tracking_id(), &mut self.id);
        out.literal(b",\"thread_id\":");
        out.number_again(record.thread_id(), &mut self.thread_id);
        out.piece(&ring.worker);
        data(
            out,
            &plan.keys,
            &record.data(),
            resolved.model_id,
            &mut self.names,
        );
        out.literal(b",\"timestamp_ns\":");
        out.number(resolved.timestamp_ns);
        if let Some(id) = record.nrta_seq_id() {
            out.literal(b",\"nrta_seq_id\":");
            out.number(id);
        }
        if self.show_names {
            self.names.beside(out, record);
        }
        out.piece(&ring.tail);
        if self.lines {
            out.literal(b"\n");
        }
        self.events += 1;
        if out.written().len() >= PIECE_BYTES {
            self.write_out()
        } else {
            Ok(())
        }
    }

    pub(crate) fn finish(mut self) -> io::Result<W> {
        if !self.lines {
            self.pen.text(b"],\"data_version\":2}");
        }
        self.write_out()?;
        self.writer.flush()?;
        Ok(self.writer)
    }

    fn write_out(&mut self) -> io::Result<()> {
        self.writer.write_all(self.pen.written())?;
        self.pen.clear();
        Ok(())
    }
}

/// `{"event_type":…,"id":`.
#[inline]
fn head(out: &mut Pen, plan: &Plan, record: &Record) {
    out.piece(&plan.head);
    if EventType::from_value(record.trace_type()).is_none() {
        out.number(record.trace_type().into());
        let phase = Phase::from_value(record.phase()).map_or("unknown", Phase::name);
        out.text(Plan::after_type(phase).as_bytes());
    }
}

#[inline]
fn data(
    out: &mut Pen,
    keys: &[Key],
    data: &[u64; 5],
    model_of_execution: Option<u64>,
    names: &mut Names,
) {
    if keys.is_empty() {
        out.literal(b"{}");
        return;
    }
    for Key { prefix, value } in keys {
        let model_id = match value {
            Value::ModelOfExecution => match model_of_execution {
                None => continue,
                some => some,
            },
            Value::Model(bits) => Some(bits.get(data)),
            _ => None,
        };
        out.piece(prefix);
        match *value {
            Value::Unsigned(bits) => out.number(bits.get(data)),
            #[expect(clippy::cast_possible_truncation, reason = "a 32-bit field")]
            Value::Signed(bits) => out.signed((bits.get(data) as u32).cast_signed()),
            Value::Bool(bits) if bits.get(data) == 0 => out.literal(b"false"),
            Value::Bool(_) => out.literal(b"true"),
            Value::Hex(bits) => out.hex(bits.get(data)),
            Value::Name(bits, name) => {
                out.literal(b"\"");
                out.text(name(bits.get(data)).as_bytes());
                out.literal(b"\"");
            }
            Value::Model(_) | Value::ModelOfExecution => {
                if let Some(id) = model_id {
                    names.append(out, id);
                }
            }
        }
    }
    out.literal(b"}");
}

#[cold]
fn warn_of_gate(record: &Record) {
    let kind = EventType::from_value(record.trace_type());
    tracing::warn!(
        trace_type = record.trace_type(),
        event_type = kind.map_or("unknown", EventType::name),
        phase = Phase::from_value(record.phase()).map_or("unknown", Phase::name),
        "events of this type have no payload in this phase: their `data` is empty"
    );
}

/// Names by id, quoted and escaped once.
#[derive(Debug, Default)]
struct Names {
    text: Vec<u8>,
    ranges: HashMap<u64, Range<usize>>,
    /// Ids and names of models as they are written, the newest few, and where each id's is.
    models: Vec<Piece>,
    places: HashMap<u64, usize>,
    /// The last answer: most events in a row are of one model.
    last: Option<(u64, usize)>,
}

impl Names {
    /// The first text of an id stays.
    fn insert(&mut self, id: u64, text: &str) {
        if id == strings::INVALID_ID || self.ranges.contains_key(&id) {
            return;
        }
        let start = self.text.len();
        text::string(&mut self.text, text);
        self.ranges.insert(id, start..self.text.len());
        self.forget();
    }

    /// The id of a model, and its name as the key that follows it.
    #[inline]
    fn append(&mut self, out: &mut Pen, id: u64) {
        let place = match self.last {
            Some((last, place)) if last == id => place,
            _ => self.place(out, id),
        };
        out.long_piece(&self.models[place]);
    }

    fn place(&mut self, out: &Pen, id: u64) -> usize {
        if !self.places.contains_key(&id) {
            if self.models.len() == MODELS_MAX {
                self.forget();
            }
            let mut text = out.number_text(id);
            if let Some(range) = self.ranges.get(&id) {
                text.extend_from_slice(b",\"model_name\":");
                text.extend_from_slice(&self.text[range.clone()]);
            }
            self.places.insert(id, self.models.len());
            self.models.push(Piece::new(&text));
        }
        let place = self.places[&id];
        self.last = Some((id, place));
        place
    }

    fn forget(&mut self) {
        self.models.clear();
        self.places.clear();
        self.last = None;
    }

    /// The names of a `generic` span, whose first word is a string's id, and of a tracking id that is a string's.
    fn beside(&self, out: &mut Pen, record: &Record) {
        let generic = record.trace_type() == EventType::Generic.value();
        if generic && let Some(range) = self.ranges.get(&record.data()[0]) {
            out.literal(b",\"name\":");
            out.text(&self.text[range.clone()]);
        }
        if let Some(range) = self.ranges.get(&record.tracking_id()) {
            out.literal(b",\"tracking_name\":");
            out.text(&self.text[range.clone()]);
        }
    }
}
