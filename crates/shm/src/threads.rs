//! One word per thread that says "inside an emit", so that a mapping can be taken away without emit paying for it.
//!
//! A thread's word counts: even outside an emit, odd inside. Emit stores to it, and a compiler fence later reads the
//! pointer to the mapping; no atomic read-modify-write, no CPU fence. The side that takes the mapping away pays: it
//! publishes the new pointer, has the kernel run a barrier on every CPU that runs one of our threads (`membarrier`),
//! and then waits until every word that it finds odd has *changed*. It need not become even, which a busy thread might
//! never be seen doing.
//!
//! ```text
//! emit                                  whoever takes the mapping away
//!   word = c + 1     (Relaxed)            pointer = new
//!   compiler fence                        membarrier        ── SYNC(membarrier)
//!   p = pointer      (Acquire)            for each odd word: wait until it is another value
//!   …                                     free the old mapping
//!   word = c + 2     (Release) ─────────── SYNC(leave): Acquire
//! ```
//!
//! After the barrier either the store of the odd word is visible to us, or the thread will load the new pointer.
//!
//! A nested emit, out of a signal handler, finds the word odd and leaves it alone. A handler that runs between the load
//! and the store of `c` makes the word go `c+1, c+2` and back to `c+1`: still a change, and still odd while inside.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, compiler_fence};
use std::time::{Duration, Instant};

use nrt_trace_abi::clock::ClockParams;
use rustix::thread::{MembarrierCommand, membarrier};

use crate::process::{gettid, thread_exists};

mod own;

use own::{NEVER, Own};

/// Threads that have a word of their own; more share one.
pub const MAX_THREADS: usize = 4096;

/// A thread's place in the table: two cache lines, so that neighbours don't disturb each other.
#[derive(Debug)]
#[repr(align(128))]
struct Slot {
    /// Even: outside. Odd: inside.
    word: AtomicU64,
    /// `tid | uses << 32`; 0 when free. The count of uses keeps a sweeper that found the old thread gone from freeing
    /// the place of a new thread with the same number.
    owner: AtomicU64,
    /// The thread's copy of the clock: selector, base tsc, base ns, multiplier. Only the owner touches it.
    clock: [AtomicU64; 4],
    /// The owner's number as the kernel counts threads, as emit wants it.
    tid: AtomicU64,
}

static SLOTS: [Slot; MAX_THREADS] = [const {
    Slot {
        word: AtomicU64::new(0),
        owner: AtomicU64::new(0),
        clock: [const { AtomicU64::new(0) }; 4],
        tid: AtomicU64::new(0),
    }
}; MAX_THREADS];

/// Slots at and above this have never been used.
static HIGH: AtomicUsize = AtomicUsize::new(0);

/// Threads without a slot that are inside.
static CROWD: AtomicU64 = AtomicU64::new(0);

/// Grows whenever [`sweep`] freed slots: threads of the crowd then try again.
static SWEEPS: AtomicU64 = AtomicU64::new(0);

/// Selector value that no page has: nothing is cached.
const NO_CLOCK: u64 = u64::MAX;

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

/// The calling thread is inside: what [`crate::publish::Published::get`] gives stays mapped until this is dropped.
pub trait Within {
    /// Kernel number of the thread.
    fn tid(&self) -> u64;
}

/// Inside, as nearly every emit is: not in a signal handler that interrupted another, on a thread that has a slot and
/// keeps the clock as it is now.
#[derive(Debug)]
pub struct Outermost {
    slot: &'static Slot,
    /// Bound to its thread.
    _not_send: PhantomData<*const ()>,
}

/// Inside, in any way.
#[derive(Debug)]
pub struct Inside(Place);

