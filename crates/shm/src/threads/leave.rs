//! The side that pays: waiting until nobody can have what was taken away.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::thread::{MembarrierCommand, membarrier};

use super::CROWD;
use super::table::{HIGH, MAX_THREADS, SLOTS, owner_tid};
use crate::process::thread_exists;

/// Registers this process for expedited barriers, unless it is. False where the kernel or a sandbox refuses them: then
/// [`wait_until_left`] never succeeds, and what was published stays mapped.
///
/// The first call in a process of several threads waits for a grace period of the kernel, some milliseconds.
#[must_use]
pub fn barriers_work() -> bool {
    membarrier(MembarrierCommand::RegisterPrivateExpedited).is_ok()
        && membarrier(MembarrierCommand::PrivateExpedited).is_ok()
}

/// Waits until every thread that is inside now, and may hold a pointer that was replaced before this call, has left.
///
/// False if some had not by `deadline` (a thread that is stopped inside an emit), or barriers don't work.
#[must_use]
pub fn wait_until_left(deadline: Instant) -> bool {
    // SYNC(membarrier): after it, a thread's odd word is visible here, with what it did before (SYNC(high)), or it will
    // load the new pointer.
    if membarrier(MembarrierCommand::PrivateExpedited).is_err() && !barriers_work() {
        return false;
    }
    for slot in &SLOTS[..HIGH.load(Ordering::Acquire).min(MAX_THREADS)] {
        // SYNC(leave).
        let seen = slot.word.load(Ordering::Acquire);
        let owner = slot.owner.load(Ordering::Relaxed);
        if seen & 1 == 0 {
            continue;
        }
        while slot.word.load(Ordering::Acquire) == seen {
            if owner == 0 || !thread_exists(owner_tid(owner)) {
                break;
            }
            if Instant::now() >= deadline {
                return false;
            }
            std::thread::sleep(Duration::from_micros(50));
        }
    }
    // SYNC(crowd): after the barrier; Acquire, what was done inside is over.
    while CROWD.load(Ordering::SeqCst) != 0 {
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(Duration::from_micros(50));
    }
    true
}
