//! One producer's part of a run: its rings, how far they were consumed, whether anybody still writes them.

use std::sync::Arc;

use nrt_trace_proto::v1;
use nrt_trace_ring::{Account, Cursor};

use crate::drain::account::{ring_account, without_ring};
use crate::drain::fetch::{Certainty, ProducerJob, RingJob};
use crate::drain::ring::Learned;
use crate::drain::segment::Segment;
use crate::drain::slot::Consumed;
use crate::strings::ProducerNames;

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
}

/// A committed ring.
#[derive(Debug)]
struct Ring {
    nc: usize,
    cursor: Cursor,
    known: Arc<Learned>,
}

/// One producer's part of a run.
#[derive(Debug)]
pub(crate) struct Share {
    /// The rings' memory; gone when all was consumed and nobody writes any more.
    segment: Option<Arc<Segment>>,
    rings: Vec<Ring>,
    /// The last accounts of rings whose memory is gone.
    settled: Vec<v1::RingAccount>,
    /// Events without a ring, as counted when the memory went.
    unplaced: [u64; 2],
    /// Who may write.
    pub writers: Writers,
    /// When the gates opened, `CLOCK_REALTIME` ns.
    pub armed_from_ns: Option<u64>,
    /// Its words are impossible: nothing more is read.
    pub quarantined: bool,
}

impl Share {
    /// The part of a producer that gets `segment`.
    pub(crate) fn new(segment: Arc<Segment>) -> Self {
        let ring = |nc| Ring {
            nc,
            cursor: Cursor::default(),
            known: Arc::default(),
        };
        let rings = segment.layout().ncs().map(ring).collect();
        Self {
            segment: Some(segment),
            rings,
            ..Self::without_rings()
        }
    }

    /// The part of a producer that could not be armed.
    pub(crate) fn without_rings() -> Self {
        Self {
            segment: None,
            rings: Vec::new(),
            settled: Vec::new(),
            unplaced: [0; 2],
            writers: Writers::Awaited,
            armed_from_ns: None,
            quarantined: false,
        }
    }

    /// The rings' memory, if it is there.
    pub(crate) fn segment(&self) -> Option<&Arc<Segment>> {
        self.segment.as_ref()
    }

    /// NC indices that have, or had, a ring.
    pub(crate) fn ncs(&self) -> Vec<u32> {
        let live = self
            .rings
            .iter()
            .map(|ring| u32::try_from(ring.nc).unwrap_or(u32::MAX));
        live.chain(self.settled.iter().map(|account| account.nc_idx))
            .collect()
    }

    fn certainty(&self) -> Certainty {
        match self.writers {
            _ if self.quarantined => Certainty::Quarantined,
            Writers::Open | Writers::Closing => Certainty::Open,
            Writers::Awaited | Writers::Quiescent => Certainty::Quiescent,
            Writers::Ended => Certainty::Ended,
        }
    }

    fn account(&self, ring: &Ring) -> Account {
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
        let certainty = self.certainty();
        let live = self.rings.iter().map(|ring| {
            let account = self.account(ring);
            ring_account(producer_id, ring.nc, &account, certainty.is_exact(&account))
        });
        live.chain(self.settled.iter().copied()).collect()
    }

    /// Events not looked at yet.
    pub(crate) fn unread(&self) -> u64 {
        total(self.rings.iter().map(|ring| self.account(ring).unread))
    }

    /// Whether a later fetch can bring anything: unread events, or claims that may still be published.
    pub(crate) fn has_more(&self) -> bool {
        let may_write = self.may_be_written();
        self.rings.iter().any(|ring| {
            let account = self.account(ring);
            account.unread > 0 || (may_write && account.pending > 0)
        })
    }

    /// This part as a fetch's job; `wanted` says which NCs the caller wants.
    pub(crate) fn job(
        &self,
        info: v1::Producer,
        names: Arc<ProducerNames>,
        selected: bool,
        wanted: impl Fn(usize) -> bool,
    ) -> ProducerJob {
        let ring = |ring: &Ring| RingJob {
            nc: ring.nc,
            selected: wanted(ring.nc),
            cursor: ring.cursor.clone(),
            known: ring.known.clone(),
        };
        ProducerJob {
            info,
            selected,
            names,
            segment: self.segment.clone(),
            rings: self.rings.iter().map(ring).collect(),
            settled: self
                .settled
                .iter()
                .filter(|account| wanted(account.nc_idx as usize))
                .copied()
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
            Writers::Awaited | Writers::Open | Writers::Closing
        )
    }

    /// Whether the rings' memory is of no more use: nobody writes it and nothing is left to read.
    pub(crate) fn is_done(&self) -> bool {
        self.quarantined || (!self.may_be_written() && self.unread() == 0)
    }

    /// Lets the rings' memory go; the accounts stay as they are.
    pub(crate) fn release(&mut self, producer_id: u32) -> Option<Arc<Segment>> {
        self.segment.as_ref()?;
        self.settled = self.accounts(producer_id);
        self.rings.clear();
        let segment = self.segment.take()?;
        self.unplaced = segment.unplaced();
        Some(segment)
    }
}

/// The sum of numbers that producers had a hand in: as many as can be counted, if it is more.
pub(crate) fn total(numbers: impl Iterator<Item = u64>) -> u64 {
    numbers.fold(0, u64::saturating_add)
}
