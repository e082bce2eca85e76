//! A known load: one CPU busy, half of another.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Length of a busy and of an idle stretch of the half-busy CPU: short against a tick, long against a switch.
const STRETCH: Duration = Duration::from_millis(5);

/// CPUs that this process may use: the first is kept busy by a process, the last by [`HalfBusy`].
pub(crate) fn cpus() -> (usize, usize) {
    let allowed = sched_getaffinity(None).unwrap();
    let mut all = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu));
    let first = all.next().unwrap();
    (first, all.next_back().unwrap_or(first))
}

/// A thread that keeps a CPU busy for half of the time. Dropping it ends it.
pub(crate) struct HalfBusy {
    end: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl HalfBusy {
    /// Starts it on a CPU.
    pub(crate) fn start(cpu: usize) -> Self {
        let end = Arc::new(AtomicBool::new(false));
        let ending = Arc::clone(&end);
        let thread = std::thread::spawn(move || {
            let mut set = CpuSet::new();
            set.set(cpu);
            sched_setaffinity(None, &set).unwrap();
            while !ending.load(Ordering::Relaxed) {
                let begun = Instant::now();
                while begun.elapsed() < STRETCH {
                    std::hint::spin_loop();
                }
                std::thread::park_timeout(STRETCH);
            }
        });
        Self {
            end,
            thread: Some(thread),
        }
    }
}

impl Drop for HalfBusy {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Relaxed);
        let _ended = self.thread.take().map(JoinHandle::join);
    }
}
