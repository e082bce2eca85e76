//! Captures that a process asks for itself, over its own connection, and reads itself.
//!
//! Such a run has one producer, and nobody but that producer reads it: the process has the rings mapped, and keeps a
//! cursor of its own. The daemon makes the rings, opens the gates, and bounds the memory.
//!
//! ```text
//!   rings of no run: StartOwn ──▶ rings of its own ─────────────────────────── StopOwn ──▶ none, or the covering run's
//!   rings of a run:  StartOwn ──▶ joined: the same rings, gates the union ──── StopOwn ──▶ the same, that run's gates
//!                                   │ that run is stopped
//!                                   ▼
//!                                 rings of its own; numbers go on where the others ended
//! ```
//!
//! While it lasts the process changes runs only when the run that has its rings is stopped: a start of the host or of its
//! token does not take it away, and covers it as soon as its own capture has ended. What only the process's own capture
//! asked for is passed by when the other run is read (`crate::drain::ring`).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use nrt_trace_abi::MAX_NCS;
use nrt_trace_abi::geometry::CAPACITY_RANGE;
use nrt_trace_abi::message::{OwnAnswer, StartOwn, StopOwn};
use nrt_trace_model::Status;
use nrt_trace_model::filter::TypeSet;
use nrt_trace_shm::clock::realtime_ns;

use super::Registry;
use super::producer::{Link, Phase};
use crate::config::MIN_EVENTS_PER_NC;
use crate::run::cores::CoreFilter;
use crate::run::filter::{Filter, PastFilters};
use crate::run::tally::Tally;
use crate::run::{Own, Run, RunId};

impl Registry {
    /// A producer's own run, if it has one.
    pub(super) fn own_run(&self, producer: u32) -> Option<&Run> {
        self.runs.iter().find(|run| run.is_own_of(producer))
    }

    fn own_mut(&mut self, producer: u32) -> Option<&mut Own> {
        let run = self.runs.iter_mut().find(|run| run.is_own_of(producer));
        run.and_then(|run| run.own.as_mut())
    }

    /// Begins a capture of a process by itself; the answer comes when its gates are open.
    pub(super) fn start_own(&mut self, id: u32, message: &StartOwn) {
        let Some(producer) = self.producers.get(&id) else {
            return;
        };
        let refused = if self.own_run(id).is_some() {
            Some((
                Status::Failure,
                "this process is captured by itself already",
            ))
        } else if producer.quarantined {
            Some((Status::Failure, "this process is quarantined"))
        } else if !CAPACITY_RANGE.contains(&message.max_events_per_nc) {
            Some((Status::Invalid, "so many events fit no ring"))
        } else {
            None
        };
        if let Some((status, why)) = refused {
            tracing::debug!(producer = id, "no capture of its own: {why}");
            return self.answer(
                id,
                &OwnAnswer::new(message.request, code(status), false, why),
            );
        }
        let least = if self.config.test_small_rings {
            1
        } else {
            MIN_EVENTS_PER_NC
        };
        let joined = producer.phase.run();
        let run = Run {
            id: super::random().max(1),
            token: String::new(),
            started_ns: realtime_ns(),
            stopped_ns: None,
            cap: message.max_events_per_nc.max(least),
            filter: Filter {
                cores: CoreFilter::own(message.ncs),
                types: TypeSet::from_bits(message.types),
            },
            past: PastFilters::default(),
            shares: BTreeMap::new(),
            earlier: Vec::new(),
            forgotten: (None, 0),
            counted: Tally::default(),
            before: Tally::default(),
            fetch: None,
            followers: Vec::new(),
            asked: Instant::now(),
            own: Some(Own {
                producer: id,
                joined,
                unanswered: Some(message.request),
                next: BTreeMap::new(),
            }),
        };
        tracing::debug!(
            producer = id,
            run = %RunId(run.id),
            joined = joined.is_some(),
            "capturing on its own request"
        );
        self.runs.push(run);
        self.note_capturing();
        self.open_gates(id);
        self.reconcile(id);
        self.answer_own(id);
    }

    /// Ends a capture of a process by itself.
    pub(super) fn stop_own(&mut self, id: u32, message: &StopOwn) {
        let answer = if self.end_own(id) {
            OwnAnswer::new(message.request, code(Status::Success), false, "")
        } else {
            let why = "this process is not captured by itself";
            OwnAnswer::new(message.request, code(Status::Failure), false, why)
        };
        self.answer(id, &answer);
    }

