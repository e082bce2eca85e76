//! Atomics: the standard library's, or loom's under a model checker. The rest of the crate takes them from here.

#[cfg(not(loom))]
pub(crate) use core::sync::atomic::fence;
#[cfg(not(loom))]
pub use core::sync::atomic::{AtomicU64, Ordering};

#[cfg(loom)]
pub(crate) use loom::sync::atomic::fence;
#[cfg(loom)]
pub use loom::sync::atomic::{AtomicU64, Ordering};

/// Which of a record's words are copied: all of them.
#[cfg(not(loom))]
#[inline]
pub(crate) fn record_words() -> core::ops::Range<usize> {
    0..nrt_trace_abi::record::RECORD_WORDS
}

/// Which of a record's words are copied under the model checker: the sequence number and the first word of the payload.
/// Two words can be torn, and fourteen would only multiply the schedules.
#[cfg(loom)]
pub(crate) fn record_words() -> [usize; 2] {
    [3, nrt_trace_abi::record::DATA_WORD]
}

/// A shared word that can be loaded. A reader needs no more, and a read-only mapping offers no more.
pub trait LoadWord {
    /// Loads the word.
    fn load(&self, order: Ordering) -> u64;
}

impl LoadWord for AtomicU64 {
    #[inline]
    fn load(&self, order: Ordering) -> u64 {
        Self::load(self, order)
    }
}
