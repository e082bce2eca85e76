//! C programs, linked against the library in the build tree.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use nrt_trace_tests::payload::numbers;
use nrt_trace_tests::{Document, Host, Link, artifacts, compile, run};
use serde_json::Value;

use crate::checks::{assert_no_hole, assert_whole};

/// A C file of the workspace, linked as the README says.
fn linked(host: &Host, source: &str) -> PathBuf {
    compile(host, source, Link::Linked)
}

fn count(document: &Document) -> BTreeMap<String, u64> {
    document
        .events
        .iter()
        .fold(BTreeMap::new(), |mut all, event| {
            *all.entry(event.event_type.clone()).or_default() += 1;
            all
        })
}

#[test]
fn the_training_step_in_c_is_recorded_as_it_counts_itself() {
    let host = Host::new();
    let program = linked(&host, "examples/c/train_step.c");
    let program = program.to_str().unwrap();
    let ended = host
        .tracectl(&["record", "-o", "t.json", "--", program, "3", "30", "16"])
        .ok();
    let text = ended.text();
    let said = text
        .lines()
        .find(|line| line.starts_with("{\"ok\""))
        .expect("the program's own line");
    let said: Value = serde_json::from_str(said).unwrap();
    assert_eq!(said["ok"], true, "{said}");
    let recorded = said["events"].as_object().unwrap().iter().map(|(name, n)| {
        assert_eq!(n["emitted"], n["recorded"], "{name}");
        (name.clone(), n["recorded"].as_u64().unwrap())
    });

    let document = Document::read(&host.path("t.json"));
    assert_eq!(count(&document), recorded.collect());
    assert_whole(&document.pair());
    assert_no_hole(&document, 1);
    for event in document
        .events
        .iter()
        .filter(|e| e.data.contains_key("model_id"))
    {
        assert_eq!(event.data["model_name"], "train_step.neff");
    }
    // On each core device times lie inside the executions, which follow each other.
    let mut executing = BTreeMap::<u32, Vec<(u64, u64)>>::new();
    let pairing = document.pair();
    for span in pairing
        .spans
        .values()
        .filter(|s| s.start.event_type == "nrt_execute")
    {
        executing
            .entry(span.start.nc_idx)
            .or_default()
            .push((span.start.timestamp_ns, span.stop.timestamp_ns));
    }
    for span in pairing
        .spans
        .values()
        .filter(|s| s.start.event_type == "nc_exec_running")
    {
        let (start, stop) = (span.start.timestamp_ns, span.stop.timestamp_ns);
        assert!(
            executing[&span.start.nc_idx]
                .iter()
                .any(|(a, b)| *a <= start && stop <= *b),
            "{span:?}"
        );
    }
}

#[test]
fn without_a_daemon_a_c_program_runs_as_if_nothing_were_there() {
    let host = Host::new();
    let mut program = host.command(linked(&host, "examples/c/train_step.c"));
    program.args(["2", "20", "8"]);
    let ended = run(program).ok();
    assert!(ended.text().starts_with("{\"ok\":true"), "{ended}");
    assert_eq!(ended.stderr, "");
}

#[test]
fn every_way_to_end_leaves_every_event() {
    let host = Host::with_daemon();
    host.tracectl(&["start"]).ok();
    let program = linked(&host, "tests/c/ends.c");
    let ends: [(&str, Option<i32>); 6] = [
        ("return", None),
        ("exit", None),
        ("_exit", None),
        ("abort", Some(6)),
        ("segv", Some(11)),
        ("kill", Some(9)),
    ];
    for (end, signal) in ends {
        let mut command = host.command(&program);
        command.args([end, "1000"]);
        let ended = run(command);
        assert_eq!(ended.signal(), signal, "{ended}");
        let document = host.fetch();
        assert_no_hole(&document, 1);
        assert_eq!(
            numbers(&document.events)[&0],
            (1..=1000).collect::<Vec<_>>(),
            "{end}"
        );
    }
}

#[test]
fn the_build_files_of_the_example_work_as_documented() {
    let host = Host::new();
    let library = artifacts().library.parent().unwrap();
    let mut make = host.command("make");
    make.arg("-C").arg(artifacts().workspace.join("examples/c"));
    make.arg(format!("LIBDIR={}", library.display()));
    make.arg(format!("OUT={}", host.path("").display()));
    run(make).ok();
    assert!(fs::metadata(host.path("train_step")).unwrap().is_file());
    run(host.command(host.path("train_step"))).ok();
}

/// Case C01. Each of the two has one thread, whose number is the process's.
#[test]
fn c01_a_forked_child_is_a_process_of_its_own_and_takes_nothing_from_its_parent() {
    for mode in [&["1000", "wait"][..], &["1000"]] {
        let host = Host::new();
        let program = linked(&host, "tests/c/forks.c");
        let record = ["record", "-o", "t.json", "--", program.to_str().unwrap()];
        let ended = host.tracectl(&[&record[..], mode].concat()).ok();
        let text = ended.text();
        let said = |who: &str| {
            let line = text.lines().find(|line| line.starts_with(who)).expect(who);
            let mut words = line
                .split(' ')
                .skip(1)
                .map(|word| word.parse::<u64>().unwrap());
            (
                u32::try_from(words.next().unwrap()).unwrap(),
                words.next().unwrap(),
            )
        };
        let ((parent, by_parent), (child, by_child)) = (said("parent"), said("child"));
        assert_ne!(parent, child);

        let document = Document::read(&host.path("t.json"));
        let of = |pid: u32, thread: u64| {
            // A child that recorded nothing may be no process of the document; then there is no process id.
            let events = document
                .events
                .iter()
                .filter(|e| e.process_id.is_none_or(|p| p == pid));
            numbers(events).remove(&thread).unwrap_or_default()
        };
        assert_eq!(of(parent, 0), (1..=2000).collect::<Vec<_>>(), "{ended}");
        assert_eq!(by_parent, 2000);
        let childs = of(child, 1);
        assert_eq!(childs.len() as u64, by_child, "{ended}");
        assert!(
            childs.is_sorted_by(|a, b| a + 1 == *b),
            "captured from some moment on: {childs:?}"
        );
        if mode.len() > 1 {
            assert_eq!(childs, (1..=1000).collect::<Vec<_>>());
        }
        for event in &document.events {
            let own = event.number("return_code");
            let pid = if own == 0 { parent } else { child };
            assert_eq!(event.thread_id, u64::from(pid), "{event:?}");
        }
        let all = document.events.len() as u64;
        assert_eq!(all, by_parent + by_child, "no event is there twice");
    }
}
