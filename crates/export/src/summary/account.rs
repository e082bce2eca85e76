//! What became of events: the account of a ring, of a process, of all.

use nrt_trace_proto::v1::RingAccount;
use serde::{Serialize, Serializer};

use super::report::RingReport;

/// What became of events. The field names are those of `RingAccount` in `trace.proto`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Numbers claimed.
    pub claimed: u64,
    /// Reached the reader.
    pub delivered: u64,
    /// Never will.
    pub lost: u64,
    /// Looked for, not there yet.
    pub pending: u64,
    /// Not looked at yet.
    pub unread: u64,
    /// Cause: overwritten before they were read.
    pub overwritten: u64,
    /// Cause: another producer was writing the slot.
    pub dropped_in_flight: u64,
    /// Cause: a later lap had the slot.
    pub dropped_lapped: u64,
    /// Cause: the sequence number did not fit.
    pub dropped_seq: u64,
    /// Cause: given up on request.
    pub abandoned: u64,
    /// Passed by, and in no other number: only the process's own capture had asked for them.
    pub skipped: u64,
    /// Whether the split by cause is exact, and not only its sum.
    pub exact: bool,
}

impl Totals {
    pub(super) fn of(account: &RingAccount) -> Self {
        Self {
            claimed: account.claimed,
            delivered: account.delivered,
            lost: account.lost,
            pending: account.pending,
            unread: account.unread,
            overwritten: account.overwritten,
            dropped_in_flight: account.dropped_in_flight,
            dropped_lapped: account.dropped_lapped,
            dropped_seq: account.dropped_seq,
            abandoned: account.abandoned,
            skipped: account.skipped,
            exact: account.exact,
        }
    }

    /// The sum over those of `rings` that are `wanted`; `None` if of one with events the trace says nothing.
    pub(super) fn over(rings: &[RingReport], wanted: impl Fn(&RingReport) -> bool) -> Option<Self> {
        let mut sum = Self {
            exact: true,
            ..Self::default()
        };
        for ring in rings.iter().filter(|ring| wanted(ring)) {
            match &ring.account {
                Some(account) => sum.add(account),
                None if ring.events > 0 => return None,
                None => {}
            }
        }
        Some(sum)
    }

    fn add(&mut self, other: &Self) {
        self.claimed += other.claimed;
        self.delivered += other.delivered;
        self.lost += other.lost;
        self.pending += other.pending;
        self.unread += other.unread;
        self.overwritten += other.overwritten;
        self.dropped_in_flight += other.dropped_in_flight;
        self.dropped_lapped += other.dropped_lapped;
        self.dropped_seq += other.dropped_seq;
        self.abandoned += other.abandoned;
        self.skipped += other.skipped;
        self.exact &= other.exact;
    }

    /// Dropped by producers while they captured, whether or not the reader has passed them by.
    pub(super) const fn dropped_by_producers(&self) -> u64 {
        self.dropped_in_flight + self.dropped_lapped + self.dropped_seq
    }
}

/// [`Totals`] among the keys of what it belongs to, each of them null where nothing is known.
pub(super) fn each_key<S: Serializer>(
    account: &Option<Totals>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Keys {
        claimed: Option<u64>,
        delivered: Option<u64>,
        lost: Option<u64>,
        pending: Option<u64>,
        unread: Option<u64>,
        overwritten: Option<u64>,
        dropped_in_flight: Option<u64>,
        dropped_lapped: Option<u64>,
        dropped_seq: Option<u64>,
        abandoned: Option<u64>,
        skipped: Option<u64>,
        exact: Option<bool>,
    }
    let of = |pick: fn(&Totals) -> u64| account.as_ref().map(pick);
    let keys = Keys {
        claimed: of(|t| t.claimed),
        delivered: of(|t| t.delivered),
        lost: of(|t| t.lost),
        pending: of(|t| t.pending),
        unread: of(|t| t.unread),
        overwritten: of(|t| t.overwritten),
        dropped_in_flight: of(|t| t.dropped_in_flight),
        dropped_lapped: of(|t| t.dropped_lapped),
        dropped_seq: of(|t| t.dropped_seq),
        abandoned: of(|t| t.abandoned),
        skipped: of(|t| t.skipped),
        exact: account.as_ref().map(|t| t.exact),
    };
    keys.serialize(serializer)
}
