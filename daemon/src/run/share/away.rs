//! A part whose memory only its process has: the daemon that gave it is gone, and the process has not come back yet.

use std::collections::BTreeMap;
use std::sync::Arc;

use nrt_trace_abi::layout::SegmentLayout;
use nrt_trace_ring::{Account, Cursor};
use nrt_trace_shm::clock::realtime_ns;

use super::{Ring, Share, Writers};
use crate::drain::account::{merged, ring_account};
use crate::drain::asked::Asked;
use crate::drain::segment::Segment;
use crate::run::tally::{Cause, Tally};
use crate::state::{EndRecord, FileId, RingRecord, ShareRecord};

/// What is known of memory that is away.
#[derive(Debug)]
pub(crate) struct Away {
    /// Which memory it is.
    pub file: FileId,
    /// The daemon's own copy of every size and offset (I7).
    pub layout: SegmentLayout,
    /// The number of each ring's first event, less one, where it is not 0.
    pub firsts: BTreeMap<usize, u64>,
    /// Events claimed in each ring when it was last written down.
    claimed: BTreeMap<usize, u64>,
    /// Whether nobody could write it any more then.
    quiet: bool,
}

impl Share {
    /// What is written down of it.
    pub(crate) fn record(&self, producer: u32) -> ShareRecord {
        let ring = |ring: &Ring| RingRecord {
            nc: u32::try_from(ring.nc).unwrap_or(u32::MAX),
            next: ring.cursor.next(),
            pending: ring.cursor.pending().collect(),
            delivered: ring.cursor.delivered(),
            lost: ring.cursor.lost(),
            abandoned: ring.cursor.abandoned(),
            skipped: ring.skipped,
            claimed: self.account_by_number(ring).claimed,
            first: self.first(ring.nc),
            asked: ring.asked.records(),
            counted: Some(ring.counted.record()),
        };
        let away = self.away.as_ref();
        ShareRecord {
            producer,
            file: away
                .map(|away| away.file)
                .or_else(|| self.segment.as_ref()?.file_id()),
            rings: self.rings.iter().map(ring).collect(),
            settled: self.settled.clone(),
            unplaced: self.unplaced.to_vec(),
            armed_from_ns: self.armed_from_ns,
            quiet: away.map_or_else(|| !self.may_be_written(), |away| away.quiet),
            quarantined: self.quarantined,
            barred: self.barred,
            counted: Some(self.counted.record()),
            ends: (self.ends.iter())
                .map(|(nc, next)| EndRecord {
                    nc: u32::try_from(*nc).unwrap_or(u32::MAX),
                    next: *next,
                })
                .collect(),
        }
    }

    pub(super) fn first(&self, nc: usize) -> u64 {
        match (&self.segment, &self.away) {
            (Some(segment), _) => segment.first(nc),
            (None, Some(away)) => away.firsts.get(&nc).copied().unwrap_or(0),
            (None, None) => 0,
        }
    }

    /// The part that was written down, in a run with rings of `cap` slots; `None` if the record contradicts itself.
    pub(crate) fn restored(record: &ShareRecord, cap: u64) -> Option<Self> {
        let mut share = Self::without_rings();
        share.settled.clone_from(&record.settled);
        for (place, count) in share.unplaced.iter_mut().zip(&record.unplaced) {
            *place = *count;
        }
        share.armed_from_ns = record.armed_from_ns;
        share.quarantined = record.quarantined;
        share.barred = record.barred;
        share.counted = Tally::restored(record.counted.as_ref());
        share.ends = (record.ends.iter())
            .map(|end| (end.nc as usize, end.next))
            .collect();
        share.writers = Writers::Ended;
        let Some(file) = &record.file else {
            return record.rings.is_empty().then_some(share);
        };
        let nc = |ring: &RingRecord| ring.nc as usize;
        let layout = SegmentLayout::new(cap, record.rings.iter().map(nc))?;
        if layout.ncs().count() != record.rings.len() {
            return None;
        }
        share.rings = (record.rings.iter())
            .map(|ring| {
                Some(Ring {
                    nc: nc(ring),
                    cursor: Cursor::restore(
                        ring.next,
                        ring.pending.iter().copied(),
                        ring.delivered,
                        ring.lost,
                        ring.abandoned,
                    ),
                    known: Arc::default(),
                    skipped: ring.skipped,
                    asked: Asked::restored(&ring.asked)?,
                    counted: Tally::restored(ring.counted.as_ref()),
                })
            })
            .collect::<Option<_>>()?;
        let numbers = |number: fn(&RingRecord) -> u64| {
            (record.rings.iter())
                .map(|ring| (nc(ring), number(ring)))
                .collect()
        };
        share.writers = Writers::Away;
        share.away = Some(Away {
            file: *file,
            layout,
            firsts: numbers(|ring| ring.first),
            claimed: numbers(|ring| ring.claimed.max(ring.next)),
            quiet: record.quiet,
        });
        Some(share)
    }

