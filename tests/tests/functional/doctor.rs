//! `nrt-tracectl doctor` on real daemons: each state has its finding, and a host that records has none.

use nrt_trace_tests::Host;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// The codes of what it finds, but for the machine's clock, which is as it is.
fn codes(host: &Host) -> Vec<String> {
    let ended = nrt_trace_tests::run(host.tracectl_command(&["doctor", "--format", "json"]));
    let told: Value = serde_json::from_slice(&ended.stdout).unwrap();
    let all = told["findings"].as_array().unwrap();
    assert_eq!(ended.code(), Some(i32::from(!all.is_empty())), "{ended}");
    let code = |finding: &Value| finding["code"].as_str().unwrap().to_owned();
    (all.iter().map(code))
        .filter(|code| code != "clocksource")
        .collect()
}

#[test]
fn a_host_on_its_way_from_nothing_to_a_recording_and_back() {
    let mut host = Host::new();
    assert_eq!(codes(&host), ["no_daemon"]);
    host.start_daemon(&[]);
    assert_eq!(codes(&host), ["nobody_attached", "not_capturing"]);
    let mut probe = host.interactive_probe(&["-n", "2000"]);
    assert_eq!(codes(&host), ["not_capturing"]);
    host.tracectl(&[
        "start",
        "--events",
        "nrt_load",
        "--max-events-per-nc",
        "1024",
    ])
    .ok();
    assert!(probe.ask("go").contains("\"recorded\":0"));
    assert_eq!(codes(&host), ["filter_excludes_everything"]);
    host.tracectl(&["stop"]).ok();
    host.tracectl(&["start", "--max-events-per-nc", "1024"])
        .ok();
    assert_eq!(codes(&host), ["nothing_emitted"]);
    assert!(probe.ask("go").contains("\"recorded\":2000"));
    assert_eq!(codes(&host), ["ring_too_small"]);
    host.tracectl(&["stop", "--discard"]).ok();
    host.tracectl(&["start", "--max-events-per-nc", "4096"])
        .ok();
    assert!(probe.ask("go").contains("\"recorded\":2000"));
    assert!(codes(&host).is_empty(), "all well");
    let pid = Pid::from_raw(host.daemon_pid().cast_signed()).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
    host.wait_daemon();
    assert_eq!(codes(&host), ["daemon_away"]);
}
