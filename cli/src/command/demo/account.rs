//! The workload's own account of its events against the trace's.

use std::collections::BTreeSet;

use nrt_trace_workload::Report;

use crate::output::census::Counts;
use crate::output::human;
use crate::output::table::{Align, Table};

/// A row that differs.
#[derive(Debug, PartialEq, Eq)]
struct Difference {
    pid: u32,
    event: String,
    said: u64,
    traced: u64,
}

/// What the comparison found.
#[derive(Debug)]
pub(super) struct Comparison {
    processes: usize,
    rows: usize,
    events: u64,
    differences: Vec<Difference>,
    /// Workers that gave no account because they were killed: at least so many of their events must be there.
    killed: usize,
}

/// Compares every process and type. A worker that was killed has no account by type; of its events at least those must be
/// in the trace that it had told of.
pub(super) fn compare(said: &Report, traced: &Counts) -> Comparison {
    let mut found = Comparison {
        processes: 0,
        rows: 0,
        events: 0,
        differences: Vec::new(),
        killed: 0,
    };
    let nothing = Default::default();
    for worker in &said.workers {
        let traced = traced.get(&worker.pid).unwrap_or(&nothing);
        let mut row = |event: &str, said: u64, traced: u64, equal: bool| {
            found.rows += 1;
            if !equal {
                let event = event.to_owned();
                found.differences.push(Difference {
                    pid: worker.pid,
                    event,
                    said,
                    traced,
                });
            }
        };
        let all: u64 = traced.values().sum();
        if worker.complete {
            let names: BTreeSet<&String> = worker.events.keys().chain(traced.keys()).collect();
            for name in names {
                let said = worker.events.get(name).map_or(0, |count| count.recorded);
                let traced = traced.get(name).copied().unwrap_or(0);
                row(name, said, traced, said == traced);
            }
        } else {
            row("(all)", worker.recorded, all, all >= worker.recorded);
            found.killed += 1;
        }
        found.processes += 1;
        found.events += all;
    }
    let known: BTreeSet<u32> = said.workers.iter().map(|worker| worker.pid).collect();
    for (pid, events) in traced.iter().filter(|(pid, _)| !known.contains(pid)) {
        let (event, traced) = ("(all)".to_owned(), events.values().sum());
        found.differences.push(Difference {
            pid: *pid,
            event,
            said: 0,
            traced,
        });
    }
    found
}

impl Comparison {
    /// Whether the trace has exactly what the workload says.
    pub(super) fn equal(&self) -> bool {
        self.differences.is_empty()
    }

    /// The finding; the rows that differ, if any.
    pub(super) fn text(&self) -> String {
        if self.equal() {
            let killed = match self.killed {
                0 => String::new(),
                n => format!(" ({n} killed: at least what they had told of)"),
            };
            return format!(
                "compared   {}{killed}, {} counts by type: all {} of the workload are in the trace, and no other",
                human::processes(self.processes),
                self.rows,
                human::events(self.events)
            );
        }
        let mut table = Table::new(&[
            ("PID", Align::Right),
            ("EVENT", Align::Left),
            ("WORKLOAD", Align::Right),
            ("TRACE", Align::Right),
        ]);
        for Difference {
            pid,
            event,
            said,
            traced,
        } in &self.differences
        {
            let cells = [
                pid.to_string(),
                event.clone(),
                human::count(*said),
                human::count(*traced),
            ];
            table.row(cells.into());
        }
        let mut text = Vec::new();
        // Writing to memory does not fail.
        let _infallible = table.write(&mut text);
        let text = String::from_utf8_lossy(&text);
        format!("compared   the counts differ:\n{}", text.trim_end())
    }
}

#[cfg(test)]
mod tests {
    use nrt_trace_workload::{Count, WorkerReport};

    use super::*;

    fn said(complete: bool, recorded: u64) -> Report {
        let count = Count {
            emitted: recorded,
            recorded,
        };
        let worker = WorkerReport {
            pid: 7,
            complete,
            recorded,
            events: [("nrt_execute".to_owned(), count)].into(),
            ..WorkerReport::default()
        };
        Report {
            workers: vec![worker],
            ..Report::default()
        }
    }

    fn traced(pid: u32, event: &str, count: u64) -> Counts {
        [(pid, [(event.to_owned(), count)].into())].into()
    }

    #[test]
    fn equal_accounts_are_equal() {
        let found = compare(&said(true, 5), &traced(7, "nrt_execute", 5));
        assert!(found.equal());
        assert!(
            found
                .text()
                .contains("1 process, 1 counts by type: all 5 events"),
            "{}",
            found.text()
        );
    }

    #[test]
    fn any_difference_is_found() {
        for other in [
            traced(7, "nrt_execute", 4),
            traced(7, "nrt_execute", 6),
            traced(7, "nrt_load", 5),
            traced(8, "nrt_execute", 5),
            Counts::new(),
        ] {
            assert!(!compare(&said(true, 5), &other).equal(), "{other:?}");
        }
        let text = compare(&said(true, 5), &traced(7, "nrt_execute", 4)).text();
        assert!(
            text.ends_with("  7  nrt_execute         5      4"),
            "{text}"
        );
    }

    #[test]
    fn a_killed_worker_may_have_recorded_more_than_it_told() {
        assert!(compare(&said(false, 5), &traced(7, "nrt_execute", 6)).equal());
        assert!(!compare(&said(false, 5), &traced(7, "nrt_execute", 4)).equal());
    }
}
