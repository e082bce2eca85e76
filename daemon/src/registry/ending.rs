//! Connections that close, processes that end, words that can't be; and the budgets of what they leave.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use nrt_trace_ring::Impossible;

use super::Registry;
use super::arming::close_gates;
use super::producer::{Life, Phase, Producer};
use crate::run::scope_name;
use crate::run::share::{Share, total};

/// Producers that are told of after they ended and nothing of them is left.
const MAX_FORMER: usize = 256;
/// Producers of one run that ended, left nothing to read, and whose accounts nobody has fetched.
const MAX_UNTOLD: usize = 4096;
/// Runs of tokens that ended and have nothing left to read.
const MAX_ENDED_RUNS: usize = 64;

impl Registry {
    /// The connection of a producer is gone: it detached, replaced itself by another program, or ended.
    pub(super) fn connection_lost(&mut self, id: u32) {
        let Some(producer) = self.producers.get_mut(&id) else {
            return;
        };
        if !producer.is_connected() {
            return;
        }
        if self.talk.may(Instant::now()) {
            tracing::info!(
                producer = id,
                pid = producer.pid(),
                uid = producer.uid,
                "connection closed"
            );
        }
        self.part(id, Life::Detached);
    }

    /// The process of a producer has ended.
    pub(super) fn process_ended(&mut self, id: u32) {
        let Some(producer) = self.producers.get_mut(&id) else {
            return;
        };
        producer.pidfd = None; // closed, and so no longer watched
        if self.talk.may(Instant::now()) {
            tracing::info!(
                producer = id,
                pid = producer.pid(),
                uid = producer.uid,
                "process ended"
            );
        }
        let (away, connected) = (producer.is_away(), producer.is_connected());
        if !away && !connected {
            producer.life = Life::Dead;
        }
        for run in self.runs.iter_mut().filter(|_| !away && !connected) {
            run.parts_of_mut(id).for_each(|part| part.end(false));
        }
        self.end_late(id);
        if away {
            return self.lose_away(id, Life::Dead);
        }
        if connected {
            self.part(id, Life::Dead);
        }
        self.retire(id);
    }

    fn part(&mut self, id: u32, life: Life) {
        let Some(producer) = self.producers.get_mut(&id) else {
            return;
        };
        // Also of a process that lives: it still has the page, and would go on emitting for nobody.
        close_gates(producer, 0);
        producer.end(life);
        let lives = life == Life::Detached && producer.pidfd.is_some();
        self.changed = true;
        producer.socket = None;
        producer.page_files = None;
        self.clock.remove(id);
        self.members.remove(id);
        producer.names.merge_into(&self.names);
        let mut runs = Vec::new();
        for run in &mut self.runs {
            if run.shares.contains_key(&id) {
                run.parts_of_mut(id).for_each(|part| part.end(lives));
                runs.push(run.id);
            }
        }
        for run in runs {
            self.let_go(run, id);
        }
        self.spool_ended([id], false);
        self.end_own(id);
        self.settle_waits(Instant::now());
        self.retire(id);
    }

    /// Words that can't be were found in a producer's rings: nothing more is read of it.
    pub(super) fn quarantine(&mut self, id: u32, impossible: Impossible) {
        let Some(producer) = self.producers.get_mut(&id) else {
            return;
        };
        if std::mem::replace(&mut producer.quarantined, true) {
            return;
        }
        self.counts.quarantined += 1;
        tracing::warn!(
            producer = id,
            pid = producer.pid(),
            uid = producer.uid,
            "quarantined: {impossible}"
        );
        for run in &mut self.runs {
            run.parts_of_mut(id)
                .for_each(|part| part.quarantined = true);
        }
        self.end_own(id);
        self.disarm(id);
        self.settle_waits(Instant::now());
    }

    /// Producers that have ended, or let go of the connection.
    pub(super) fn ended(&self) -> impl Iterator<Item = u32> {
        let ended = |producer: &&Producer| matches!(producer.life, Life::Dead | Life::Detached);
        (self.producers.values().filter(ended)).map(|producer| producer.id)
    }

