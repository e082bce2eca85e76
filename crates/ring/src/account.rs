//! What became of every event of a ring.

/// A ring's account as one consumer sees it, at one moment. Always `claimed = delivered + lost + pending + unread` (I4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Events that producers claimed a number for.
    pub claimed: u64,
    /// Events that this consumer got.
    pub delivered: u64,
    /// Events that it will never get.
    pub lost: u64,
    /// Events looked at and not yet published.
    pub pending: u64,
    /// Events not looked at.
    pub unread: u64,
    /// Dropped by producers: the slot was being written. Part of lost, pending or unread.
    pub dropped_in_flight: u64,
    /// Dropped by producers: a later lap had the slot. Part of lost, pending or unread.
    pub dropped_lapped: u64,
    /// Dropped by producers: no sequence number left. Part of lost, pending or unread.
    pub dropped_seq: u64,
    /// Of lost: given up on request.
    pub abandoned: u64,
}

impl Account {
    /// Events that producers dropped themselves.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped_in_flight
            .saturating_add(self.dropped_lapped)
            .saturating_add(self.dropped_seq)
    }

    /// Events that were stored and overwritten before this consumer read them: what is lost or pending and was neither
    /// dropped nor given up. Exact when the ring is quiet, everything in it was looked at, and nobody died inside an
    /// emit; in the last case the number is the sum "overwritten + unfinished", which nobody can split.
    #[must_use]
    pub fn overwritten(&self) -> u64 {
        (self.lost + self.pending)
            .saturating_sub(self.abandoned)
            .saturating_sub(self.dropped())
    }
}
