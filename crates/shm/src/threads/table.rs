//! Who has which slot.
//!
//! A slot is its owner's from the exchange that claims it to the sweep that finds the owner gone: threads don't give theirs
//! back, which would take a destructor in thread-local storage.
//!
//! ```text
//! claim                                       sweep, when the owner is gone
//!   owner: 0 → mine         (AcqRel) ◄─┐        owner: gone → CLEANING     (AcqRel)
//!   high = max(high, mine)  (AcqRel)   │        word made even             (Release) ── SYNC(leave)
//!                                      └──────  owner = 0                  (Release) ── SYNC(owner)
//! ```

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, compiler_fence};

use super::kept::NO_CLOCK;
use super::own::{NEVER, Own};
use crate::process::{gettid, thread_exists};

/// Threads that have a word of their own; more share one.
pub const MAX_THREADS: usize = 4096;

/// A thread's place in the table: two cache lines, so that neighbours don't disturb each other.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct Slot {
    /// Even: outside. Odd: inside.
    pub(super) word: AtomicU64,
    /// `tid | uses << 32`; 0 when free. The count of uses keeps a sweeper that found the old thread gone from freeing
    /// the place of a new thread with the same number.
    pub(super) owner: AtomicU64,
    /// The thread's copy of the clock: selector, base tsc, base ns, multiplier. Only the owner touches it.
    pub(super) clock: [AtomicU64; 4],
    /// The owner's number as the kernel counts threads, as emit wants it.
    pub(super) tid: AtomicU64,
}

pub(super) static SLOTS: [Slot; MAX_THREADS] = [const {
    Slot {
        word: AtomicU64::new(0),
        owner: AtomicU64::new(0),
        clock: [const { AtomicU64::new(0) }; 4],
        tid: AtomicU64::new(0),
    }
}; MAX_THREADS];

/// Slots at and above this have never been used.
pub(super) static HIGH: AtomicUsize = AtomicUsize::new(0);

/// Grows whenever [`sweep`] freed slots: threads of the crowd then try again.
pub(super) static SWEEPS: AtomicU64 = AtomicU64::new(0);

/// The calling thread's slot, which is looked for when it comes for the first time in an instance, and again when slots
/// were freed since it found none.
pub(super) fn slot_of(own: &Own, instance: u64) -> Option<&'static Slot> {
    if own.instance.load(Ordering::Relaxed) == instance {
        // SAFETY: as in `enter_outermost`.
        return Some(unsafe { &*own.slot.load(Ordering::Relaxed) });
    }
    let found_none = own.crowd.load(Ordering::Relaxed) == instance
        && own.sweeps.load(Ordering::Relaxed) == SWEEPS.load(Ordering::Relaxed);
    if found_none {
        None
    } else {
        register(own, instance)
    }
}

/// Finds the calling thread a slot. May be interrupted by a signal handler that does the same: the handler's slot is
/// then found again by its number.
fn register(own: &Own, instance: u64) -> Option<&'static Slot> {
    let tid = gettid();
    own.sweeps
        .store(SWEEPS.load(Ordering::Relaxed), Ordering::Relaxed);
    let Some(at) = claim(tid) else {
        own.tid.store(u64::from(tid), Ordering::Relaxed);
        own.crowd.store(instance, Ordering::Relaxed);
        return None;
    };
    let slot = &SLOTS[at];
    // Not this thread's slot so far: what it says is a dead thread's, which may have died inside and left it odd.
    if !std::ptr::eq(own.slot.load(Ordering::Relaxed), slot)
        || own.instance.load(Ordering::Relaxed) == NEVER
    {
        let word = slot.word.load(Ordering::Relaxed);
        // SYNC(leave): Release, as whoever leaves does; of the dead thread all is seen that `claim` acquired.
        slot.word.store(word + (word & 1), Ordering::Release);
    }
    slot.clock[0].store(NO_CLOCK, Ordering::Relaxed);
    slot.tid.store(u64::from(tid), Ordering::Relaxed);
    own.slot
        .store(std::ptr::from_ref(slot).cast_mut(), Ordering::Relaxed);
    compiler_fence(Ordering::SeqCst);
    own.instance.store(instance, Ordering::Relaxed);
    Some(slot)
}

fn claim(tid: u32) -> Option<usize> {
    // SYNC(high): a dead thread's slot is below it.
    let high = HIGH.load(Ordering::Acquire).min(MAX_THREADS);
    // A dead thread with this number, or this thread itself under a handler: only the living have numbers of their own.
    let mine = (0..high).find(|&at| owner_tid(SLOTS[at].owner.load(Ordering::Relaxed)) == tid);
    if let Some(at) = mine {
        let owner = SLOTS[at].owner.load(Ordering::Relaxed);
        let again = u64::from(tid) | ((owner >> 32) + 1) << 32;
        // SYNC(owner): against a sweep that found the dead thread gone; one of the two has the slot.
        if owner_tid(owner) == tid
            && SLOTS[at]
                .owner
                .compare_exchange(owner, again, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
        {
            return Some(at);
        }
    }
    // SYNC(owner): Acquire, what the sweep left is seen; Release, so that a sweep which finds this thread gone sees what it was.
    let free = (0..MAX_THREADS).find(|&at| {
        SLOTS[at].owner.load(Ordering::Relaxed) == 0
            && SLOTS[at]
                .owner
                .compare_exchange(
                    0,
                    u64::from(tid) | 1 << 32,
                    Ordering::AcqRel,
                    Ordering::Relaxed,
                )
                .is_ok()
    })?;
    // SYNC(high): before the thread's word is odd for the first time, which the other side learns by its membarrier.
    HIGH.fetch_max(free + 1, Ordering::AcqRel);
    Some(free)
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the low half holds the thread's number"
)]
pub(super) const fn owner_tid(owner: u64) -> u32 {
    owner as u32
}

/// Frees the slots of threads that are gone. Called now and then by one background thread.
pub fn sweep() {
    /// Marks a slot that is being cleaned: no thread has this number.
    const CLEANING: u64 = u32::MAX as u64;
    let mut freed = false;
    // SYNC(high).
    for slot in &SLOTS[..HIGH.load(Ordering::Acquire).min(MAX_THREADS)] {
        let owner = slot.owner.load(Ordering::Relaxed);
        if owner == 0 || thread_exists(owner_tid(owner)) {
            continue;
        }
        // SYNC(owner): against a new thread of that number that claims it; what the claim did is seen.
        if slot
            .owner
            .compare_exchange(owner, CLEANING, Ordering::AcqRel, Ordering::Relaxed)
            .is_err()
        {
            continue; // a new thread of that number was quicker
        }
        // It died inside: nobody will make the word even again.
        let word = slot.word.load(Ordering::Relaxed);
        // SYNC(leave).
        slot.word.store(word + (word & 1), Ordering::Release);
        // SYNC(owner): the next owner finds the word even.
        slot.owner.store(0, Ordering::Release);
        freed = true;
    }
    if freed {
        SWEEPS.fetch_add(1, Ordering::Relaxed);
    }
}
