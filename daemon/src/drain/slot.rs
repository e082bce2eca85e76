//! A run's fetch, as the fetching thread and the registry both see it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use nrt_trace_ring::Cursor;

use super::correlations::Correlations;
use super::ring::CHUNK_RECORDS;

/// What a fetch took of one ring.
#[derive(Debug)]
pub(crate) struct Consumed {
    /// The producer's number.
    pub producer_id: u32,
    /// Which of its rings, if it had several of the NC.
    pub generation: u64,
    /// The ring's NC.
    pub nc: usize,
    /// Where the next fetch goes on, and the account so far.
    pub cursor: Cursor,
    /// What the events told of executions.
    pub learned: Correlations,
    /// Events of it that were passed by.
    pub skipped: u64,
}

/// What a commit of a fetch applies.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// The rings that were read.
    pub consumed: Vec<Consumed>,
    /// Producers whose accounts were told in full.
    pub told: Vec<u32>,
}

/// Where a fetch is.
#[derive(Debug)]
enum State {
    UnderWay,
    /// All was handed to the stream; this is what a commit consumes.
    Delivered(Outcome),
    /// It broke off, or it was committed.
    Over,
}

/// The place of one fetch in its run.
#[derive(Debug)]
pub(crate) struct FetchSlot {
    /// The fetch's number, unique in a daemon's life.
    pub id: u64,
    state: Mutex<State>,
    cancelled: AtomicBool,
    /// Events that it has read so far.
    taken: AtomicU64,
}

/// Keeps a slot "under way"; dropped without a result, the fetch is over.
#[derive(Debug)]
pub(crate) struct Lease(std::sync::Arc<FetchSlot>);

impl FetchSlot {
    /// A fetch that begins.
    pub(crate) fn begin(id: u64) -> (std::sync::Arc<Self>, Lease) {
        let slot = Self {
            id,
            state: Mutex::new(State::UnderWay),
            cancelled: AtomicBool::new(false),
            taken: AtomicU64::new(0),
        };
        let slot = std::sync::Arc::new(slot);
        (slot.clone(), Lease(slot))
    }

    fn set(&self, state: State) -> State {
        let mut place = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *place, state)
    }

    /// Whether the fetch has not ended.
    pub(crate) fn is_under_way(&self) -> bool {
        matches!(
            *self.state.lock().unwrap_or_else(PoisonError::into_inner),
            State::UnderWay
        )
    }

    /// What the fetch took, once; `None` while it is under way, after it broke off, or the second time.
    pub(crate) fn take(&self) -> Option<Outcome> {
        let mut place = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match std::mem::replace(&mut *place, State::Over) {
            State::Delivered(outcome) => Some(outcome),
            other => {
                *place = other;
                None
            }
        }
    }

    /// Notes that so many events more were read.
    pub(crate) fn note_taken(&self, events: u64) {
        // Relaxed, and below: a bound that leaves room for a chunk in between.
        self.taken.fetch_add(events, Ordering::Relaxed);
    }

    /// How many events it has read at most that no commit has consumed yet, and a commit may: their rings may have gone on
    /// over them meanwhile, and they are not lost.
    pub(crate) fn may_have_taken(&self) -> u64 {
        let taken = || self.taken.load(Ordering::Relaxed);
        match &*self.state.lock().unwrap_or_else(PoisonError::into_inner) {
            State::UnderWay => taken().saturating_add(CHUNK_RECORDS as u64),
            State::Delivered(_) => taken(),
            State::Over => 0,
        }
    }

    /// Tells the fetch that its run is gone: it breaks off at the next chunk.
    pub(crate) fn cancel(&self) {
        // Relaxed: a hint that may be seen late.
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Whether the run is gone.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}

impl Lease {
    /// The slot.
    pub(crate) fn slot(&self) -> &FetchSlot {
        &self.0
    }

    /// Leaves what was taken, to be committed.
    pub(crate) fn deliver(self, outcome: Outcome) {
        self.0.set(State::Delivered(outcome));
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if self.0.is_under_way() {
            self.0.set(State::Over);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_delivered_can_be_taken_once() {
        let (slot, lease) = FetchSlot::begin(1);
        assert!(slot.is_under_way() && slot.take().is_none() && slot.is_under_way());
        lease.deliver(Outcome::default());
        assert!(!slot.is_under_way());
        assert!(slot.take().is_some() && slot.take().is_none());
    }

    #[test]
    fn a_fetch_that_breaks_off_leaves_nothing_to_take() {
        let (slot, lease) = FetchSlot::begin(1);
        drop(lease);
        assert!(!slot.is_under_way() && slot.take().is_none());
    }
}
