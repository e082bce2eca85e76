//! The Rust worker: the original's engine, our Rust API, and the floor.

use std::io::BufRead;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::sync::{Barrier, RwLock};
use std::time::{Instant, SystemTime};

use anyhow::{Context, Result, bail};
use crossbeam_queue::ArrayQueue;
use nrt_trace_abi::clock::ClockParams;
use nrt_trace_abi::record::{Draft, Record};
use nrt_trace_client::{Event, EventType, Options, Tracer};
use nrt_trace_shm::clock::{TscClock, tsc};
use rustix::thread::{CpuSet, sched_setaffinity};

/// NCs that the engines here have rings for.
const NCS: usize = 2;

/// Pins the calling thread to a core, if there is such a core.
pub(crate) fn pin(core: usize) {
    let mut set = CpuSet::new();
    set.set(core);
    // A machine with fewer cores, or a container that allows others: then it is measured where it runs.
    let _pinned = sched_setaffinity(None, &set);
}

/// The original's engine (facts about it: crossbeam's queue of 112-byte events under a lock for each NC, taken for
/// reading, a sequence counter, the system's clock).
struct Original {
    rings: [RwLock<ArrayQueue<Record>>; NCS],
    seqs: [AtomicU64; NCS],
}

impl Original {
    fn new(cap: usize) -> Self {
        Self {
            rings: [(); NCS].map(|()| RwLock::new(ArrayQueue::new(cap))),
            seqs: [(); NCS].map(|()| AtomicU64::new(0)),
        }
    }

    fn emit(&self, nc: usize, data: [u64; 5]) -> u64 {
        let Ok(ring) = self.rings[nc].read() else {
            return 0;
        };
        let seq = self.seqs[nc].fetch_add(1, Ordering::Relaxed);
        let now = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .map_or(0, |t| t.as_nanos());
        let draft = Draft {
            trace_type: 3,
            phase: 2,
            timestamp_ns: u64::try_from(now).unwrap_or(0),
            data,
            ..Draft::default()
        };
        ring.force_push(draft.finish(seq));
        seq
    }
}

/// The least that a record in shared memory can cost: a ring of the thread's own, the time stamp counter, 128 bytes
/// stored, and the release that lets a reader see them.
struct Floor {
    words: Vec<AtomicU64>,
    next: u64,
    clock: ClockParams,
}

impl Floor {
    fn new(cap: usize, clock: ClockParams) -> Self {
        Self {
            words: (0..cap * 16).map(|_| AtomicU64::new(0)).collect(),
            next: 0,
            clock,
        }
    }

    #[inline]
    fn emit(&mut self, data: [u64; 5]) -> u64 {
        let n = self.next;
        self.next += 1;
        let slots = self.words.len() / 16;
        let at = usize::try_from(n).unwrap_or(0) & (slots - 1);
        let Some(slot) = self.words[at * 16..].first_chunk::<16>() else {
            return 0;
        };
        slot[0].store(n, Ordering::Relaxed);
        fence(Ordering::Release);
        let draft = Draft {
            trace_type: 3,
            phase: 2,
            timestamp_ns: self.clock.ns_at(tsc()),
            data,
            ..Draft::default()
        };
        for (word, value) in slot[2..].iter().zip(draft.finish(n + 1).words) {
            word.store(value, Ordering::Relaxed);
        }
        slot[0].store(n + 1, Ordering::Release);
        n
    }
}

/// Answers requests from standard input until it ends.
pub(crate) fn serve() -> Result<()> {
    let tracer = Tracer::attach(Options::named("bench"));
    let mut clock =
        TscClock::calibrate().context("this machine's time stamp counter is not usable")?;
    let clock = clock.refresh();
    let mut original = Original::new(1024);
    let mut floor_cap = 1024;
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let words: Vec<&str> = line.split_whitespace().collect();
        let [engine, ncs, events, core] = words[..] else {
            bail!("a request: {line}")
        };
        let (events, core): (u64, usize) = (events.parse()?, core.parse()?);
        let ncs = ncs
            .split(',')
            .map(str::parse::<usize>)
            .collect::<Result<Vec<_>, _>>()?;
        let ns = match engine {
            "resize-original" => {
                original = Original::new(usize::try_from(events)?);
                0.0
            }
            "resize-floor" => {
                floor_cap = usize::try_from(events)?;
                0.0
            }
            "original" => timed(&ncs, core, events, |nc| {
                let original = &original;
                move |n| original.emit(nc, [n; 5])
            }),
            "api" => timed(&ncs, core, events, |nc| {
                let nc = u32::try_from(nc).unwrap_or(0);
                move |n| {
                    let event = Event::instant(EventType::ExecuteApi, nc).data([n; 5]);
                    tracer.emit(event).map_or(0, |id| id.0)
                }
            }),
            "floor" => timed(&ncs, core, events, |_| {
                let mut floor = Floor::new(floor_cap, clock);
                // Its pages are taken before the clock runs.
                (0..floor_cap as u64).for_each(|n| {
                    floor.emit([n; 5]);
                });
                move |n| floor.emit([n; 5])
            }),
            other => bail!("no engine {other}"),
        };
        println!("{ns}");
    }
    Ok(())
}

/// Calls each NC's emitter `events` times on a thread of its own; mean ns per call.
fn timed<E: FnMut(u64) -> u64>(
    ncs: &[usize],
    first_core: usize,
    events: u64,
    emitter: impl Fn(usize) -> E + Sync,
) -> f64 {
    let start = Barrier::new(ncs.len());
    let times = std::thread::scope(|scope| {
        let threads: Vec<_> = ncs
            .iter()
            .enumerate()
            .map(|(at, &nc)| {
                let (start, emitter) = (&start, &emitter);
                scope.spawn(move || {
                    pin(first_core + at);
                    let mut emit = emitter(nc);
                    std::hint::black_box(emit(0));
                    start.wait();
                    let begin = Instant::now();
                    for n in 0..events {
                        std::hint::black_box(emit(std::hint::black_box(n)));
                    }
                    begin.elapsed().as_nanos() as f64 / events as f64
                })
            })
            .collect();
        threads
            .into_iter()
            .filter_map(|thread| thread.join().ok())
            .collect::<Vec<_>>()
    });
    times.iter().sum::<f64>() / times.len() as f64
}