    /// Forgets a producer that has ended and of which no run holds anything.
    pub(super) fn retire(&mut self, id: u32) {
        let ended = self
            .producers
            .get(&id)
            .is_some_and(|producer| !producer.is_connected());
        if !ended || self.is_watch(id) || self.runs.iter().any(|run| run.shares.contains_key(&id)) {
            return;
        }
        if let Some(mut producer) = self.producers.remove(&id) {
            self.to_forget.append(&mut producer.tables);
            self.changed = true;
            if self.former.len() == MAX_FORMER {
                self.former.pop_front();
            }
            self.former.push_back(producer.message(None));
        }
    }

    /// Holds what ended processes leave to its budget: the oldest gives way.
    pub(super) fn keep_budgets(&mut self) {
        let ended: BTreeSet<u32> = self.ended().collect();
        let mut held = Vec::new();
        for run in &self.runs {
            for (id, part) in run.parts() {
                if let Some(segment) = part.segment().filter(|_| ended.contains(&id)) {
                    held.push((id, run.id, segment.resident_bytes()));
                }
            }
        }
        held.sort_unstable();
        let mut excess = held
            .iter()
            .map(|held| held.2)
            .sum::<u64>()
            .saturating_sub(self.config.budgets.ended_bytes);
        for (id, run_id, bytes) in held {
            if excess == 0 {
                break;
            }
            excess = excess.saturating_sub(bytes);
            let Some(run) = self.run_mut(run_id) else {
                continue;
            };
            let given_up = total(run.parts_of_mut(id).map(Share::abandon));
            tracing::warn!(
                producer = id,
                events = given_up,
                "gave up unread events of an ended process (ended_budget_bytes)"
            );
            self.let_go(run_id, id);
        }
        self.forget_untold();
    }

    /// Bounds what is kept of producers that ended with nothing to read.
    fn forget_untold(&mut self) {
        let ended: BTreeSet<u32> = self.ended().collect();
        let mut gone = Vec::new();
        for run in &mut self.runs {
            let untold: Vec<u32> = run
                .shares
                .iter()
                .filter(|(id, _)| ended.contains(id) && run.is_empty_of(**id))
                .map(|(id, _)| *id)
                .collect();
            let excess = untold.len().saturating_sub(MAX_UNTOLD);
            for id in &untold[..excess] {
                run.forget(*id);
            }
            gone.extend_from_slice(&untold[..excess]);
        }
        gone.into_iter().for_each(|id| self.retire(id));
    }

    /// Gives up runs of tokens that nobody can want any more.
    pub(super) fn forget_runs(&mut self, now: Instant) {
        let patience = Duration::from_secs(self.config.budgets.forgotten_run_s);
        let attached = |token: &str| {
            self.producers
                .values()
                .any(|producer| producer.is_connected() && producer.token() == token)
        };
        let ended =
            |run: &crate::run::Run| !run.token.is_empty() && !run.is_capturing() && !run.has_more();
        let mut surplus = self
            .runs
            .iter()
            .filter(|run| ended(run))
            .count()
            .saturating_sub(MAX_ENDED_RUNS);
        let mut gone = Vec::new();
        for run in &self.runs {
            let alone = !run.token.is_empty() && !attached(&run.token);
            if alone && !patience.is_zero() && now.saturating_duration_since(run.asked) > patience {
                let (scope, unread) = (scope_name(&run.token), run.unread());
                tracing::warn!(
                    unread,
                    "gave up the run of {scope}: nobody asked for it, and its processes are gone"
                );
                gone.push(run.id);
            } else if surplus > 0 && ended(run) {
                surplus -= 1;
                gone.push(run.id);
            }
        }
        for id in gone {
            self.drop_run(id);
        }
    }

    /// Closes every gate, on the way out, unless a next daemon goes on.
    pub(super) fn close_all(&mut self) {
        self.count_late();
        if self.state.is_some() {
            let ended: Vec<u32> = self.ended().collect();
            self.spool_ended(ended, true);
            self.write_down();
        } else {
            for producer in self.producers.values() {
                close_gates(producer, 0);
            }
        }
        let connected = self
            .producers
            .values()
            .filter(|producer| producer.is_connected())
            .count();
        let unread = total(self.runs.iter().map(crate::run::Run::unread));
        tracing::info!(producers = connected, unread, "shutting down");
        if self
            .producers
            .values()
            .any(|producer| matches!(producer.phase, Phase::Open { .. }))
        {
            let then = if self.state.is_some() {
                "go on without a daemon, until one comes back"
            } else {
                "end here"
            };
            tracing::info!("runs that were capturing {then}");
        }
    }
}
