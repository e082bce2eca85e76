//! The daemon ends while `record` is at it, and starts again, or does not.

use nrt_trace_tests::{Document, Host, Running, artifacts, until};
use rustix::process::Signal;

use crate::restart::{emit, kill_daemon, numbers, range, sum};

fn recorded(host: &Host) -> Vec<u64> {
    numbers(&Document::read(&host.path("t.json")))
}

/// The recording of a probe that emits 100 events for each line.
fn of_command(host: &Host, options: &[&str]) -> Running {
    let program = artifacts().probe.to_str().expect("text");
    let probe = ["--", program, "--interactive", "-n", "100"];
    let arguments = [&["record", "-o", "t.json"], options, &probe].concat();
    let mut recording = Running::start(host.tracectl_command(&arguments));
    assert_eq!(recording.read_line(), "ready\n");
    recording
}

/// The recording of the host, once it has begun.
fn of_host(host: &Host, options: &[&str]) -> Running {
    let arguments = [&["record", "-o", "t.json"], options].concat();
    let recording = Running::start(host.tracectl_command(&arguments));
    until("the recording to begin", || {
        (host.status()["runs"][0]["capturing"] == true).then_some(())
    });
    recording
}

fn until_fetched(host: &Host, events: u64) {
    until("the events to be fetched", || {
        (sum(host, "delivered") == events).then_some(())
    });
}

#[test]
fn a_commands_recording_goes_on_with_the_next_daemon() {
    let mut host = Host::with_daemon();
    let mut recording = of_command(&host, &[]);
    let pid = host.attached()[0];
    emit(&mut recording, 100);
    kill_daemon(&mut host);
    emit(&mut recording, 100);
    host.start_daemon(&[]);
    host.until_state(pid, "capturing");
    emit(&mut recording, 100);
    let ended = recording.wait().ok();
    assert_eq!(recorded(&host), range(1..=300), "{ended}");
    assert!(ended.stderr.contains("the daemon is back after"), "{ended}");
    let account = "claimed 300 = delivered 300 + lost 0 + pending 0 + unread 0";
    assert!(ended.text().contains(account), "{ended}");
    assert_eq!(host.status()["runs"].as_array().map(Vec::len), Some(0));
    assert!(!host.path("t.json.part").exists());
}

#[test]
fn a_hosts_recording_goes_on_with_the_next_daemon_and_ends_with_all_that_was_away() {
    let mut host = Host::with_daemon();
    let mut probe = host.interactive_probe(&["-n", "100"]);
    let recording = of_host(&host, &[]);
    host.until_state(probe.pid(), "capturing");
    emit(&mut probe, 100);
    until_fetched(&host, 100);
    kill_daemon(&mut host);
    emit(&mut probe, 100);
    host.start_daemon(&[]);
    host.until_state(probe.pid(), "capturing");
    // Whoever interrupts a recording that is not back yet gives it two seconds, which may be short for a busy machine.
    until_fetched(&host, 200);
    emit(&mut probe, 100);
    recording.signal(Signal::INT);
    let ended = recording.wait().with_code(130);
    assert_eq!(recorded(&host), range(1..=300), "{ended}");
    assert_eq!(probe.ask("go"), "{\"recorded\":0,\"refused\":100}\n");
}

#[test]
fn without_a_next_daemon_what_came_is_kept_and_the_status_says_so() {
    let mut host = Host::with_daemon();
    let mut recording = of_command(&host, &["--reconnect", "200ms"]);
    emit(&mut recording, 100);
    until_fetched(&host, 100);
    kill_daemon(&mut host);
    let ended = recording.wait().with_code(1);
    assert_eq!(recorded(&host), range(1..=100), "{ended}");
    for words in [
        "waiting up to",
        "none came back within",
        "nrt-tracectl stop --token",
    ] {
        assert!(ended.stderr.contains(words), "{words}: {ended}");
    }
}

#[test]
fn who_waits_for_a_daemon_can_leave() {
    let mut host = Host::with_daemon();
    let mut probe = host.interactive_probe(&["-n", "100"]);
    let recording = of_host(&host, &["--reconnect", "1h"]);
    host.until_state(probe.pid(), "capturing");
    emit(&mut probe, 100);
    until_fetched(&host, 100);
    kill_daemon(&mut host);
    recording.signal(Signal::INT);
    let ended = recording.wait().with_code(130);
    assert!(ended.stderr.contains("none came back within"), "{ended}");
    assert_eq!(recorded(&host), range(1..=100), "{ended}");
}

/// Another daemon than the one that knew the run: nothing is recorded on, and nothing that came is given up.
#[test]
fn a_daemon_without_the_run_ends_the_recording() {
    let mut host = Host::with_daemon();
    let mut recording = of_command(&host, &[]);
    emit(&mut recording, 100);
    until_fetched(&host, 100);
    kill_daemon(&mut host);
    std::fs::remove_file(host.path("nrt-traced.state")).expect("it was written");
    host.start_daemon(&[]);
    let ended = recording.wait().with_code(1);
    assert!(
        ended.stderr.contains("started anew without this run"),
        "{ended}"
    );
    assert_eq!(recorded(&host), range(1..=100), "{ended}");
}

/// Killed in whatever a fetch or a commit was doing: each event is in the file once, and the account says how many are not.
#[test]
fn killed_again_and_again_the_file_has_each_event_once_and_its_account_is_exact() {
    const KILLS: usize = 5;
    let mut host = Host::with_daemon();
    let probe = Running::start(host.probe_command(&["-n", "0", "--rate", "20000", "--linger"]));
    until("the probe to attach", || {
        host.attached().contains(&probe.pid()).then_some(())
    });
    let recording = of_host(&host, &["--nc", "0", "--max-events-per-nc", "8192"]);
    let until_more_is_fetched = |host: &Host| {
        host.until_state(probe.pid(), "capturing");
        let before = sum(host, "delivered");
        until("events", || (sum(host, "delivered") > before).then_some(()));
    };
    for _ in 0..KILLS {
        until_more_is_fetched(&host);
        kill_daemon(&mut host);
        host.start_daemon(&[]);
    }
    until_more_is_fetched(&host);
    recording.signal(Signal::INT);
    let ended = recording.wait().with_code(130);
    let seen = recorded(&host);
    assert!(seen.is_sorted_by(|a, b| a < b), "each once, in order");
    let text = ended.text();
    let account = text.lines().find(|line| line.starts_with("claimed "));
    let account = account.unwrap_or_else(|| panic!("no account in {ended}"));
    let figures: Vec<u64> = (account.split([' ', '=', '+']))
        .filter_map(|word| word.parse().ok())
        .collect();
    let [claimed, delivered, lost, pending, unread] = figures[..] else {
        panic!("{account}")
    };
    assert_eq!(delivered, seen.len() as u64, "{account}");
    assert_eq!(
        (claimed, pending, unread),
        (delivered + lost, 0, 0),
        "{account}"
    );
}
