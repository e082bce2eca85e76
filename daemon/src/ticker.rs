//! A thread that does something again and again, until its owner is dropped.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::listen::StartError;

/// When the next visit is due, as its owner and its thread both see it.
#[derive(Debug)]
struct Schedule {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    period: Duration,
    /// A visit is wanted now.
    called: bool,
    end: bool,
}

/// A running thread; dropping it ends the thread.
#[derive(Debug)]
pub(crate) struct Ticker {
    schedule: Arc<Schedule>,
    thread: Option<JoinHandle<()>>,
}

impl Ticker {
    /// Starts a thread called `name` that calls `visit` at once, and then every `period`.
    pub(crate) fn start(
        name: &'static str,
        period: Duration,
        mut visit: impl FnMut() + Send + 'static,
    ) -> Result<Self, StartError> {
        let state = State {
            period,
            called: false,
            end: false,
        };
        let schedule = Arc::new(Schedule {
            state: Mutex::new(state),
            changed: Condvar::new(),
        });
        let inner = schedule.clone();
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || {
                loop {
                    visit();
                    if inner.wait() {
                        return;
                    }
                }
            })
            .map_err(|source| StartError::System {
                what: "start a thread",
                source,
            })?;
        Ok(Self {
            schedule,
            thread: Some(thread),
        })
    }

    /// Sets the time between two visits; a change makes one due.
    pub(crate) fn set_period(&self, period: Duration) {
        let mut state = self.schedule.lock();
        if state.period != period {
            state.period = period;
            state.called = true;
            self.schedule.changed.notify_one();
        }
    }

    /// Makes a visit due.
    pub(crate) fn call(&self) {
        self.schedule.lock().called = true;
        self.schedule.changed.notify_one();
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.schedule.lock().end = true;
        self.schedule.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was told when it happened.
            drop(thread.join());
        }
    }
}

impl Schedule {
    /// A panic while the state was locked left it valid: every change is one store.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a visit is due; true if it is the end instead.
    fn wait(&self) -> bool {
        let state = self.lock();
        let period = state.period;
        let waited = self
            .changed
            .wait_timeout_while(state, period, |state| !state.called && !state.end);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
        state.called = false;
        state.end
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn a_visit_comes_at_once_when_called_and_when_the_period_changes() {
        let (sender, visits) = mpsc::channel();
        let hour = Duration::from_secs(3600);
        let ticker = Ticker::start("test", hour, move || {
            let _ = sender.send(());
        })
        .unwrap();
        visits.recv().unwrap();
        ticker.call();
        visits.recv().unwrap();
        ticker.set_period(Duration::from_millis(1));
        (0..5).for_each(|_| visits.recv().unwrap());
        drop(ticker);
        while visits.recv().is_ok() {} // ends when the thread has
    }
}
