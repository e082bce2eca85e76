//! What a run did: events by process and type, and whether its numbers are right.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::{fs, io};

use serde::{Deserialize, Serialize};

/// The account of a whole run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Worker processes.
    pub processes: usize,
    /// Threads, and NeuronCores, of each.
    pub threads: usize,
    /// Steps asked for.
    pub steps: usize,
    /// From the workers' start signal to the end of the last, ns.
    pub elapsed_ns: u64,
    /// Each worker, by rank.
    pub workers: Vec<WorkerReport>,
    /// Whether the training was right.
    pub check: Check,
}

/// The account of one worker process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkerReport {
    /// Its number.
    pub rank: usize,
    /// Its pid.
    pub pid: u32,
    /// The name under which it attaches.
    pub name: String,
    /// Steps that all its threads finished.
    pub steps: usize,
    /// Why it did not do all of them; absent if it did.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub failure: Option<String>,
    /// True if it sent this account itself. A worker that was killed did not: then `recorded` is what it said last, and
    /// it may have recorded more since.
    pub complete: bool,
    /// Events recorded, of all types.
    pub recorded: u64,
    /// Events by type's display name; empty if not `complete`.
    pub events: BTreeMap<String, Count>,
}

/// Events of one type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Count {
    /// Events offered to the tracer.
    pub emitted: u64,
    /// Of those, events that it took: all while it captures all, none without a daemon.
    pub recorded: u64,
}

/// The numeric result, judged.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// True if nothing is wrong.
    pub ok: bool,
    /// What is wrong.
    pub failures: Vec<String>,
    /// Mean squared error of the first step.
    pub first_loss: f32,
    /// Mean squared error of the last step.
    pub last_loss: f32,
    /// Digest of the weights that every replica ended with.
    pub weights: String,
    /// Largest relative difference to one process that trains on the whole batch.
    pub reference_error: f64,
}

impl Report {
    /// Writes the report as JSON.
    ///
    /// # Errors
    ///
    /// When the file can't be written.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        fs::write(path, serde_json::to_vec_pretty(self)?)
    }

    /// Reads a report that [`Report::write`] wrote.
    ///
    /// # Errors
    ///
    /// When the file can't be read, or is no report.
    pub fn read(path: &Path) -> io::Result<Self> {
        Ok(serde_json::from_slice(&fs::read(path)?)?)
    }

    /// Events recorded by all workers.
    #[must_use]
    pub fn recorded(&self) -> u64 {
        self.workers.iter().map(|w| w.recorded).sum()
    }

    /// Events recorded by pid and type.
    #[must_use]
    pub fn recorded_by_process(&self) -> BTreeMap<u32, BTreeMap<String, u64>> {
        let by_type = |w: &WorkerReport| {
            w.events
                .iter()
                .map(|(name, n)| (name.clone(), n.recorded))
                .collect()
        };
        self.workers.iter().map(|w| (w.pid, by_type(w))).collect()
    }

    /// The report as a table of types by worker, and a line on the result.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        let mut names: Vec<&str> = self
            .workers
            .iter()
            .flat_map(|w| w.events.keys().map(String::as_str))
            .collect();
        names.sort_unstable();
        names.dedup();
        self.line(&mut out, "events emitted", |w| format!("pid {}", w.pid));
        for name in names {
            self.line(&mut out, name, |w| {
                w.events.get(name).map_or(0, |n| n.emitted).to_string()
            });
        }
        self.line(&mut out, "all", |w| {
            w.events
                .values()
                .map(|n| n.emitted)
                .sum::<u64>()
                .to_string()
        });
        self.line(&mut out, "recorded", |w| w.recorded.to_string());
        for worker in &self.workers {
            if let Some(failure) = &worker.failure {
                let _infallible = writeln!(
                    out,
                    "{} stopped after {} steps: {failure}",
                    worker.name, worker.steps
                );
            }
        }
        let Check {
            ok,
            failures,
            first_loss,
            last_loss,
            weights,
            reference_error,
        } = &self.check;
        let _infallible = if *ok {
            writeln!(
                out,
                "result right: loss {first_loss:.4} to {last_loss:.4}, weights {weights} in every replica, \
                 {reference_error:.1e} from one process"
            )
        } else {
            writeln!(out, "result WRONG: {}", failures.join("; "))
        };
        out
    }

    fn line(&self, out: &mut String, name: &str, value: impl Fn(&WorkerReport) -> String) {
        let _infallible = write!(out, "{name:<38}");
        for worker in &self.workers {
            let _infallible = write!(out, "{:>14}", value(worker));
        }
        out.push('\n');
    }
}

/// A line that a worker writes to its parent.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Line {
    /// Attached, and all its replicas listen.
    Ready {
        /// Its pid.
        pid: u32,
    },
    /// The first thread has ended a step.
    Progress {
        /// Steps done.
        steps: usize,
        /// Events that the process has recorded up to some moment before this line.
        recorded: u64,
    },
    /// The end.
    Done(Outcome),
}

/// What a worker has at the end.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Outcome {
    pub(crate) report: WorkerReport,
    /// Each replica's result.
    pub(crate) replicas: Vec<ReplicaOutcome>,
}

/// What a replica has at the end.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ReplicaOutcome {
    /// Loss of each step, over the whole batch.
    pub(crate) losses: Vec<f32>,
    /// Digest of its weights.
    pub(crate) digest: u64,
    /// Norm of its weights after [`crate::check::REFERENCE_STEPS`], or at the end if there are fewer.
    pub(crate) norm: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        let count = Count {
            emitted: 5,
            recorded: 4,
        };
        let worker = WorkerReport {
            pid: 77,
            name: "worker-0".into(),
            recorded: 4,
            complete: true,
            events: [("nrt_execute".to_owned(), count)].into(),
            ..WorkerReport::default()
        };
        Report {
            processes: 1,
            workers: vec![worker],
            ..Report::default()
        }
    }

    #[test]
    fn a_report_reads_back() {
        let text = serde_json::to_string(&report()).unwrap();
        assert_eq!(serde_json::from_str::<Report>(&text).unwrap(), report());
        assert_eq!(report().recorded_by_process()[&77]["nrt_execute"], 4);
    }

    #[test]
    fn the_table_has_a_column_per_worker() {
        let text = report().to_text();
        assert!(text.contains("pid 77"), "{text}");
        assert!(
            text.lines()
                .any(|l| l.starts_with("nrt_execute ") && l.ends_with(" 5")),
            "{text}"
        );
        assert!(text.ends_with("result WRONG: \n"), "{text}");
    }
}
