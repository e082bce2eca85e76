//! What people miss in Neuron's own outputs.

use std::fs;

use nrt_trace_tests::{Document, Host};

/// Case N01: a process that emits nothing, and a core that nobody uses, are named with their zero.
#[test]
fn n01_who_emitted_nothing_is_named() {
    let host = Host::with_daemon();
    host.tracectl(&["start"]).ok();
    let mut silent = host.probe_command(&["--interactive", "--name", "silent"]);
    silent.env("NEURON_RT_NUM_CORES", "2");
    let _silent = host.interactive(silent);
    let mut busy = host.probe_command(&["-n", "5", "--name", "busy"]);
    busy.env("NEURON_RT_NUM_CORES", "2");
    nrt_trace_tests::run(busy).ok();

    let status = host.tracectl(&["status"]).ok().text();
    assert!(
        status.contains("1 attached") || status.contains("attached"),
        "{status}"
    );
    let producers = host.tracectl(&["producers"]).ok().text();
    assert!(producers.contains("silent"), "{producers}");
    let ended = host.tracectl(&["fetch", "-o", "t.json"]).ok();
    let said = &ended.stderr;
    assert!(
        said.contains("busy: 5 events (nc 0: 5, nc 1: 0)"),
        "{ended}"
    );
    assert!(
        said.contains("silent: 0 events (nc 0: 0, nc 1: 0)"),
        "{ended}"
    );
    let warned = said
        .lines()
        .find(|line| line.contains("Warning") && line.contains("silent"));
    assert!(warned.is_some(), "zero is a warning: {ended}");
    assert_eq!(Document::read(&host.path("t.json")).events.len(), 5);
}

/// Case N03: what is not known is absent, and never a zero that looks measured.
#[test]
fn n03_absent_is_absent_and_not_zero() {
    let host = Host::with_daemon();
    let fetched = |cores: Option<&str>| {
        host.tracectl(&["start"]).ok();
        let mut probe = host.probe_command(&["-n", "1", "--nc", "0", "--model", "m"]);
        probe.env_remove("NEURON_RT_VISIBLE_CORES");
        if let Some(cores) = cores {
            probe.env("NEURON_RT_VISIBLE_CORES", cores);
        }
        nrt_trace_tests::run(probe).ok();
        host.tracectl(&["stop"]).ok();
        host.tracectl(&["fetch", "-o", "t.json"]).ok();
        fs::read_to_string(host.path("t.json")).unwrap()
    };
    let unknown = fetched(None);
    let document = Document::parse(unknown.as_bytes());
    assert_eq!(document.events.len(), 3, "a host without devices records");
    assert!(!unknown.contains("host_nc_idx"), "{unknown}");
    assert!(!unknown.contains("null"), "{unknown}");
    for event in &document.events {
        assert_eq!((event.worker_gid, event.host_nc_idx), (-1, None));
    }
    let zero = Document::parse(fetched(Some("0,1")).as_bytes());
    assert_eq!(zero.events[0].host_nc_idx, Some(0), "core 0 is a core");
    let other = Document::parse(fetched(Some("4,5")).as_bytes());
    assert_eq!(other.events[0].host_nc_idx, Some(4));
}
