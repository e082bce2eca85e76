//! The host monitor of the built daemon: against the system's own tools, on fixtures of `/proc`, in recordings, in C.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests: helpers fail by panicking, as the tests themselves do"
)]

mod against_tools;
mod fixtures;
mod load;
mod outputs;
mod ticks;

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Held by each test: what one measures of the machine, others would change.
static MACHINE: RwLock<()> = RwLock::new(());

/// Waits until no test measures the machine, and keeps it so.
fn among_others() -> RwLockReadGuard<'static, ()> {
    MACHINE.read().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for the end of all other tests that have begun, and has none begin.
fn alone() -> RwLockWriteGuard<'static, ()> {
    MACHINE.write().unwrap_or_else(PoisonError::into_inner)
}
