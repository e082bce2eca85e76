//! A consumer's position and account in one ring.

use std::collections::VecDeque;

/// Claims that a cursor remembers as not yet published. A producer that dies in the middle of a slot adds one for each
/// lap; when there are more, the oldest is given up and counted lost.
pub const MAX_PENDING: usize = 1024;

/// How far a consumer has come in one ring, and what became of everything before.
///
/// It is private to the consumer: rings know nothing of their readers, and any number of cursors may walk one ring. It
/// is saved and restored as one value; a position without its pending list would break the account. Fetching works on
/// a clone, which takes the original's place when the fetch is committed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    /// The next claim number to look at.
    pub(crate) next: u64,
    /// Claims below `next` that were neither readable nor gone, ascending.
    pub(crate) pending: VecDeque<u64>,
    pub(crate) delivered: u64,
    pub(crate) lost: u64,
    pub(crate) abandoned: u64,
    /// How many of `pending` this visit still has to look at again.
    pub(crate) revisit: usize,
}

impl Cursor {
    /// A cursor restored from what was saved of it, see the accessors of the same names. `pending` is cut to the
    /// newest [`MAX_PENDING`] below `next`; what is cut counts as lost.
    #[must_use]
    pub fn restore(
        next: u64,
        pending: impl IntoIterator<Item = u64>,
        delivered: u64,
        lost: u64,
        abandoned: u64,
    ) -> Self {
        let mut cursor = Self {
            next,
            delivered,
            lost,
            abandoned,
            ..Self::default()
        };
        let mut pending: Vec<u64> = pending.into_iter().filter(|&n| n < next).collect();
        pending.sort_unstable();
        pending.dedup();
        for n in pending {
            cursor.push_pending(n);
        }
        cursor
    }

    /// The next claim number to look at; also the number of claims looked at so far.
    #[must_use]
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Claims below [`Cursor::next`] that are still open, ascending.
    pub fn pending(&self) -> impl ExactSizeIterator<Item = u64> + '_ {
        self.pending.iter().copied()
    }

    /// Events delivered.
    #[must_use]
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Events that will never be delivered, for whatever cause.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Of the lost: given up on request.
    #[must_use]
    pub fn abandoned(&self) -> u64 {
        self.abandoned
    }

    /// Notes claim `n` as open.
    pub(crate) fn push_pending(&mut self, n: u64) {
        if self.pending.len() == MAX_PENDING {
            self.pending.pop_front();
            self.lost += 1;
        }
        self.pending.push_back(n);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// What comes back from outside may be damaged; a claim that is still to be looked at can't be pending.
    #[test]
    fn a_restored_cursor_keeps_only_claims_that_it_has_passed() {
        let cursor = Cursor::restore(5, [7, 4, 5, 4, 0], 1, 2, 0);
        assert_eq!(cursor.pending().collect::<Vec<_>>(), [0, 4]);
    }
}