    /// Lets a process's own run go; false if there was none.
    pub(super) fn end_own(&mut self, id: u32) -> bool {
        let Some(run) = self.own_run(id).map(|run| run.id) else {
            return false;
        };
        tracing::debug!(producer = id, run = %RunId(run), "its own capture ended");
        self.drop_run(run);
        // It may have had another's rings: then those gates become that one's alone.
        self.open_gates(id);
        self.reconcile(id);
        true
    }

    /// Answers a start, if the gates are open or will never be.
    pub(super) fn answer_own(&mut self, id: u32) {
        let Some(producer) = self.producers.get(&id) else {
            return;
        };
        let phase = producer.phase;
        let Some(run) = self.own_run(id) else { return };
        let Some(request) = run.own.as_ref().and_then(|own| own.unanswered) else {
            return;
        };
        let answer = match phase {
            Phase::Open { run: open, .. } if open == run.id => {
                OwnAnswer::new(request, code(Status::Success), false, "")
            }
            Phase::Open { run: open, .. } => {
                let say = self.terms(id, open);
                tracing::info!(producer = id, run = %RunId(open), "its own capture joins: {say}");
                OwnAnswer::new(request, code(Status::Success), true, &say)
            }
            Phase::Idle => {
                let why = (producer.not_captured.as_ref()).filter(|(of, _)| *of == run.id);
                let say = why.map_or("there is no room for the rings", |(_, why)| why);
                let answer = OwnAnswer::new(request, code(Status::Resource), false, say);
                self.end_own(id);
                return self.answer(id, &answer);
            }
            Phase::Arming { .. } | Phase::Closing { .. } => return,
        };
        if let Some(own) = self.own_mut(id) {
            own.unanswered = None;
        }
        self.answer(id, &answer);
    }

    /// What a capture that joins another run has to take as it is.
    fn terms(&self, id: u32, open: u64) -> String {
        let run = self.runs.iter().find(|run| run.id == open);
        let (Some(run), Some(own), Some(producer)) =
            (run, self.own_run(id), self.producers.get(&id))
        else {
            return String::new();
        };
        let rings = run
            .shares
            .get(&id)
            .map(|share| share.ncs())
            .unwrap_or_default();
        let missing = (own
            .filter
            .cores
            .rings(&producer.visible, self.config.default_cores)
            .into_iter())
        .filter(|nc| !rings.iter().any(|ring| *ring as usize == *nc))
        .count();
        let mut say = format!("a run is on, whose rings of {} events stay", run.cap);
        if missing > 0 {
            say.push_str(&format!(
                "; {missing} NeuronCores have no ring in it and are not captured"
            ));
        }
        say
    }

    fn answer(&mut self, id: u32, answer: &OwnAnswer) {
        if let Some(producer) = self.producers.get_mut(&id)
            && producer.send(answer) == Link::Down
        {
            self.connection_lost(id);
        }
    }

    /// Sets the gates of a producer that has rings: what their run wants, and what its own run wants of them.
    pub(super) fn open_gates(&mut self, id: u32) {
        let Some(producer) = self.producers.get(&id) else {
            return;
        };
        let Phase::Open {
            run: open,
            generation,
        } = producer.phase
        else {
            return;
        };
        let own = (self.own_run(id))
            .filter(|own| own.id != open)
            .map(|own| own.filter.clone());
        let Some(run) = self.runs.iter_mut().find(|run| run.id == open) else {
            return;
        };
        if let Some(share) = run.shares.get_mut(&id) {
            share.ask_for(own.is_some(), |nc| {
                run.filter.types_of(&producer.visible, nc)
            });
        }
        let gates_of = |filter: &Filter| {
            let types = filter.types.bits();
            filter.cores.gates(&producer.visible, types, generation)
        };
        let mut gates = gates_of(&run.filter);
        if let Some(own) = own
            && let Some(share) = run.shares.get(&id)
        {
            // Only where there is a ring: elsewhere it would count as an event that the other run has no ring for.
            let rings: BTreeSet<usize> = share.ncs().into_iter().map(|nc| nc as usize).collect();
            let wanted = gates_of(&own);
            for nc in (0..MAX_NCS).filter(|nc| rings.contains(nc)) {
                gates[nc] |= wanted[nc];
            }
        }
        producer.page.set_gates(&gates);
    }

    /// Notes where the rings end that a producer's own capture had joined, and that end now: its own go on from there.
    pub(super) fn part_from_joined(&mut self, id: u32, run: u64) {
        let left = self.runs.iter().find(|other| other.id == run);
        let Some(next) = left.map(|run| run.next_numbers(id)) else {
            return;
        };
        if let Some(own) = self.own_mut(id)
            && own.joined == Some(run)
        {
            (own.joined, own.next) = (None, next);
        }
    }
}

/// A status as messages carry it.
fn code(status: Status) -> u32 {
    status.code().unsigned_abs()
}
