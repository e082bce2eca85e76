//! The demo, small.

use std::fs;

use crate::tool::{finish, tool};

const SMALL: [&str; 11] = [
    "demo",
    "--no-rate",
    "--processes",
    "2",
    "--threads",
    "1",
    "--steps",
    "5",
    "--size",
    "8",
    "--rows",
];

#[test]
fn the_demo_records_what_the_workload_says() {
    let folder = tempfile::tempdir().unwrap();
    let ended = finish(tool().current_dir(folder.path()).args(SMALL).arg("4"));
    assert_eq!(ended.status, Some(0), "{ended:?}");
    for words in [
        "recorded in",
        "result right",
        "compared   2 processes",
        "are in the trace, and no other",
        "peak memory",
        "CPU",
        "next ",
    ] {
        assert!(ended.stdout.contains(words), "no {words:?} in {ended:?}");
    }
    let trace = fs::read(folder.path().join("trace.json")).unwrap();
    let document: serde_json::Value = serde_json::from_slice(&trace).unwrap();
    let executions = document["events"].as_array().unwrap().iter();
    let executions = executions
        .filter(|event| event["event_type"] == "nrt_execute")
        .count();
    assert!(
        executions >= 2 * 2 * 5,
        "{executions} starts and stops of nrt_execute"
    );
}

#[test]
fn a_killed_worker_shows_and_its_events_stay() {
    let folder = tempfile::tempdir().unwrap();
    let mut demo = tool();
    demo.current_dir(folder.path())
        .args(SMALL)
        .args(["4", "--kill", "1@2"]);
    let ended = finish(&mut demo);
    assert_eq!(ended.status, Some(1), "{ended:?}");
    assert!(ended.stdout.contains("1 killed"), "{ended:?}");
    assert!(
        ended.stderr.contains("the workload's result is wrong"),
        "{ended:?}"
    );
    assert!(folder.path().join("trace.json").exists());
}

#[test]
fn sizes_that_cannot_be_are_refused_by_name() {
    crate::tool::run(["demo", "--processes", "0"]).one_line(2, &["--processes 0", "1 to 64"]);
}
