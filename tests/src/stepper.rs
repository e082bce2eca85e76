//! A producer whose threads stop at labelled steps (`tests/stepper`).

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::process::Signal;

use crate::artifacts;
use crate::host::Host;
use crate::ledger::{self, Emit};
use crate::run::{Ended, Running, run};
use crate::wait::until;

/// A running one.
#[derive(Debug)]
pub struct Stepper {
    program: Running,
    log: PathBuf,
}

/// How a thread stops at its label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The thread alone.
    Thread,
    /// The whole process, with SIGSTOP.
    Process,
}

/// Every label that is compiled into the stepper.
///
/// # Panics
///
/// If it can't be run.
#[must_use]
pub fn labels() -> Vec<String> {
    let mut command = std::process::Command::new(artifacts::stepper());
    command.arg("labels");
    run(command)
        .ok()
        .text()
        .lines()
        .map(str::to_owned)
        .collect()
}

impl Stepper {
    /// Starts one that carries `token`, with a ring for one NC; `trap` stops its background thread.
    ///
    /// # Panics
    ///
    /// If it can't be started.
    #[must_use]
    pub fn start(host: &Host, token: &str, trap: Option<&str>) -> Self {
        static LOGS: AtomicU64 = AtomicU64::new(0);
        let log = host.path(format!("{}.log", LOGS.fetch_add(1, Ordering::Relaxed)));
        let mut command = host.command(artifacts::stepper());
        command.arg("producer").arg("--log").arg(&log);
        if let Some(label) = trap {
            command.args(["--trap", label]);
        }
        command.env("NRT_TRACE_TOKEN", token);
        command.env("NEURON_RT_NUM_CORES", "1");
        // It attaches in its own time: whoever wants to wait says so.
        command.env_remove("NRT_TRACE_WAIT_MS");
        Self {
            program: Running::start(command),
            log,
        }
    }

    /// Its pid.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.program.pid()
    }

    /// Waits until its events are recorded.
    ///
    /// # Panics
    ///
    /// If they are not by the deadline.
    pub fn until_armed(&mut self) {
        self.expect("armed", "armed");
    }

    /// Emits `count` events on a thread that has no trap.
    ///
    /// # Panics
    ///
    /// If it does not come back.
    pub fn emit(&mut self, thread: u64, count: u64) {
        self.expect(&format!("emit {thread} {count}"), "done");
    }

    /// Has a thread stop at its `pass`-th time at `label`.
    ///
    /// # Panics
    ///
    /// If the program is gone.
    pub fn trap(&mut self, thread: &str, label: &str, pass: u32, stop: Stop) {
        let how = match stop {
            Stop::Thread => "park",
            Stop::Process => "stop",
        };
        self.expect(&format!("trap {thread} {label} {pass} {how}"), "ok");
    }

    /// Gives an order and waits until the trap at `label` has closed.
    ///
    /// # Panics
    ///
    /// If it does not.
    pub fn order_into_trap(&mut self, order: &str, label: &str, stop: Stop) {
        match stop {
            Stop::Thread => self.expect(order, &format!("parked {label}")),
            Stop::Process => {
                self.program.tell(order);
                let stat = format!("/proc/{}/stat", self.pid());
                until("a process to stop itself", || {
                    let stat = fs::read_to_string(&stat).expect("it is there");
                    let (_, state) = stat.rsplit_once(") ")?;
                    state.starts_with('T').then_some(())
                });
            }
        }
    }

    /// Lets a thread go on, and the process if it stopped itself, until the thread has done what it was ordered.
    ///
    /// # Panics
    ///
    /// If it does not go on.
    pub fn release(&mut self, thread: u64, label: &str, stop: Stop) {
        if stop == Stop::Process {
            self.program.signal(Signal::CONT);
            let told = self.program.read_line();
            assert_eq!(told.trim_end(), format!("parked {label}"));
        }
        self.expect(&format!("release {thread}"), "done");
    }

    /// Gives an order and expects its answer.
    ///
    /// # Panics
    ///
    /// If there is another one.
    pub fn expect(&mut self, order: &str, answer: &str) {
        let told = self.program.ask(order);
        assert_eq!(told.trim_end(), answer, "the answer to {order:?}");
    }

    /// Kills it and waits for its end.
    ///
    /// # Panics
    ///
    /// If it ended otherwise.
    pub fn kill(self) {
        self.program.signal(Signal::KILL);
        assert_eq!(self.program.wait().signal(), Some(9));
    }

    /// Has it end by itself.
    #[must_use]
    pub fn end(self) -> Ended {
        self.program.wait().ok()
    }

    /// What its private log says so far.
    #[must_use]
    pub fn log(&self) -> Vec<Emit> {
        ledger::read(&self.log)
    }

    /// Where its private log is, which outlives it.
    #[must_use]
    pub fn log_path(&self) -> PathBuf {
        self.log.clone()
    }
}
