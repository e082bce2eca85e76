//! The program by itself, without a tracer: its arithmetic, its account, and what it says when a worker dies.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::{Command, Output};

use nrt_trace_workload::{Count, Report};

fn run(arguments: &[&str]) -> (Output, Option<Report>) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("report.json");
    let output = Command::new(env!("CARGO_BIN_EXE_nrt-trace-workload"))
        .args(arguments)
        .arg("--report")
        .arg(&file)
        .env("NRT_TRACE_DISABLE", "1")
        .output()
        .unwrap();
    (output, file.exists().then(|| Report::read(&file).unwrap()))
}

const SMALL: [&str; 6] = ["--steps", "50", "--size", "8", "--rows", "4"];

#[test]
fn without_a_tracer_it_trains_right_and_records_nothing() {
    let (output, report) = run(&SMALL);
    let report = report.unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(report.check.ok, "{:?}", report.check);
    assert_eq!(report.recorded(), 0);
    assert_eq!(report.workers.len(), 4);
    for worker in &report.workers {
        assert!(worker.complete && worker.failure.is_none());
        assert_eq!(worker.steps, 50);
        // Two threads, a start and a stop for each step.
        assert_eq!(
            worker.events["nrt_execute"],
            Count {
                emitted: 200,
                recorded: 0
            }
        );
        assert_eq!(worker.events["timestamp_sync_point"].emitted, 100);
        assert!(!worker.events.contains_key("numerical_err"));
    }
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("result right: loss "), "{text}");
}

#[test]
fn every_span_is_stopped_when_a_worker_is_killed() {
    let (output, report) = run(&[&SMALL[..], &["--kill", "2@20"]].concat());
    let report = report.unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(!report.check.ok);
    for worker in &report.workers {
        // The other thread of the killed process may have been a step behind, and its neighbours with it.
        assert!((19..=20).contains(&worker.steps), "{worker:?}");
        assert_eq!(worker.complete, worker.rank != 2);
        assert!(worker.failure.is_some());
        for (name, count) in &worker.events {
            let instant = ["timestamp_sync_point", "hw_notify"].contains(&name.as_str());
            assert!(
                instant || count.emitted.is_multiple_of(2),
                "{name}: {count:?}"
            );
        }
    }
    assert!(
        report.workers[2]
            .failure
            .as_deref()
            .unwrap()
            .contains("SIGKILL")
    );
}

#[test]
fn a_bad_number_is_one_line_and_status_1() {
    let (output, report) = run(&["--threads", "65"]);
    assert_eq!((output.status.code(), report), (Some(1), None));
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        text,
        "nrt-trace-workload: --threads 65 is not allowed: 1 to 64\n"
    );
}
