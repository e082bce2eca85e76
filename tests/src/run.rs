//! Programs under a deadline.

use std::fmt;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::wait::DEADLINE;

/// A program that has ended.
#[derive(Clone, Debug)]
pub struct Ended {
    /// Its command line.
    pub command: String,
    /// How it ended.
    pub status: ExitStatus,
    /// What it wrote.
    pub stdout: Vec<u8>,
    /// What it said.
    pub stderr: String,
}

impl Ended {
    /// Standard output as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Exit status, `None` after a signal.
    #[must_use]
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// Signal that ended it.
    #[must_use]
    pub fn signal(&self) -> Option<i32> {
        self.status.signal()
    }

    /// Itself, if it ended with status 0.
    ///
    /// # Panics
    ///
    /// If it did not.
    pub fn ok(self) -> Self {
        self.with_code(0)
    }

    /// Itself, if it ended with this status.
    ///
    /// # Panics
    ///
    /// If it did not.
    pub fn with_code(self, code: i32) -> Self {
        assert_eq!(self.code(), Some(code), "{self}");
        self
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "$ {}\n=> {}", self.command, self.status)?;
        let text = self.text();
        let shown: String = text.chars().take(4000).collect();
        writeln!(f, "--- stdout ({} bytes)\n{shown}", self.stdout.len())?;
        writeln!(f, "--- stderr\n{}", self.stderr)
    }
}

/// Runs a program to its end.
///
/// # Panics
///
/// If it can't be started, or has not ended by [`DEADLINE`].
#[must_use]
pub fn run(command: Command) -> Ended {
    Running::start(command).wait()
}

/// A program that runs, in a process group of its own. The group is killed when this is dropped, or at [`DEADLINE`]: a
/// program that hangs ends a test, never the test run.
#[derive(Debug)]
pub struct Running {
    command: String,
    child: Child,
    /// Dropped to call the watchdog off; it answers whether it had to bite.
    watchdog: Option<(Sender<()>, JoinHandle<bool>)>,
    stdin: Option<ChildStdin>,
    stdout: Option<BufReader<ChildStdout>>,
    stderr: Option<JoinHandle<String>>,
}

impl Running {
    /// Starts a program with pipes at all three ends.
    ///
    /// # Panics
    ///
    /// If it can't be started.
    #[must_use]
    pub fn start(mut command: Command) -> Self {
        let text = format!("{command:?}");
        let command = command.process_group(0);
        let spawned = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let mut child = spawned.unwrap_or_else(|e| panic!("{text}: {e}"));
        let mut stderr = child.stderr.take().expect("piped");
        let reader = thread::spawn(move || {
            let mut text = Vec::new();
            // What was read before an error is still worth showing.
            let _partial = stderr.read_to_end(&mut text);
            String::from_utf8_lossy(&text).into_owned()
        });
        let (call_off, called_off) = channel::<()>();
        let group = Pid::from_child(&child);
        let watchdog = thread::spawn(move || {
            let bites = called_off.recv_timeout(DEADLINE) == Err(RecvTimeoutError::Timeout);
            bites && kill_process_group(group, Signal::KILL).is_ok()
        });
        Self {
            command: text,
            stdin: child.stdin.take(),
            stdout: child.stdout.take().map(BufReader::new),
            stderr: Some(reader),
            watchdog: Some((call_off, watchdog)),
            child,
        }
    }

    /// Its pid.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a signal.
    ///
    /// # Panics
    ///
    /// If it is gone.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("the program is there");
    }

    /// Writes a line to its standard input and reads one from its standard output.
    ///
    /// # Panics
    ///
    /// If it is gone.
    pub fn ask(&mut self, line: &str) -> String {
        self.tell(line);
        self.read_line()
    }

    /// Writes a line to its standard input.
    ///
    /// # Panics
    ///
    /// If it is gone.
    pub fn tell(&mut self, line: &str) {
        // One write: a program may act on, and end at, the first part of a line that comes in two.
        let stdin = self.stdin.as_mut().expect("open");
        let sent = stdin.write_all(format!("{line}\n").as_bytes());
        sent.expect("the program listens");
    }

    /// Reads a line of its standard output.
    ///
    /// # Panics
    ///
    /// If there is none.
    pub fn read_line(&mut self) -> String {
        let mut answer = String::new();
        let bytes = self
            .stdout
            .as_mut()
            .expect("open")
            .read_line(&mut answer)
            .expect("text");
        assert!(bytes > 0, "{} wrote nothing more", self.command);
        answer
    }

    /// Reads one byte of its standard output.
    ///
    /// # Panics
    ///
    /// If there is none.
    pub fn read_byte(&mut self) -> u8 {
        let mut byte = [0];
        let stdout = self.stdout.as_mut().expect("open");
        stdout.read_exact(&mut byte).expect("a byte");
        byte[0]
    }

    /// Closes its standard input.
    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Waits for its end, with its standard input closed.
    ///
    /// # Panics
    ///
    /// If it does not end by [`DEADLINE`].
    #[must_use]
    pub fn wait(mut self) -> Ended {
        self.close_stdin();
        let mut stdout = Vec::new();
        let _partial = self
            .stdout
            .take()
            .expect("taken here only")
            .read_to_end(&mut stdout);
        let stderr = self
            .stderr
            .take()
            .and_then(|t| t.join().ok())
            .unwrap_or_default();
        // Not reaped before the watchdog is called off: it must not kill another process of the same number.
        let bitten = self.call_off_watchdog();
        let status = self.child.wait().expect("a child can be waited for");
        let command = std::mem::take(&mut self.command);
        let ended = Ended {
            command,
            status,
            stdout,
            stderr,
        };
        assert!(!bitten, "had not ended by the deadline: {ended}");
        ended
    }

    fn call_off_watchdog(&mut self) -> bool {
        self.watchdog.take().is_some_and(|(call_off, thread)| {
            drop(call_off);
            thread.join().unwrap_or(false)
        })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.call_off_watchdog();
        // A child that has been waited for has no group any more; one that has not keeps its number.
        if matches!(self.child.try_wait(), Ok(None)) {
            let _gone = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
            let _waited = self.child.wait();
        }
    }
}
