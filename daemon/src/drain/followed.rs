//! A ring as one subscriber reads it.

use std::convert::Infallible;
use std::sync::{Arc, OnceLock, Weak};

use nrt_trace_model::filter::TypeSet;
use nrt_trace_proto::v1;
use nrt_trace_ring::{Account, Cursor, Impossible};

use super::account::{ring_account, without_ring};
use super::asked::Asked;
use super::fetch::{Certainty, RingJob};
use super::ring::{self, CHUNK_RECORDS, Chunk, Learned};
use super::segment::{Counters, Ends, Segment};

/// Where a subscriber begins in rings that are there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begin {
    /// Behind the newest event.
    Now,
    /// At the oldest event that the ring still holds.
    Oldest,
    /// Where the run's next fetch begins.
    Unread,
    /// At the ring's first event: of rings that are made while the subscriber is there.
    First,
}

/// One ring of a producer, and how far a subscriber has come in it.
#[derive(Debug)]
pub(super) struct Followed {
    nc: usize,
    /// Held while the subscriber keeps up, so that a run that is stopped, fetched and freed is still read to its end.
    held: Option<Arc<Segment>>,
    segment: Weak<Segment>,
    ends: Arc<OnceLock<Ends>>,
    /// What was before the subscriber came: of that it has no account.
    before: Counters,
    /// Whether that is nothing at all.
    whole: bool,
    cursor: Cursor,
    known: Learned,
    asked: Asked,
    skipped: u64,
    certainty: Certainty,
    /// Its words can't be: nothing more is read.
    doubted: bool,
    /// The run has it no more.
    released: bool,
}

/// What a look at a ring gave.
#[derive(Debug)]
pub(super) enum Look {
    /// Up to a chunk's worth of records, none where the filter passed all of them by.
    Records(Vec<Chunk>),
    /// Its words can't be.
    Impossible(Impossible),
    /// Nothing is to be had for now.
    Nothing,
}

impl Followed {
    /// A ring that the subscriber begins with.
    pub(super) fn new(segment: &Arc<Segment>, job: &RingJob, from: Begin) -> Self {
        let whole = Counters {
            claimed: job.first,
            ..Counters::default()
        };
        let counted = segment.counters(job.nc);
        let at = |claimed: u64| (Cursor::restore(claimed, [], 0, 0, 0), claimed);
        let (cursor, begin) = match from {
            Begin::Now => at(counted.claimed),
            Begin::Oldest => at(segment.oldest(job.nc).max(job.first)),
            Begin::First => at(job.first),
            Begin::Unread => {
                let pending = job.cursor.pending();
                let begin = job.cursor.next() - pending.len() as u64;
                let cursor = Cursor::restore(job.cursor.next(), pending, 0, 0, 0);
                (cursor, begin)
            }
        };
        let before = if begin <= job.first {
            whole
        } else {
            Counters {
                claimed: begin,
                ..counted
            }
        };
        Self {
            nc: job.nc,
            held: Some(segment.clone()),
            segment: Arc::downgrade(segment),
            ends: segment.ends(),
            whole: before == whole,
            before,
            cursor,
            known: job.known.copy(),
            asked: Asked::default(),
            skipped: 0,
            certainty: Certainty::Open,
            doubted: false,
            released: false,
        }
    }

    /// Takes over what may have changed: who writes it, and which of its events are the run's. Of these the subscriber
    /// wants `types`.
    pub(super) fn renew(
        &mut self,
        segment: &Arc<Segment>,
        job: &RingJob,
        certainty: Certainty,
        types: TypeSet,
    ) {
        self.held = Some(segment.clone());
        (self.certainty, self.released) = (certainty, false);
        self.asked = job.asked.within(types);
    }

    /// Holds the memory no longer: the subscriber does not keep up.
    pub(super) fn let_go(&mut self) {
        self.held = None;
    }

