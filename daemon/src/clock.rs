//! The clock of each control page.
//!
//! Refreshed every 10 ms while something is captured (the error of a timestamp is the clock's slew times this period)
//! and every second otherwise, by a thread that does nothing else, so that nothing else makes it late.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nrt_trace_shm::clock::TscClock;
use nrt_trace_shm::control::ControlPage;

use crate::listen::StartError;
use crate::ticker::Ticker;

/// Time between two refreshes while something is captured.
const CAPTURING: Duration = Duration::from_millis(10);
/// Time between two refreshes otherwise.
const IDLE: Duration = Duration::from_secs(1);

/// The clocks of all control pages.
#[derive(Debug)]
pub(crate) struct Clock {
    face: Arc<Face>,
    ticker: Ticker,
}

#[derive(Debug)]
struct Face(Mutex<State>);

#[derive(Debug)]
struct State {
    /// `None`: producers call `clock_gettime`.
    tsc: Option<TscClock>,
    /// Only written under the lock: a page's clock has one writer at a time.
    pages: BTreeMap<u32, Arc<ControlPage>>,
}

impl Clock {
    /// Calibrates the time stamp counter, where it may be used, and starts the thread.
    pub(crate) fn start() -> Result<Self, StartError> {
        let state = State {
            tsc: TscClock::calibrate(),
            pages: BTreeMap::new(),
        };
        let face = Arc::new(Face(Mutex::new(state)));
        let inner = face.clone();
        let ticker = Ticker::start("nrt-clock", IDLE, move || inner.refresh())?;
        Ok(Self { face, ticker })
    }

    /// Whether event times come from the time stamp counter.
    pub(crate) fn uses_tsc(&self) -> bool {
        self.face.lock().tsc.is_some()
    }

    /// Takes a producer's page over, with a clock on it.
    pub(crate) fn add(&self, producer_id: u32, page: Arc<ControlPage>) {
        let mut state = self.face.lock();
        page.set_clock(state.tsc.as_ref().map(TscClock::params));
        state.pages.insert(producer_id, page);
    }

    /// Lets a page go.
    pub(crate) fn remove(&self, producer_id: u32) {
        self.face.lock().pages.remove(&producer_id);
    }

    /// Sets the pages to the time as it is now, not as it was up to a second ago. All of them: consecutive lines join, and a
    /// page that missed one might go back.
    pub(crate) fn refresh(&self) {
        self.face.refresh();
    }

    /// Says whether anything is captured.
    pub(crate) fn set_capturing(&self, capturing: bool) {
        self.ticker
            .set_period(if capturing { CAPTURING } else { IDLE });
    }
}

impl Face {
    /// A panic while it was locked left it valid: every change is one step.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn refresh(&self) {
        let mut state = self.lock();
        let Some(tsc) = &mut state.tsc else { return };
        let params = tsc.refresh();
        state
            .pages
            .values()
            .for_each(|page| page.set_clock(Some(params)));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use nrt_trace_abi::layout::control;
    use nrt_trace_shm::ReadMapping;

    use super::*;

    fn selector(map: &ReadMapping) -> u64 {
        map.words()[control::CLOCK_SELECT].get()
    }

    #[test]
    fn pages_get_a_clock_at_once_and_again_and_again_while_capturing() {
        let clock = Clock::start().unwrap();
        let (page, fd) = ControlPage::create(1).unwrap();
        let map = ReadMapping::map(&fd, nrt_trace_shm::control::BYTES).unwrap();
        clock.add(1, Arc::new(page));
        let expected = if clock.uses_tsc() {
            control::CLOCK_MODE_TSC
        } else {
            control::CLOCK_MODE_SYSTEM
        };
        assert_eq!(map.words()[control::CLOCK_MODE].get(), expected);
        if clock.uses_tsc() {
            let before = selector(&map);
            clock.refresh();
            assert!(selector(&map) > before);
            clock.set_capturing(true);
            let (before, deadline) = (selector(&map), Instant::now() + Duration::from_secs(20));
            while selector(&map) < before + 5 {
                assert!(Instant::now() < deadline, "no refresh");
                std::thread::yield_now();
            }
        }
        clock.remove(1);
        assert!(clock.face.lock().pages.is_empty());
    }
}
