//! What is counted while calls are served.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
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
}

impl Default for Calls {
    fn default() -> Self {
        Self(Arc::new(Counters {
            whole: AtomicU64::new(0),
            broken_off: AtomicU64::new(0),
            events: AtomicU64::new(0),
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
