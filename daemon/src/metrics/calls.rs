//! What is counted while calls are served.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};

/// How a fetch or a snapshot ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The stream came to its end.
    Whole,
    /// The client went away, or a new start gave the run up.
    BrokenOff,
}

/// Counters that everybody who serves calls shares.
#[derive(Clone, Debug)]
pub(crate) struct Calls(Arc<Counters>);

#[derive(Debug)]
struct Counters {
    whole: AtomicU64,
    broken_off: AtomicU64,
    events: AtomicU64,
    seconds: Histogram,
    subscribers: AtomicUsize,
    followed: AtomicU64,
    missed: AtomicU64,
}

/// Subscribers at a time: each has a thread.
const MAX_SUBSCRIBERS: usize = 32;

/// A subscriber's place; it is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Seat(Arc<Counters>);

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.subscribers.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Default for Calls {
    fn default() -> Self {
        Self(Arc::new(Counters {
            whole: AtomicU64::new(0),
            broken_off: AtomicU64::new(0),
            events: AtomicU64::new(0),
            subscribers: AtomicUsize::new(0),
            followed: AtomicU64::new(0),
            missed: AtomicU64::new(0),
            // From 1 ms in steps of four to 17 minutes.
            seconds: Histogram::new(exponential_buckets(0.001, 4.0, 11)),
        }))
    }
}

impl Calls {
    /// A fetch has ended that delivered so many events.
    pub(crate) fn fetched(&self, outcome: Outcome, events: u64, took: Duration) {
        let ended = match outcome {
            Outcome::Whole => &self.0.whole,
            Outcome::BrokenOff => &self.0.broken_off,
        };
        // Relaxed, here and below: statistics, which order nothing.
        ended.fetch_add(1, Ordering::Relaxed);
        self.0.events.fetch_add(events, Ordering::Relaxed);
        self.0.seconds.observe(took.as_secs_f64());
    }

    /// A place for a subscriber, if there is one; else how many there are.
    pub(crate) fn subscribe(&self) -> Result<Seat, usize> {
        let more = |seats| (seats < MAX_SUBSCRIBERS).then_some(seats + 1);
        let seats = &self.0.subscribers;
        seats.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more)?;
        Ok(Seat(self.0.clone()))
    }

    /// A subscriber was told of so many more events that it got, and that it missed.
    pub(crate) fn followed(&self, delivered: u64, lost: u64) {
        self.0.followed.fetch_add(delivered, Ordering::Relaxed);
        self.0.missed.fetch_add(lost, Ordering::Relaxed);
    }

    /// Subscribers now; events that subscribers got, and missed.
    pub(super) fn subscribers(&self) -> (u64, u64, u64) {
        let counters = &self.0;
        (
            counters.subscribers.load(Ordering::Relaxed) as u64,
            counters.followed.load(Ordering::Relaxed),
            counters.missed.load(Ordering::Relaxed),
        )
    }

    /// Fetches that ended so.
    pub(super) fn count(&self, outcome: Outcome) -> u64 {
        let ended = match outcome {
            Outcome::Whole => &self.0.whole,
            Outcome::BrokenOff => &self.0.broken_off,
        };
        ended.load(Ordering::Relaxed)
    }

    /// Events that went into streams.
    pub(super) fn events(&self) -> u64 {
        self.0.events.load(Ordering::Relaxed)
    }

    /// How long fetches took.
    pub(super) fn seconds(&self) -> &Histogram {
        &self.0.seconds
    }
}
