//! The producer's side: claim a number, take its slot, write, publish. Never waits (I6).

use nrt_trace_abi::SEQ_MAX;
use nrt_trace_abi::geometry::Geometry;
use nrt_trace_abi::layout::{SLOT_WORDS, ring, slot};
use nrt_trace_abi::record::{RECORD_WORDS, Record};
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
    header: &'a [AtomicU64; ring::SLOTS],
    slots: &'a [[AtomicU64; SLOT_WORDS]],
    geometry: Geometry,
    /// One for each slot: the model checker's race detector, see [`Producer::watched`].
    #[cfg(loom)]
    cells: &'a [loom::cell::UnsafeCell<()>],
}

impl<'a> Producer<'a> {
    /// A ring over its words (header lines and slots); `None` if there are too few for the geometry.
    #[inline]
    #[must_use]
    pub fn new(words: &'a [AtomicU64], geometry: Geometry) -> Option<Self> {
        let (header, slots) = words.split_first_chunk::<{ ring::SLOTS }>()?;
        let slots = slots.as_chunks::<SLOT_WORDS>().0;
        (slots.len() as u64 >= geometry.cap()).then_some(Self {
            header,
            slots,
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
    /// `event` makes the record for the ring's number (1 for the first). It is asked once the number is claimed and the
    /// slot is ours, so that along a ring later numbers carry later times, but for producers that were interrupted in
    /// between; and not at all for an event that is dropped.
    ///
    /// A claim that meets an occupied slot is given up, not repeated with the next number: then a gap in the sequence
    /// always means a loss, and the number of steps is fixed.
    #[inline(always)]
    pub fn push(&self, event: impl FnOnce(u64) -> Record) -> Outcome {
        // Relaxed: the number itself is all that is needed; the stamps order the rest.
        let n = self.header[ring::TAIL].fetch_add(1, Ordering::Relaxed);
        step::at("push:claimed");
        if n >= SEQ_MAX {
            return self.give_up(DropCause::Seq);
        }
        let place = self.geometry.place(n);
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a slot number is below the length of a slice"
        )]
        let Some(slot) = self.slots.get(place.slot as usize) else {
            return self.give_up(DropCause::Seq); // `new` saw to it that every slot is there
        };
        step::at("push:found");
        if let Err(cause) = self.take(&slot[slot::STAMP], place.index) {
            return self.give_up(cause);
        }
        step::at("push:taken");
        // I1: from here to the publishing store nobody else writes these words.
        // SYNC(overwrite): a reader that sees one of the words below also sees the in-flight stamp.
        fence(Ordering::Release);
        let event = event(n + 1);
        #[cfg(loom)]
        if let Some(cell) = self.cells.get(place.slot as usize) {
            cell.with_mut(|_| ());
        }
        for at in record_words() {
            step::halfway(at, "push:half");
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

    /// The slot that will be written a few events after the one with number `seq`, in a ring too large for a CPU's own
    /// caches: one to be brought there in time. `None` in a small ring, and at the end of a lap.
    #[inline(always)]
    #[must_use]
    pub fn ahead_of(&self, seq: u64) -> Option<&'a [AtomicU64; SLOT_WORDS]> {
        /// Events ahead: the two lines of a slot take about 100 ns to come, in which two threads write 4.
        const EVENTS: u64 = 6;
        /// Slots of a ring of 512 KiB, which stays in the second-level cache.
        const SMALL: u64 = 4096;
        if self.geometry.cap() <= SMALL {
            return None;
        }
        let at = self.geometry.place(seq.wrapping_sub(1)).slot + EVENTS;
        self.slots.get(usize::try_from(at).ok()?)
    }

    /// Marks a slot as being written for index `i`, if its stamp allows that.
    #[inline]
    fn take(&self, stamp: &AtomicU64, i: u64) -> Result<(), DropCause> {
        // A guess first: the slot holds the event of the lap before. Then one exclusive access to its line does what
        // a look and a compare-and-swap take two for, and between two CPUs each costs a transfer.
        // SYNC(reuse): Acquire, so that our payload comes after the one that this stamp published.
        let guess = self.geometry.stamp_before(i);
        let Err(seen) = stamp.compare_exchange(
            guess,
            stamp::in_flight(i),
            Ordering::Acquire,
            Ordering::Acquire,
        ) else {
            return Ok(());
        };
        may_write(seen, i)?;
        // The first lap, or somebody dropped an event here. Relaxed: the load above has acquired, and as a stamp never comes
        // back to a value (I2), the store that is replaced is the one that was seen. Strong: a spurious failure would be a drop.
        match stamp.compare_exchange(
            seen,
            stamp::in_flight(i),
            Ordering::Relaxed,
            Ordering::Relaxed,
        ) {
            Ok(_) => Ok(()),
            Err(seen) => Err(may_write(seen, i).err().unwrap_or(DropCause::Lapped)),
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
        self.header[counter].fetch_add(1, Ordering::Release);
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

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_slot_ahead_is_told_in_large_rings_only() {
        for (cap, known) in [(4096, false), (4097, true), (8192, true)] {
            let geometry = Geometry::new(cap).unwrap();
            let slots = usize::try_from(cap).unwrap() * SLOT_WORDS;
            let words: Vec<_> = (0..ring::SLOTS + slots)
                .map(|_| AtomicU64::new(0))
                .collect();
            let producer = Producer::new(&words, geometry).unwrap();
            let slot_of = |slot: &[AtomicU64; SLOT_WORDS]| {
                let first = producer.slots.as_ptr_range().start;
                (slot.as_ptr() as usize - first as usize) / size_of_val(slot)
            };
            let ahead = |seq| producer.ahead_of(seq).map(slot_of);
            assert_eq!(ahead(1), known.then_some(6), "{cap}");
            assert_eq!(ahead(cap + 11), known.then_some(16), "{cap}");
            assert_eq!(
                ahead(cap - 6),
                known.then_some(usize::try_from(cap).unwrap() - 1)
            );
            assert_eq!(ahead(cap - 5), None, "the lap ends");
        }
    }
}