#[derive(Debug)]
enum Place {
    Outermost(Outermost),
    /// An emit of the same thread was interrupted; it stays inside.
    Nested(&'static Slot, PhantomData<*const ()>),
    /// No slot of its own.
    Crowd(PhantomData<*const ()>),
}

/// Marks the calling thread as inside, if it need only write its word: its slot was found by [`enter`] before, it keeps
/// the clock's parameters of `selector`, and no emit of the thread was interrupted. `instance` names this attach of
/// this process.
///
/// What is asked here need not be asked later, when it would take a call in the middle of the usual path.
#[inline]
#[must_use]
pub fn enter_outermost(instance: u64, selector: u64) -> Option<Outermost> {
    own::with(|own| {
        if own.instance.load(Ordering::Relaxed) != instance {
            return None;
        }
        // SAFETY: `register` stores the address of an element of SLOTS before it sets `instance` to another value than
        // NEVER, on this thread; and `enter` lets no instance be NEVER.
        let slot: &'static Slot = unsafe { &*own.slot.load(Ordering::Relaxed) };
        if slot.clock[0].load(Ordering::Relaxed) != selector {
            return None;
        }
        Outermost::step_in(slot)
    })
}

/// Marks the calling thread as inside. `instance` names this attach of this process; 0 gives `None`.
///
/// The first call of a thread in an instance makes one system call (`gettid`); later ones none.
#[cold]
#[must_use]
pub fn enter(instance: u64) -> Option<Inside> {
    if instance == 0 || instance == NEVER {
        return None;
    }
    own::with(|own| {
        let place = match slot_of(own, instance) {
            Some(slot) => match Outermost::step_in(slot) {
                Some(outermost) => Place::Outermost(outermost),
                None => Place::Nested(slot, PhantomData),
            },
            None => {
                // The thread's own count first: a child that is forked by a signal handler in between counts one too
                // many, and keeps a mapping; one too few would lose it one.
                let crowded = own.crowded.load(Ordering::Relaxed);
                own.crowded.store(crowded + 1, Ordering::Relaxed);
                // SeqCst: a full barrier, since the other side's membarrier was not meant for this word.
                CROWD.fetch_add(1, Ordering::SeqCst);
                Place::Crowd(PhantomData)
            }
        };
        Some(Inside(place))
    })
}

impl Outermost {
    /// The clock parameters that the thread keeps: those of the selector with which it entered, or later ones.
    #[inline]
    #[must_use]
    pub fn kept_clock(&self) -> ClockParams {
        let [_, base_tsc, base_ns, mult] = &self.slot.clock;
        ClockParams {
            base_tsc: base_tsc.load(Ordering::Relaxed),
            base_ns: base_ns.load(Ordering::Relaxed),
            mult: mult.load(Ordering::Relaxed),
        }
    }

    /// `None` if the thread is inside already.
    #[inline]
    fn step_in(slot: &'static Slot) -> Option<Self> {
        let count = slot.word.load(Ordering::Relaxed);
        if count & 1 != 0 {
            return None;
        }
        slot.word.store(count + 1, Ordering::Relaxed);
        // SYNC(membarrier): the compiler keeps the order; the CPU's is the other side's business.
        compiler_fence(Ordering::SeqCst);
        Some(Self {
            slot,
            _not_send: PhantomData,
        })
    }
}

impl Drop for Outermost {
    #[inline]
    fn drop(&mut self) {
        // Nested emits have left the word as it was.
        let odd = self.slot.word.load(Ordering::Relaxed);
        // SYNC(leave): whoever sees the word changed also sees everything that was done inside.
        self.slot.word.store(odd + 1, Ordering::Release);
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        if let Place::Crowd(_) = self.0 {
            own::with(|own| {
                let crowded = own.crowded.load(Ordering::Relaxed);
                own.crowded.store(crowded - 1, Ordering::Relaxed);
            });
            // Not below 0, where a child that was forked in between has set it to the count above.
            let _zero = CROWD.fetch_update(Ordering::Release, Ordering::Relaxed, |crowd| {
                crowd.checked_sub(1)
            });
        }
    }
}

impl Within for Outermost {
    #[inline]
    fn tid(&self) -> u64 {
        self.slot.tid.load(Ordering::Relaxed)
    }
}

impl Within for Inside {
    fn tid(&self) -> u64 {
        match self.slot() {
            Some(slot) => slot.tid.load(Ordering::Relaxed),
            None => own::with(|own| own.tid.load(Ordering::Relaxed)),
        }
    }
}

impl Inside {
    /// The clock parameters that the thread keeps, if they came under `selector`.
    #[must_use]
    pub fn clock(&self, selector: u64) -> Option<ClockParams> {
        self.slot()?.clock(selector)
    }

    /// The clock parameters that the thread keeps, and their selector, whatever it is.
    #[must_use]
    pub fn last_clock(&self) -> Option<(u64, ClockParams)> {
        self.slot()?.last_clock()
    }

    /// Keeps clock parameters that came under `selector`, unless an emit of the thread was interrupted: it may have read
    /// half of what is kept.
    pub fn keep_clock(&self, selector: u64, params: ClockParams) {
        if let Place::Outermost(Outermost { slot, .. }) = self.0 {
            slot.keep_clock(selector, params);
        }
    }

    fn slot(&self) -> Option<&'static Slot> {
        match &self.0 {
            Place::Outermost(outermost) => Some(outermost.slot),
            Place::Nested(slot, _) => Some(slot),
            Place::Crowd(_) => None,
        }
    }
}

