//! Counting what became of a part's events.

use super::{Account, Ring, Share};
use crate::run::tally::{Cause, Tally};
use crate::state::TallyRecord;

impl Share {
    /// Counts what became of its events so far. A fetch that is not committed may have read `taken` of them: what a ring has
    /// overwritten meanwhile may be among these.
    pub(crate) fn count(&mut self, taken: u64) {
        self.count_unplaced();
        self.count_rings(taken);
    }

    fn count_unplaced(&mut self) {
        if !self.quarantined {
            let now = self.segment.as_ref().map_or([0; 2], |s| s.unplaced());
            let places = self.counted.unplaced.iter_mut().zip(now);
            for ((place, now), before) in places.zip(self.unplaced) {
                *place = now.saturating_add(before).max(*place);
            }
        }
    }

    fn count_rings(&mut self, taken: u64) -> Vec<Account> {
        let cap = (self.segment.as_ref().map(|segment| segment.layout()))
            .or_else(|| Some(&self.away.as_ref()?.layout))
            .map_or(u64::MAX, |layout| layout.geometry().cap());
        let accounts: Vec<Account> = self.rings.iter().map(|ring| self.account(ring)).collect();
        for (ring, account) in self.rings.iter_mut().zip(&accounts) {
            let lapped = account.unread.saturating_sub(cap).saturating_sub(taken);
            ring.counted.follow(account, ring.skipped, lapped);
            if self.quarantined {
                ring.counted.close(Cause::Quarantined);
            }
        }
        accounts
    }

    /// Counts what is still open as lost: its rings will not be read any more.
    pub(crate) fn count_last(&mut self, cause: Cause) {
        self.rings.iter_mut().for_each(|r| r.counted.close(cause));
        self.keep_counts();
    }

    /// Counts what became of the events of rings whose memory goes now; the answer is the accounts that it goes by.
    pub(crate) fn count_last_of_rings(&mut self) -> Vec<Account> {
        self.count_unplaced();
        let accounts = self.count_rings(0);
        for (ring, account) in self.rings.iter_mut().zip(&accounts) {
            ring.counted.close_ring(account);
        }
        self.keep_counts();
        accounts
    }

    /// Takes the counts of its rings as its own: they go.
    fn keep_counts(&mut self) {
        for ring in &mut self.rings {
            self.counted.add(&std::mem::take(&mut ring.counted));
        }
    }

    /// What became of its events, as it was last counted.
    pub(crate) fn tally(&self) -> Tally {
        let mut sum = self.counted;
        self.rings
            .iter()
            .for_each(|ring: &Ring| sum.add(&ring.counted));
        sum
    }
}

impl Tally {
    /// What is written down of it.
    pub(crate) fn record(&self) -> TallyRecord {
        TallyRecord {
            recorded: self.recorded,
            delivered: self.delivered,
            skipped: self.skipped,
            lost: self.lost.to_vec(),
            unplaced: self.unplaced.to_vec(),
        }
    }

    /// What was written down; of an earlier version that wrote nothing down, all is counted anew.
    pub(crate) fn restored(record: Option<&TallyRecord>) -> Self {
        let mut tally = Self::default();
        let Some(record) = record else { return tally };
        tally.recorded = record.recorded;
        tally.delivered = record.delivered;
        tally.skipped = record.skipped;
        let lost = tally.lost.iter_mut().zip(&record.lost);
        let unplaced = tally.unplaced.iter_mut().zip(&record.unplaced);
        lost.chain(unplaced)
            .for_each(|(place, count)| *place = *count);
        tally
    }
}
