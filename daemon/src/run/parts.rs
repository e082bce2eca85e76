//! All parts of a run. A producer has one, its share; and where it left the run and came back, those that it had before,
//! until they are read.
//!
//! Numbers of a ring go on where those of the earlier one ended, so that no number stands for two events. To whoever reads
//! the run the parts are one: their events come in order, and their accounts are summed.

use std::collections::BTreeMap;
use std::sync::Arc;

use nrt_trace_proto::v1;

use super::Run;
use super::share::{Released, Share};
use crate::drain::account::merged;
use crate::drain::segment::Segment;

/// Parts with something to read that are kept beside a producer's share. A process keeps no more sets of rings for a next
/// daemon.
const MAX_EARLIER: usize = 7;

impl Run {
    /// All parts with their producers, the older ones of a producer first.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (u32, &Share)> {
        let earlier = self.earlier.iter().map(|(id, part)| (*id, part));
        earlier.chain(self.shares.iter().map(|(id, share)| (*id, share)))
    }

    /// All parts with their producers.
    pub(crate) fn parts_mut(&mut self) -> impl Iterator<Item = (u32, &mut Share)> {
        let earlier = self.earlier.iter_mut().map(|(id, part)| (*id, part));
        earlier.chain(self.shares.iter_mut().map(|(id, share)| (*id, share)))
    }

    /// A producer's parts, oldest first.
    pub(crate) fn parts_of(&self, producer: u32) -> impl Iterator<Item = &Share> {
        let mine = self.earlier.iter().filter(move |(id, _)| *id == producer);
        (mine.map(|(_, part)| part)).chain(self.shares.get(&producer))
    }

    /// A producer's parts, oldest first.
    pub(crate) fn parts_of_mut(&mut self, producer: u32) -> impl Iterator<Item = &mut Share> {
        let mine = (self.earlier.iter_mut()).filter(move |(id, _)| *id == producer);
        (mine.map(|(_, part)| part)).chain(self.shares.get_mut(&producer))
    }

    /// Where the numbers of a producer's next rings begin, by NC.
    pub(crate) fn next_numbers(&self, producer: u32) -> BTreeMap<usize, u64> {
        let mut next = BTreeMap::new();
        for (nc, number) in self.parts_of(producer).flat_map(Share::next_numbers) {
            let place = next.entry(nc).or_insert(0);
            *place = number.max(*place);
        }
        next
    }

    /// Notes that a producer gets these rings. What it had before stays to be read; if that is too much, the oldest is given
    /// up: the answer is how many events those were.
    pub(crate) fn admit(&mut self, producer: u32, segment: Arc<Segment>) -> u64 {
        let mut share = Share::new(segment);
        let mut given_up = 0;
        if let Some(old) = self.shares.remove(&producer) {
            share.follow(&old);
            let mine = |(id, _): &&mut (u32, Share)| *id == producer;
            if self.earlier.iter_mut().filter(mine).count() == MAX_EARLIER
                && let Some((_, oldest)) = self.earlier.iter_mut().find(mine)
            {
                given_up = oldest.give_up(producer);
            }
            self.earlier.push((producer, old));
        }
        self.shares.insert(producer, share);
        given_up
    }

    /// Takes the memory of a producer's rings that are of no more use; `all`: of all that it has. Accounts stay.
    pub(crate) fn release(&mut self, producer: u32, all: bool) -> Vec<Released> {
        let of_no_use = |part: &&mut Share| all || part.is_done();
        let freed = (self.parts_of_mut(producer).filter(of_no_use))
            .filter_map(|part| part.release(producer))
            .collect();
        let (empty, left) = std::mem::take(&mut self.earlier)
            .into_iter()
            .partition(|(id, part)| *id == producer && part.is_empty());
        self.earlier = left;
        let empty: Vec<(u32, Share)> = empty;
        if let Some(share) = self.shares.get_mut(&producer) {
            empty.into_iter().for_each(|(_, part)| share.absorb(part));
        }
        freed
    }

    /// Forgets a producer that ended and left nothing. Only the sum over all such producers stays.
    pub(crate) fn forget(&mut self, producer: u32) {
        let mut counted = self.counted;
        for part in self.parts_of(producer) {
            counted.add(&part.tally());
        }
        self.counted = counted;
        let accounts = self
            .parts_of(producer)
            .flat_map(|part| part.accounts(producer));
        let accounts: Vec<_> = accounts.collect();
        self.add_forgotten(accounts);
        self.forgotten.1 = self.forgotten.1.saturating_add(1);
        self.shares.remove(&producer);
        self.earlier.retain(|(id, _)| *id != producer);
    }

    /// Adds accounts to the sum of those of processes that were forgotten.
    pub(crate) fn add_forgotten(&mut self, accounts: impl IntoIterator<Item = v1::RingAccount>) {
        let accounts = accounts.into_iter().map(|account| v1::RingAccount {
            producer_id: 0,
            nc_idx: 0,
            ..account
        });
        self.forgotten.0 = merged(self.forgotten.0.into_iter().chain(accounts)).pop();
    }

    /// Whether nothing is left of a producer's part but its accounts.
    pub(crate) fn is_empty_of(&self, producer: u32) -> bool {
        self.parts_of(producer).all(Share::is_empty)
    }
}
