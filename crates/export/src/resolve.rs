//! Fills into an event what only other events of its execution know: host time and model.
//!
//! ```text
//!  record ──▶ tells a fact? ──▶ executions (the last 65,536 of the ring)
//!     │
//!     ├── needs nothing, or all is known, and nothing is held ───────────────▶ sink
//!     └── else: queue of held events ──▶ in order, as soon as the first of them is complete ──▶ sink
//!                                        (or as it is, when 65,536 others have come, or at the end)
//! ```
//!
//! One [`Resolver`] serves one ring. JSON and summary use the same one, so their times agree.

use std::collections::VecDeque;

use nrt_trace_abi::record::Record;
use nrt_trace_model::correlation::{self, Fact, REMEMBERED, Sync};
use nrt_trace_proto::v1::{Correlations, SyncPoint};

use crate::recent::Recent;

/// Events that wait for their partner, for each ring.
pub(crate) const HELD_MAX: usize = 65_536;

/// What is known of an execution.
#[derive(Clone, Copy, Debug, Default)]
struct Execution {
    model_id: Option<u64>,
    sync: Option<Sync>,
}

/// What an event needs from others: nothing, where `exec_id` is absent.
#[derive(Clone, Copy, Debug, Default)]
struct Need {
    exec_id: Option<u32>,
    nc_timestamp_ns: u64,
    model: bool,
}

#[derive(Clone, Debug)]
struct Held<T> {
    item: T,
    timestamp_ns: u64,
    need: Need,
}

/// What the sink gets beside the event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Resolved {
    /// Host time, ns: moved by the sync point for hardware events that have one.
    pub(crate) timestamp_ns: u64,
    /// Model of the execution, for the types that show it without having it.
    pub(crate) model_id: Option<u64>,
}

/// What a sink needs of an event, also of one that has to wait.
pub(crate) trait Item {
    fn of(record: &Record) -> Self;
}

impl Item for Record {
    #[inline]
    fn of(record: &Record) -> Self {
        *record
    }
}

/// What the events of one ring told of executions, for a later document of the same ring.
#[derive(Clone, Debug)]
pub(crate) struct Learned {
    executions: Recent<u32, Execution>,
    begun: Recent<(u32, u64), u32>,
}

/// The events of one ring on their way to a sink.
#[derive(Clone, Debug)]
pub(crate) struct Resolver<T> {
    executions: Recent<u32, Execution>,
    /// Execution of device spans that have begun, by event type and tracking id: their ends don't name it.
    begun: Recent<(u32, u64), u32>,
    /// Empty, or its first event is incomplete.
    held: VecDeque<Held<T>>,
    /// Whether the sink wants models at all.
    models: bool,
}

impl<T: Item> Resolver<T> {
    /// A resolver without knowledge. If `models` is false no event waits for its model.
    pub(crate) fn new(models: bool) -> Self {
        let (executions, begun) = (Recent::new(REMEMBERED), Recent::new(REMEMBERED));
        Self {
            executions,
            begun,
            held: VecDeque::new(),
            models,
        }
    }

    /// Forgets a ring, for the next one. What is held is forgotten too.
    pub(crate) fn clear(&mut self) {
        self.executions.clear();
        self.begun.clear();
        self.held.clear();
    }

    /// A resolver that knows what an earlier one learned.
    pub(crate) fn knowing(models: bool, learned: Learned) -> Self {
        let Learned { executions, begun } = learned;
        Self {
            executions,
            begun,
            held: VecDeque::new(),
            models,
        }
    }

    /// What it learned. What is held is gone: flush first.
    pub(crate) fn into_learned(self) -> Learned {
        Learned {
            executions: self.executions,
            begun: self.begun,
        }
    }

    /// Takes in what earlier events said, before the records that need it. What is held stays until the next event.
    pub(crate) fn correlations(&mut self, correlations: &Correlations) {
        for entry in &correlations.entries {
            if let Some(model_id) = entry.model_id {
                self.learn(entry.exec_id, Fact::Model(model_id));
            }
            if let Some(SyncPoint {
                nc_timestamp_ns,
                cpu_timestamp_ns,
            }) = entry.sync
            {
                self.learn(
                    entry.exec_id,
                    Fact::Sync(Sync {
                        nc_timestamp_ns,
                        cpu_timestamp_ns,
                    }),
                );
            }
        }
    }

