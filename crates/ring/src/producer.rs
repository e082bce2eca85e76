//! The producer's side: claim a number, take its slot, write, publish. Never waits (I6).

use nrt_trace_abi::SEQ_MAX;
use nrt_trace_abi::geometry::Geometry;
use nrt_trace_abi::layout::{SLOT_WORDS, ring, slot};
use nrt_trace_abi::record::{self, Draft, RECORD_WORDS};
use nrt_trace_abi::stamp::{self, Writable};

use crate::step;
use crate::sync::{AtomicU64, Ordering, fence, record_words};

/// Why an event was not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropCause {
    /// Another producer was writing the slot: it is slow by a whole lap, or stopped, or dead.
    InFlight,
    /// A later lap had taken the slot: this producer was slow by a whole lap.
    Lapped,
    /// The sequence number no longer fits its 50 bits.
    Seq,
}

/// What became of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Readable from now on.
    Stored {
        /// The ring's number for it, 1 for the first.
        seq: u64,
        /// The tracking id that was recorded.
        tracking_id: u64,
    },
    /// Not stored; the ring has counted it.
    Dropped(DropCause),
}

/// A ring, as its producers see it.
#[derive(Clone, Copy, Debug)]
pub struct Producer<'a> {
    words: &'a [AtomicU64],
    geometry: &'a Geometry,
    /// One for each slot: the model checker's race detector, see [`Producer::watched`].
    #[cfg(loom)]
    cells: &'a [loom::cell::UnsafeCell<()>],
}

impl<'a> Producer<'a> {
    /// A ring over its words (header lines and slots); `None` if there are too few for the geometry.
    #[inline]
    #[must_use]
    pub fn new(words: &'a [AtomicU64], geometry: &'a Geometry) -> Option<Self> {
        (words.len() as u64 >= ring::words(geometry.cap())).then_some(Self {
            words,
            geometry,
            #[cfg(loom)]
            cells: &[],
        })
    }

    /// The same, with a cell for each slot that counts as written whenever the slot's payload is. The model checker
    /// keeps one order for the stores to a word, the one in which it made them, and so can't show what happens when
    /// SYNC(reuse) is missing; that two writes to a cell are not ordered by anything, it reports.
    #[cfg(loom)]
    #[must_use]
    pub fn watched(self, cells: &'a [loom::cell::UnsafeCell<()>]) -> Self {
        Self { cells, ..self }
    }

    /// Stores an event, overwriting the oldest one of a full ring.
    ///
    /// `now` gives the timestamp; it is asked after the number is claimed, so that along a ring later numbers carry
    /// later times, but for producers that were interrupted in between.
    ///
    /// A claim that meets an occupied slot is given up, not repeated with the next number: then a gap in the sequence
    /// always means a loss, and the number of steps is fixed.
    #[inline]
    pub fn push(&self, draft: &Draft, now: impl FnOnce() -> u64) -> Outcome {
        // Relaxed: the number itself is all that is needed; the stamps order the rest.
        let n = self.words[ring::TAIL].fetch_add(1, Ordering::Relaxed);
        step::at("push:claimed");
        if n >= SEQ_MAX {
            return self.give_up(DropCause::Seq);
        }
        let place = self.geometry.place(n);
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a slot number is below the length of a slice"
        )]
        let first = ring::SLOTS + place.slot as usize * SLOT_WORDS;
        let Some(slot) = self
            .words
            .get(first..)
            .and_then(<[AtomicU64]>::first_chunk::<SLOT_WORDS>)
        else {
            return self.give_up(DropCause::Seq); // `new` saw to it that every slot is there
        };

        // SYNC(reuse): Acquire, so that our payload comes after the one that this stamp published.
        let seen = slot[slot::STAMP].load(Ordering::Acquire);
        step::at("push:looked");
        if let Err(cause) = may_write(seen, place.index) {
            return self.give_up(cause);
        }
        // Relaxed: the load above has acquired, the fence below releases. Strong: a spurious failure would be a drop.
        let taken = slot[slot::STAMP].compare_exchange(
            seen,
            stamp::in_flight(place.index),
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
        if let Err(now_seen) = taken {
            return self.give_up(
                may_write(now_seen, place.index)
                    .err()
                    .unwrap_or(DropCause::Lapped),
            );
        }
        step::at("push:taken");
        // I1: from here to the publishing store nobody else writes these words.
        // SYNC(overwrite): a reader that sees one of the words below also sees the in-flight stamp.
        fence(Ordering::Release);
        let event = Draft {
            timestamp_ns: now(),
            ..*draft
        }
        .finish(n + 1);
        #[cfg(loom)]
        if let Some(cell) = self
            .cells
            .get(first / SLOT_WORDS - ring::SLOTS / SLOT_WORDS)
        {
            cell.with_mut(|_| ());
        }
        for at in record_words() {
            if at == record::DATA_WORD {
                step::at("push:half");
            }
            slot[slot::RECORD + at].store(event.words[at], Ordering::Relaxed);
        }
        step::at("push:written");
        // SYNC(publish), SYNC(reuse).
        slot[slot::STAMP].store(stamp::published(place.index), Ordering::Release);
        step::at("push:published");
        Outcome::Stored {
            seq: n + 1,
            tracking_id: event.tracking_id(),
        }
    }

    #[cold]
    fn give_up(&self, cause: DropCause) -> Outcome {
        let counter = match cause {
            DropCause::InFlight => ring::DROPPED_IN_FLIGHT,
            DropCause::Lapped => ring::DROPPED_LAPPED,
            DropCause::Seq => ring::DROPPED_SEQ,
        };
        step::at("push:drop");
        // SYNC(drop): the claim above becomes visible no later than its drop.
        self.words[counter].fetch_add(1, Ordering::Release);
        step::at("push:dropped");
        Outcome::Dropped(cause)
    }
}

/// Whether a slot with stamp `seen` may be taken for index `i`.
#[inline]
fn may_write(seen: u64, i: u64) -> Result<(), DropCause> {
    match stamp::writable(seen, i) {
        Writable::Yes => Ok(()),
        Writable::InFlight => Err(DropCause::InFlight),
        Writable::Lapped => Err(DropCause::Lapped),
    }
}

const _: () = assert!(slot::RECORD + RECORD_WORDS == SLOT_WORDS);
