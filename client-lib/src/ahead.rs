//! Page table entries ahead of the tails, so that no emit of the first lap takes a page fault.
//!
//! The daemon takes the memory ahead of each tail; what is left for whoever touches a page first is a fault that only
//! enters it into the process's page table: 3 to 5 us on a virtual machine, for each 32 events. The background thread
//! enters pages in bulk, a little behind the daemon and ahead of the emitters, until each ring in use has been round.
//!
//! Never before the daemon: a page that has no memory yet would be charged to this process, which may be in a memory group
//! smaller than its rings, and would be taken past the daemon's budget. How far there is memory stands in the control page.

use std::sync::atomic::Ordering;
use std::time::Duration;

use nrt_trace_abi::layout::{SLOT_WORDS, WORD_BYTES, ring};
use nrt_trace_shm::ReadWord;
use nrt_trace_shm::control::ahead;

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
    nc: usize,
    /// First word of the ring.
    first: usize,
    /// Words of it whose pages are entered.
    done: usize,
    /// Events that had a number before: the ring goes on where another ended.
    claimed: u64,
}

impl Ahead {
    /// Enters the first pages of each ring, which have memory from the start; `None` if the kernel can't enter pages.
    pub(crate) fn start(segment: &Segment) -> Option<Self> {
        let layout = segment.layout();
        let mut ahead = Self {
            rings: Vec::new(),
            whole: layout.ring_words(),
            quiet: 0,
        };
        for (nc, first) in (layout.ncs()).filter_map(|nc| Some((nc, layout.ring_word(nc)?))) {
            let done = FIRST_WORDS.min(ahead.whole);
            segment.mapping().populate(first..first + done).ok()?;
            let tail = segment.mapping().words().get(first + ring::TAIL);
            let claimed = tail.map_or(0, |tail| tail.load(Ordering::Relaxed));
            ahead.rings.push(Progress {
                nc,
                first,
                done,
                claimed,
            });
        }
        Some(ahead)
    }

    /// Enters pages ahead of the tails that have moved, as far as the control page of these words says that they have memory;
    /// false when there is nothing left to do, or no way to do it.
    pub(crate) fn follow(&mut self, segment: &Segment, page: &[ReadWord]) -> bool {
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
                .min(self.whole)
                .min(usize::try_from(ahead(page, ring.nc) / WORD_BYTES).unwrap_or(usize::MAX));
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
    use std::os::fd::{AsFd, OwnedFd};

    use nrt_trace_abi::layout::SegmentLayout;
    use nrt_trace_shm::control::{BYTES, ControlPage};
    use nrt_trace_shm::{ReadMapping, memfd};

    use super::*;

    fn segment() -> (SegmentLayout, OwnedFd, Segment) {
        let layout = SegmentLayout::new(64 << 10, [0, 1]).unwrap();
        let fd = memfd::create("ahead", layout.bytes()).unwrap();
        memfd::write_words(&fd, &layout.header([1, 2], 3, 4)).unwrap();
        memfd::seal_size(&fd).unwrap();
        let segment = Segment::map(fd.as_fd(), layout.bytes(), 3).unwrap();
        (layout, fd, segment)
    }

    #[test]
    fn pages_are_entered_ahead_of_tails_that_move_until_a_ring_has_been_round() {
        let (layout, fd, segment) = segment();
        let (page, page_fd) = ControlPage::create(4).unwrap();
        let page_map = ReadMapping::map(&page_fd, BYTES).unwrap();
        page.set_ahead(0, u64::MAX);
        page.set_ahead(1, u64::MAX);
        let Some(mut ahead) = Ahead::start(&segment) else {
            panic!("this kernel can't populate mappings");
        };
        let follow = |ahead: &mut Ahead| ahead.follow(&segment, page_map.words());
        let entered = || memfd::resident_bytes(&fd).unwrap();
        let first = entered();
        assert!((256 << 10..512 << 10).contains(&first), "{first}");
        assert!(follow(&mut ahead) && entered() == first, "nothing came");
        segment.ring(0).unwrap().push(|_| Default::default());
        assert!(follow(&mut ahead) && entered() == first, "one event");
        let calm = ahead.pause();
        let tail = layout.ring_word(0).unwrap() + ring::TAIL;
        segment.mapping().words()[tail].store(4 << 10, Ordering::Relaxed);
        assert!(follow(&mut ahead));
        assert!((5 << 19..4 << 20).contains(&entered()), "{}", entered());
        assert!(ahead.pause() < calm, "events come");
        for nc in [0, 1] {
            let tail = layout.ring_word(nc).unwrap() + ring::TAIL;
            segment.mapping().words()[tail].store(60 << 10, Ordering::Relaxed);
        }
        assert!(follow(&mut ahead));
        assert!(!follow(&mut ahead), "both have been round, or will");
        assert!(entered() >= 16 << 20, "{}", entered());
    }

    /// A budget that the daemon keeps to must not be overrun by the library in the daemon's place.
    #[test]
    fn no_page_is_entered_that_the_daemon_has_not_taken() {
        let (layout, fd, segment) = segment();
        let (page, page_fd) = ControlPage::create(4).unwrap();
        let page_map = ReadMapping::map(&page_fd, BYTES).unwrap();
        let mut ahead = Ahead::start(&segment).unwrap();
        let first = memfd::resident_bytes(&fd).unwrap();
        for nc in [0, 1] {
            let tail = layout.ring_word(nc).unwrap() + ring::TAIL;
            segment.mapping().words()[tail].store(60 << 10, Ordering::Relaxed);
        }
        assert!(ahead.follow(&segment, page_map.words()), "later, perhaps");
        assert_eq!(memfd::resident_bytes(&fd).unwrap(), first);
        page.set_ahead(1, 3 << 20);
        assert!(ahead.follow(&segment, page_map.words()));
        let after = memfd::resident_bytes(&fd).unwrap();
        assert_eq!(after - first, (3 << 20) - (128 << 10), "one of them");
    }
}
