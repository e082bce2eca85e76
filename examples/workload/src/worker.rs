//! A worker process: attaches, waits for the start signal, trains on one thread per NeuronCore, and accounts.
//!
//! It writes [`Line`]s to stdout. Its parent answers `Ready` with a line on stdin; everything listens by then, so
//! connections need no retries.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Write};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use nrt_trace_client::{Options, Tracer};

use crate::check::REFERENCE_STEPS;
use crate::collective::Listening;
use crate::config::{Config, Kill, WorkerArgs};
use crate::error::WorkloadError;
use crate::instrument::Instrument;
use crate::replica::Replica;
use crate::report::{Count, Line, Outcome, ReplicaOutcome, WorkerReport};

/// Does the work of one worker process.
///
/// # Errors
///
/// Returns [`WorkloadError::Incomplete`] if another worker has gone, with the account already written to stdout.
pub fn run_worker(args: &WorkerArgs) -> Result<(), WorkloadError> {
    let config = &args.config;
    config.check()?;
    let name = worker_name(args.rank);
    let tracer = Tracer::attach(Options::named(&name));

    let first = args.rank * config.threads;
    let members =
        (first..first + config.threads).map(|n| Listening::new(&args.links, n, config.replicas()));
    let members: Vec<_> = members
        .collect::<Result<_, _>>()
        .map_err(WorkloadError::io("listen for the neighbours"))?;
    write_line(&Line::Ready { pid: process::id() })?;
    let mut signal = String::new();
    io::stdin()
        .lock()
        .read_line(&mut signal)
        .map_err(WorkloadError::io("wait for the start signal"))?;
    if signal.is_empty() {
        return Err(WorkloadError::Incomplete(
            "the parent gave no start signal".to_owned(),
        ));
    }

    let recorded: Vec<AtomicU64> = (0..config.threads).map(|_| AtomicU64::new(0)).collect();
    let recorded = &recorded;
    let kill_at = config
        .kill
        .filter(|k: &Kill| k.rank == args.rank)
        .map(|k| k.step);
    let threads = thread::scope(|scope| {
        let start = |(nc, member): (usize, Listening)| {
            let thread = Thread {
                config,
                number: first + nc,
                nc,
                recorded,
                kill_at: kill_at.filter(|_| nc == 0),
            };
            scope.spawn(move || thread.train(tracer, member))
        };
        let handles: Vec<_> = members.into_iter().enumerate().map(start).collect();
        handles
            .into_iter()
            .map(|h| h.join().unwrap_or_else(|_| ThreadOutcome::panicked()))
            .collect::<Vec<_>>()
    });

    let mut events = BTreeMap::new();
    for (name, n) in threads.iter().flat_map(|t| &t.counts) {
        let total: &mut Count = events.entry(name.clone()).or_default();
        total.emitted += n.emitted;
        total.recorded += n.recorded;
    }
    let failure = threads.iter().find_map(|t| t.failure.clone());
    let report = WorkerReport {
        rank: args.rank,
        pid: process::id(),
        name,
        steps: threads
            .iter()
            .map(|t| t.result.losses.len())
            .min()
            .unwrap_or(0),
        failure: failure.clone(),
        complete: true,
        recorded: events.values().map(|n| n.recorded).sum(),
        events,
    };
    let replicas = threads.into_iter().map(|t| t.result).collect();
    write_line(&Line::Done(Outcome { report, replicas }))?;
    failure.map_or(Ok(()), |failure| Err(WorkloadError::Incomplete(failure)))
}

/// The name under which worker `rank` attaches.
pub(crate) fn worker_name(rank: usize) -> String {
    format!("worker-{rank}")
}

/// One thread of the process.
struct Thread<'a> {
    config: &'a Config,
    /// The replica's number among all.
    number: usize,
    /// The NeuronCore that it drives, as the process counts them.
    nc: usize,
    /// Events that each thread of the process had recorded at the end of its last step.
    recorded: &'a [AtomicU64],
    kill_at: Option<usize>,
}

/// What a thread has at the end.
#[derive(Default)]
struct ThreadOutcome {
    counts: BTreeMap<String, Count>,
    result: ReplicaOutcome,
    failure: Option<String>,
}

impl ThreadOutcome {
    fn panicked() -> Self {
        Self {
            failure: Some("a thread panicked".to_owned()),
            ..Self::default()
        }
    }
}

impl Thread<'_> {
    fn train(self, tracer: Tracer, member: Listening) -> ThreadOutcome {
        let ring = match member.connect() {
            Ok(ring) => ring,
            Err(error) => {
                let failure = Some(format!("no connection to the neighbours: {error}"));
                return ThreadOutcome {
                    failure,
                    ..ThreadOutcome::default()
                };
            }
        };
        let nc = u32::try_from(self.nc).unwrap_or(u32::MAX);
        let mut replica = Replica::load(
            self.config,
            self.number,
            ring,
            Instrument::new(tracer, nc),
            self.kill_at,
        );
        let mut outcome = ThreadOutcome::default();
        for step in 0..self.config.steps {
            match replica
                .step(step)
                .map_err(|e| format!("a neighbour has gone: {e}"))
                .and_then(|loss| {
                    outcome.result.losses.push(loss);
                    if step + 1 == REFERENCE_STEPS.min(self.config.steps) {
                        outcome.result.norm = replica.model().norm();
                    }
                    self.tell(step + 1, &replica.instrument)
                        .map_err(|e| e.to_string())
                }) {
                Ok(()) => {}
                Err(failure) => {
                    outcome.failure = Some(failure);
                    break;
                }
            }
        }
        let (instrument, model) = replica.unload();
        outcome.result.digest = model.digest();
        instrument.add_counts(&mut outcome.counts);
        outcome
    }

    /// Publishes this thread's count; the first thread passes the process's on to the parent.
    fn tell(&self, steps: usize, instrument: &Instrument) -> Result<(), WorkloadError> {
        self.recorded[self.nc].store(instrument.recorded(), Ordering::Relaxed);
        if self.nc > 0 {
            return Ok(());
        }
        let recorded = self
            .recorded
            .iter()
            .map(|n| n.load(Ordering::Relaxed))
            .sum();
        write_line(&Line::Progress { steps, recorded })
    }
}

fn write_line(line: &Line) -> Result<(), WorkloadError> {
    let write = || {
        let mut text = serde_json::to_string(line)?;
        text.push('\n');
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()
    };
    write().map_err(WorkloadError::io("report to the parent"))
}