    /// Notes that the run has the ring no more: nobody writes it.
    pub(super) fn release(&mut self) {
        self.released = true;
        if self.certainty == Certainty::Open {
            self.certainty = Certainty::Ended;
        }
    }

    /// Whether threads of its process may write it.
    pub(super) fn may_be_written(&self) -> bool {
        !self.doubted && self.certainty == Certainty::Open
    }

    /// Whether nothing will come of it any more: the run has it no more, and all of it was looked at.
    pub(super) fn is_over(&self) -> bool {
        self.released && self.has_reached(self.claimed())
    }

    /// The claims that there are now, as a limit to read up to.
    pub(super) fn claimed(&self) -> u64 {
        let segment = self.open();
        let counters = segment.map(|segment| segment.counters(self.nc));
        counters.map_or_else(|| self.cursor.next(), |counters| counters.claimed)
    }

    /// Whether everything below claim `until` was looked at.
    pub(super) fn has_reached(&self, until: u64) -> bool {
        self.doubted || self.cursor.next() >= until
    }

    /// Whether the events from the cursor up to `until` fill more than half of the ring.
    pub(super) fn is_behind(&self, until: u64) -> bool {
        let cap = self.open().map(|segment| segment.layout().geometry().cap());
        cap.is_some_and(|cap| until.saturating_sub(self.cursor.next()) > cap / 2)
    }

    /// The next chunk of the ring.
    pub(super) fn read(&mut self, producer_id: u32) -> Look {
        let Some(segment) = self.open() else {
            return Look::Nothing;
        };
        let Some(reader) = segment.reader(self.nc) else {
            return Look::Nothing;
        };
        let mut chunks = Vec::new();
        let read = ring::read(
            &reader,
            producer_id,
            &self.cursor,
            &self.known,
            &self.asked,
            CHUNK_RECORDS as u64,
            |chunk| {
                chunks.push(chunk);
                Ok::<_, Infallible>(())
            },
        );
        let Ok(turn) = read;
        self.known.add(turn.learned);
        self.skipped += turn.skipped;
        let moved = turn.cursor.next() > self.cursor.next();
        self.cursor = turn.cursor;
        if let Some(impossible) = turn.impossible {
            self.doubted = true;
            return Look::Impossible(impossible);
        }
        if chunks.is_empty() && !moved {
            return Look::Nothing;
        }
        Look::Records(chunks)
    }

    /// The account since the subscriber came; `None` while it is not known how the ring ended, which is a moment.
    pub(super) fn account(&self, producer_id: u32) -> Option<v1::RingAccount> {
        let account = if self.doubted {
            without_ring(&self.cursor)
        } else if let Some(segment) = self.open() {
            let reader = segment.reader(self.nc);
            let account = reader.and_then(|reader| reader.account(&self.cursor).ok());
            account.unwrap_or_else(|| without_ring(&self.cursor))
        } else {
            self.last_account(self.ends.get()?.of(self.nc))
        };
        let exact = self.whole && self.certainty.is_exact(&account);
        let [in_flight, lapped, seq] = self.before.dropped;
        let since = Account {
            claimed: account.claimed.saturating_sub(self.before.claimed),
            dropped_in_flight: account.dropped_in_flight.saturating_sub(in_flight),
            dropped_lapped: account.dropped_lapped.saturating_sub(lapped),
            dropped_seq: account.dropped_seq.saturating_sub(seq),
            ..account
        };
        Some(ring_account(
            producer_id,
            self.nc,
            &since,
            self.skipped,
            exact,
        ))
    }

