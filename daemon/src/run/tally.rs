//! What became of events, in counters that only grow: of a ring, of a run, of all runs that ever were.
//!
//! An account says what is known for certain of one ring at one moment; its figures go back where words turn out to be
//! impossible, and end with the ring. A tally follows it: each event is counted as recorded once, and once as what became of
//! it, so that at any moment `recorded = delivered + skipped + lost + open`. What is open is unread, or its emit is under way.
//!
//! A loss is counted as soon as it is certain, not when a reader passes it: what a ring can't hold any more, and what its
//! writers dropped.

use nrt_trace_ring::Account;

/// Why an event is lost. The order is that of the record; what is added comes last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// Overwritten before it was read. A thread that died inside an emit leaves one event that nobody can tell from these.
    Overwritten,
    /// Dropped by its writer.
    Dropped,
    /// Given up on request, by a new start, or because ended processes had left too much.
    Abandoned,
    /// Its process was quarantined.
    Quarantined,
    /// Its process ended, or did not come back, and nobody had kept its memory over the daemon's restart.
    NotKept,
}

impl Cause {
    /// All of them.
    pub(crate) const ALL: [Self; 5] = [
        Self::Overwritten,
        Self::Dropped,
        Self::Abandoned,
        Self::Quarantined,
        Self::NotKept,
    ];

    /// Its name in metrics.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Overwritten => "overwritten",
            Self::Dropped => "dropped",
            Self::Abandoned => "abandoned",
            Self::Quarantined => "quarantined",
            Self::NotKept => "not_kept",
        }
    }
}

/// Counters of what became of events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Events that claimed a number.
    pub recorded: u64,
    /// Of these, consumed by a fetch.
    pub delivered: u64,
    /// Of these, passed by: only the process's own capture had asked for them.
    pub skipped: u64,
    /// Of these, lost: by [`Cause`].
    pub lost: [u64; Cause::ALL.len()],
    /// Events that never claimed one: of an NC without a ring, and with an index out of range.
    pub unplaced: [u64; 2],
}

impl Tally {
    /// Events lost.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.iter().copied().fold(0, u64::saturating_add)
    }

    /// Events of which it is not known yet what becomes of them.
    pub(crate) fn open(&self) -> u64 {
        let known = self.delivered.saturating_add(self.skipped);
        self.recorded
            .saturating_sub(known.saturating_add(self.lost()))
    }

    /// Adds the counters of others.
    pub(crate) fn add(&mut self, other: &Self) {
        let pairs = [
            (&mut self.recorded, other.recorded),
            (&mut self.delivered, other.delivered),
            (&mut self.skipped, other.skipped),
        ];
        let lost = self.lost.iter_mut().zip(other.lost);
        let unplaced = self.unplaced.iter_mut().zip(other.unplaced);
        for (sum, more) in pairs.into_iter().chain(lost).chain(unplaced) {
            *sum = sum.saturating_add(more);
        }
    }

    /// Counts what a ring's account says that was not known before. `lapped` of the unread are not in the ring any more.
    pub(crate) fn follow(&mut self, account: &Account, skipped: u64, lapped: u64) {
        self.recorded = self.recorded.max(account.claimed);
        self.delivered += self.step(self.delivered, account.delivered.saturating_sub(skipped));
        self.skipped += self.step(self.skipped, skipped);
        // Each drop is of one claim, whether the reader has passed it or not.
        let dropped = account.dropped();
        let other = account.abandoned.saturating_add(dropped);
        for (cause, known) in [
            (Cause::Abandoned, account.abandoned),
            (Cause::Dropped, dropped),
            (
                Cause::Overwritten,
                account.lost.saturating_add(lapped).saturating_sub(other),
            ),
        ] {
            self.lose(cause, self.step(self.lost[cause as usize], known));
        }
    }

    /// Counts as lost what is still open: nothing more will be read.
    pub(crate) fn close(&mut self, cause: Cause) {
        self.lose(cause, self.open());
    }

    /// Counts what is still open of a ring whose memory goes, with this last account: what was unread is given up, and a claim
    /// that was looked for in vain is what the account says of it.
    pub(crate) fn close_ring(&mut self, account: &Account) {
        self.lose(Cause::Abandoned, account.unread.min(self.open()));
        self.close(Cause::Overwritten);
    }

    fn lose(&mut self, cause: Cause, events: u64) {
        self.lost[cause as usize] += events;
    }

    /// How far a counter goes on that comes to be `known`: no counter goes back, and no event is counted twice.
    fn step(&self, counted: u64, known: u64) -> u64 {
        known.saturating_sub(counted).min(self.open())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(tally: &Tally, account: &Account) {
        assert_eq!(
            tally.recorded,
            tally.delivered + tally.skipped + tally.lost() + tally.open()
        );
        assert_eq!(tally.recorded, account.claimed);
    }

    /// A ring of 10 that nobody reads, then somebody does, and then its memory goes.
    #[test]
    fn a_loss_is_counted_when_it_is_certain_and_once() {
        let mut tally = Tally::default();
        let mut account = Account {
            claimed: 25,
            unread: 25,
            dropped_lapped: 2,
            ..Account::default()
        };
        tally.follow(&account, 0, 15);
        check(&tally, &account);
        assert_eq!((tally.lost, tally.open()), ([13, 2, 0, 0, 0], 10));
        // It is read: two claims of the last lap are not there, since they were dropped; the slots had older events.
        account = Account {
            delivered: 10,
            lost: 13,
            pending: 2,
            unread: 0,
            ..account
        };
        tally.follow(&account, 0, 0);
        check(&tally, &account);
        assert_eq!((tally.lost, tally.delivered), ([13, 2, 0, 0, 0], 10));
        tally.close_ring(&account);
        assert_eq!((tally.lost(), tally.open()), (15, 0));
    }

    #[test]
    fn what_only_another_capture_asked_for_is_neither_delivered_nor_lost() {
        let mut tally = Tally::default();
        let account = Account {
            claimed: 10,
            delivered: 7,
            lost: 1,
            unread: 2,
            ..Account::default()
        };
        tally.follow(&account, 5, 0);
        check(&tally, &account);
        assert_eq!((tally.delivered, tally.skipped, tally.open()), (2, 5, 2));
    }

    /// Words that can't be have an account that goes back; and a hostile one's sums are no sums.
    #[test]
    fn no_counter_goes_back_and_none_exceeds_what_was_recorded() {
        let mut tally = Tally::default();
        let account = Account {
            claimed: 10,
            delivered: 4,
            lost: 1,
            unread: 5,
            ..Account::default()
        };
        tally.follow(&account, 0, 0);
        let before = tally;
        tally.follow(&Account::default(), 0, 0);
        assert_eq!(tally, before);
        let absurd = Account {
            claimed: 12,
            delivered: u64::MAX,
            lost: u64::MAX,
            abandoned: u64::MAX,
            dropped_seq: u64::MAX,
            dropped_lapped: u64::MAX,
            ..account
        };
        tally.follow(&absurd, u64::MAX, u64::MAX);
        assert_eq!((tally.recorded, tally.open()), (12, 0));
        tally.close(Cause::Quarantined);
        assert_eq!(
            tally.recorded,
            tally.delivered + tally.skipped + tally.lost()
        );
    }
}
