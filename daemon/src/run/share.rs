//! One producer's part of a run: its rings, how far they were consumed, whether anybody still writes them.

mod away;
mod count;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use nrt_trace_model::filter::TypeSet;
use nrt_trace_proto::v1;
use nrt_trace_ring::{Account, Cursor};

use super::tally::{Cause, Tally};
use crate::drain::account::{merged, ring_account, without_ring};
use crate::drain::asked::Asked;
use crate::drain::fetch::{Certainty, PartJob, RingJob};
use crate::drain::ring::Learned;
use crate::drain::segment::Segment;
use crate::drain::slot::Consumed;
pub(crate) use away::Away;

/// Numbers left out between two sets of rings when a thread may still have been inside an emit: it may claim one of the old
/// ring after the new one's first number was chosen. A thread claims one at a time, and 4,096 have a place of their own in the
/// library's table; so no number of an NC stands for two events.
const DOUBT: u64 = 4096;

/// Who may write the rings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Writers {
    /// Nobody yet: the rings are on their way to the producer, and its gates open when it has them.
    Awaited,
    /// The producer's threads: the gates are open.
    Open,
    /// Threads that were inside an emit when the gates were closed, perhaps.
    Closing,
    /// Nobody: every thread was seen outside an emit.
    Quiescent,
    /// Nobody: the process ended, or let go of the connection with its gates closed.
    Ended,
    /// The process's threads, perhaps: it has the rings of an earlier daemon and has not come back yet.
    Away,
}

/// A committed ring.
#[derive(Debug)]
struct Ring {
    nc: usize,
    cursor: Cursor,
    known: Arc<Learned>,
    /// Events passed by, which only the process's own capture had asked for.
    skipped: u64,
    /// Which of its events are the run's.
    asked: Asked,
    /// What became of its events, as it was last counted.
    counted: Tally,
}

/// One producer's part of a run.
#[derive(Debug)]
pub(crate) struct Share {
    /// The rings' memory; gone when all was consumed and nobody writes any more.
    segment: Option<Arc<Segment>>,
    rings: Vec<Ring>,
    /// What is known of rings whose memory only the process has.
    away: Option<Away>,
    /// The last accounts of rings whose memory is gone.
    settled: Vec<v1::RingAccount>,
    /// Events without a ring, as counted when the memory went.
    unplaced: [u64; 2],
    /// By NC, the number after the last one of rings whose memory is gone. An NC's numbers go on from ring to ring, so that
    /// (producer, NC, number) names an event in the whole run.
    ends: BTreeMap<usize, u64>,
    /// It can have no rings in this run: that is not tried again.
    pub barred: bool,
    /// Who may write.
    pub writers: Writers,
    /// The connection has ended and its process lives: a thread that was let in before may take a number yet.
    left: bool,
    /// When the gates opened, `CLOCK_REALTIME` ns.
    pub armed_from_ns: Option<u64>,
    /// Its words are impossible: nothing more is read.
    pub quarantined: bool,
    /// What became of the events of rings that are no more, and of those without a ring.
    counted: Tally,
}

impl Share {
    /// The part of a producer that gets `segment`.
    pub(crate) fn new(segment: Arc<Segment>) -> Self {
        let ring = |nc| Ring {
            nc,
            // What comes before was another ring's.
            cursor: Cursor::restore(segment.first(nc), [], 0, 0, 0),
            known: Arc::default(),
            skipped: 0,
            asked: Asked::default(),
            counted: Tally::default(),
        };
        let rings = segment.layout().ncs().map(ring).collect();
        Self {
            segment: Some(segment),
            rings,
            ..Self::without_rings()
        }
    }

    /// The part of a producer that could not be armed.
    pub(crate) fn barred() -> Self {
        Self {
            barred: true,
            ..Self::without_rings()
        }
    }

