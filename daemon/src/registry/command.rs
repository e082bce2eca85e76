//! How other threads ask the registry thread.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crossbeam_queue::ArrayQueue;
use nrt_trace_proto::v1;
use nrt_trace_ring::Impossible;
use rustix::event::EventfdFlags;
use tokio::sync::oneshot;

use crate::config::Config;
use crate::drain::fetch::FetchJob;
use crate::drain::parting::Parting;
use crate::pulse::Pulse;
use crate::run::error::RunError;
use crate::run::request::{FetchSpec, FilterSpec, StartSpec};
use crate::run::tally::Tally;
use crate::strings::{Names, ProducerNames, Refused};

/// Requests that wait at a time.
const WAITING: usize = 256;

/// Where the answer goes.
pub(crate) type Reply<T> = oneshot::Sender<Result<T, RunError>>;

/// The merged names, and the tables of the producers that are attached.
pub(crate) type NameTables = (Arc<Names>, Vec<Arc<ProducerNames>>);

/// What became of all events that were ever recorded, as far as the daemon knows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    /// Of all runs, those that are no more among them.
    pub all: Tally,
    /// Of each scope that has a run: its token, and the sum over its runs.
    pub scopes: Vec<(String, Tally)>,
    /// Names that were not taken, by [`Refused`].
    pub names_refused: [u64; Refused::ALL.len()],
}

/// A request to the registry thread.
#[derive(Debug)]
pub(crate) enum Command {
    /// Begin a run.
    Start(StartSpec, Reply<v1::StartResponse>),
    /// Change what a run captures.
    SetFilter(FilterSpec, Reply<v1::SetFilterResponse>),
    /// End a run.
    Stop {
        /// Its scope.
        token: String,
        /// Give unread events up.
        discard: bool,
        /// The answer's place.
        reply: Reply<v1::StopResponse>,
    },
    /// Begin a fetch.
    Fetch(FetchSpec, Reply<FetchJob>),
    /// Read all that rings hold.
    Snapshot(FetchSpec, Reply<FetchJob>),
    /// What a subscriber reads, if it is not what it has `seen`.
    Follow {
        /// What it wants, and where it finds what goes before it looks.
        parting: Arc<Parting>,
        /// The run that it follows, once it does.
        run: Option<u64>,
        /// The number of the state that it knows.
        seen: Option<u64>,
        /// The answer's place.
        reply: Reply<Option<(u64, FetchJob)>>,
    },
    /// Consume what a fetch took.
    Commit(u64, Reply<()>),
    /// The state of things, but for what the process itself knows.
    Status(Reply<v1::GetStatusResponse>),
    /// Producers of a scope, or all.
    Producers(Option<String>, Reply<Vec<v1::Producer>>),
    /// What became of all events.
    Totals(Reply<Totals>),
    /// Go on with other settings, of those that can change while the daemon runs.
    Reload(Arc<Config>),
    /// All names, and the tables that may hold more.
    Names(Reply<NameTables>),
    /// A producer's command line was read.
    Introduce(u32, Vec<String>),
    /// A producer's words can't be.
    Quarantine(u32, Impossible),
}

/// The registry thread's door.
#[derive(Clone, Debug)]
pub(crate) struct Handle(Arc<Door>);

#[derive(Debug)]
struct Door {
    queue: ArrayQueue<Command>,
    wake: OwnedFd,
    ending: AtomicBool,
    pulse: Pulse,
}

impl Handle {
    /// A door nobody stands behind yet.
    pub(crate) fn new() -> Result<Self, rustix::io::Errno> {
        let wake = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self(Arc::new(Door {
            queue: ArrayQueue::new(WAITING),
            wake,
            ending: AtomicBool::new(false),
            pulse: Pulse::default(),
        })))
    }

    /// Leaves a request; never waits.
    pub(crate) fn send(&self, command: Command) -> Result<(), RunError> {
        if self.is_ending() {
            return Err(RunError::ShuttingDown);
        }
        self.0.queue.push(command).map_err(|_| RunError::Busy)?;
        self.ring();
        Ok(())
    }

    /// Leaves a request and waits for the answer.
    pub(crate) async fn ask<T>(
        &self,
        request: impl FnOnce(Reply<T>) -> Command,
    ) -> Result<T, RunError> {
        let (reply, answer) = oneshot::channel();
        self.send(request(reply))?;
        answer.await.unwrap_or(Err(RunError::ShuttingDown))
    }

    /// As [`Handle::ask`], for a thread of its own.
    pub(crate) fn ask_blocking<T>(
        &self,
        request: impl FnOnce(Reply<T>) -> Command,
    ) -> Result<T, RunError> {
        let (reply, answer) = oneshot::channel();
        self.send(request(reply))?;
        answer
            .blocking_recv()
            .unwrap_or(Err(RunError::ShuttingDown))
    }

    /// Asks the thread to end.
    pub(crate) fn end(&self) {
        // Relaxed: the eventfd's write orders it.
        self.0.ending.store(true, Ordering::Relaxed);
        self.ring();
    }

    /// Whether the thread is to end.
    pub(crate) fn is_ending(&self) -> bool {
        self.0.ending.load(Ordering::Relaxed)
    }

    /// Whether the thread comes round.
    pub(crate) fn pulse(&self) -> Pulse {
        self.0.pulse.clone()
    }

    /// The next request; for the registry thread.
    pub(crate) fn next(&self) -> Option<Command> {
        self.0.queue.pop()
    }

    /// Becomes readable when there are requests; for the registry thread.
    pub(crate) fn wake_fd(&self) -> BorrowedFd<'_> {
        self.0.wake.as_fd()
    }

    /// Takes the wake-up calls so far; for the registry thread, before it looks for requests.
    pub(crate) fn hear(&self) {
        // Not readable: nobody rang.
        let _ = rustix::io::read(&self.0.wake, &mut [0; 8]);
    }

    /// Wakes the thread, which looks at everything that may have changed.
    pub(crate) fn ring(&self) {
        // Full: the thread has been rung often enough.
        let _ = rustix::io::write(&self.0.wake, &1u64.to_ne_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_beyond_the_queue_are_refused_and_not_waited_for() {
        let handle = Handle::new().unwrap();
        let line = || Command::Introduce(1, Vec::new());
        (0..WAITING).for_each(|_| handle.send(line()).unwrap());
        assert_eq!(handle.send(line()), Err(RunError::Busy));
        assert!(matches!(handle.next(), Some(Command::Introduce(1, _))));
        handle.send(line()).unwrap();
        handle.end();
        assert_eq!(handle.send(line()), Err(RunError::ShuttingDown));
    }

    #[test]
    fn an_answer_that_never_comes_is_an_error() {
        let handle = Handle::new().unwrap();
        let asker = handle.clone();
        let asking = std::thread::spawn(move || asker.ask_blocking(Command::Status));
        let command = loop {
            if let Some(command) = handle.next() {
                break command;
            }
            std::thread::yield_now();
        };
        drop(command);
        assert_eq!(asking.join().unwrap(), Err(RunError::ShuttingDown));
    }
}