    /// Its memory, if that is away.
    pub(crate) fn away(&self) -> Option<&Away> {
        self.away.as_ref()
    }

    /// Which memory its process is expected to hand back, if the process is not there.
    pub(crate) fn expected(&self) -> Option<FileId> {
        match (&self.away, &self.segment) {
            (Some(away), _) => Some(away.file),
            (None, Some(segment)) => segment.file_id(),
            (None, None) => None,
        }
    }

    /// Takes its memory back; `open` says whether its process goes on writing.
    pub(crate) fn come_back(&mut self, segment: Arc<Segment>, open: bool) {
        self.segment = Some(segment);
        self.was_open(open);
        self.writers = if open {
            Writers::Open
        } else {
            Writers::Quiescent
        };
        self.away = None;
    }

    /// Takes its memory over without its process, which may still be writing it if it could when that was written down.
    pub(crate) fn found(&mut self, segment: Arc<Segment>) {
        let quiet = self.away.take().is_some_and(|away| away.quiet);
        self.segment = Some(segment);
        self.writers = if quiet {
            Writers::Quiescent
        } else {
            Writers::Away
        };
    }

    /// Its process, whose memory was found without it, is there: `open` says whether it goes on writing.
    pub(crate) fn process_returns(&mut self, open: bool) {
        self.was_open(open);
        if open {
            self.writers = Writers::Open;
        } else if self.writers == Writers::Away {
            self.writers = Writers::Quiescent;
        }
    }

    /// Notes that its gates are open: since now as far as is known, if the daemon that opened them was killed before it
    /// wrote down when.
    fn was_open(&mut self, open: bool) {
        if open {
            self.armed_from_ns.get_or_insert_with(realtime_ns);
        }
    }

    /// Its process does not come back, though it `lives`, perhaps.
    pub(crate) fn process_is_gone(&mut self, lives: bool) {
        if self.writers == Writers::Away {
            self.left = lives;
            self.writers = Writers::Ended;
        }
    }

    /// Its process is there and has not got its memory: if its gates were never opened, it was never sent, and nothing was ever
    /// in it. False if they were.
    pub(crate) fn forget_unsent(&mut self) -> bool {
        let unsent = self.away.is_some() && self.armed_from_ns.is_none();
        if unsent {
            self.away = None;
            self.rings.clear();
            self.writers = Writers::Quiescent;
        }
        unsent
    }

    /// Gives up memory that will not come back: what was claimed when it was last written down, and not delivered, is
    /// lost, for this cause. Says how many events that are at least.
    pub(crate) fn give_up_away(&mut self, producer_id: u32, cause: Cause) -> u64 {
        if self.away.is_none() {
            return 0;
        }
        let lost = self.unread();
        self.count(0);
        self.count_last(cause);
        self.ends = self.next_numbers();
        let accounts = self.rings.iter().map(|ring| {
            let known = self.account(ring);
            let account = Account {
                lost: known.lost + known.unread + known.pending,
                pending: 0,
                unread: 0,
                ..known
            };
            ring_account(producer_id, ring.nc, &account, ring.skipped, false)
        });
        let accounts: Vec<_> = accounts.collect();
        let settled = std::mem::take(&mut self.settled).into_iter();
        self.settled = merged(settled.chain(accounts));
        self.rings.clear();
        self.away = None;
        self.writers = Writers::Ended;
        lost
    }

    /// The account of a ring that is away, as it was when it was last written down.
    pub(super) fn account_away(&self, ring: &Ring) -> Option<Account> {
        let claimed = *self.away.as_ref()?.claimed.get(&ring.nc)?;
        let cursor = &ring.cursor;
        Some(Account {
            claimed,
            delivered: cursor.delivered(),
            lost: cursor.lost(),
            pending: cursor.pending().len() as u64,
            unread: claimed.saturating_sub(cursor.next()),
            abandoned: cursor.abandoned(),
            ..Account::default()
        })
    }
}
