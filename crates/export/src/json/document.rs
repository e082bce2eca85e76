//! The text of the document: buffer, events, names.

use std::io::{self, Write};
use std::ops::Range;

use hashbrown::HashMap;
use nrt_trace_abi::record::Record;
use nrt_trace_model::{Phase, strings};

use super::plan::{Key, Plan, Plans, Value};
use super::text;
use crate::resolve::Resolved;

/// The writer gets pieces of about this size.
const PIECE_BYTES: usize = 128 * 1024;

#[derive(Debug)]
pub(crate) struct Document<W> {
    writer: W,
    buffer: Vec<u8>,
    plans: Plans,
    warned: Vec<bool>,
    names: Names,
    pub(crate) events: u64,
    pub(crate) without_payload: u64,
}

/// What is the same in all events of a ring.
#[derive(Debug)]
pub(crate) struct RingText {
    /// `,"nc_idx":…,"nc_local_id":`
    nc: Vec<u8>,
    /// `,"worker_gid":…,"data":`
    worker: Vec<u8>,
    /// The keys after `nrta_seq_id`, and `}`.
    tail: Vec<u8>,
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
        Self {
            nc: format!(",\"nc_idx\":{nc_idx},\"nc_local_id\":").into_bytes(),
            worker: format!(",\"worker_gid\":{worker_gid},\"data\":").into_bytes(),
            tail: format!("{process}{host}}}").into_bytes(),
        }
    }
}

impl<W: Write> Document<W> {
    pub(crate) fn new(writer: W) -> Self {
        let mut buffer = Vec::with_capacity(PIECE_BYTES + 4096);
        buffer.extend_from_slice(b"{\"events\":[");
        let warned = vec![false; Plans::COUNT];
        let (plans, names) = (Plans::new(), Names::default());
        Self {
            writer,
            buffer,
            plans,
            warned,
            names,
            events: 0,
            without_payload: 0,
        }
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
        let out = &mut self.buffer;
        head(out, plan, record, self.events == 0);
        text::number(out, record.id());
        out.extend_from_slice(&ring.nc);
        text::number(out, record.seq());
        out.extend_from_slice(b",\"tracking_id\":");
        text::number(out, record.tracking_id());
        out.extend_from_slice(b",\"thread_id\":");
        text::number(out, record.thread_id());
        out.extend_from_slice(&ring.worker);
        data(
            out,
            &plan.keys,
            &record.data(),
            resolved.model_id,
            &mut self.names,
        );
        out.extend_from_slice(b",\"timestamp_ns\":");
        text::number(out, resolved.timestamp_ns);
        if let Some(id) = record.nrta_seq_id() {
            out.extend_from_slice(b",\"nrta_seq_id\":");
            text::number(out, id);
        }
        out.extend_from_slice(&ring.tail);
        self.events += 1;
        if out.len() >= PIECE_BYTES {
            self.write_out()
        } else {
            Ok(())
        }
    }

    pub(crate) fn finish(mut self) -> io::Result<W> {
        self.buffer.extend_from_slice(b"],\"data_version\":2}");
        self.write_out()?;
        self.writer.flush()?;
        Ok(self.writer)
    }

    fn write_out(&mut self) -> io::Result<()> {
        self.writer.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }
}

/// `,{"event_type":…,"id":`, without the comma for the first event.
#[inline]
fn head(out: &mut Vec<u8>, plan: &Plan, record: &Record, first: bool) {
    out.extend_from_slice(&plan.head[usize::from(first)..]);
    if nrt_trace_model::EventType::from_value(record.trace_type()).is_none() {
        text::number(out, record.trace_type());
        let phase = Phase::from_value(record.phase()).map_or("unknown", Phase::name);
        out.extend_from_slice(Plan::after_type(phase).as_bytes());
    }
}

#[inline]
fn data(
    out: &mut Vec<u8>,
    keys: &[Key],
    data: &[u64; 5],
    model_of_execution: Option<u64>,
    names: &mut Names,
) {
    if keys.is_empty() {
        out.extend_from_slice(b"{}");
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
        out.extend_from_slice(prefix);
        match *value {
            Value::Unsigned(bits) => text::number(out, bits.get(data)),
            #[expect(clippy::cast_possible_truncation, reason = "a 32-bit field")]
            Value::Signed(bits) => text::number(out, (bits.get(data) as u32).cast_signed()),
            Value::Bool(bits) => out.extend_from_slice(if bits.get(data) == 0 {
                b"false"
            } else {
                b"true"
            }),
            Value::Hex(bits) => text::hex(out, bits.get(data)),
            Value::Name(bits, name) => {
                out.push(b'"');
                out.extend_from_slice(name(bits.get(data)).as_bytes());
                out.push(b'"');
            }
            Value::Model(_) | Value::ModelOfExecution => {
                if let Some(id) = model_id {
                    text::number(out, id);
                    names.append(out, id);
                }
            }
        }
    }
    out.push(b'}');
}

#[cold]
fn warn_of_gate(record: &Record) {
    let kind = nrt_trace_model::EventType::from_value(record.trace_type());
    tracing::warn!(
        trace_type = record.trace_type(),
        event_type = kind.map_or("unknown", nrt_trace_model::EventType::name),
        phase = Phase::from_value(record.phase()).map_or("unknown", Phase::name),
        "events of this type have no payload in this phase: their `data` is empty"
    );
}

/// Names by id, as `,"model_name":"…"`, escaped once.
#[derive(Debug, Default)]
struct Names {
    text: Vec<u8>,
    ranges: HashMap<u64, Range<usize>>,
    /// The last answer: most events in a row are of one model.
    last: Option<(u64, Range<usize>)>,
}

impl Names {
    /// The first text of an id stays.
    fn insert(&mut self, id: u64, text: &str) {
        if id == strings::INVALID_ID || self.ranges.contains_key(&id) {
            return;
        }
        let start = self.text.len();
        self.text.extend_from_slice(b",\"model_name\":");
        text::string(&mut self.text, text);
        self.ranges.insert(id, start..self.text.len());
        self.last = None;
    }

    #[inline]
    fn append(&mut self, out: &mut Vec<u8>, id: u64) {
        if self.last.as_ref().is_none_or(|(last, _)| *last != id) {
            let range = self.ranges.get(&id).cloned().unwrap_or_default();
            self.last = Some((id, range));
        }
        if let Some((_, range)) = &self.last {
            out.extend_from_slice(&self.text[range.clone()]);
        }
    }
}