impl Slot {
    fn clock(&self, selector: u64) -> Option<ClockParams> {
        let [kept, base_tsc, base_ns, mult] = &self.clock;
        (kept.load(Ordering::Relaxed) == selector).then(|| ClockParams {
            base_tsc: base_tsc.load(Ordering::Relaxed),
            base_ns: base_ns.load(Ordering::Relaxed),
            mult: mult.load(Ordering::Relaxed),
        })
    }

    fn last_clock(&self) -> Option<(u64, ClockParams)> {
        let selector = self.clock[0].load(Ordering::Relaxed);
        if selector == NO_CLOCK {
            None
        } else {
            Some((selector, self.clock(selector)?))
        }
    }

    fn keep_clock(&self, selector: u64, params: ClockParams) {
        // A signal handler may interrupt: it must not find the new selector with old parameters.
        self.clock[0].store(NO_CLOCK, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        self.clock[1].store(params.base_tsc, Ordering::Relaxed);
        self.clock[2].store(params.base_ns, Ordering::Relaxed);
        self.clock[3].store(params.mult, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        self.clock[0].store(selector, Ordering::Relaxed);
    }
}

/// The calling thread's slot, which is looked for when it comes for the first time in an instance, and again when slots
/// were freed since it found none.
fn slot_of(own: &Own, instance: u64) -> Option<&'static Slot> {
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
    let high = HIGH.load(Ordering::Acquire).min(MAX_THREADS);
    // A dead thread with this number, or this thread itself under a handler: only the living have numbers of their own.
    let mine = (0..high).find(|&at| owner_tid(SLOTS[at].owner.load(Ordering::Relaxed)) == tid);
    if let Some(at) = mine {
        let owner = SLOTS[at].owner.load(Ordering::Relaxed);
        let again = u64::from(tid) | ((owner >> 32) + 1) << 32;
        if owner_tid(owner) == tid
            && SLOTS[at]
                .owner
                .compare_exchange(owner, again, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
        {
            return Some(at);
        }
    }
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
    HIGH.fetch_max(free + 1, Ordering::AcqRel);
    Some(free)
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the low half holds the thread's number"
)]
const fn owner_tid(owner: u64) -> u32 {
    owner as u32
}

/// Frees the slots of threads that are gone. Called now and then by one background thread.
pub fn sweep() {
    /// Marks a slot that is being cleaned: no thread has this number.
    const CLEANING: u64 = u32::MAX as u64;
    let mut freed = false;
    for slot in &SLOTS[..HIGH.load(Ordering::Acquire).min(MAX_THREADS)] {
        let owner = slot.owner.load(Ordering::Relaxed);
        if owner == 0 || thread_exists(owner_tid(owner)) {
            continue;
        }
        if slot
            .owner
            .compare_exchange(owner, CLEANING, Ordering::AcqRel, Ordering::Relaxed)
            .is_err()
        {
            continue; // a new thread of that number was quicker
        }
        // It died inside: nobody will make the word even again.
        let word = slot.word.load(Ordering::Relaxed);
        slot.word.store(word + (word & 1), Ordering::Release);
        slot.owner.store(0, Ordering::Release);
        freed = true;
    }
    if freed {
        SWEEPS.fetch_add(1, Ordering::Relaxed);
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

/// Registers this process for expedited barriers. False where the kernel or a sandbox refuses them: then
/// [`wait_until_left`] never succeeds, and what was published stays mapped.
#[must_use]
pub fn barriers_work() -> bool {
    membarrier(MembarrierCommand::RegisterPrivateExpedited).is_ok()
        && membarrier(MembarrierCommand::PrivateExpedited).is_ok()
}

/// Waits until every thread that is inside now, and may hold a pointer that was replaced before this call, has left.
///
/// False if some had not by `deadline` (a thread that is stopped inside an emit), or barriers don't work.
#[must_use]
pub fn wait_until_left(deadline: Instant) -> bool {
    // SYNC(membarrier).
    if membarrier(MembarrierCommand::PrivateExpedited).is_err() {
        return false;
    }
    for slot in &SLOTS[..HIGH.load(Ordering::Acquire).min(MAX_THREADS)] {
        // SYNC(leave).
        let seen = slot.word.load(Ordering::Acquire);
        let owner = slot.owner.load(Ordering::Relaxed);
        if seen & 1 == 0 {
            continue;
        }
        while slot.word.load(Ordering::Acquire) == seen {
            if owner == 0 || !thread_exists(owner_tid(owner)) {
                break;
            }
            if Instant::now() >= deadline {
                return false;
            }
            std::thread::sleep(Duration::from_micros(50));
        }
    }
    while CROWD.load(Ordering::SeqCst) != 0 {
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(Duration::from_micros(50));
    }
    true
}

#[cfg(test)]
mod tests {
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
