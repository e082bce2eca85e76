//! What earlier events of a ring said about executions, for later events that only know the execution's number.
//!
//! Rules of what an event tells are `nrt_trace_model::correlation`'s; here is the memory: the last 65,536 executions of
//! a ring. A fetch does not touch what is committed: it collects what it learns in a table of its own, which a commit
//! hands over. Copying a full table for each fetch would cost a millisecond a ring.

use std::collections::VecDeque;
use std::sync::LazyLock;

use hashbrown::HashMap;
use nrt_trace_abi::EVENT_TYPES;
use nrt_trace_abi::record::Record;
use nrt_trace_model::correlation::{Fact, REMEMBERED, Sync, exec_key};
use nrt_trace_model::payload::{self, Field, FieldValue};
use nrt_trace_model::{Category, EventType, Phase};
use nrt_trace_proto::v1;

/// What is known of one execution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Known {
    /// Model that it runs.
    pub model: Option<u64>,
    /// A moment on both clocks.
    pub sync: Option<Sync>,
}

impl From<Fact> for Known {
    fn from(fact: Fact) -> Self {
        match fact {
            Fact::Model(model) => Self {
                model: Some(model),
                sync: None,
            },
            Fact::Sync(sync) => Self {
                model: None,
                sync: Some(sync),
            },
        }
    }
}

impl Known {
    /// This, and where it says nothing `older`.
    pub(crate) fn or(self, older: Self) -> Self {
        Self {
            model: self.model.or(older.model),
            sync: self.sync.or(older.sync),
        }
    }
}

/// The last executions that events told of, at most [`REMEMBERED`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Correlations {
    known: HashMap<u32, Known>,
    /// Keys in the order in which they were first told of.
    order: VecDeque<u32>,
}

impl Correlations {
    /// Notes what events told of execution `exec`.
    pub(crate) fn note(&mut self, exec: u32, known: Known) {
        if let Some(old) = self.known.get_mut(&exec) {
            *old = known.or(*old);
            return;
        }
        if self.order.len() == REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        self.order.push_back(exec);
        self.known.insert(exec, known);
    }

    /// What is known of execution `exec`.
    pub(crate) fn get(&self, exec: u32) -> Option<Known> {
        self.known.get(&exec).copied()
    }

    /// Adds what a later table knows.
    pub(crate) fn absorb(&mut self, later: &Self) {
        for exec in &later.order {
            if let Some(known) = later.get(*exec) {
                self.note(*exec, known);
            }
        }
    }

    /// What is known of each of `execs` here or else in `older`, as a message's entries.
    pub(crate) fn entries(&self, older: &Self, execs: &[u32]) -> Vec<v1::Correlation> {
        let entry = |exec: &u32| {
            let known = match (self.get(*exec), older.get(*exec)) {
                (Some(new), Some(old)) => new.or(old),
                (new, old) => new.or(old)?,
            };
            Some(v1::Correlation {
                exec_id: *exec,
                model_id: known.model,
                sync: known.sync.map(|sync| v1::SyncPoint {
                    nc_timestamp_ns: sync.nc_timestamp_ns,
                    cpu_timestamp_ns: sync.cpu_timestamp_ns,
                }),
            })
        };
        execs.iter().filter_map(entry).collect()
    }
}

