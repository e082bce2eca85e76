//! A process of a few emitting threads that do one thing at a time, as they are told.
//!
//! | command | what | answer |
//! |---|---|---|
//! | `trap T LABEL PASS park` or `stop` | thread T (or `bg`) stays at LABEL the PASS-th time; `stop`: SIGSTOP as well | `ok` |
//! | `emit T N` | thread T emits N events | `done`, or `parked LABEL` |
//! | `intern T NAME` | thread T interns a name | `done`, or `parked LABEL` |
//! | `release T` | thread T goes on | `done`, or `parked LABEL`; for `bg`: `ok` |
//! | `parked bg` | wait until the background thread is in its trap | `parked LABEL` |
//! | `armed` | wait until events are recorded | `armed`, or `not armed` |
//! | `run T US` | thread T emits without end, with a pause of US microseconds after each | `ok` |
//! | `halt T` | it stops doing so | `done` |
//! | `disconnect` | its connection to the daemon ends, as if it had closed all descriptors | `ok` |

use std::fs;
use std::io::{self, BufRead, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use nrt_trace_client::{Event, EventType, Options, Tracer};
use nrt_trace_tests::ledger::Ledger;
use nrt_trace_tests::payload;
use rustix::net::{Shutdown, shutdown};
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};

use crate::trap::{self, BACKGROUND, Report};

/// Emitting threads.
const WORKERS: usize = 5;

/// What a thread is told to do.
enum Job {
    Emit(u64),
    Intern(String),
    Run(Duration),
}

/// Tells a thread that runs without end to stop.
static HALT: [AtomicBool; WORKERS] = [const { AtomicBool::new(false) }; WORKERS];

/// Runs until the end of standard input.
pub(crate) fn run(log: &Path, trap: Option<&str>) -> io::Result<()> {
    let (sender, reports) = channel();
    trap::report_to(sender);
    if let Some(label) = trap {
        trap::set(BACKGROUND, label, 1, false);
    }
    let ledger = Arc::new(Ledger::create(log)?);
    let tracer = Tracer::attach(Options::named("stepper"));
    let workers = (0..WORKERS)
        .map(|number| {
            let (sender, jobs) = channel();
            let ledger = Arc::clone(&ledger);
            thread::spawn(move || work(number, tracer, &ledger, &jobs));
            sender
        })
        .collect();
    let mut desk = Desk {
        tracer,
        workers,
        reports,
        early: Vec::new(),
    };
    for line in io::stdin().lock().lines() {
        let answer = desk.obey(&line?)?;
        let mut out = io::stdout().lock();
        writeln!(out, "{answer}")?;
        out.flush()?;
    }
    Ok(())
}

/// The main thread's side.
struct Desk {
    tracer: Tracer,
    workers: Vec<Sender<Job>>,
    reports: Receiver<(usize, Report)>,
    /// Reports that nobody has asked for yet.
    early: Vec<(usize, Report)>,
}

impl Desk {
    fn obey(&mut self, line: &str) -> io::Result<String> {
        let bad = || io::Error::other(format!("what is {line:?}?"));
        let words: Vec<&str> = line.split(' ').collect();
        let thread = |word: &str| match word {
            "bg" => Ok(BACKGROUND),
            number => number.parse().map_err(|_| bad()),
        };
        match words[..] {
            ["trap", who, label, pass, how] => {
                let pass = pass.parse().map_err(|_| bad())?;
                trap::set(thread(who)?, label, pass, how == "stop");
                Ok("ok".to_owned())
            }
            ["emit", who, count] => {
                let count = count.parse().map_err(|_| bad())?;
                self.give(thread(who)?, Job::Emit(count))
            }
            ["intern", who, name] => self.give(thread(who)?, Job::Intern(name.to_owned())),
            ["release", "bg"] => {
                trap::release(BACKGROUND);
                Ok("ok".to_owned())
            }
            ["release", who] => {
                let thread = thread(who)?;
                trap::release(thread);
                self.wait_for(thread)
            }
            ["parked", who] => self.wait_for(thread(who)?),
            ["armed"] => {
                let armed = self.tracer.wait_armed(Duration::from_secs(60));
                Ok(if armed { "armed" } else { "not armed" }.to_owned())
            }
            ["run", who, pause] => {
                let pause = Duration::from_micros(pause.parse().map_err(|_| bad())?);
                self.send(thread(who)?, Job::Run(pause))?;
                Ok("ok".to_owned())
            }
            ["halt", who] => {
                let thread = thread(who)?;
                HALT.get(thread)
                    .ok_or_else(bad)?
                    .store(true, Ordering::Relaxed);
                self.wait_for(thread)
            }
            ["disconnect"] => disconnect().map(|()| "ok".to_owned()),
            _ => Err(bad()),
        }
    }

    fn send(&self, thread: usize, job: Job) -> io::Result<()> {
        let gone = || io::Error::other(format!("there is no thread {thread}"));
        self.workers
            .get(thread)
            .ok_or_else(gone)?
            .send(job)
            .map_err(|_| gone())
    }

    fn give(&mut self, thread: usize, job: Job) -> io::Result<String> {
        self.send(thread, job)?;
        self.wait_for(thread)
    }

    /// The next thing that this thread tells.
    fn wait_for(&mut self, thread: usize) -> io::Result<String> {
        let at = self.early.iter().position(|(who, _)| *who == thread);
        let report = match at {
            Some(at) => self.early.remove(at).1,
            None => loop {
                let (who, report) = self.reports.recv().map_err(io::Error::other)?;
                if who == thread {
                    break report;
                }
                self.early.push((who, report));
            },
        };
        Ok(match report {
            Report::Done => "done".to_owned(),
            Report::Parked(label) => format!("parked {label}"),
        })
    }
}

/// Ends every connection that this process has, which is the library's: it has opened no other socket.
fn disconnect() -> io::Result<()> {
    let me = pidfd_open(getpid(), PidfdFlags::empty())?;
    for entry in fs::read_dir("/proc/self/fd")? {
        let entry = entry?;
        // The folder's own descriptor is gone when it is asked.
        let is_socket =
            fs::read_link(entry.path()).is_ok_and(|to| to.to_string_lossy().starts_with("socket:"));
        let number = entry.file_name().to_string_lossy().parse();
        if let (true, Ok(number)) = (is_socket, number) {
            let socket = pidfd_getfd(&me, number, PidfdGetfdFlags::empty())?;
            shutdown(&socket, Shutdown::Both)?;
        }
    }
    Ok(())
}

fn work(me: usize, tracer: Tracer, ledger: &Ledger, jobs: &Receiver<Job>) {
    trap::i_am(me);
    let mut number = 0;
    let mut emit = || {
        number += 1;
        let data = payload::numbered(me as u64, number);
        // A stop without a start has an id of its own, which tells the sequence number.
        let event = Event::stop(EventType::DmaMemAlloc, 0, None).data(data);
        ledger.begin(me as u64, number);
        let id = tracer.emit(event);
        ledger.end(me as u64, number, id.map_or(0, |id| id.0));
    };
    for job in jobs {
        match job {
            Job::Emit(count) => (0..count).for_each(|_| emit()),
            Job::Intern(name) => {
                let _id = tracer.intern(0, &name);
            }
            Job::Run(pause) => {
                while !HALT[me].swap(false, Ordering::Relaxed) {
                    emit();
                    thread::park_timeout(pause);
                }
            }
        }
        trap::tell(me, Report::Done);
    }
}
