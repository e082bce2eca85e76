//! What a forked child makes of the table, where its one thread is all that is left.

use std::sync::atomic::Ordering;

use super::CROWD;
use super::own::{self, NEVER, Own};
use super::table::{HIGH, MAX_THREADS, SLOTS, Slot};
use crate::process::gettid;

impl Own {
    /// The thread's slot, if that says that it is inside.
    fn interrupted_slot(&self) -> Option<&'static Slot> {
        if self.instance.load(Ordering::Relaxed) == NEVER {
            return None;
        }
        // SAFETY: as in `enter_outermost`.
        let slot: &'static Slot = unsafe { &*self.slot.load(Ordering::Relaxed) };
        (slot.word.load(Ordering::Relaxed) & 1 == 1).then_some(slot)
    }
}

/// In a forked child, before anything is published in it: the calling thread is the only one.
///
/// It may be inside all the same: in a signal handler that interrupted an emit. Then it stays so until that emit ends.
pub fn forget_others() {
    own::with(|own| {
        let tid = gettid();
        let interrupted = own.interrupted_slot();
        let mut high = 0;
        for (at, slot) in SLOTS[..HIGH.load(Ordering::Relaxed).min(MAX_THREADS)]
            .iter()
            .enumerate()
        {
            if interrupted.is_some_and(|mine| std::ptr::eq(mine, slot)) {
                slot.owner
                    .store(u64::from(tid) | 1 << 32, Ordering::Relaxed);
                slot.tid.store(u64::from(tid), Ordering::Relaxed);
                high = at + 1;
            } else {
                slot.word.store(0, Ordering::Relaxed);
                slot.owner.store(0, Ordering::Relaxed);
            }
        }
        HIGH.store(high, Ordering::Relaxed);
        let crowded = own.crowded.load(Ordering::Relaxed);
        CROWD.store(crowded, Ordering::Relaxed);
    });
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::super::table::SWEEPS;
    use super::super::{Inside, Place, Within, barriers_work, enter, wait_until_left};
    use super::*;
    use crate::child::in_child;

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(20)
    }

    #[test]
    fn a_child_forked_inside_leaves_once() {
        assert!(barriers_work());
        let mut inside = enter(3);
        assert!(in_child(|| {
            forget_others();
            // Another number of the thread, and a new attach while it is inside: it is nested, and its slot stays.
            let nested = enter(4);
            let is_nested = matches!(nested, Some(Inside(Place::Nested(..))));
            let tid = nested.as_ref().map(Within::tid);
            drop(nested);
            let counted = HIGH.load(Ordering::Relaxed) > 0
                && SLOTS
                    .iter()
                    .filter(|s| s.word.load(Ordering::Relaxed) & 1 == 1)
                    .count()
                    == 1;
            inside = None;
            let left = wait_until_left(Instant::now());
            is_nested && counted && left && tid == Some(u64::from(gettid()))
        }));
        drop(inside);
    }

    #[test]
    fn a_child_forked_outside_has_no_slot() {
        drop(enter(5));
        assert!(in_child(|| {
            forget_others();
            let empty = HIGH.load(Ordering::Relaxed) == 0 && wait_until_left(soon());
            let again = enter(6);
            empty && matches!(again, Some(Inside(Place::Outermost(_))))
        }));
    }

    #[test]
    fn a_child_forked_in_the_crowd_leaves_once() {
        own::with(|own| {
            // As if every slot were taken.
            own.crowd.store(7, Ordering::Relaxed);
            own.sweeps
                .store(SWEEPS.load(Ordering::Relaxed), Ordering::Relaxed);
        });
        let mut inside = enter(7);
        assert!(matches!(inside, Some(Inside(Place::Crowd(_)))));
        assert!(in_child(|| {
            forget_others();
            let counted = CROWD.load(Ordering::Relaxed) == 1;
            inside = None;
            counted && CROWD.load(Ordering::Relaxed) == 0 && wait_until_left(soon())
        }));
        drop(inside);
    }
}
