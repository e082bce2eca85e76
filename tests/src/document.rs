//! A JSON trace document, read strictly.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value};

/// The document.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Document {
    /// All events, in the document's order.
    pub events: Vec<Event>,
    /// Always 2.
    pub data_version: u32,
}

/// An event of the document.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(
    missing_docs,
    reason = "the keys of the JSON document, by its own names"
)]
pub struct Event {
    pub event_type: String,
    pub phase: String,
    pub id: u64,
    pub nc_idx: u32,
    pub nc_local_id: u64,
    pub tracking_id: u64,
    pub thread_id: u64,
    pub worker_gid: i32,
    pub data: Map<String, Value>,
    pub timestamp_ns: u64,
    pub nrta_seq_id: Option<u64>,
    pub process_id: Option<u32>,
    pub host_nc_idx: Option<u32>,
}

/// What start and stop of a span share; process 0 where the document holds one process only.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(
    missing_docs,
    reason = "the keys of the JSON document, by its own names"
)]
pub struct SpanKey {
    pub process_id: u32,
    pub nc_idx: u32,
    pub event_type: String,
    pub tracking_id: u64,
}

/// A span of the document.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "two events")]
pub struct Span<'a> {
    pub start: &'a Event,
    pub stop: &'a Event,
}

/// Spans of a document, and what is no whole span.
#[derive(Clone, Debug, Default)]
pub struct Pairing<'a> {
    /// Whole spans.
    pub spans: BTreeMap<SpanKey, Span<'a>>,
    /// Starts without a stop.
    pub open: Vec<&'a Event>,
    /// Stops without a start, and second starts or stops.
    pub strays: Vec<&'a Event>,
}

impl Document {
    /// Reads the document of a file.
    ///
    /// # Panics
    ///
    /// If it is no document of version 2.
    #[must_use]
    pub fn read(path: &Path) -> Self {
        let bytes = fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        Self::parse(&bytes)
    }

    /// Reads a document.
    ///
    /// # Panics
    ///
    /// If it is no document of version 2.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Self {
        let document: Self = serde_json::from_slice(bytes).unwrap_or_else(|e| {
            panic!(
                "no trace document ({e}): {}…",
                String::from_utf8_lossy(&bytes[..bytes.len().min(300)])
            )
        });
        assert_eq!(document.data_version, 2);
        document
    }

    /// Events by process, or under 0 where the document holds one process.
    #[must_use]
    pub fn by_process(&self) -> BTreeMap<u32, Vec<&Event>> {
        let mut out = BTreeMap::<u32, Vec<&Event>>::new();
        for event in &self.events {
            out.entry(event.process_id.unwrap_or(0))
                .or_default()
                .push(event);
        }
        out
    }

    /// Pairs starts and stops.
    #[must_use]
    pub fn pair(&self) -> Pairing<'_> {
        let mut starts = BTreeMap::new();
        let mut out = Pairing::default();
        for event in self.events.iter().filter(|e| e.phase == "start") {
            out.strays.extend(starts.insert(event.span_key(), event));
        }
        for event in self.events.iter().filter(|e| e.phase == "stop") {
            let key = event.span_key();
            match starts.remove(&key) {
                Some(start) => {
                    out.spans.insert(key, Span { start, stop: event });
                }
                None => out.strays.push(event),
            }
        }
        out.open = starts.into_values().collect();
        out
    }
}

impl Event {
    /// What it shares with the other end of its span.
    #[must_use]
    pub fn span_key(&self) -> SpanKey {
        SpanKey {
            process_id: self.process_id.unwrap_or(0),
            nc_idx: self.nc_idx,
            event_type: self.event_type.clone(),
            tracking_id: self.tracking_id,
        }
    }

    /// An unsigned number of `data`.
    ///
    /// # Panics
    ///
    /// If there is none.
    #[must_use]
    pub fn number(&self, key: &str) -> u64 {
        let value = self.data.get(key).and_then(Value::as_u64);
        value.unwrap_or_else(|| panic!("no number {key} in {self:?}"))
    }
}

impl Span<'_> {
    /// Nanoseconds from start to stop.
    #[must_use]
    pub fn duration(&self) -> i64 {
        self.stop.timestamp_ns.cast_signed() - self.start.timestamp_ns.cast_signed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(phase: &str, nc_idx: u32, tracking_id: u64, timestamp_ns: u64) -> String {
        format!(
            r#"{{"event_type":"nrt_execute","phase":"{phase}","id":1,"nc_idx":{nc_idx},"nc_local_id":1,"tracking_id":{tracking_id},"thread_id":1,"worker_gid":-1,"data":{{}},"timestamp_ns":{timestamp_ns}}}"#
        )
    }

    fn document(events: &[String]) -> Document {
        let text = format!(r#"{{"events":[{}],"data_version":2}}"#, events.join(","));
        Document::parse(text.as_bytes())
    }

    #[test]
    fn a_span_is_a_start_and_a_stop_of_one_core_and_id() {
        let document = document(&[event("stop", 0, 5, 90), event("start", 0, 5, 20)]);
        let pairing = document.pair();
        assert_eq!((pairing.open.len(), pairing.strays.len()), (0, 0));
        let durations: Vec<_> = pairing.spans.values().map(Span::duration).collect();
        assert_eq!(durations, [70]);
    }

    #[test]
    fn what_is_no_whole_span_is_told() {
        let count = |events: &[String]| {
            let document = document(events);
            let pairing = document.pair();
            (
                pairing.spans.len(),
                pairing.open.len(),
                pairing.strays.len(),
            )
        };
        let (start, stop) = (event("start", 0, 5, 1), event("stop", 0, 5, 2));
        assert_eq!(count(std::slice::from_ref(&start)), (0, 1, 0));
        assert_eq!(count(std::slice::from_ref(&stop)), (0, 0, 1));
        assert_eq!(
            count(&[start.clone(), stop.clone(), stop.clone()]),
            (1, 0, 1)
        );
        assert_eq!(count(&[start.clone(), start.clone(), stop]), (1, 0, 1));
        assert_eq!(
            count(&[start.clone(), event("stop", 1, 5, 2)]),
            (0, 1, 1),
            "another core"
        );
        assert_eq!(
            count(&[start, event("stop", 0, 6, 2)]),
            (0, 1, 1),
            "another id"
        );
    }

    #[test]
    #[should_panic(expected = "unknown field")]
    fn a_key_that_neuron_does_not_have_is_refused() {
        let more = event("start", 0, 1, 1).replace(r#""data""#, r#""more":1,"data""#);
        let _read = document(&[more]);
    }
}
