//! Claims that come after the rings were let go.
//!
//! When a connection ends and its process lives on, a thread that found its gate open before may take a number yet: at any
//! time, if it was stopped just there. The rings are let go all the same as soon as they are read, but their first pages stay,
//! with the claim counters; what comes there goes into the account as given up. When the process has ended, or says after a later
//! run that all its threads have left, nothing more can come, and the pages go too.

use nrt_trace_proto::v1;

use super::Registry;
use super::producer::Producer;
use crate::drain::account::late_account;
use crate::drain::heads::Heads;
use crate::run::Run;
use crate::run::share::Released;
use crate::run::tally::{Cause, Tally};

/// At most so many sets of rings are looked at; the oldest gives way. Each takes a page of memory for each ring.
const MOST: usize = 256;

/// Rings that were let go, in which claims may come.
#[derive(Debug)]
pub(super) struct Late {
    run: u64,
    token: String,
    producer: u32,
    /// The producer whose pidfd says that the process has ended: of one that attached often, the first with late rings.
    watch: u32,
    heads: Heads,
}

impl Registry {
    /// Frees the memory of rings that the run let go, but for their claim counters, if claims may still come.
    pub(super) fn free_released(&mut self, run: (u64, &str), producer: u32, released: Released) {
        let Released {
            segment,
            claimed,
            doubtful,
        } = released;
        // Without its pidfd nobody would say when it has ended.
        let lives = |producer: &Producer| producer.pidfd.is_some();
        if doubtful && self.producers.get(&producer).is_some_and(lives) {
            match segment.heads(claimed) {
                Ok(heads) => {
                    if self.late.len() == MOST {
                        self.count_late();
                        let oldest = self.late.remove(0);
                        self.retire(oldest.watch);
                    }
                    self.late.push(Late {
                        run: run.0,
                        token: run.1.to_owned(),
                        producer,
                        watch: self.watch_of(producer),
                        heads,
                    });
                }
                Err(error) => {
                    tracing::warn!(producer, "can't look at rings that were let go: {error}");
                }
            }
        }
        self.free(segment);
    }

    /// Counts the claims that came since the last look.
    pub(super) fn count_late(&mut self) {
        for late in &mut self.late {
            for (nc, events) in late.heads.late() {
                let mut tally = Tally {
                    recorded: events,
                    ..Tally::default()
                };
                tally.close(Cause::Abandoned);
                tracing::debug!(
                    producer = late.producer,
                    nc,
                    events,
                    "claimed after the rings were let go"
                );
                let account = late_account(late.producer, nc, events);
                self.changed = true;
                let mut runs = self.runs.iter_mut();
                if let Some(run) = runs.find(|run| run.id == late.run) {
                    run.add_late(late.producer, account, &tally);
                    continue;
                }
                self.counted.add(&tally);
                if let Some(run) = self.runs.iter_mut().find(|run| run.has_scope(&late.token)) {
                    run.before.add(&tally);
                }
            }
        }
    }

    fn watch_of(&self, id: u32) -> u32 {
        let process = |id| self.producers.get(&id).and_then(Producer::process);
        let is_same = |watch: &u32| process(id).is_some() && process(*watch) == process(id);
        let mut watches = self.late.iter().map(|late| late.watch);
        watches.find(is_same).unwrap_or(id)
    }

    /// The process of a producer has ended: what has come until now is all.
    pub(super) fn end_late(&mut self, watch: u32) {
        self.count_late();
        self.late.retain(|late| late.watch != watch);
    }

    /// All threads of a producer have left all rings that it ever had: what has come until now is all.
    pub(super) fn end_late_of(&mut self, producer: u32) {
        if self.late.iter().all(|late| late.producer != producer) {
            return;
        }
        self.count_late();
        let of_it = |late: &mut Late| late.producer == producer;
        let watches: Vec<u32> = (self.late.extract_if(.., of_it))
            .map(|late| late.watch)
            .collect();
        for watch in watches {
            self.retire(watch);
        }
    }

    /// Whether a producer is needed to say when its process has ended.
    pub(super) fn is_watch(&self, producer: u32) -> bool {
        self.late.iter().any(|late| late.watch == producer)
    }
}

impl Run {
    /// Counts claims in rings of a producer that were let go before.
    fn add_late(&mut self, producer: u32, account: v1::RingAccount, tally: &Tally) {
        self.counted.add(tally);
        match self.shares.get_mut(&producer) {
            Some(share) => share.add_settled(account),
            None => self.add_forgotten([account]),
        }
    }
}
