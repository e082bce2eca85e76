//! Atomics: the standard library's, or loom's under a model checker. The rest of the crate takes them from here.

#[cfg(not(loom))]
pub(crate) use core::sync::atomic::fence;
#[cfg(not(loom))]
pub use core::sync::atomic::{AtomicU64, Ordering};

#[cfg(loom)]
pub(crate) use loom::sync::atomic::fence;
#[cfg(loom)]
pub use loom::sync::atomic::{AtomicU64, Ordering};

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
