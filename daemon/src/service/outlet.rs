//! The way of the log's lines out of the process: a short queue, and a thread of its own that writes.
//!
//! A pipe that nobody reads is full, and a journal may hang. Whoever says something then must not wait: it may be the thread
//! that serves producers, or one that reads rings. What finds no room is dropped and counted, and when lines flow again one of
//! them says how many those were.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Bytes that wait at most: some two thousand lines.
const WAITING_BYTES: usize = 256 << 10;
/// Time that the last lines have to get out when the process ends.
const LAST: Duration = Duration::from_secs(1);

/// Lines that this process could not write. One number, as there is one log.
static DROPPED: AtomicU64 = AtomicU64::new(0);

/// Lines of the log that were dropped.
pub(crate) fn dropped() -> u64 {
    DROPPED.load(Ordering::Relaxed)
}

/// Where lines are left.
#[derive(Clone, Debug, Default)]
pub(super) struct Outlet(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<Queue>,
    /// Rung when a line came, and when one is out.
    bell: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    lines: VecDeque<Vec<u8>>,
    bytes: usize,
    /// Whether the thread has taken a line that is not out yet.
    writing: bool,
    /// Lines dropped of which none has told.
    untold: u64,
}

impl Outlet {
    /// Starts the thread, which gives each line to `write`: however long that takes, nobody waits for it.
    pub(super) fn start(
        mut write: impl FnMut(&[u8]) -> io::Result<()> + Send + 'static,
    ) -> io::Result<Self> {
        let outlet = Self::default();
        let inner = outlet.clone();
        let run = move || {
            loop {
                let line = inner.next();
                let written = write(&line);
                if let Some(dropped) = inner.is_out(written.is_ok()) {
                    tracing::warn!(
                        "{dropped} lines of the log were dropped: what it is written to took none"
                    );
                }
            }
        };
        // Named apart from the thread that tells what was left out.
        drop(
            thread::Builder::new()
                .name("nrt-log-out".into())
                .spawn(run)?,
        );
        Ok(outlet)
    }

    /// A panic while it was locked left it valid: every change is one step.
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.0.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leaves a line, if there is room.
    pub(super) fn push(&self, line: Vec<u8>) {
        let mut queue = self.lock();
        if queue.bytes + line.len() > WAITING_BYTES && !queue.lines.is_empty() {
            queue.drop_one();
            return;
        }
        queue.bytes += line.len();
        queue.lines.push_back(line);
        drop(queue);
        self.0.bell.notify_all();
    }

    /// The next line; waits for it.
    fn next(&self) -> Vec<u8> {
        let mut queue = self.lock();
        loop {
            if let Some(line) = queue.lines.pop_front() {
                queue.bytes -= line.len();
                queue.writing = true;
                return line;
            }
            queue = (self.0.bell.wait(queue)).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Notes that the line taken is out, or could not be written. Says how many were dropped, once the queue is empty again.
    fn is_out(&self, written: bool) -> Option<u64> {
        let mut queue = self.lock();
        queue.writing = false;
        if !written {
            queue.drop_one();
        }
        let flows = written && queue.lines.is_empty() && queue.untold > 0;
        let dropped = flows.then(|| std::mem::take(&mut queue.untold));
        drop(queue);
        self.0.bell.notify_all();
        dropped
    }

    /// Waits until all lines are out, or a second has passed.
    pub(super) fn flush(&self) {
        let until = Instant::now() + LAST;
        let mut queue = self.lock();
        while !queue.lines.is_empty() || queue.writing {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let waited = self.0.bell.wait_timeout(queue, left);
            queue = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Queue {
    fn drop_one(&mut self) {
        self.untold += 1;
        // Relaxed: a statistic.
        DROPPED.fetch_add(1, Ordering::Relaxed);
    }
}

/// A line as its layer writes it: in one piece.
impl Write for Outlet {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.push(line.to_vec());
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// Nobody takes a line, and nobody waits; then it flows, in order, and it is known how many are missing.
    #[test]
    fn a_full_queue_drops_and_counts_and_nobody_waits() {
        let (gate, opened) = mpsc::channel::<()>();
        let (out, written) = mpsc::channel::<Vec<u8>>();
        let outlet = Outlet::start(move |line| {
            // Open for good once the test lets go of it.
            let _closed = opened.recv();
            out.send(line.to_vec()).map_err(io::Error::other)
        })
        .unwrap();
        let line = |n: usize| format!("{n:08}{}", "x".repeat(1016)).into_bytes();
        for n in 0..1000 {
            outlet.push(line(n));
        }
        // As many as there is room for, and perhaps the one that the thread has taken.
        let lost = usize::try_from(outlet.lock().untold).unwrap();
        assert!((743..=744).contains(&lost), "{lost}");
        assert!(dropped() >= lost as u64);
        drop(gate);
        outlet.flush();
        let lines: Vec<_> = written.try_iter().collect();
        assert_eq!(lines.len(), 1000 - lost);
        assert!(lines.is_sorted() && lines[0] == line(0));
        assert_eq!(outlet.lock().untold, 0, "it was told");
    }

    #[test]
    fn what_can_not_be_written_is_counted() {
        let outlet = Outlet::start(|_| Err(io::Error::other("no"))).unwrap();
        outlet.push(b"one".to_vec());
        outlet.flush();
        assert_eq!(outlet.lock().untold, 1);
    }
}