    fn without_rings() -> Self {
        Self {
            segment: None,
            rings: Vec::new(),
            away: None,
            settled: Vec::new(),
            unplaced: [0; 2],
            ends: BTreeMap::new(),
            barred: false,
            writers: Writers::Awaited,
            left: false,
            armed_from_ns: None,
            quarantined: false,
            counted: Tally::default(),
        }
    }

    /// The rings' memory, if it is there.
    pub(crate) fn segment(&self) -> Option<&Arc<Segment>> {
        self.segment.as_ref()
    }

    /// Whether nothing is left of it but its accounts.
    pub(crate) fn is_empty(&self) -> bool {
        self.segment.is_none() && self.away.is_none()
    }

    /// NCs with a ring now.
    pub(crate) fn ring_ncs(&self) -> BTreeSet<usize> {
        self.rings.iter().map(|ring| ring.nc).collect()
    }

    /// Whether its rings are those of this generation.
    pub(crate) fn has_rings(&self, generation: u64) -> bool {
        (self.segment.as_ref()).is_some_and(|segment| segment.generation() == generation)
    }

    /// Whether threads may still be inside an emit, though nobody waits for them.
    pub(crate) fn is_doubtful(&self) -> bool {
        matches!(self.writers, Writers::Open | Writers::Closing)
    }

    /// Notes that the process writes no more: it ended, or let go of the connection with its gates closed. If it `lives`, what
    /// a thread was about to do is not waited for.
    pub(crate) fn end(&mut self, lives: bool) {
        self.left = lives && (self.left || self.is_doubtful());
        if matches!(
            self.writers,
            Writers::Awaited | Writers::Open | Writers::Closing
        ) {
            self.writers = Writers::Ended;
        }
    }

    /// Forgets rings that no process ever had, and sees to it that there will be no others.
    pub(crate) fn drop_rings(&mut self) {
        self.segment = None;
        self.rings.clear();
        self.writers = Writers::Quiescent;
        self.barred = true;
    }

    /// Goes on where the same producer's rings in the run were `old`.
    pub(crate) fn follow(&mut self, old: &Self) {
        self.armed_from_ns = old.armed_from_ns;
        for ring in &mut self.rings {
            if let Some(before) = old.rings.iter().find(|before| before.nc == ring.nc) {
                ring.known = before.known.clone();
            }
        }
    }

    /// Takes the accounts of the same producer's earlier part, of which nothing else is left.
    pub(crate) fn absorb(&mut self, old: Self) {
        self.counted.add(&old.tally());
        let settled = old
            .settled
            .into_iter()
            .chain(std::mem::take(&mut self.settled));
        self.settled = merged(settled);
        for (sum, one) in self.unplaced.iter_mut().zip(old.unplaced) {
            *sum = sum.saturating_add(one);
        }
        for (nc, end) in old.ends {
            let place = self.ends.entry(nc).or_insert(0);
            *place = end.max(*place);
        }
    }

    /// Where the numbers of rings that follow these begin.
    pub(crate) fn next_numbers(&self) -> BTreeMap<usize, u64> {
        // A thread that is still inside an emit may take a number yet.
        let doubt = if self.may_be_written() { DOUBT } else { 0 };
        let mut next = self.ends.clone();
        let accounts: Vec<Account> = self.rings.iter().map(|ring| self.account(ring)).collect();
        for (nc, number) in self.numbers(&accounts) {
            next.insert(nc, number + doubt);
        }
        next
    }

    /// By NC, the number that each ring has come to, by these accounts.
    fn numbers(&self, accounts: &[Account]) -> BTreeMap<usize, u64> {
        let number = |(ring, account): (&Ring, &Account)| {
            let first = self.first(ring.nc);
            let claimed = account.claimed.max(ring.cursor.next() - first);
            (ring.nc, first + claimed)
        };
        self.rings.iter().zip(accounts).map(number).collect()
    }

    /// Gives up all that is there, whoever may still write it, and says how many events could have been read.
    pub(crate) fn give_up(&mut self, producer_id: u32) -> u64 {
        let events = self.abandon() + self.give_up_away(producer_id, Cause::Abandoned);
        self.end(true);
        events
    }

