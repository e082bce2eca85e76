//! Page table entries ahead of the tails, so that no emit of the first lap takes a page fault.
//!
//! The daemon takes the memory ahead of each tail; what is left for whoever touches a page first is a fault that only
//! enters it into the process's page table: 3 to 5 us on a virtual machine, for each 32 events. The background thread
//! enters pages in bulk, a little behind the daemon and ahead of the emitters, until each ring in use has been round.

use std::sync::atomic::Ordering;
use std::time::Duration;

use nrt_trace_abi::layout::{SLOT_WORDS, ring};

use crate::segment::Segment;

/// Pages that a ring has entered before its first event: what the daemon gives it at the start.
const FIRST_WORDS: usize = (128 << 10) / size_of::<u64>();
/// Pages entered ahead of a tail, at most: half of what the daemon takes ahead, so that there is memory already. A ring that
/// has few events yet gets eight times as many ahead: a page of no event is memory taken for nothing.
const AHEAD_WORDS: usize = (2 << 20) / size_of::<u64>();
/// A call for less than this is not worth it.
const STEP_WORDS: usize = (256 << 10) / size_of::<u64>();

/// How far the pages of a segment's rings are entered.
#[derive(Debug)]
pub(crate) struct Ahead {
    rings: Vec<Progress>,
    /// Words of a ring.
    whole: usize,
    /// Visits since a tail had moved.
    quiet: u32,
}

#[derive(Debug)]
struct Progress {
    /// First word of the ring.
    first: usize,
    /// Words of it whose pages are entered.
    done: usize,
    /// Events that had a number before: the ring goes on where another ended.
    claimed: u64,
}

impl Ahead {
    /// Enters the first pages of each ring; `None` if the kernel can't enter pages.
    pub(crate) fn start(segment: &Segment) -> Option<Self> {
        let layout = segment.layout();
        let mut ahead = Self {
            rings: Vec::new(),
            whole: layout.ring_words(),
            quiet: 0,
        };
        for first in layout.ncs().filter_map(|nc| layout.ring_word(nc)) {
            let done = FIRST_WORDS.min(ahead.whole);
            segment.mapping().populate(first..first + done).ok()?;
            let tail = segment.mapping().words().get(first + ring::TAIL);
            let claimed = tail.map_or(0, |tail| tail.load(Ordering::Relaxed));
            ahead.rings.push(Progress {
                first,
                done,
                claimed,
            });
        }
        Some(ahead)
    }

    /// Enters pages ahead of the tails that have moved; false when there is nothing left to do, or no way to do it.
    pub(crate) fn follow(&mut self, segment: &Segment) -> bool {
        self.quiet = self.quiet.saturating_add(1);
        let mut left = false;
        for ring in self.rings.iter_mut().filter(|ring| ring.done < self.whole) {
            left = true;
            let Some(tail) = segment.mapping().words().get(ring.first + ring::TAIL) else {
                return false;
            };
            // Relaxed: a hint. Nothing was claimed: the ring may never be used.
            let claimed = tail.load(Ordering::Relaxed).saturating_sub(ring.claimed);
            let Ok(claimed @ 1..) = usize::try_from(claimed) else {
                continue;
            };
            let used = claimed.saturating_mul(SLOT_WORDS);
            let want = used
                .saturating_add(AHEAD_WORDS.min(used.saturating_mul(8)))
                .min(self.whole);
            if want >= ring.done + STEP_WORDS || (want == self.whole && want > ring.done) {
                self.quiet = 0;
                let pages = ring.first + ring.done..ring.first + want;
                if segment.mapping().populate(pages).is_err() {
                    return false;
                }
                ring.done = want;
            }
        }
        left
    }

    /// When to come again: soon while events come, and later and later, up to half a second, while none do.
    pub(crate) fn pause(&self) -> Duration {
        Duration::from_millis(5 << self.quiet.min(7)).min(Duration::from_millis(500))
    }
}

#[cfg(test)]
mod tests {
    use nrt_trace_abi::layout::SegmentLayout;
    use nrt_trace_shm::memfd;

    use super::*;

    #[test]
    fn pages_are_entered_ahead_of_tails_that_move_until_a_ring_has_been_round() {
        let layout = SegmentLayout::new(64 << 10, [0, 1]).unwrap();
        let fd = memfd::create("ahead", layout.bytes()).unwrap();
        memfd::write_words(&fd, &layout.header([1, 2], 3, 4)).unwrap();
        memfd::seal_size(&fd).unwrap();
        let segment = Segment::map(&fd, layout.bytes(), 3).unwrap();
        let Some(mut ahead) = Ahead::start(&segment) else {
            panic!("this kernel can't populate mappings");
        };
        let entered = || memfd::resident_bytes(&fd).unwrap();
        let first = entered();
        assert!((256 << 10..512 << 10).contains(&first), "{first}");
        assert!(ahead.follow(&segment) && entered() == first, "nothing came");
        segment.ring(0).unwrap().push(|_| Default::default());
        assert!(ahead.follow(&segment) && entered() == first, "one event");
        let calm = ahead.pause();
        let tail = layout.ring_word(0).unwrap() + ring::TAIL;
        segment.mapping().words()[tail].store(4 << 10, Ordering::Relaxed);
        assert!(ahead.follow(&segment));
        assert!((5 << 19..4 << 20).contains(&entered()), "{}", entered());
        assert!(ahead.pause() < calm, "events come");
        for nc in [0, 1] {
            let tail = layout.ring_word(nc).unwrap() + ring::TAIL;
            segment.mapping().words()[tail].store(60 << 10, Ordering::Relaxed);
        }
        assert!(ahead.follow(&segment));
        assert!(!ahead.follow(&segment), "both have been round, or will");
        assert!(entered() >= 16 << 20, "{}", entered());
    }
}
