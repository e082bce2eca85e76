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
use std::sync::atomic::{AtomicU64, Ordering, compiler_fence};

use nrt_trace_abi::clock::ClockParams;

mod forked;
mod kept;
mod leave;
mod own;
mod table;

pub use forked::forget_others;
pub use leave::{barriers_work, wait_until_left};
pub use table::{MAX_THREADS, sweep};

use own::NEVER;
use table::{Slot, slot_of};

/// Threads without a slot that are inside.
static CROWD: AtomicU64 = AtomicU64::new(0);

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
                // SYNC(crowd): before the pointer is read. The other side reads the count after its membarrier; SeqCst asks for
                // no more than that gives, but holds by itself, without a compiler fence.
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
            // SYNC(crowd): whoever finds nobody left also sees everything that was done inside.
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