    /// Counts more in what is settled.
    pub(crate) fn add_settled(&mut self, account: v1::RingAccount) {
        let settled = std::mem::take(&mut self.settled).into_iter();
        self.settled = merged(settled.chain([account]));
    }

    /// How far each ring was consumed.
    pub(crate) fn cursors(&self) -> Vec<(usize, Cursor)> {
        let cursor = |ring: &Ring| (ring.nc, ring.cursor.clone());
        self.rings.iter().map(cursor).collect()
    }

    /// NC indices that have, or had, a ring.
    pub(crate) fn ncs(&self) -> Vec<u32> {
        let live = self
            .rings
            .iter()
            .map(|ring| u32::try_from(ring.nc).unwrap_or(u32::MAX));
        let all: BTreeSet<u32> = live
            .chain(self.settled.iter().map(|account| account.nc_idx))
            .collect();
        all.into_iter().collect()
    }

    fn certainty(&self) -> Certainty {
        match self.writers {
            _ if self.quarantined => Certainty::Quarantined,
            Writers::Open | Writers::Closing | Writers::Away => Certainty::Open,
            Writers::Awaited | Writers::Quiescent => Certainty::Quiescent,
            Writers::Ended => Certainty::Ended,
        }
    }

    fn account(&self, ring: &Ring) -> Account {
        let account = self.account_by_number(ring);
        Account {
            claimed: account.claimed.saturating_sub(self.first(ring.nc)),
            ..account
        }
    }

    /// The account, but what is claimed is the number that the ring has come to.
    fn account_by_number(&self, ring: &Ring) -> Account {
        if let Some(account) = self.account_away(ring) {
            return account;
        }
        let reader = self
            .segment
            .as_ref()
            .and_then(|segment| segment.reader(ring.nc));
        reader
            .filter(|_| !self.quarantined)
            .and_then(|reader| reader.account(&ring.cursor).ok())
            .unwrap_or_else(|| without_ring(&ring.cursor))
    }

    /// The account of each ring as it stands, as messages.
    pub(crate) fn accounts(&self, producer_id: u32) -> Vec<v1::RingAccount> {
        let accounts: Vec<Account> = self.rings.iter().map(|ring| self.account(ring)).collect();
        self.messages(producer_id, &accounts)
    }

    fn messages(&self, producer_id: u32, accounts: &[Account]) -> Vec<v1::RingAccount> {
        let certainty = self.certainty();
        let live = self.rings.iter().zip(accounts).map(|(ring, account)| {
            let exact = certainty.is_exact(account);
            ring_account(producer_id, ring.nc, account, ring.skipped, exact)
        });
        live.chain(self.settled.iter().copied()).collect()
    }

    /// Events not looked at yet.
    pub(crate) fn unread(&self) -> u64 {
        total(self.rings.iter().map(|ring| self.account(ring).unread))
    }

    /// Whether a later fetch can bring anything: unread events, or claims that were or may still be published.
    pub(crate) fn has_more(&self) -> bool {
        if self.away.is_some() {
            return false; // not before the process comes back
        }
        let may_write = self.may_be_written();
        self.rings.iter().any(|ring| {
            let account = self.account(ring);
            account.unread > 0 || (may_write && account.pending > 0) || self.has_late(ring)
        })
    }

    /// Whether a claim was published after a fetch had found it open.
    fn has_late(&self, ring: &Ring) -> bool {
        let reader = self
            .segment
            .as_ref()
            .and_then(|segment| segment.reader(ring.nc));
        let Some(reader) = reader.filter(|_| !self.quarantined && ring.cursor.pending().len() > 0)
        else {
            return false;
        };
        let (mut cursor, mut late) = (ring.cursor.clone(), false);
        let until = cursor.next();
        // Words that can't be: nothing can be read, and the next reader of them tells.
        let _ = reader
            .begin(&mut cursor)
            .and_then(|_| reader.read(&mut cursor, until, 1, &mut |_| late = true));
        late
    }

