//! What a fetch has to bring, worked out from a producer's private log and from nothing that the product counts.
//!
//! The n-th claim of a ring of `cap` slots has slot `n % cap`. A slot holds the newest event that was stored in it; a
//! writer that has taken it and not published has destroyed what was there. So when every thread is either idle or
//! stopped at a known step, it is certain which events stand in the ring, and a fetch brings exactly those of them that
//! no fetch before it brought. The one exception is counted too: a reader that comes more than two laps late passes by,
//! once and for all, claims whose writer is still under way ([`nrt_trace_abi::layout`], `Reader::read`).

use std::collections::{BTreeMap, BTreeSet};

use nrt_trace_abi::record::event_id;

use crate::control::{Numbered, RingFetch};
use crate::ledger::{Emit, Gave};

/// Labels of a writer that has its slot and has not published it.
const HOLDS: [&str; 3] = ["push:taken", "push:half", "push:written"];

/// Whether a thread that is stopped at `label` keeps its slot from everybody.
#[must_use]
pub fn holds_slot(label: &str) -> bool {
    HOLDS.contains(&label)
}

/// The consumer's side of one ring, over all its fetches.
#[derive(Clone, Debug)]
pub struct Oracle {
    cap: u64,
    /// Claims that the reader has looked at.
    looked_at: u64,
    /// Sequence numbers that were delivered.
    delivered: BTreeSet<u64>,
    /// Sequence numbers that a late reader passed by.
    passed_by: BTreeSet<u64>,
}

impl Oracle {
    /// Of a ring of `cap` slots that nobody has read yet.
    #[must_use]
    pub fn new(cap: u64) -> Self {
        Self {
            cap,
            looked_at: 0,
            delivered: BTreeSet::new(),
            passed_by: BTreeSet::new(),
        }
    }

    /// Compares a fetch with the log. `claims` are the ring's claims in their order; `stopped` says at which label the
    /// threads are that have an unfinished one. No other thread may be inside an emit.
    ///
    /// # Panics
    ///
    /// If anything differs.
    pub fn check(&mut self, claims: &[Emit], stopped: &BTreeMap<u64, String>, fetched: &RingFetch) {
        let claimed = claims.len() as u64;
        let account = &fetched.account;
        assert_eq!(account.claimed, claimed, "{account:?}");

        // Events.
        let standing = self.standing(claims, stopped);
        let new = |seq: &&u64| !self.delivered.contains(seq) && !self.passed_by.contains(seq);
        let expected: Vec<Numbered> = standing
            .iter()
            .filter(new)
            .map(|&seq| {
                let Emit { thread, number, .. } = claims[at(seq)];
                Numbered {
                    seq,
                    thread,
                    number,
                }
            })
            .collect();
        assert_eq!(
            fetched.events, expected,
            "{account:?} {stopped:?} {claims:?}"
        );

        // The reader's way.
        if claimed - self.looked_at > 2 * self.cap {
            let skipped = self.looked_at + 1..=claimed - self.cap;
            self.passed_by
                .extend(skipped.filter(|seq| !standing.contains(seq)));
        }
        self.looked_at = claimed;
        self.delivered
            .extend(expected.iter().map(|event| event.seq));

        // The account.
        let sum = account.delivered + account.lost + account.pending + account.unread;
        assert_eq!(account.claimed, sum, "I4: {account:?}");
        assert_eq!(
            account.delivered,
            self.delivered.len() as u64,
            "{account:?}"
        );
        assert_eq!((account.unread, account.abandoned), (0, 0), "{account:?}");
        let dropped = account.dropped_in_flight + account.dropped_lapped;
        assert_eq!(dropped, drops(claims, stopped), "{account:?} {claims:?}");
        assert_eq!(account.dropped_seq, 0);
        let missing = claimed - account.delivered - dropped;
        assert_eq!(account.overwritten, missing, "{account:?}");
    }

    /// Sequence numbers of the events that stand in the ring.
    fn standing(&self, claims: &[Emit], stopped: &BTreeMap<u64, String>) -> BTreeSet<u64> {
        let mut slots = BTreeMap::new();
        for (seq, emit) in (1..).zip(claims) {
            let slot = (seq - 1) % self.cap;
            match emit.gave {
                Gave::Id(id) => {
                    assert_eq!(
                        id,
                        event_id(0, seq),
                        "claims are in their order: {claims:?}"
                    );
                    slots.insert(slot, Some(seq));
                }
                Gave::Nothing => {}
                Gave::Unfinished => match stopped_at(stopped, emit) {
                    "push:published" => drop(slots.insert(slot, Some(seq))),
                    label if holds_slot(label) => drop(slots.insert(slot, None)),
                    _ => {}
                },
            }
        }
        slots.into_values().flatten().collect()
    }
}

/// Drops that were counted.
fn drops(claims: &[Emit], stopped: &BTreeMap<u64, String>) -> u64 {
    let dropped = |emit: &&Emit| match emit.gave {
        Gave::Nothing => true,
        Gave::Unfinished => stopped_at(stopped, emit) == "push:dropped",
        Gave::Id(_) => false,
    };
    claims.iter().filter(dropped).count() as u64
}

fn stopped_at<'a>(stopped: &'a BTreeMap<u64, String>, emit: &Emit) -> &'a str {
    stopped
        .get(&emit.thread)
        .unwrap_or_else(|| panic!("nobody stopped the thread of {emit:?}"))
}

fn at(seq: u64) -> usize {
    usize::try_from(seq - 1).expect("an index of a log")
}
