//! The process that starts the workers, and judges what they did.

use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;
use std::time::Instant;

use crate::check;
use crate::config::{Config, Launcher, WorkerArgs};
use crate::error::WorkloadError;
use crate::report::{Check, Line, Outcome, ReplicaOutcome, Report, WorkerReport};
use crate::worker::worker_name;

/// Runs the whole workload: starts the workers, waits for them, and judges the result.
///
/// A worker that ends early is no error: the report names it, keeps the others' accounts, and is not `ok`.
///
/// # Errors
///
/// When a worker can't be started or does not come up, or an option is out of range.
pub fn run_parent(config: &Config, launcher: &Launcher) -> Result<Report, WorkloadError> {
    config.check()?;
    let links = tempfile::Builder::new().prefix("nrt-workload-").tempdir();
    let links = links.map_err(WorkloadError::io("make a folder for the sockets"))?;
    let start = |rank| Worker::start(config, launcher, links.path(), rank);
    let mut workers: Vec<Worker> = (0..config.processes).map(start).collect::<Result<_, _>>()?;
    for worker in &mut workers {
        worker.wait_ready()?;
    }
    let began = Instant::now();
    let followers: Vec<_> = workers
        .into_iter()
        .map(|w| thread::spawn(move || w.follow()))
        .collect();
    let ended: Vec<(WorkerReport, Vec<ReplicaOutcome>)> = followers
        .into_iter()
        .map(|f| f.join().unwrap_or_default())
        .collect();
    let elapsed_ns = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);

    let (workers, replicas): (Vec<WorkerReport>, Vec<_>) = ended.into_iter().unzip();
    let failures: Vec<String> = workers
        .iter()
        .filter_map(|w| Some(format!("{}: {}", w.name, w.failure.as_ref()?)))
        .collect();
    let check = if failures.is_empty() {
        check::judge(config, &replicas.concat())
    } else {
        Check {
            failures,
            ..Check::default()
        }
    };
    Ok(Report {
        processes: config.processes,
        threads: config.threads,
        steps: config.steps,
        elapsed_ns,
        workers,
        check,
    })
}

/// A worker process; killed and waited for when dropped before its end.
#[derive(Debug)]
struct Worker {
    rank: usize,
    pid: u32,
    child: Child,
    signal: Option<ChildStdin>,
    lines: io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Worker {
    fn start(
        config: &Config,
        launcher: &Launcher,
        links: &Path,
        rank: usize,
    ) -> Result<Self, WorkloadError> {
        let args = WorkerArgs {
            rank,
            links: links.to_owned(),
            config: config.clone(),
        };
        let first = rank * config.threads;
        let mut child = Command::new(&launcher.program)
            .args(&launcher.arguments)
            .args(args.to_arguments())
            .envs(
                launcher
                    .environment
                    .iter()
                    .map(|(name, value)| (name, value)),
            )
            .env("NEURON_RT_WORKER_GID", rank.to_string())
            .env(
                "NEURON_RT_VISIBLE_CORES",
                format!("{first}-{}", first + config.threads - 1),
            )
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(WorkloadError::io("start a worker"))?;
        let signal = child.stdin.take();
        let stdout = child.stdout.take().expect("stdout is piped");
        Ok(Self {
            rank,
            pid: child.id(),
            child,
            signal,
            lines: BufReader::new(stdout).lines(),
        })
    }

    fn wait_ready(&mut self) -> Result<(), WorkloadError> {
        match self.next_line()? {
            Some(Line::Ready { .. }) => Ok(()),
            Some(other) => Err(WorkloadError::Line {
                rank: self.rank,
                line: format!("{other:?}"),
            }),
            None => {
                let status = self
                    .child
                    .wait()
                    .map_err(WorkloadError::io("wait for a worker"))?;
                Err(WorkloadError::NotReady {
                    rank: self.rank,
                    status: status.to_string(),
                })
            }
        }
    }

    /// Gives the start signal and reads what the worker writes, to its end.
    fn follow(mut self) -> (WorkerReport, Vec<ReplicaOutcome>) {
        let mut last = WorkerReport {
            rank: self.rank,
            pid: self.pid,
            name: worker_name(self.rank),
            ..WorkerReport::default()
        };
        if let Some(signal) = &mut self.signal {
            // A worker that is gone by now shows by the end of its lines.
            let _gone = signal.write_all(b"go\n");
        }
        loop {
            match self.next_line() {
                Ok(Some(Line::Progress { steps, recorded })) => {
                    (last.steps, last.recorded) = (steps, recorded);
                }
                Ok(Some(Line::Done(Outcome { report, replicas }))) => return (report, replicas),
                Ok(Some(Line::Ready { .. })) => {}
                Ok(None) => {
                    let status = self
                        .child
                        .wait()
                        .map_or_else(|e| e.to_string(), |s| s.to_string());
                    last.failure = Some(format!("ended in the middle ({status})"));
                    return (last, Vec::new());
                }
                Err(error) => {
                    last.failure = Some(error.to_string());
                    return (last, Vec::new());
                }
            }
        }
    }

    fn next_line(&mut self) -> Result<Option<Line>, WorkloadError> {
        let Some(line) = self.lines.next() else {
            return Ok(None);
        };
        let line = line.map_err(WorkloadError::io("read what a worker writes"))?;
        let rank = self.rank;
        serde_json::from_str(&line)
            .map(Some)
            .map_err(|_| WorkloadError::Line { rank, line })
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // A worker whose account came ends by itself: closing its stdin and its stdout hurries it; one that hangs,
        // or is not wanted any more, is ended. Both calls fail only if it has been waited for.
        let _ended = self.child.kill();
        let _waited = self.child.wait();
    }
}
