//! The memory of all segments: taken ahead of the rings' tails, counted, given back.
//!
//! A thread of its own does it. Zeroing or freeing a gibibyte takes the kernel a quarter of a second, which neither a
//! producer that waits to be armed nor a clock should notice.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nrt_trace_shm::ShmError;
use nrt_trace_shm::control::ControlPage;

use crate::config::Allocate;
use crate::drain::segment::{STEP_BYTES, Segment};
use crate::listen::StartError;
use crate::registry::command::Handle;
use crate::ticker::Ticker;

/// Time between two visits while something is captured.
const CAPTURING: Duration = Duration::from_millis(10);
/// Time between two visits otherwise.
const IDLE: Duration = Duration::from_secs(1);
/// Memory is counted on every so many visits while something is captured: it takes a system call for each segment.
const COUNT_EVERY: u32 = 10;
/// Time between two lines that say that there is no memory.
const SILENCE: Duration = Duration::from_secs(60);

/// The memory of all segments.
#[derive(Debug)]
pub(crate) struct Memory {
    pool: Arc<Pool>,
    ticker: Ticker,
}

#[derive(Debug)]
struct Pool {
    segments: Mutex<Segments>,
    /// Bytes that the segments really took when last counted.
    resident: AtomicU64,
    /// Above this nothing is taken ahead of time.
    budget: u64,
    how: Allocate,
}

/// A segment in use, and the page on which its process reads how far it has memory.
#[derive(Clone, Debug)]
struct Live {
    segment: Arc<Segment>,
    page: Arc<ControlPage>,
}

#[derive(Debug, Default)]
struct Segments {
    /// By generation.
    live: BTreeMap<u64, Live>,
    /// To be freed, and their memory taken from whoever has them mapped.
    dead: Vec<Arc<Segment>>,
}

impl Memory {
    /// Starts the thread. Memory is taken ahead of time as `how` says, up to `budget` bytes in all; `door` is rung when a
    /// segment has all of its memory.
    pub(crate) fn start(budget: u64, how: Allocate, door: Handle) -> Result<Self, StartError> {
        let pool = Arc::new(Pool {
            segments: Mutex::default(),
            resident: AtomicU64::new(0),
            budget,
            how,
        });
        let inner = pool.clone();
        let (mut visits, mut told) = ((0..COUNT_EVERY).cycle(), Told::default());
        let ticker = Ticker::start("nrt-memory", IDLE, move || {
            if inner.free() || visits.next() == Some(0) {
                inner.count();
            }
            if how == Allocate::All && inner.fill() {
                door.ring();
            }
            inner.allocate(&mut told);
        })?;
        Ok(Self { pool, ticker })
    }

    /// Takes over a segment of the process that reads `page`.
    pub(crate) fn add(&self, segment: Arc<Segment>, page: Arc<ControlPage>) {
        let bytes = segment.resident_bytes();
        match self.pool.how {
            Allocate::Producer => segment.leave_to_process(&page),
            Allocate::Ahead | Allocate::All => segment.tell_ahead(&page),
        }
        let live = Live { segment, page };
        (self.pool.lock().live).insert(live.segment.generation(), live);
        // Relaxed, here and below: a number for a budget.
        self.pool.resident.fetch_add(bytes, Ordering::Relaxed);
        if self.pool.how == Allocate::All {
            self.ticker.call();
        }
    }

    /// Whether its process may have it: at once, unless it has to have all of its memory before.
    pub(crate) fn is_ready(&self, segment: &Segment) -> Option<Result<(), String>> {
        match self.pool.how {
            Allocate::Ahead | Allocate::Producer => Some(Ok(())),
            Allocate::All => segment.whole().cloned(),
        }
    }

    /// Frees a segment as soon as nobody else in this daemon uses it, and takes its memory from the process too: that
    /// keeps descriptors for a next daemon, and whoever asks for rings again and again must not keep their memory.
    pub(crate) fn free(&self, segment: Arc<Segment>) {
        let mut segments = self.pool.lock();
        segments.live.remove(&segment.generation());
        segments.dead.push(segment);
        drop(segments);
        self.ticker.call();
    }

