//! A value that a process makes once, that lives as long as the process, and that a forked child makes anew.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::page::ZeroAnyTime;

/// A value made at its first use, or none yet.
///
/// It is never freed, so that a reference to it may be kept. In a [`crate::page::WipedOnFork`] it is what may hold locks: a
/// child that was forked while another thread held one finds no value, and makes its own.
#[derive(Debug)]
pub struct PerProcess<T> {
    pointer: AtomicPtr<T>,
    /// Owns a boxed T, from the type checker's point of view.
    _owns: PhantomData<Box<T>>,
}

// SAFETY: null is "none yet", all accesses are atomic; a child that finds null only forgets a value of its parent's.
unsafe impl<T> ZeroAnyTime for PerProcess<T> {}

impl<T: Send + Sync> PerProcess<T> {
    /// No value. Meant for a `static`.
    #[must_use]
    pub const fn none() -> Self {
        Self {
            pointer: AtomicPtr::new(std::ptr::null_mut()),
            _owns: PhantomData,
        }
    }

    /// The value, if there is one.
    #[must_use]
    pub fn get(&self) -> Option<&'static T> {
        // SYNC(per-process): Acquire, what was built before it was stored is seen.
        let pointer = self.pointer.load(Ordering::Acquire);
        // SAFETY: null, or from Box::into_raw in `get_or_make` or `set`, and never freed.
        unsafe { pointer.as_ref() }
    }

    /// The value, which is made if there is none. When two threads make it at once, one of the two values stays.
    pub fn get_or_make(&self, make: impl FnOnce() -> T) -> &'static T {
        if let Some(value) = self.get() {
            return value;
        }
        let made = Box::into_raw(Box::new(make()));
        // SYNC(per-process): Release for what was built; Acquire for another thread's.
        match self.pointer.compare_exchange(
            std::ptr::null_mut(),
            made,
            Ordering::AcqRel,
            Ordering::Acquire,
        ) {
            // SAFETY: just made by Box::into_raw, stored, and from now on never freed.
            Ok(_) => unsafe { &*made },
            Err(other) => {
                // SAFETY: made by Box::into_raw above and not stored: nobody else has seen it.
                drop(unsafe { Box::from_raw(made) });
                // SAFETY: not null, since the comparison with null failed; from Box::into_raw, and never freed.
                unsafe { &*other }
            }
        }
    }

    /// Puts a value in place of whatever is there, which is leaked: others may be using it. For what changes rarely.
    pub fn set(&self, value: T) {
        // SYNC(per-process): Release.
        self.pointer
            .store(Box::into_raw(Box::new(value)), Ordering::Release);
    }

    /// What the kernel's wipe does, by hand, in a child that has just been forked.
    pub fn forget(&self) {
        self.pointer.store(std::ptr::null_mut(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;

    #[test]
    fn threads_that_make_it_at_once_get_the_same_one() {
        static VALUE: PerProcess<u64> = PerProcess::none();
        static MADE: AtomicU64 = AtomicU64::new(0);
        assert!(VALUE.get().is_none());
        let all: Vec<usize> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|_| {
                    scope.spawn(|| {
                        let make = || MADE.fetch_add(1, Ordering::Relaxed);
                        std::ptr::from_ref(VALUE.get_or_make(make)).addr()
                    })
                })
                .collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        });
        assert!(all.windows(2).all(|two| two[0] == two[1]), "{all:?}");
        assert!(MADE.load(Ordering::Relaxed) >= 1);
    }

    #[test]
    fn a_reference_outlives_what_replaces_its_value() {
        static VALUE: PerProcess<String> = PerProcess::none();
        let first = VALUE.get_or_make(|| "first".to_owned());
        VALUE.set("second".to_owned());
        assert_eq!(
            (first.as_str(), VALUE.get().unwrap().as_str()),
            ("first", "second")
        );
        VALUE.forget();
        assert_eq!(VALUE.get_or_make(|| "third".to_owned()), "third");
    }
}