/// The execution that a device's event refers to without saying all of it.
pub(crate) fn referred_by(record: &Record) -> Option<u32> {
    /// One bit for each type that refers to executions in some phase: nearly every event is none of them.
    static REFERRING: LazyLock<u64> = LazyLock::new(|| {
        FIELDS.iter().enumerate().fold(0, |bits, (value, phases)| {
            bits | u64::from(phases.iter().any(Option::is_some)) << value
        })
    });
    /// Where the number stands, by type and phase.
    static FIELDS: LazyLock<[[Option<&'static Field>; 3]; EVENT_TYPES as usize]> =
        LazyLock::new(|| {
            let mut fields = [[None; 3]; EVENT_TYPES as usize];
            // Sync points are hardware events, but tell all of it themselves.
            let refers = |t: &EventType| {
                t.category() == Category::Hardware && *t != EventType::TimestampSync
            };
            for event in EventType::ALL.into_iter().filter(refers) {
                for phase in Phase::ALL {
                    fields[event.index()][phase as usize] =
                        payload::layout(event, phase).and_then(|layout| layout.field("exec_id"));
                }
            }
            fields
        });
    let value = record.trace_type();
    if value >= EVENT_TYPES || *REFERRING >> value & 1 == 0 {
        return None;
    }
    let field = FIELDS
        .get(value as usize)?
        .get(record.phase() as usize)?
        .as_ref()?;
    match field.read(&record.data()) {
        FieldValue::Unsigned(exec_id) => Some(exec_key(exec_id)),
        FieldValue::Signed(_) | FieldValue::Bool(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use nrt_trace_abi::record::Draft;

    use super::*;

    const SYNC: Sync = Sync {
        nc_timestamp_ns: 5,
        cpu_timestamp_ns: 6,
    };

    fn record(trace_type: u32, phase: u32) -> Record {
        // Each word of the payload is told apart: low half 2n + 1, high half 2n + 2.
        let data = std::array::from_fn(|n| (2 * n as u64 + 1) | (2 * n as u64 + 2) << 32);
        Draft {
            trace_type,
            phase,
            data,
            ..Draft::default()
        }
        .finish(1)
    }

    #[test]
    fn device_events_refer_to_the_execution_at_their_payloads_place() {
        let started = [(6, 3), (7, 2), (8, 3), (24, 5), (26, 5)];
        for (trace_type, exec) in started {
            assert_eq!(
                referred_by(&record(trace_type, 0)),
                Some(exec),
                "type {trace_type}"
            );
        }
        assert_eq!(referred_by(&record(13, 2)), Some(2));
        assert_eq!(referred_by(&record(24, 1)), Some(5));
        // Stops hold no number, sync points and host events need nothing, unknown values are nobody's.
        let none = [
            (7, 1),
            (7, 3),
            (7, u32::MAX),
            (25, 0),
            (17, 0),
            (3, 0),
            (46, 0),
            (64 + 7, 0),
            (u32::MAX, 0),
        ];
        for (trace_type, phase) in none {
            assert_eq!(
                referred_by(&record(trace_type, phase)),
                None,
                "type {trace_type}, phase {phase}"
            );
        }
    }

    #[test]
    fn facts_of_one_execution_add_up_and_the_later_wins() {
        let mut table = Correlations::default();
        table.note(7, Fact::Model(1).into());
        table.note(7, Fact::Sync(SYNC).into());
        assert_eq!(
            table.get(7),
            Some(Known {
                model: Some(1),
                sync: Some(SYNC)
            })
        );
        table.note(7, Fact::Model(2).into());
        assert_eq!(table.get(7).unwrap().model, Some(2));
        assert_eq!(table.get(8), None);
    }

    #[test]
    fn the_oldest_execution_makes_room() {
        let (last, mut table) = (u32::try_from(REMEMBERED).unwrap(), Correlations::default());
        for exec in 0..=last {
            table.note(exec, Fact::Model(u64::from(exec)).into());
            table.note(exec, Fact::Sync(SYNC).into());
        }
        assert_eq!(
            (table.known.len(), table.order.len()),
            (REMEMBERED, REMEMBERED)
        );
        assert_eq!(table.get(0), None);
        assert!(table.get(1).is_some() && table.get(last).is_some());
    }

    #[test]
    fn a_commit_adds_what_the_fetch_learned() {
        let (mut old, mut new) = (Correlations::default(), Correlations::default());
        old.note(1, Fact::Model(10).into());
        old.note(2, Fact::Model(20).into());
        new.note(2, Fact::Sync(SYNC).into());
        new.note(3, Fact::Model(30).into());
        let entries = new.entries(&old, &[1, 2, 3, 4]);
        let told: Vec<_> = entries
            .iter()
            .map(|e| (e.exec_id, e.model_id, e.sync.is_some()))
            .collect();
        assert_eq!(
            told,
            [
                (1, Some(10), false),
                (2, Some(20), true),
                (3, Some(30), false)
            ]
        );
        old.absorb(&new);
        assert_eq!(
            old.get(2),
            Some(Known {
                model: Some(20),
                sync: Some(SYNC)
            })
        );
        assert_eq!(old.get(3).unwrap().model, Some(30));
    }
}
