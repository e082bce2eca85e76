//! `nrt-tracectl demo`, the first command of the README.

use nrt_trace_tests::{Document, Host};

use crate::checks::{assert_no_hole, assert_whole};

/// Small enough for a debug build, and without the measurement, which takes its time.
const SIZE: [&str; 7] = ["--no-rate", "--steps", "40", "--size", "16", "--rows", "8"];

#[test]
fn demo_works_in_any_folder_and_finds_its_counts_equal() {
    let host = Host::new();
    let ended = host.tracectl(&[&["demo"], &SIZE[..]].concat()).ok();
    let document = Document::read(&host.path("trace.json"));
    assert_whole(&document.pair());
    assert_no_hole(&document, 1);
    assert_eq!(document.by_process().len(), 4);
    let text = ended.text();
    let total = document.events.len().to_string();
    for word in [
        "nrt_execute",
        "/s recorded",
        "daemon     CPU",
        "peak memory",
        &total,
    ] {
        assert!(text.replace(',', "").contains(word), "{word} in: {text}");
    }
    let left: Vec<_> = std::fs::read_dir(host.path(""))
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    assert_eq!(left, ["trace.json"], "nothing else stays behind");
}

#[test]
fn demo_runs_beside_a_daemon_and_leaves_it_alone() {
    let host = Host::with_daemon();
    host.tracectl(&["start"]).ok();
    host.tracectl(&[&["demo", "-o", "d.json"], &SIZE[..]].concat())
        .ok();
    assert_eq!(
        host.fetch().events.len(),
        0,
        "the demo's events are in the demo's trace only"
    );
    assert_eq!(Document::read(&host.path("d.json")).by_process().len(), 4);
}
