//! A worker that dies by SIGKILL in the middle of a run.

use std::collections::BTreeSet;
use std::fs;

use nrt_trace_tests::{Document, Event, Host, Running, artifacts, until};
use nrt_trace_workload::{Report, WorkerReport};
use rustix::process::{Pid, Signal, kill_process};

use crate::checks::{assert_no_hole, counts};

const SIZE: [&str; 6] = ["--size", "16", "--rows", "8", "--report", "report.json"];

/// The killed worker's events up to then are there; the others are complete. Returns the types of the spans that it was
/// in the middle of.
fn check(document: &Document, report: &Report, killed: &WorkerReport) -> BTreeSet<String> {
    assert_no_hole(document, 1);
    let counts = counts(document);
    for worker in report.workers.iter().filter(|w| w.pid != killed.pid) {
        assert!(worker.complete, "{worker:?}");
        assert_eq!(
            counts[&worker.pid],
            report.recorded_by_process()[&worker.pid],
            "{}",
            worker.name
        );
    }
    assert!(!killed.complete);
    let there: u64 = counts[&killed.pid].values().sum();
    assert!(
        there >= killed.recorded && killed.recorded > 0,
        "{there} of at least {}",
        killed.recorded
    );

    let of_killed = |e: &&&Event| e.process_id == Some(killed.pid);
    let pairing = document.pair();
    assert_eq!(pairing.strays.len(), 0, "{:?}", pairing.strays);
    assert_eq!(
        pairing.open.iter().filter(|e| !of_killed(e)).count(),
        0,
        "{:?}",
        pairing.open
    );
    // What it was in the middle of: at most one span of a type on each core.
    let open: Vec<_> = pairing
        .open
        .iter()
        .map(|e| (e.nc_idx, &e.event_type))
        .collect();
    assert_eq!(
        open.len(),
        open.iter().collect::<BTreeSet<_>>().len(),
        "{open:?}"
    );
    open.into_iter().map(|(_, name)| name.clone()).collect()
}

#[test]
fn in_a_recording() {
    let host = Host::new();
    let workload = artifacts().workload.to_str().unwrap();
    let record = [
        "record", "-o", "t.json", "--", workload, "--kill", "1@30", "--steps", "60",
    ];
    // The workload's own verdict is that the run went wrong.
    host.tracectl(&[&record, &SIZE[..]].concat()).with_code(1);
    let report = Report::read(&host.path("report.json")).unwrap();
    let open = check(
        &Document::read(&host.path("t.json")),
        &report,
        &report.workers[1],
    );
    assert!(open.contains("nrt_execute"), "{open:?}");
}

#[test]
fn from_outside_in_a_run_of_the_host() {
    let host = Host::with_daemon();
    host.tracectl(&["start"]).ok();
    let mut command = host.command(&artifacts().workload);
    command.args(["--steps", "1000000"]).args(SIZE);
    let workload = Running::start(command);
    let workers = until("four workers", || {
        let pid = workload.pid();
        let children =
            fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        let children: Vec<i32> = children
            .split_whitespace()
            .map(|pid| pid.parse().unwrap())
            .collect();
        (children.len() == 4).then_some(children)
    });
    until("events of all", || {
        let status = host.status();
        let rings = status["runs"][0]["accounts"].as_array()?.clone();
        (rings.len() == 8 && rings.iter().all(|r| r["claimed"].as_u64() > Some(500))).then_some(())
    });
    kill_process(Pid::from_raw(workers[2]).unwrap(), Signal::KILL).unwrap();
    workload.wait().with_code(1);
    let report = Report::read(&host.path("report.json")).unwrap();
    let killed = report.workers.iter().find(|w| !w.complete).unwrap();
    assert_eq!(killed.pid.cast_signed(), workers[2]);
    check(&host.fetch(), &report, killed);
}
