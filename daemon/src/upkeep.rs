//! What has to be done again and again while producers run: the clock of each control page, memory ahead of each ring.
//!
//! One thread, awake every 10 ms while something is captured (the error of a timestamp is the clock's slew times this
//! period) and every second otherwise. It shares two short locks with the registry and waits on nobody else.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use nrt_trace_shm::clock::TscClock;
use nrt_trace_shm::control::ControlPage;

use crate::drain::segment::Segment;
use crate::listen::StartError;

/// Time between two refreshes while something is captured.
const CAPTURING: Duration = Duration::from_millis(10);
/// Memory is counted on every so many visits while something is captured: it takes a system call for each segment.
const COUNT_EVERY: u32 = 10;
/// Time between two refreshes otherwise.
const IDLE: Duration = Duration::from_secs(1);

/// What the registry and the upkeep thread share.
#[derive(Debug)]
pub(crate) struct Upkeep {
    clock: Mutex<Clock>,
    segments: Mutex<BTreeMap<u64, Arc<Segment>>>,
    wanted: Mutex<Wanted>,
    changed: Condvar,
    /// Bytes that the segments really took when last looked.
    resident: AtomicU64,
    /// Above this nothing is taken ahead of time.
    budget: u64,
}

#[derive(Debug)]
struct Clock {
    /// `None`: producers call `clock_gettime`.
    tsc: Option<TscClock>,
    pages: BTreeMap<u32, Arc<ControlPage>>,
}

#[derive(Debug, Default)]
struct Wanted {
    capturing: bool,
    end: bool,
}

impl Upkeep {
    /// Calibrates the clock and starts the thread. Memory is taken ahead of time up to `budget` bytes in all.
    pub(crate) fn start(budget: u64) -> Result<(Arc<Self>, UpkeepThread), StartError> {
        let tsc = TscClock::calibrate();
        let upkeep = Arc::new(Self {
            clock: Mutex::new(Clock {
                tsc,
                pages: BTreeMap::new(),
            }),
            segments: Mutex::default(),
            wanted: Mutex::default(),
            changed: Condvar::new(),
            resident: AtomicU64::new(0),
            budget,
        });
        let inner = upkeep.clone();
        let thread = std::thread::Builder::new()
            .name("nrt-upkeep".to_owned())
            .spawn(move || inner.run())
            .map_err(|source| StartError::System {
                what: "start the upkeep thread",
                source,
            })?;
        Ok((
            upkeep.clone(),
            UpkeepThread {
                upkeep,
                thread: Some(thread),
            },
        ))
    }

    /// Whether event times come from the time stamp counter.
    pub(crate) fn uses_tsc(&self) -> bool {
        lock(&self.clock).tsc.is_some()
    }

    /// Takes a producer's page over, with a clock on it.
    pub(crate) fn add_page(&self, producer_id: u32, page: Arc<ControlPage>) {
        let mut clock = lock(&self.clock);
        page.set_clock(clock.tsc.as_ref().map(TscClock::params));
        clock.pages.insert(producer_id, page);
    }

    /// Lets a page go.
    pub(crate) fn remove_page(&self, producer_id: u32) {
        lock(&self.clock).pages.remove(&producer_id);
    }

    /// A clock on this producer's page as it is now, not as it was up to a second ago.
    pub(crate) fn refresh_page(&self, producer_id: u32) {
        let mut clock = lock(&self.clock);
        let params = clock.tsc.as_mut().map(TscClock::refresh);
        if let Some(page) = clock.pages.get(&producer_id) {
            page.set_clock(params);
        }
    }

