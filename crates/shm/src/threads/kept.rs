//! The line of the clock that each thread keeps in its slot, so that an emit need not read the page's copies.

use std::sync::atomic::{Ordering, compiler_fence};

use nrt_trace_abi::clock::ClockParams;

use super::table::Slot;

/// Selector value that no page has: nothing is cached.
pub(super) const NO_CLOCK: u64 = u64::MAX;

impl Slot {
    pub(super) fn clock(&self, selector: u64) -> Option<ClockParams> {
        let [kept, base_tsc, base_ns, mult] = &self.clock;
        (kept.load(Ordering::Relaxed) == selector).then(|| ClockParams {
            base_tsc: base_tsc.load(Ordering::Relaxed),
            base_ns: base_ns.load(Ordering::Relaxed),
            mult: mult.load(Ordering::Relaxed),
        })
    }

    pub(super) fn last_clock(&self) -> Option<(u64, ClockParams)> {
        let selector = self.clock[0].load(Ordering::Relaxed);
        if selector == NO_CLOCK {
            None
        } else {
            Some((selector, self.clock(selector)?))
        }
    }

    pub(super) fn keep_clock(&self, selector: u64, params: ClockParams) {
        // A signal handler may interrupt: it must not find the new selector with old parameters.
        self.clock[0].store(NO_CLOCK, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        self.clock[1].store(params.base_tsc, Ordering::Relaxed);
        self.clock[2].store(params.base_ns, Ordering::Relaxed);
        self.clock[3].store(params.mult, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        self.clock[0].store(selector, Ordering::Relaxed);
    }
}