    fn learn(&mut self, exec_id: u32, fact: Fact) {
        let execution = self.executions.get_or_insert(exec_id);
        match fact {
            Fact::Model(model_id) => execution.model_id = Some(model_id),
            Fact::Sync(sync) => execution.sync = Some(sync),
        }
    }

    /// Events that wait.
    pub(crate) fn held(&self) -> u64 {
        self.held.len() as u64
    }

    /// Takes the ring's next event; gives the sink what is complete by now.
    #[inline]
    pub(crate) fn record<E>(
        &mut self,
        record: &Record,
        sink: &mut impl FnMut(&T, Resolved) -> Result<(), E>,
    ) -> Result<(), E> {
        let (data, timestamp_ns) = (record.data(), record.timestamp_ns());
        let told = correlation::told_by(record.trace_type(), record.phase(), &data);
        if let Some((exec_id, fact)) = told {
            self.learn(exec_id, fact);
        }
        let need = self.need(record, &data);
        if self.held.is_empty() {
            if let Some(resolved) = self.complete(&need, timestamp_ns) {
                return sink(&T::of(record), resolved);
            }
            self.held.push_back(Held {
                item: T::of(record),
                timestamp_ns,
                need,
            });
            return Ok(());
        }
        self.held.push_back(Held {
            item: T::of(record),
            timestamp_ns,
            need,
        });
        if self.held.len() > HELD_MAX {
            self.give_up_first(sink)?;
            self.release(sink)
        } else if told.is_some() {
            self.release(sink)
        } else {
            Ok(())
        }
    }

    /// Gives the sink everything that waits, complete or not.
    pub(crate) fn flush<E>(
        &mut self,
        sink: &mut impl FnMut(&T, Resolved) -> Result<(), E>,
    ) -> Result<(), E> {
        while !self.held.is_empty() {
            self.give_up_first(sink)?;
        }
        Ok(())
    }

    #[inline]
    fn need(&mut self, record: &Record, data: &[u64; 5]) -> Need {
        let Some(on_device) = correlation::on_device(record.trace_type(), record.phase(), data)
        else {
            return Need::default();
        };
        let span = (record.trace_type(), record.tracking_id());
        let exec_id = match on_device.exec_id {
            Some(exec_id) => {
                if record.phase() == nrt_trace_abi::record::PHASE_START {
                    *self.begun.get_or_insert(span) = exec_id;
                }
                Some(exec_id)
            }
            None => self.begun.remove(&span),
        };
        let model = self.models && on_device.wants_model;
        Need {
            exec_id,
            nc_timestamp_ns: on_device.nc_timestamp_ns,
            model,
        }
    }

    /// What is known for `need`, and whether that is all.
    fn known(&self, need: &Need, timestamp_ns: u64) -> (Resolved, bool) {
        let Some(exec_id) = need.exec_id else {
            return (
                Resolved {
                    timestamp_ns,
                    model_id: None,
                },
                true,
            );
        };
        let Execution { model_id, sync } =
            self.executions.get(&exec_id).copied().unwrap_or_default();
        let moved = sync
            .and_then(|s| s.host_time(need.nc_timestamp_ns))
            .unwrap_or(timestamp_ns);
        let complete = sync.is_some() && (model_id.is_some() || !need.model);
        (
            Resolved {
                timestamp_ns: moved,
                model_id: model_id.filter(|_| need.model),
            },
            complete,
        )
    }

    #[inline]
    fn complete(&self, need: &Need, timestamp_ns: u64) -> Option<Resolved> {
        let (resolved, complete) = self.known(need, timestamp_ns);
        complete.then_some(resolved)
    }

    fn release<E>(
        &mut self,
        sink: &mut impl FnMut(&T, Resolved) -> Result<(), E>,
    ) -> Result<(), E> {
        while let Some(first) = self.held.front() {
            let Some(resolved) = self.complete(&first.need, first.timestamp_ns) else {
                break;
            };
            sink(&first.item, resolved)?;
            self.held.pop_front();
        }
        Ok(())
    }

    fn give_up_first<E>(
        &mut self,
        sink: &mut impl FnMut(&T, Resolved) -> Result<(), E>,
    ) -> Result<(), E> {
        if let Some(first) = self.held.pop_front() {
            let (resolved, _) = self.known(&first.need, first.timestamp_ns);
            sink(&first.item, resolved)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
