//! The reader's side: look, copy, look again. Never writes shared memory, never waits, trusts no word of it.

use nrt_trace_abi::SEQ_MAX;
use nrt_trace_abi::geometry::{Geometry, Place};
use nrt_trace_abi::layout::{SLOT_WORDS, ring, slot};
use nrt_trace_abi::record::Record;
use nrt_trace_abi::stamp::{self, Readable};

use crate::account::Account;
use crate::cursor::Cursor;
use crate::step;
use crate::sync::{LoadWord, Ordering, fence, record_words};

/// Claim counters above this are nobody's honest work: 2^50 events take a core five months.
const ABSURD_TAIL: u64 = SEQ_MAX << 1;

/// At most so many events are saved from behind a reader that was lapped more than twice, see [`Reader::read`].
const MAX_RESCUED: usize = 1024;

/// Shared words that no producer of ours writes: whoever owns the memory is broken or hostile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Impossible {
    /// The claim counter went backwards.
    TailWentBack {
        /// What the counter says.
        tail: u64,
        /// What it had said before.
        seen: u64,
    },
    /// The claim counter is beyond any number that can be reached.
    TailAbsurd {
        /// What the counter says.
        tail: u64,
    },
}

impl core::fmt::Display for Impossible {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::TailWentBack { tail, seen } => {
                write!(f, "claim counter went back from {seen} to {tail}")
            }
            Self::TailAbsurd { tail } => write!(f, "claim counter of {tail} can't be"),
        }
    }
}

impl core::error::Error for Impossible {}

/// How far a [`Reader::read`] came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Progress {
    /// Everything below the limit was looked at.
    Done,
    /// As many events as allowed were delivered; there may be more.
    More,
}

/// A ring, as a consumer sees it.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a, W> {
    words: &'a [W],
    /// The reader's own, never taken from the segment (I7).
    geometry: Geometry,
}

/// What a look at one claim's slot gave.
enum Look {
    Event(Record),
    Gone,
    Pending,
}

impl<'a, W: LoadWord> Reader<'a, W> {
    /// A ring over its words (header lines and slots); `None` if there are too few for the geometry.
    #[must_use]
    pub fn new(words: &'a [W], geometry: Geometry) -> Option<Self> {
        (words.len() as u64 >= ring::words(geometry.cap())).then_some(Self { words, geometry })
    }

    /// The claim counter, checked against what the cursor has seen.
    ///
    /// # Errors
    /// [`Impossible`]: quarantine the producer.
    pub fn claimed(&self, cursor: &Cursor) -> Result<u64, Impossible> {
        // Relaxed: a number, and it orders nothing; what is read because of it is checked by its stamp.
        let tail = self.words[ring::TAIL].load(Ordering::Relaxed);
        if tail < cursor.next {
            Err(Impossible::TailWentBack {
                tail,
                seen: cursor.next,
            })
        } else if tail > ABSURD_TAIL {
            Err(Impossible::TailAbsurd { tail })
        } else {
            Ok(tail)
        }
    }

    /// Begins a visit: open claims will be looked at once more, and the answer is the limit to [`Reader::read`] up to.
    ///
    /// A claim that turns out open during a visit is not looked at again in the same visit, so that what one visit
    /// delivers is in the order of the sequence numbers.
    ///
    /// # Errors
    /// [`Impossible`]: quarantine the producer.
    pub fn begin(&self, cursor: &mut Cursor) -> Result<u64, Impossible> {
        let until = self.claimed(cursor)?;
        cursor.revisit = cursor.pending.len();
        Ok(until)
    }

    /// Looks at every event below claim number `until`, oldest first, and gives at most `max` of them to `sink`.
    ///
    /// A reader that was lapped finds in a slot whose newest claimant has not written (it dropped its event, or is
    /// stopped, or dead) still the older event: that one is delivered, if the cursor has not passed it. So a stopped
    /// producer costs one event and not two. Up to two laps behind this comes out of looking at each claim in turn;
    /// further behind the slots are scanned once for events at or after the cursor, of which the oldest
    /// 1,024 are saved.
    ///
    /// # Errors
    /// [`Impossible`]: quarantine the producer. The cursor stays valid.
    pub fn read(
        &self,
        cursor: &mut Cursor,
        until: u64,
        max: usize,
        sink: &mut impl FnMut(&Record),
    ) -> Result<Progress, Impossible> {
        let mut left = max;
        if self.read_pending(cursor, &mut left, sink) == Progress::More {
            return Ok(Progress::More);
        }
        let tail = self.claimed(cursor)?;
        let until = until.min(tail);
        let cap = self.geometry.cap();
        if tail.saturating_sub(cursor.next) > 2 * cap {
            self.skip_lapped(cursor, (tail - cap).min(until), &mut left, sink);
        }
        while cursor.next < until {
            if left == 0 {
                return Ok(Progress::More);
            }
            let n = cursor.next;
            cursor.next += 1;
            match self.look(n) {
                Look::Event(record) => {
                    cursor.delivered += 1;
                    left -= 1;
                    sink(&record);
                }
                Look::Gone => cursor.lost += 1,
                Look::Pending => cursor.push_pending(n),
            }
        }
        Ok(Progress::Done)
    }

