//! What is kept of a ring while its events come: its sequence, where its events are drawn, its executions, its copies.

use nrt_trace_model::EventType;
use nrt_trace_model::correlation::{self, Fact};

use super::output::Sequence;
use super::rates::Rate;
use super::tracks::{RingKey, TrackId};
use crate::recent::Recent;
use crate::timeline::{Event, RingOf};

/// Threads whose executions are remembered.
const THREADS: usize = 1024;

/// The ring whose events come now.
#[derive(Debug)]
pub(super) struct Ring {
    pub(super) key: RingKey,
    pub(super) sequence: Sequence,
    /// Where events of a thread are drawn: the newest few, the last one first.
    groups: Vec<((u64, bool), usize)>,
    /// Executions that a thread has prepared or waited for since its last `nrt_execute`.
    prepared: Recent<u64, Prepared>,
    pub(super) copies: [Copies; 2],
}

/// Copies one way.
#[derive(Debug, Default)]
pub(super) struct Copies {
    pub(super) rate: Rate,
    pub(super) track: Option<TrackId>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Prepared {
    /// Executions, and when.
    executions: [(u32, u64); Ring::FLOWS],
    count: usize,
}

impl Ring {
    /// Executions of one `nrt_execute` that flows are drawn to.
    pub(super) const FLOWS: usize = 8;

    pub(super) fn new(ring: RingOf<'_>, sequence: Sequence) -> Self {
        Self {
            key: RingKey {
                producer_id: ring.producer_id,
                nc_idx: ring.nc_idx,
                worker_gid: ring.process.map_or(-1, |p| p.worker_gid),
            },
            sequence,
            groups: Vec::new(),
            prepared: Recent::new(THREADS),
            copies: Default::default(),
        }
    }

    #[inline]
    pub(super) fn group(&mut self, thread: u64, hardware: bool) -> Option<usize> {
        let wanted = (thread, hardware);
        let place = self.groups.iter().position(|(key, _)| *key == wanted)?;
        if place > 1 {
            self.groups.swap(place, 0);
            return Some(self.groups[0].1);
        }
        Some(self.groups[place].1)
    }

    pub(super) fn keep_group(&mut self, thread: u64, hardware: bool, group: usize) {
        self.groups.truncate(63);
        self.groups.insert(0, ((thread, hardware), group));
    }

    /// Flows that go through a span (or an instant, which is its own start and stop).
    pub(super) fn flows(
        &mut self,
        start: &Event,
        stop: &Event,
        flows: &mut [u64; Self::FLOWS],
    ) -> usize {
        let record = &start.record;
        let (kind, phase, data) = (record.trace_type(), record.phase(), record.data());
        if kind == EventType::ExecuteApi.value() {
            let Some(prepared) = self.prepared.remove(&record.thread_id()) else {
                return 0;
            };
            let during = |time: &u64| (start.time()..=stop.time()).contains(time);
            let mut count = 0;
            for (execution, time) in &prepared.executions[..prepared.count] {
                if during(time) {
                    flows[count] = self.flow(*execution);
                    count += 1;
                }
            }
            return count;
        }
        if let Some((execution, Fact::Model(_))) = correlation::told_by(kind, phase, &data) {
            let prepared = self.prepared.get_or_insert(record.thread_id());
            let count = prepared.count;
            let known = &prepared.executions[..count];
            if count < Self::FLOWS && !known.iter().any(|(known, _)| *known == execution) {
                prepared.executions[count] = (execution, start.time());
                prepared.count += 1;
            }
            return 0;
        }
        match correlation::on_device(kind, phase, &data).and_then(|on| on.exec_id) {
            Some(execution) => {
                flows[0] = self.flow(execution);
                1
            }
            None => 0,
        }
    }

    /// The flow of an execution: its number is one only within its ring.
    fn flow(&self, execution: u32) -> u64 {
        let RingKey {
            producer_id,
            nc_idx,
            ..
        } = self.key;
        1 << 63
            | u64::from(producer_id & 0x7F_FFFF) << 40
            | u64::from(nc_idx & 0xFF) << 32
            | u64::from(execution)
    }
}
