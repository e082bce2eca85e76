//! A service manager that keeps descriptors, as systemd does, and hands them to the next daemon.

use std::fs::{self, File};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nrt_trace_shm::{memfd, socket};

use crate::artifacts::artifacts;
use crate::host::Host;
use crate::wait::until;

/// What a daemon says when it serves.
const READY: &str = "READY=1";

/// The manager.
#[derive(Debug)]
pub struct Manager {
    path: PathBuf,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    ear: UnixDatagram,
    heard: Mutex<Heard>,
    ended: AtomicBool,
    /// Descriptors that it keeps at most.
    most: usize,
}

#[derive(Debug, Default)]
struct Heard {
    kept: Vec<(String, OwnedFd)>,
    lines: Vec<String>,
}

impl Manager {
    /// One for the daemons of a host, which keeps `most` descriptors.
    ///
    /// # Panics
    ///
    /// If it can't listen.
    #[must_use]
    pub fn new(host: &Host, most: usize) -> Self {
        let path = host.path("notify.sock");
        let ear = UnixDatagram::bind(&path).expect("a socket");
        ear.set_nonblocking(true).expect("a socket of its own");
        let shared = Arc::new(Shared {
            ear,
            heard: Mutex::default(),
            ended: AtomicBool::new(false),
            most,
        });
        let listener = shared.clone();
        let thread = thread::spawn(move || {
            while !listener.ended.load(Ordering::Relaxed) {
                let mut heard = listener.heard.lock().expect("no panic");
                while listener.hear(&mut heard) {}
                drop(heard);
                thread::park_timeout(Duration::from_millis(2));
            }
        });
        Self {
            path,
            shared,
            thread: Some(thread),
        }
    }

    /// Starts the host's daemon with all that is kept, and waits until it answers.
    ///
    /// # Panics
    ///
    /// If it does not.
    pub fn start_daemon(&self, host: &mut Host, arguments: &[&str]) {
        self.start_daemon_saying(host, arguments, Some(self.shared.most));
    }

    /// The same; `says` is how many descriptors the manager says that it keeps. One before systemd 254 says nothing.
    ///
    /// # Panics
    ///
    /// If it does not.
    pub fn start_daemon_saying(&self, host: &mut Host, arguments: &[&str], says: Option<usize>) {
        let ready = self.times_told(READY);
        let (command, sender) = self.handing_over(host, arguments, says);
        host.start_daemon_as(command);
        sender.join().expect("all were sent");
        // Sockets that were handed over are there, and can be connected to, before it is.
        until("the daemon to be ready", || {
            (self.times_told(READY) > ready).then_some(())
        });
    }

    /// Starts the host's daemon with all that is kept, waits until it has ended by itself, and returns its exit status
    /// and what it said.
    ///
    /// # Panics
    ///
    /// If it does not end.
    #[must_use]
    pub fn refused_daemon(&self, host: &Host) -> (Option<i32>, String) {
        let (mut command, sender) = self.handing_over(host, &[], Some(self.shared.most));
        let log = File::create(host.path("refused.log")).expect("a log file");
        let mut child = command.stderr(log).spawn().expect("it can be started");
        let ended = until("the daemon to end", || {
            child.try_wait().expect("a child can be asked")
        });
        sender.join().expect("all were sent");
        let said = fs::read_to_string(host.path("refused.log")).expect("a log file");
        (ended.code(), said)
    }

    /// The daemon's command, and the thread that gives it what is kept.
    fn handing_over(
        &self,
        host: &Host,
        arguments: &[&str],
        says: Option<usize>,
    ) -> (Command, JoinHandle<()>) {
        let daemon = host.daemon_command(arguments);
        let mut command = host.command(&artifacts().handover);
        command.arg(daemon.get_program()).args(daemon.get_args());
        command.env("NOTIFY_SOCKET", &self.path);
        if let Some(most) = says {
            command.env("FDSTORE", most.to_string());
        }
        let (mine, its) = socket::pair().expect("a pair of sockets");
        command.stdin(Stdio::from(its));
        let copies: Vec<(String, OwnedFd)> = (self.settled().kept.iter())
            .map(|(name, fd)| (name.clone(), fd.try_clone().expect("a descriptor")))
            .collect();
        let sender = thread::spawn(move || {
            for (name, fd) in copies {
                socket::send(&mine, format!("{name}:").as_bytes(), &[fd.as_fd()])
                    .expect("it listens");
            }
        });
        (command, sender)
    }

    /// Names of what is kept, in the order in which it came.
    #[must_use]
    pub fn kept(&self) -> Vec<String> {
        let heard = self.settled();
        heard.kept.iter().map(|(name, _)| name.clone()).collect()
    }

    /// Where it listens.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// All lines that it was told, in order.
    #[must_use]
    pub fn said(&self) -> Vec<String> {
        self.settled().lines.clone()
    }

    /// How often it was told this line.
    #[must_use]
    pub fn times_told(&self, line: &str) -> usize {
        let heard = self.settled();
        heard.lines.iter().filter(|other| *other == line).count()
    }

    /// Whether it was told this line.
    #[must_use]
    pub fn was_told(&self, line: &str) -> bool {
        self.times_told(line) > 0
    }

    /// Keeps something that no daemon asked for.
    ///
    /// # Panics
    ///
    /// If a test has failed already.
    pub fn plant(&self, name: &str, fd: OwnedFd) {
        self.settled().kept.push((name.to_owned(), fd));
    }

    /// Changes the first page of what is kept under names that begin so.
    ///
    /// # Panics
    ///
    /// If it can't be written.
    pub fn spoil(&self, prefix: &str) {
        let heard = self.settled();
        for (name, fd) in &heard.kept {
            if name.starts_with(prefix) {
                memfd::write_words_at(fd, 3, &[7]).expect("it is only sealed against resizing");
            }
        }
    }

    /// What it has after all that it was told so far.
    fn settled(&self) -> std::sync::MutexGuard<'_, Heard> {
        let mut heard = self.shared.heard.lock().expect("no panic");
        while self.shared.hear(&mut heard) {}
        heard
    }
}

impl Shared {
    /// Hears one message; false if there is none.
    fn hear(&self, heard: &mut Heard) -> bool {
        let mut buffer = [0; 512];
        let Ok(received) = socket::receive(&self.ear, &mut buffer) else {
            return false;
        };
        let text = String::from_utf8_lossy(&buffer[..received.bytes]).into_owned();
        let value = |key: &str| {
            text.lines()
                .find_map(|line| line.strip_prefix(key))
                .map(str::to_owned)
        };
        let name = value("FDNAME=").unwrap_or_else(|| "stored".to_owned());
        if value("FDSTOREREMOVE=").is_some() {
            heard.kept.retain(|(other, _)| *other != name);
        } else if value("FDSTORE=").is_some() {
            for fd in received.fds {
                let same = |(_, other): &(String, OwnedFd)| {
                    memfd::identity(other).ok() == memfd::identity(&fd).ok()
                };
                if heard.kept.len() < self.most && !heard.kept.iter().any(same) {
                    heard.kept.push((name.clone(), fd));
                }
            }
        }
        heard.lines.extend(text.lines().map(str::to_owned));
        true
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}
