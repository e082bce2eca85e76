//! A thread's sign of life.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How often a thread has come round.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pulse(Arc<AtomicU64>);

impl Pulse {
    /// Comes round once more.
    pub(crate) fn beat(&self) {
        // Relaxed: nothing is read that it would order.
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// How often it has.
    pub(crate) fn beats(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