    /// This part of producer `id` as a part of a fetch's job; `wanted` says which NCs the caller wants.
    pub(crate) fn job(&self, id: u32, wanted: impl Fn(usize) -> bool) -> PartJob {
        let ring = |ring: &Ring| RingJob {
            nc: ring.nc,
            first: self.first(ring.nc),
            selected: wanted(ring.nc),
            cursor: ring.cursor.clone(),
            known: ring.known.clone(),
            skipped: ring.skipped,
            asked: ring.asked.clone(),
        };
        // Of rings that are away there is nothing to read, but their accounts are told.
        let (readable, told) = match &self.away {
            Some(_) => (&[][..], self.accounts(id)),
            None => (&self.rings[..], self.settled.clone()),
        };
        PartJob {
            segment: self.segment.clone(),
            rings: readable.iter().map(ring).collect(),
            settled: told
                .into_iter()
                .filter(|account| wanted(account.nc_idx as usize))
                .collect(),
            unplaced: self.unplaced,
            certainty: self.certainty(),
        }
    }

    /// Moves the cursor of the ring that a fetch consumed.
    pub(crate) fn consume(&mut self, consumed: Consumed) {
        if let Some(ring) = self.rings.iter_mut().find(|ring| ring.nc == consumed.nc) {
            ring.cursor = consumed.cursor;
            ring.known.add(consumed.learned);
            ring.skipped += consumed.skipped;
            let open = ring.cursor.pending().next();
            let unread = open.unwrap_or_else(|| ring.cursor.next());
            // A snapshot goes back as far as the ring does.
            let held = (self.segment.as_ref()).map_or(0, |segment| segment.oldest(ring.nc));
            ring.asked.forget_below(unread.min(held));
        }
    }

    /// Notes what the run asks for from now on, where another capture shares the rings, or did: `types` of each NC. Before
    /// the gates change.
    pub(crate) fn ask_for(&mut self, shared: bool, types: impl Fn(usize) -> TypeSet) {
        for ring in &mut self.rings {
            let reader = (self.segment.as_ref()).and_then(|segment| segment.reader(ring.nc));
            if let Some(reader) = reader.filter(|_| shared || ring.asked.is_restricted())
                && let Ok(from) = reader.claimed(&Cursor::default())
            {
                ring.asked.change(from, types(ring.nc));
            }
        }
    }

    /// Gives up every event there is, and says how many could still have been read.
    pub(crate) fn abandon(&mut self) -> u64 {
        let mut given_up = 0;
        for ring in &mut self.rings {
            let reader = self
                .segment
                .as_ref()
                .and_then(|segment| segment.reader(ring.nc));
            let Some(reader) = reader.filter(|_| !self.quarantined) else {
                continue;
            };
            let before = ring.cursor.abandoned();
            // Words that can't be: there is nothing to give up, and the next reader of them tells.
            let _ = reader
                .begin(&mut ring.cursor)
                .and_then(|until| reader.abandon(&mut ring.cursor, until));
            given_up += ring.cursor.abandoned() - before;
        }
        given_up
    }

    /// Whether threads of the producer may write the rings, now or soon.
    fn may_be_written(&self) -> bool {
        matches!(
            self.writers,
            Writers::Awaited | Writers::Open | Writers::Closing | Writers::Away
        )
    }

    /// Whether the rings' memory is of no more use: nobody writes it and nothing is left to read.
    pub(crate) fn is_done(&self) -> bool {
        self.quarantined || (!self.may_be_written() && !self.has_more())
    }

    /// Lets the rings' memory go; the accounts stay as they are.
    pub(crate) fn release(&mut self, producer_id: u32) -> Option<Released> {
        self.segment.as_ref()?;
        // One look for all: what is claimed after it is late everywhere.
        let accounts = self.count_last_of_rings();
        let claimed = self.numbers(&accounts);
        let doubt = if self.may_be_written() { DOUBT } else { 0 };
        (self.ends).extend(claimed.iter().map(|(nc, number)| (*nc, number + doubt)));
        self.settled = merged(self.messages(producer_id, &accounts).into_iter());
        self.rings.clear();
        let segment = self.segment.take()?;
        self.unplaced = segment.unplaced();
        Some(Released {
            segment,
            claimed,
            doubtful: !self.quarantined && (self.left || self.may_be_written()),
        })
    }
}