    /// Bytes promised.
    pub(crate) fn reserved(&self) -> u64 {
        let segments = self.pool.lock();
        segments
            .live
            .values()
            .map(|live| live.segment.bytes())
            .sum()
    }

    /// Bytes promised, and bytes really taken, by the segments in use.
    pub(crate) fn bytes(&self) -> (u64, u64) {
        self.pool.count()
    }

    /// Bytes really taken when last counted.
    pub(crate) fn resident(&self) -> u64 {
        self.pool.resident.load(Ordering::Relaxed)
    }

    /// Says whether anything is captured.
    pub(crate) fn set_capturing(&self, capturing: bool) {
        self.ticker
            .set_period(if capturing { CAPTURING } else { IDLE });
    }
}

impl Pool {
    /// A panic while it was locked left it valid: every change is one step.
    fn lock(&self) -> MutexGuard<'_, Segments> {
        self.segments.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn live(&self) -> Vec<Live> {
        self.lock().live.values().cloned().collect()
    }

    /// Frees what nobody uses any more; true if there was something.
    fn free(&self) -> bool {
        let dead = std::mem::take(&mut self.lock().dead);
        let (mut freed, mut used) = (false, Vec::new());
        for segment in dead {
            match Arc::try_unwrap(segment) {
                Ok(segment) => {
                    segment.give_back();
                    freed = true;
                }
                Err(segment) => used.push(segment), // a fetch is reading it, or it is on its way to its process
            }
        }
        self.lock().dead.extend(used);
        freed
    }

    fn count(&self) -> (u64, u64) {
        let live = self.live();
        let reserved = live.iter().map(|live| live.segment.bytes()).sum();
        let resident = (live.iter())
            .map(|live| live.segment.resident_bytes())
            .sum();
        self.resident.store(resident, Ordering::Relaxed);
        (reserved, resident)
    }

    /// Takes all memory of the segments that have not got it yet; true if there was one.
    fn fill(&self) -> bool {
        let mut filled = false;
        for live in self.live() {
            if live.segment.whole().is_none() {
                let before = live.segment.resident_bytes();
                live.segment.allocate_whole();
                live.segment.tell_ahead(&live.page);
                let taken = live.segment.resident_bytes().saturating_sub(before);
                self.resident.fetch_add(taken, Ordering::Relaxed);
                filled = true;
            }
        }
        filled
    }

    /// Takes memory ahead of the tails, up to the budget: tails are the producers' word.
    fn allocate(&self, told: &mut Told) {
        if self.how != Allocate::Ahead {
            return;
        }
        let resident = self.resident.load(Ordering::Relaxed);
        let room = self.budget.saturating_sub(resident);
        let problem = match self.allocate_within(room) {
            _ if room < STEP_BYTES => Some(format!(
                "{resident} bytes are taken, and the budget is {} (memory_budget_bytes)",
                self.budget
            )),
            Ok(()) => None,
            Err(error) => Some(error.to_string()),
        };
        if let Some(problem) = problem.filter(|_| told.is_due(Instant::now())) {
            tracing::warn!("rings get no memory ahead of time: {problem}");
        }
    }

    fn allocate_within(&self, mut room: u64) -> Result<(), ShmError> {
        for Live { segment, page } in self.live() {
            let taken = segment.allocate_ahead(room);
            segment.tell_ahead(&page);
            let taken = taken?;
            room -= taken;
            // Until the next count, which looks at what is really there.
            self.resident.fetch_add(taken, Ordering::Relaxed);
        }
        Ok(())
    }
}

/// When a line was last written. A process can give memory back and take it again as often as it likes, and must not
/// fill the log with it.
#[derive(Debug, Default)]
struct Told(Option<Instant>);

