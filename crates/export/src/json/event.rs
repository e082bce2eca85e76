//! An event as a JSON document shows it.

use std::borrow::Cow;
use std::io::{self, Write};

use nrt_trace_model::{EventType, Phase, payload};
use serde_json::Value;

use super::text;

/// An event that was read from a document.
///
/// What a document shows is kept as it stands: names of events and keys that nothing here knows, too. What a document
/// does not show (words of the payload that have no key) is not there.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonEvent {
    /// Its type.
    pub event_type: EventName,
    /// Start, stop or instant; `None` for a phase that is none of them.
    pub phase: Option<Phase>,
    /// The event's id, 0 where absent.
    pub id: u64,
    /// NC index as the process sees it.
    pub nc_idx: u32,
    /// Sequence number within its ring, 0 where absent.
    pub nc_local_id: u64,
    /// Ties a stop to its start.
    pub tracking_id: u64,
    /// Thread, 0 where absent.
    pub thread_id: u64,
    /// Worker in its group, -1 when unknown or absent.
    pub worker_gid: i32,
    /// Keys and values of `data`, in their order.
    pub data: Vec<(Cow<'static, str>, Value)>,
    /// Host time, ns.
    pub timestamp_ns: u64,
    /// Asynchronous request, where the event belongs to one.
    pub nrta_seq_id: Option<u64>,
    /// Name of a `generic` span, in documents that show names.
    pub name: Option<String>,
    /// Name of the string whose id the tracking id is, in documents that show names.
    pub tracking_name: Option<String>,
    /// Process, in documents that hold several.
    pub process_id: Option<i64>,
    /// Core of the host, where known.
    pub host_nc_idx: Option<u32>,
    /// Keys that this version does not know, in their order.
    pub more: Vec<(String, Value)>,
}

/// The type of an event in a document.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum EventName {
    /// One of the 46, by display name or alias.
    Known(EventType),
    /// A name that nothing here knows: of a newer runtime.
    Other(String),
}

impl EventName {
    /// The type that a document calls `name`.
    #[must_use]
    pub fn new(name: &str) -> Self {
        EventType::from_name(name).map_or_else(|| Self::Other(name.to_owned()), Self::Known)
    }

    /// The name to print.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Known(kind) => kind.name(),
            Self::Other(name) => name,
        }
    }
}

impl JsonEvent {
    /// The value of a key of `data`.
    #[must_use]
    pub fn value(&self, key: &str) -> Option<&Value> {
        self.data.iter().find(|(k, _)| k == key).map(|(_, v)| v)
    }

    /// A whole number of `data`, also where it was written as a string of digits.
    #[must_use]
    pub fn number(&self, key: &str) -> Option<u64> {
        match self.value(key)? {
            Value::String(digits) => digits.parse().ok(),
            value => value.as_u64(),
        }
    }

    /// The name of the event's model.
    #[must_use]
    pub fn model_name(&self) -> Option<&str> {
        self.value("model_name")?.as_str()
    }

    /// Writes the event as it stands in a document, with known names in their printed form.
    ///
    /// # Errors
    /// Of the writer.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let mut head = Vec::with_capacity(256);
        head.extend_from_slice(b"{\"event_type\":");
        text::string(&mut head, self.event_type.name());
        let phase = self.phase.map_or("unknown", Phase::name);
        write!(
            head,
            ",\"phase\":\"{phase}\",\"id\":{},\"nc_idx\":{},\"nc_local_id\":{},\"tracking_id\":{},\"thread_id\":{},\"worker_gid\":{},\"data\":{{",
            self.id,
            self.nc_idx,
            self.nc_local_id,
            self.tracking_id,
            self.thread_id,
            self.worker_gid
        )?;
        for (i, (key, value)) in self.data.iter().enumerate() {
            pair(&mut head, i > 0, key, value)?;
        }
        write!(head, "}},\"timestamp_ns\":{}", self.timestamp_ns)?;
        if let Some(id) = self.nrta_seq_id {
            write!(head, ",\"nrta_seq_id\":{id}")?;
        }
        for (key, name) in [("name", &self.name), ("tracking_name", &self.tracking_name)] {
            if let Some(name) = name {
                write!(head, ",\"{key}\":")?;
                text::string(&mut head, name);
            }
        }
        if let Some(id) = self.process_id {
            write!(head, ",\"process_id\":{id}")?;
        }
        if let Some(core) = self.host_nc_idx {
            write!(head, ",\"host_nc_idx\":{core}")?;
        }
        for (key, value) in &self.more {
            pair(&mut head, true, key, value)?;
        }
        head.push(b'}');
        out.write_all(&head)
    }
}

fn pair(out: &mut Vec<u8>, comma: bool, key: &str, value: &Value) -> io::Result<()> {
    if comma {
        out.push(b',');
    }
    text::string(out, key);
    out.push(b':');
    match value {
        Value::String(value) => text::string(out, value),
        value => serde_json::to_writer(out, value)?,
    }
    Ok(())
}

/// The key itself if it is one that payloads have: it need not be copied then.
pub(super) fn key(name: &str) -> Cow<'static, str> {
    let known = payload::ALL
        .iter()
        .flat_map(|layout| layout.json_keys)
        .map(|key| key.name)
        .chain(["model_name"])
        .find(|known| *known == name);
    known.map_or_else(|| Cow::Owned(name.to_owned()), Cow::Borrowed)
}