    /// The account of a ring whose memory went: what the subscriber had not read of it is lost to it.
    fn last_account(&self, ended: Counters) -> Account {
        // A producer can write any number there; below what was read none was claimed.
        let claimed = ended.claimed.max(self.cursor.next());
        let [dropped_in_flight, dropped_lapped, dropped_seq] =
            ended.dropped.map(|dropped| dropped.min(claimed));
        let missed = claimed - self.cursor.next() + self.cursor.pending().len() as u64;
        Account {
            claimed,
            delivered: self.cursor.delivered(),
            lost: self.cursor.lost().saturating_add(missed),
            pending: 0,
            unread: 0,
            dropped_in_flight,
            dropped_lapped,
            dropped_seq,
            abandoned: self.cursor.abandoned(),
        }
    }

    fn open(&self) -> Option<Arc<Segment>> {
        self.held.clone().or_else(|| self.segment.upgrade())
    }
}

#[cfg(test)]
mod tests {
    use nrt_trace_abi::layout::SegmentLayout;
    use nrt_trace_abi::record::Draft;
    use nrt_trace_ring::Producer;
    use nrt_trace_shm::WriteMapping;

    use super::*;

    fn segment(cap: u64) -> Arc<Segment> {
        let layout = SegmentLayout::new(cap, [0]).unwrap();
        Arc::new(Segment::create(layout, [1, 2], 3, 4).unwrap())
    }

    fn emit(segment: &Segment, events: u64) {
        let map = WriteMapping::map(segment.fd(), segment.bytes()).unwrap();
        let first = segment.layout().ring_word(0).unwrap();
        let ring = Producer::new(&map.words()[first..], *segment.layout().geometry()).unwrap();
        for _ in 0..events {
            let _stored = ring.push(|seq| Draft::default().finish(seq));
        }
    }

    fn job(consumed: u64) -> RingJob {
        RingJob {
            nc: 0,
            first: 0,
            selected: true,
            cursor: Cursor::restore(consumed, [], consumed, 0, 0),
            known: Arc::default(),
            skipped: 0,
            asked: Asked::default(),
        }
    }

    fn read_all(ring: &mut Followed) {
        while let Look::Records(_) = ring.read(4) {}
    }

    fn sums(ring: &Followed) -> [u64; 4] {
        let account = ring.account(4).unwrap();
        assert_eq!(
            account.claimed,
            account.delivered + account.lost + account.pending + account.unread
        );
        [
            account.claimed,
            account.delivered,
            account.lost,
            account.unread,
        ]
    }

    #[test]
    fn each_beginning_has_an_account_of_its_own() {
        let segment = segment(8);
        emit(&segment, 20);
        for (from, then, read) in [
            (Begin::Now, [0, 0, 0, 0], [3, 3, 0, 0]),
            (Begin::Oldest, [8, 0, 0, 8], [11, 8, 3, 0]),
            (Begin::Unread, [15, 0, 0, 15], [18, 8, 10, 0]),
            (Begin::First, [20, 0, 0, 20], [23, 8, 15, 0]),
        ] {
            let segment = self::segment(8);
            emit(&segment, 20);
            let mut ring = Followed::new(&segment, &job(5), from);
            assert_eq!(sums(&ring), then, "{from:?}");
            emit(&segment, 3);
            read_all(&mut ring);
            assert_eq!(sums(&ring), read, "{from:?}");
        }
    }

    /// Who does not keep up holds no memory, and is told to the last event what it missed.
    #[test]
    fn memory_that_went_is_lost_and_counted() {
        let segment = segment(8);
        let mut ring = Followed::new(&segment, &job(0), Begin::First);
        emit(&segment, 4);
        read_all(&mut ring);
        ring.let_go();
        emit(&segment, 5);
        assert_eq!(sums(&ring), [9, 4, 0, 5]);
        let segment = Arc::try_unwrap(segment).expect("nobody holds it");
        assert!(ring.account(4).is_none(), "it is about to go");
        segment.give_back();
        assert_eq!(sums(&ring), [9, 4, 5, 0]);
        drop(segment);
        assert_eq!(sums(&ring), [9, 4, 5, 0], "as it was before");
        assert!(matches!(ring.read(4), Look::Nothing));
    }
}