    /// Takes a segment over.
    pub(crate) fn add_segment(&self, segment: Arc<Segment>) {
        let bytes = segment.resident_bytes();
        lock(&self.segments).insert(segment.generation(), segment);
        self.resident.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Lets a segment go.
    pub(crate) fn remove_segment(&self, segment: &Segment) {
        lock(&self.segments).remove(&segment.generation());
    }

    /// Bytes promised, and bytes really taken, by the segments there are.
    pub(crate) fn bytes(&self) -> (u64, u64) {
        let segments = self.segments();
        let reserved = segments.iter().map(|segment| segment.bytes()).sum();
        let resident = segments
            .iter()
            .map(|segment| segment.resident_bytes())
            .sum();
        // Relaxed, here and above: a number for a budget.
        self.resident.store(resident, Ordering::Relaxed);
        (reserved, resident)
    }

    /// Bytes really taken when last looked.
    pub(crate) fn resident(&self) -> u64 {
        self.resident.load(Ordering::Relaxed)
    }

    /// Says whether anything is captured.
    pub(crate) fn set_capturing(&self, capturing: bool) {
        let mut wanted = lock(&self.wanted);
        if wanted.capturing != capturing {
            wanted.capturing = capturing;
            self.changed.notify_one();
        }
    }

    fn segments(&self) -> Vec<Arc<Segment>> {
        lock(&self.segments).values().cloned().collect()
    }

    fn run(&self) {
        let mut told = false;
        for visit in (0..COUNT_EVERY).cycle() {
            let period = {
                let wanted = lock(&self.wanted);
                if wanted.end {
                    return;
                }
                if wanted.capturing { CAPTURING } else { IDLE }
            };
            self.refresh();
            let counted = if visit == 0 || period == IDLE {
                self.bytes().1
            } else {
                self.resident()
            };
            if counted < self.budget {
                told = false;
                for segment in self.segments() {
                    if let Err(error) = segment.allocate_ahead() {
                        if !std::mem::replace(&mut told, true) {
                            tracing::warn!("no memory ahead of the rings: {error}");
                        }
                        break;
                    }
                }
            } else if !std::mem::replace(&mut told, true) {
                tracing::warn!(
                    bytes = counted,
                    budget = self.budget,
                    "the memory budget is used up: rings get no memory ahead of time, no process is armed"
                );
            }
            let wanted = lock(&self.wanted);
            if !wanted.end && wanted.capturing == (period == CAPTURING) {
                let waited = self.changed.wait_timeout(wanted, period);
                drop(waited.unwrap_or_else(PoisonError::into_inner));
            }
        }
    }

    fn refresh(&self) {
        let mut clock = lock(&self.clock);
        let Some(tsc) = &mut clock.tsc else { return };
        let params = tsc.refresh();
        clock
            .pages
            .values()
            .for_each(|page| page.set_clock(Some(params)));
    }
}

/// The running thread; dropping this ends it.
#[derive(Debug)]
pub(crate) struct UpkeepThread {
    upkeep: Arc<Upkeep>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for UpkeepThread {
    fn drop(&mut self) {
        lock(&self.upkeep.wanted).end = true;
        self.upkeep.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was told when it happened.
            drop(thread.join());
        }
    }
}

/// A panic while one of these was locked left it valid: every change is one step.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
        let (upkeep, thread) = Upkeep::start(1 << 30).unwrap();
        let (page, fd) = ControlPage::create(1).unwrap();
        let map = ReadMapping::map(&fd, nrt_trace_shm::control::BYTES).unwrap();
        upkeep.add_page(1, Arc::new(page));
        let expected = if upkeep.uses_tsc() {
            control::CLOCK_MODE_TSC
        } else {
            control::CLOCK_MODE_SYSTEM
        };
        assert_eq!(map.words()[control::CLOCK_MODE].get(), expected);
        if upkeep.uses_tsc() {
            let before = selector(&map);
            upkeep.refresh_page(1);
            assert!(selector(&map) > before);
            upkeep.set_capturing(true);
            let (before, deadline) = (selector(&map), Instant::now() + Duration::from_secs(10));
            while selector(&map) < before + 5 {
                assert!(Instant::now() < deadline, "no refresh");
                std::thread::yield_now();
            }
        }
        upkeep.remove_page(1);
        drop(thread);
    }
}