/// Rings that a part let go.
#[derive(Debug)]
pub(crate) struct Released {
    /// Their memory.
    pub segment: Arc<Segment>,
    /// By NC, the number that each had come to: all up to there is accounted for.
    pub claimed: BTreeMap<usize, u64>,
    /// Whether a thread of a process that lives may take a number yet.
    pub doubtful: bool,
}

/// The sum of numbers that producers had a hand in: as many as can be counted, if it is more.
pub(crate) fn total(numbers: impl Iterator<Item = u64>) -> u64 {
    numbers.fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use nrt_trace_abi::layout::{SegmentLayout, ring, slot};
    use nrt_trace_abi::record::Draft;
    use nrt_trace_abi::stamp;
    use nrt_trace_ring::{Ordering, Producer};
    use nrt_trace_shm::WriteMapping;

    use super::*;

    /// A thread was inside an emit when a fetch looked, came to its end, and then the process ended: the event that it
    /// had recorded is still to be had.
    #[test]
    fn an_event_published_after_the_last_look_keeps_the_rings() {
        let layout = SegmentLayout::new(4, [0]).unwrap();
        let first = layout.ring_word(0).unwrap();
        let segment = Arc::new(Segment::create(layout.clone(), [1, 2], 3, 4).unwrap());
        let map = WriteMapping::map(segment.fd(), segment.bytes()).unwrap();
        let words = &map.words()[first..];
        let _stored = Producer::new(words, *layout.geometry())
            .unwrap()
            .push(|seq| Draft::default().finish(seq));
        // The second event, as far as a claim and a taken slot.
        let second = ring::SLOTS + nrt_trace_abi::layout::SLOT_WORDS + slot::STAMP;
        let index = layout.geometry().place(1).index;
        words[ring::TAIL].store(2, Ordering::Relaxed);
        words[second].store(stamp::in_flight(index), Ordering::Relaxed);

        let mut share = Share::new(segment);
        share.writers = Writers::Open;
        let look = |share: &mut Share| {
            let reader = share.segment.as_ref().unwrap().reader(0).unwrap();
            let mut cursor = share.rings[0].cursor.clone();
            let until = reader.begin(&mut cursor).unwrap();
            let _done = reader
                .read(&mut cursor, until, usize::MAX, &mut |_| ())
                .unwrap();
            share.rings[0].cursor = cursor;
        };
        look(&mut share);
        assert_eq!((share.unread(), share.has_more()), (0, true));
        words[second].store(stamp::published(index), Ordering::Release);
        share.writers = Writers::Ended;
        assert!(share.has_more() && !share.is_done());
        look(&mut share);
        assert_eq!(share.rings[0].cursor.delivered(), 2);
        assert!(!share.has_more() && share.is_done());
    }

    /// One that died inside leaves a claim that nobody will publish: it keeps nothing.
    #[test]
    fn a_claim_that_stays_open_keeps_nothing_of_a_dead_process() {
        let layout = SegmentLayout::new(4, [0]).unwrap();
        let first = layout.ring_word(0).unwrap();
        let segment = Arc::new(Segment::create(layout, [1, 2], 3, 4).unwrap());
        let map = WriteMapping::map(segment.fd(), segment.bytes()).unwrap();
        map.words()[first + ring::TAIL].store(1, Ordering::Relaxed);
        let mut share = Share::new(segment);
        share.rings[0].cursor = Cursor::restore(1, [0], 0, 0, 0);
        share.writers = Writers::Closing;
        assert!(share.has_more() && !share.is_done());
        share.writers = Writers::Ended;
        assert!(!share.has_more() && share.is_done());
    }
}