impl Told {
    /// Whether it is time for a line; one that is due counts as written.
    fn is_due(&mut self, now: Instant) -> bool {
        let due = self
            .0
            .is_none_or(|last| now.saturating_duration_since(last) >= SILENCE);
        if due {
            self.0 = Some(now);
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use nrt_trace_abi::layout::{SegmentLayout, ring};
    use nrt_trace_shm::control::{BYTES, ahead};
    use nrt_trace_shm::{ReadMapping, WriteMapping};

    use super::*;

    fn page() -> Arc<ControlPage> {
        Arc::new(ControlPage::create(1).unwrap().0)
    }

    /// The process reads on its page how far the daemon went, and goes no further.
    #[test]
    fn a_process_is_told_how_far_its_rings_have_memory() {
        let (control, file) = ControlPage::create(1).unwrap();
        let map = ReadMapping::map(&file, BYTES).unwrap();
        let control = Arc::new(control);
        let told = |nc| ahead(map.words(), nc);
        for (how, first) in [
            (Allocate::Ahead, 128 << 10),
            (Allocate::Producer, 0xFFFF_FFFF << 16),
        ] {
            let door = Handle::new().unwrap();
            let memory = Memory::start(1 << 30, how, door).unwrap();
            let layout = SegmentLayout::new(1 << 20, [0, 3]).unwrap();
            let segment = Arc::new(Segment::create(layout, [1, 1], 7, 1).unwrap());
            memory.add(segment, control.clone());
            assert_eq!([told(0), told(3)], [first; 2], "{how:?}");
        }
        let door = Handle::new().unwrap();
        let memory = Memory::start(1 << 30, Allocate::All, door).unwrap();
        let layout = SegmentLayout::new(32 << 10, [0, 3]).unwrap();
        let segment = Arc::new(Segment::create(layout, [1, 1], 8, 1).unwrap());
        memory.add(segment.clone(), control.clone());
        let deadline = Instant::now() + Duration::from_secs(20);
        while memory.is_ready(&segment).is_none() {
            assert!(Instant::now() < deadline, "not taken");
            std::thread::yield_now();
        }
        assert_eq!(memory.is_ready(&segment), Some(Ok(())));
        assert!(segment.resident_bytes() + 8192 >= segment.bytes());
    }

    #[test]
    fn segments_are_counted_while_they_live_and_freed_after() {
        let door = Handle::new().unwrap();
        let memory = Memory::start(1 << 30, Allocate::Ahead, door).unwrap();
        let layout = SegmentLayout::new(1024, [0, 1]).unwrap();
        let segment = Arc::new(Segment::create(layout, [1, 1], 7, 1).unwrap());
        let (bytes, weak) = (segment.bytes(), Arc::downgrade(&segment));
        memory.add(segment.clone(), page());
        assert_eq!((memory.bytes().0, memory.reserved()), (bytes, bytes));
        assert!(memory.resident() > 0 && memory.resident() <= bytes);
        memory.free(segment);
        assert_eq!(memory.bytes(), (0, 0));
        let deadline = Instant::now() + Duration::from_secs(20);
        while weak.strong_count() > 0 {
            assert!(Instant::now() < deadline, "not freed");
            std::thread::yield_now();
        }
    }

    /// A process can set its claim counters as it likes: they don't talk the daemon into more than its budget.
    #[test]
    fn hostile_tails_take_no_more_than_the_budget() {
        let cap = 16 << 10;
        let layout = SegmentLayout::new(cap, 0..64).unwrap();
        let segment = Arc::new(Segment::create(layout.clone(), [1, 1], 7, 1).unwrap());
        let budget = segment.resident_bytes() + (16 << 20);
        assert!(segment.bytes() > 2 * budget);
        let map = WriteMapping::map(segment.fd(), segment.bytes()).unwrap();
        for nc in 0..64 {
            let tail = layout.ring_word(nc).unwrap() + ring::TAIL;
            map.words()[tail].store(cap, Ordering::Relaxed);
        }
        let pool = Pool {
            segments: Mutex::default(),
            resident: AtomicU64::new(0),
            budget,
            how: Allocate::Ahead,
        };
        let page = page();
        pool.lock().live.insert(7, Live { segment, page });
        let mut told = Told::default();
        for _ in 0..10 {
            pool.count();
            pool.allocate(&mut told);
            let (_, resident) = pool.count();
            assert!(resident <= budget, "{resident} of {budget}");
        }
        assert!(pool.count().1 > budget - (2 << 20), "but it is used");
        assert!(!told.is_due(Instant::now()) && told.is_due(Instant::now() + SILENCE));
    }
}
