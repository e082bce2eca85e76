//! Rings, short to write.

use nrt_trace_abi::record::{Draft, Record};
use nrt_trace_model::EventType;
use nrt_trace_proto::v1::{ClockAnchor, FetchBegin, TracePart, trace_part::Part};

use crate::parts::{account, part, process, records};

/// Realtime at the traces' beginning.
pub(crate) const T: u64 = 1_796_000_000_000_000_000;

pub(crate) fn anchor(realtime_ns: u64, boottime_ns: u64) -> ClockAnchor {
    ClockAnchor {
        realtime_ns,
        monotonic_ns: boottime_ns / 2,
        boottime_ns,
    }
}

pub(crate) fn begin() -> TracePart {
    part(Part::Begin(FetchBegin {
        format_version: 1,
        clock: Some(anchor(T, 5_000_000_000)),
        instance_id: "i-7".to_owned(),
        host_name: "build".to_owned(),
        ..FetchBegin::default()
    }))
}

/// The events of one ring.
pub(crate) struct Ring {
    nc: u32,
    pub(crate) thread: u64,
    data: [u64; 5],
    seq: u64,
    records: Vec<Record>,
}

impl Ring {
    pub(crate) fn new(nc: u32) -> Self {
        Self {
            nc,
            thread: 4711,
            data: [0; 5],
            seq: 0,
            records: Vec::new(),
        }
    }

    /// The payload of what follows.
    pub(crate) fn data(mut self, data: [u64; 5]) -> Self {
        self.data = data;
        self
    }

    /// Numbers that are missing from here on.
    pub(crate) fn skip(&mut self, numbers: u64) {
        self.seq += numbers;
    }

    /// An event at `T + at`.
    pub(crate) fn event(mut self, kind: EventType, phase: u32, tracking_id: u64, at: u64) -> Self {
        self.push(kind, phase, tracking_id, at);
        self
    }

    pub(crate) fn push(&mut self, kind: EventType, phase: u32, tracking_id: u64, at: u64) {
        self.seq += 1;
        let draft = Draft {
            trace_type: kind.value(),
            phase,
            nc_idx: self.nc,
            thread_id: self.thread,
            tracking_id,
            timestamp_ns: T + at,
            data: self.data,
            nrta_seq_id: None,
        };
        let mut record = draft.finish(self.seq);
        record.words[4] = tracking_id;
        self.records.push(record);
    }

    pub(crate) fn span(self, kind: EventType, tracking_id: u64, from: u64, to: u64) -> Self {
        self.event(kind, 0, tracking_id, from)
            .event(kind, 1, tracking_id, to)
    }

    pub(crate) fn records_of(&self, producer: u32) -> TracePart {
        records(producer, self.nc, &self.records)
    }

    pub(crate) fn parts(&self, producer: u32) -> Vec<TracePart> {
        let account = account(producer, self.nc, self.records.len() as u64);
        vec![self.records_of(producer), part(Part::Account(account))]
    }
}

pub(crate) fn of_one(ring: &Ring) -> Vec<TracePart> {
    let mut parts = vec![begin(), part(Part::Producer(process(1, 4711)))];
    parts.extend(ring.parts(1));
    parts
}
