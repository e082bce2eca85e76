//! A pointer that threads follow while they are inside, and that is freed when none of them can hold it any more.

use std::marker::PhantomData;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::time::Instant;

use crate::page::ZeroAnyTime;
use crate::threads::{self, Within};

/// A published value, or none.
#[derive(Debug)]
pub struct Published<T> {
    pointer: AtomicPtr<T>,
    /// Owns a boxed T, from the type checker's point of view.
    _owns: PhantomData<Box<T>>,
}

// SAFETY: null is "none", all accesses are atomic; a child that finds null only forgets a value of its parent's.
unsafe impl<T> ZeroAnyTime for Published<T> {}

impl<T: Send + Sync> Published<T> {
    /// Nothing published. Meant for a `static`.
    #[must_use]
    pub const fn none() -> Self {
        Self {
            pointer: AtomicPtr::new(ptr::null_mut()),
            _owns: PhantomData,
        }
    }

    /// The value, for as long as the thread stays inside.
    #[inline]
    pub fn get<'a>(&'a self, _inside: &'a impl Within) -> Option<&'a T> {
        // SYNC(segment): what was built before it was published is seen.
        let pointer = self.pointer.load(Ordering::Acquire);
        // SAFETY: non-null pointers come from Box::into_raw in `replace` and are freed only by `Retired::reclaim`,
        // after they were replaced and every thread that was inside at that time has left. This thread is inside for
        // as long as `_inside` lives, and loaded the pointer after it entered.
        unsafe { pointer.as_ref() }
    }

    /// Publishes another value, or none. What was there before stays valid for threads that are inside.
    pub fn replace(&self, new: Option<Box<T>>) -> Option<Retired<T>> {
        let new = new.map_or(ptr::null_mut(), Box::into_raw);
        // SYNC(segment): Release. Acquire, to own what an earlier `replace` published.
        NonNull::new(self.pointer.swap(new, Ordering::AcqRel)).map(Retired)
    }
}

/// A value that is no longer published, but that threads may still be using. Dropping this leaks it, which is safe.
#[derive(Debug)]
#[must_use = "dropping it leaks the value"]
pub struct Retired<T>(NonNull<T>);

// SAFETY: it is the only owner of a boxed T; threads that are still inside hold shared references, so T must be Sync.
unsafe impl<T: Send + Sync> Send for Retired<T> {}

impl<T: Send + Sync> Retired<T> {
    /// Takes the value back once every thread that may be using it has left.
    ///
    /// # Errors
    /// Gives itself back if some thread had not left by `deadline`, or the kernel has no barriers.
    pub fn reclaim(self, deadline: Instant) -> Result<Box<T>, Self> {
        if threads::wait_until_left(deadline) {
            // SAFETY: made by Box::into_raw, replaced before this call, and no thread that loaded it is still inside;
            // `self` is consumed, so that it is freed once.
            Ok(unsafe { Box::from_raw(self.0.as_ptr()) })
        } else {
            Err(self)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicU64};
    use std::time::Duration;

    use super::*;

    /// A value that says when it is used after it was dropped.
    #[derive(Debug)]
    struct Canary(AtomicU64);

    impl Drop for Canary {
        fn drop(&mut self) {
            self.0.store(0xDEAD, Ordering::SeqCst);
        }
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(20)
    }

    #[test]
    fn values_are_freed_only_when_nobody_is_inside() {
        static CURRENT: Published<Canary> = Published::none();
        static STOP: AtomicBool = AtomicBool::new(false);
        assert!(threads::barriers_work());
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    while !STOP.load(Ordering::Relaxed) {
                        let inside = threads::enter(1).unwrap();
                        if let Some(canary) = CURRENT.get(&inside) {
                            for _ in 0..20 {
                                assert_eq!(
                                    canary.0.load(Ordering::Relaxed),
                                    1,
                                    "used after it was freed"
                                );
                            }
                        }
                    }
                });
            }
            for _ in 0..500 {
                if let Some(old) = CURRENT.replace(Some(Box::new(Canary(AtomicU64::new(1))))) {
                    drop(
                        old.reclaim(soon())
                            .expect("busy threads change their words"),
                    );
                }
            }
            STOP.store(true, Ordering::Relaxed);
        });
    }

    #[test]
    fn a_thread_that_stays_inside_keeps_the_value() {
        static CURRENT: Published<Canary> = Published::none();
        assert!(threads::barriers_work());
        assert!(
            CURRENT
                .replace(Some(Box::new(Canary(AtomicU64::new(1)))))
                .is_none()
        );
        let inside = threads::enter(2).unwrap();
        let canary = CURRENT.get(&inside).unwrap();
        let nested = threads::enter(2).unwrap();
        drop(nested);
        let old = CURRENT.replace(None).unwrap();
        // Another thread tries: this one is inside.
        let old =
            std::thread::spawn(move || old.reclaim(Instant::now() + Duration::from_millis(20)))
                .join()
                .unwrap()
                .expect_err("somebody is inside");
        assert_eq!(canary.0.load(Ordering::Relaxed), 1);
        drop(inside);
        drop(old.reclaim(soon()).unwrap());
    }

    #[test]
    fn no_instance_no_entry() {
        assert!(threads::enter(0).is_none());
    }
}