    /// Gives up every event below `until`, read or pending: counted as lost and as abandoned.
    ///
    /// # Errors
    /// [`Impossible`]: quarantine the producer.
    pub fn abandon(&self, cursor: &mut Cursor, until: u64) -> Result<(), Impossible> {
        let until = until.min(self.claimed(cursor)?);
        // Claims that producers dropped, or that were overwritten long ago, are not "abandoned": what a reader could
        // still have had is. Looking tells, and a look costs no more than a read.
        let mut readable = 0;
        while self.read(cursor, until, usize::MAX, &mut |_| readable += 1)? == Progress::More {}
        cursor.delivered -= readable;
        cursor.lost += readable;
        cursor.abandoned += readable;
        Ok(())
    }

    /// The ring's account for this cursor.
    ///
    /// # Errors
    /// [`Impossible`]: quarantine the producer.
    pub fn account(&self, cursor: &Cursor) -> Result<Account, Impossible> {
        // SYNC(drop): Acquire, and before the tail: whoever's drop is seen, their claim is seen too.
        let [dropped_in_flight, dropped_lapped, dropped_seq] = [
            ring::DROPPED_IN_FLIGHT,
            ring::DROPPED_LAPPED,
            ring::DROPPED_SEQ,
        ]
        .map(|at| self.words[at].load(Ordering::Acquire));
        let claimed = self.claimed(cursor)?;
        // Each drop had a claim: what exceeds them is a hostile producer's, and would only overflow somebody's sum.
        let dropped = |counter: u64| counter.min(claimed);
        Ok(Account {
            claimed,
            delivered: cursor.delivered,
            lost: cursor.lost,
            pending: cursor.pending.len() as u64,
            unread: claimed - cursor.next,
            dropped_in_flight: dropped(dropped_in_flight),
            dropped_lapped: dropped(dropped_lapped),
            dropped_seq: dropped(dropped_seq),
            abandoned: cursor.abandoned,
        })
    }

    /// Looks again at the claims that were open when the visit began.
    fn read_pending(
        &self,
        cursor: &mut Cursor,
        left: &mut usize,
        sink: &mut impl FnMut(&Record),
    ) -> Progress {
        while cursor.revisit > 0 {
            if *left == 0 {
                return Progress::More;
            }
            // Those not looked at yet stand last, and all keep their order: a visit may end here for good, and the next
            // one begins with the list as it is.
            let at = cursor.pending.len() - cursor.revisit;
            cursor.revisit -= 1;
            let look = self.look(cursor.pending[at]);
            match look {
                Look::Event(record) => {
                    cursor.delivered += 1;
                    *left -= 1;
                    sink(&record);
                }
                Look::Gone => cursor.lost += 1,
                Look::Pending => continue,
            }
            cursor.pending.remove(at);
        }
        Progress::Done
    }

    /// Moves a cursor that is more than two laps behind to claim `to`, saving what slots still hold of the events in
    /// between.
    fn skip_lapped(
        &self,
        cursor: &mut Cursor,
        to: u64,
        left: &mut usize,
        sink: &mut impl FnMut(&Record),
    ) {
        let mut rescued: Vec<u64> = Vec::new();
        for slot_number in 0..self.geometry.cap() {
            // Relaxed: only a hint where to look; `look` acquires.
            let seen = self.slot(slot_number)[slot::STAMP].load(Ordering::Relaxed);
            // Any published stamp is "pending, with an older event" for the largest index.
            if let Readable::Pending { older: Some(index) } =
                stamp::readable(seen, stamp::IN_FLIGHT - 2)
                && let Some(n) = self.geometry.claim_of(index)
                && (cursor.next..to).contains(&n)
                // A hostile stamp may name an event of another slot.
                && self.geometry.place(n).slot == slot_number
                && rescued.len() < MAX_RESCUED
            {
                rescued.push(n);
            }
        }
        rescued.sort_unstable();
        for n in rescued {
            if *left == 0 {
                // The rest is found again by the next call.
                cursor.lost += n - cursor.next;
                cursor.next = n;
                return;
            }
            if let Look::Event(record) = self.look(n) {
                cursor.lost += n - cursor.next;
                cursor.next = n + 1;
                cursor.delivered += 1;
                *left -= 1;
                sink(&record);
            }
        }
        cursor.lost += to - cursor.next;
        cursor.next = to;
    }

    /// Looks for event `n` in its slot (I5).
    fn look(&self, n: u64) -> Look {
        if n >= SEQ_MAX {
            return Look::Gone; // dropped by its producer, which has no number for it
        }
        let Place {
            index,
            slot: slot_number,
        } = self.geometry.place(n);
        let slot = self.slot(slot_number);
        // SYNC(publish): Acquire, so that the copy below sees what was written before the stamp.
        let seen = slot[slot::STAMP].load(Ordering::Acquire);
        match stamp::readable(seen, index) {
            Readable::Gone => Look::Gone,
            Readable::Pending { .. } => Look::Pending,
            Readable::Yes => {
                let mut record = Record::default();
                for at in record_words() {
                    step::halfway(at, "look:half");
                    record.words[at] = slot[slot::RECORD + at].load(Ordering::Relaxed);
                }
                // SYNC(overwrite): if any of the words above was a later producer's, its in-flight stamp is visible
                // to the second look.
                fence(Ordering::Acquire);
                if slot[slot::STAMP].load(Ordering::Relaxed) == seen {
                    Look::Event(record)
                } else {
                    Look::Gone
                }
            }
        }
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "a slot number is below the length of a slice"
    )]
    fn slot(&self, number: u64) -> &'a [W] {
        let first = ring::SLOTS + number as usize * SLOT_WORDS;
        &self.words[first..first + SLOT_WORDS]
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
