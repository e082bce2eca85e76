//! Captures: who is in them, what they take, what was consumed.
//!
//! | file | what |
//! |---|---|
//! | `cores` | the NC filter, translated for each process |
//! | `filter` | both filters, and those that a run had before |
//! | `request` | what a client asks for, checked |
//! | `share` | one producer's part of a run |
//! | `parts` | all parts of a run, where a producer came back into it |
//! | `tally` | what became of events, in counters that only grow |
//! | `error` | why a request is refused |
//!
//! A scope is the host (no token), a token, or one process that asked for it itself (`own`, see `registry::own`). There is at most one run of a scope; it stays, stopped, until a start of
//! the same scope takes its place. A run belongs to no connection: whoever started it may go, and whoever may use the
//! control socket can read or stop it. Only a token's run that is left alone for an hour, with none of its processes
//! attached any more, is given up.

pub(crate) mod cores;
pub(crate) mod error;
pub(crate) mod filter;
mod id;
mod parts;
pub(crate) mod request;
pub(crate) mod share;
pub(crate) mod tally;

pub(crate) use id::RunId;

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Instant;

use nrt_trace_proto::v1;

use crate::drain::account::merged;
use crate::drain::parting::Parting;
use crate::drain::slot::FetchSlot;
use error::RunError;
use filter::{Filter, PastFilters};
use share::{Share, total};
use tally::Tally;

/// What makes a run a process's own: it asked for it, and reads it itself.
#[derive(Debug)]
pub(crate) struct Own {
    /// The process.
    pub producer: u32,
    /// The run whose rings it shares, if it found one.
    pub joined: Option<u64>,
    /// The number of its start, until that is answered.
    pub unanswered: Option<u64>,
    /// Where each NC's numbers go on when it gets rings of its own after it shared others.
    pub next: BTreeMap<usize, u64>,
}

/// A capture.
#[derive(Debug)]
pub(crate) struct Run {
    /// Random, never 0.
    pub id: u64,
    /// Token of the scope; empty for the host.
    pub token: String,
    /// `CLOCK_REALTIME` ns.
    pub started_ns: u64,
    /// `CLOCK_REALTIME` ns; `None` while it captures.
    pub stopped_ns: Option<u64>,
    /// Slots of each ring.
    pub cap: u64,
    /// What is captured.
    pub filter: Filter,
    /// What was before.
    pub past: PastFilters,
    /// Producers that have, or had, a part in it.
    pub shares: BTreeMap<u32, Share>,
    /// What is left of rings that a producer had in it before those of its share, oldest first.
    pub earlier: Vec<(u32, Share)>,
    /// Accounts of processes that were forgotten, summed, and how many there were.
    pub forgotten: (Option<v1::RingAccount>, u32),
    /// What became of the events of parts that are no more.
    pub counted: Tally,
    /// What became of those of earlier runs of the scope, as far as the daemon knows.
    pub before: Tally,
    /// The last fetch.
    pub fetch: Option<Arc<FetchSlot>>,
    /// Subscribers.
    pub followers: Vec<Weak<Parting>>,
    /// When a client last asked for it.
    pub asked: Instant,
    /// Set when it is a process's own; then it has no token, and no client sees it.
    pub own: Option<Own>,
}

impl Run {
    /// Whether events are recorded.
    pub(crate) fn is_capturing(&self) -> bool {
        self.stopped_ns.is_none()
    }

    /// Whether it is the run of the host, or of this token.
    pub(crate) fn has_scope(&self, token: &str) -> bool {
        self.own.is_none() && self.token == token
    }

    /// Whether it is the own run of a producer.
    pub(crate) fn is_own_of(&self, producer: u32) -> bool {
        self.own
            .as_ref()
            .is_some_and(|own| own.producer == producer)
    }

    /// The run as a message.
    pub(crate) fn message(&self) -> v1::Run {
        v1::Run {
            run_id: self.id,
            token: self.token.clone(),
            started_ns: self.started_ns,
            stopped_ns: self.stopped_ns,
            max_events_per_nc: self.cap,
            nc: self.filter.nc(),
            events: self.filter.events(),
            filter_changes: self.past.changes(),
            past_filters: self.past.messages(),
            forgotten: self.forgotten.0,
            forgotten_processes: self.forgotten.1,
        }
    }

    /// Events that nobody has read yet.
    pub(crate) fn unread(&self) -> u64 {
        total(self.parts().map(|(_, part)| part.unread()))
    }

    /// Whether a fetch could bring anything.
    pub(crate) fn has_more(&self) -> bool {
        self.parts().any(|(_, part)| part.has_more())
    }

    /// The accounts of all rings.
    pub(crate) fn accounts(&self) -> Vec<v1::RingAccount> {
        merged(self.parts().flat_map(|(id, part)| part.accounts(id)))
    }

    /// Moves the cursors as a fetch that ended left them; the answer is the producers whose accounts it told in full.
    pub(crate) fn commit(&mut self, fetch_id: u64) -> Result<Vec<u32>, RunError> {
        let refuse = |why| RunError::NoSuchFetch { fetch_id, why };
        let slot = self.fetch.as_ref().filter(|slot| slot.id == fetch_id);
        let slot = slot.ok_or_else(|| refuse("it is not the last fetch of its run"))?;
        if slot.is_under_way() {
            return Err(refuse("it is still under way"));
        }
        let outcome = slot
            .take()
            .ok_or_else(|| refuse("it broke off, or is committed already"))?;
        for ring in outcome.consumed {
            let mut parts = self.parts_of_mut(ring.producer_id);
            if let Some(part) = parts.find(|part| part.has_rings(ring.generation)) {
                part.consume(ring);
            }
        }
        Ok(outcome.told)
    }

    /// Counts what became of its events so far.
    pub(crate) fn count(&mut self) {
        let taken = self.fetch.as_ref().map_or(0, |slot| slot.may_have_taken());
        for (_, part) in self.parts_mut() {
            part.count(taken);
        }
    }

    /// Counts what became of its events, of which nothing more will be read.
    pub(crate) fn count_last(&mut self) {
        for (_, part) in self.parts_mut() {
            part.count_last_of_rings();
        }
    }

    /// What became of its events, as it was last counted.
    pub(crate) fn tally(&self) -> Tally {
        let mut sum = self.counted;
        for (_, part) in self.parts() {
            sum.add(&part.tally());
        }
        sum
    }

    /// Tells a fetch that is under way that its events are gone.
    pub(crate) fn cancel_fetch(&self) {
        if let Some(slot) = &self.fetch {
            slot.cancel();
        }
    }
}

/// A scope in words.
pub(crate) fn scope_name(token: &str) -> String {
    if token.is_empty() {
        "the host".to_owned()
    } else {
        format!("token {token:?}")
    }
}
