//! What is not noticed: by threads that emit without pause, that the daemon is killed and started again; by the daemon, later on,
//! that processes came and went.

use nrt_trace_tests::control::Control;
use nrt_trace_tests::held::Held;
use nrt_trace_tests::wait::until;
use nrt_trace_tests::{Host, Running};
use serde_json::Value;

use crate::restart::{kill_daemon, numbers};

/// How often the daemon is killed.
const KILLS: usize = 4;
/// Events of a ring.
const CAP: &str = "4096";

/// A thread that emits as fast as it goes waits for nobody, whoever is killed and comes back: of millions of emits none sleeps.
/// And each event is delivered, in order and once, or was overwritten.
#[test]
fn a_thread_at_full_speed_waits_for_no_daemon() {
    let mut host = Host::with_daemon();
    host.tracectl(&["start", "--nc", "0", "--max-events-per-nc", CAP])
        .ok();
    let mut probe = Running::start(host.probe_command(&["--busy"]));
    let pid = probe.pid();
    host.until_state(pid, "capturing");
    let mut control = Control::connect(&host);
    // It has been round its ring: its pages are there.
    until("a lap", || (control.claimed(pid) > 10_000).then_some(()));
    let mut seen: Vec<u64> = Vec::new();
    for _ in 0..KILLS {
        kill_daemon(&mut host);
        host.start_daemon(&[]);
        host.until_state(pid, "capturing");
        seen.extend(numbers(&host.fetch()));
    }
    probe.close_stdin();
    let told: Value = serde_json::from_str(&probe.read_line()).unwrap();
    probe.wait().ok();
    let last = Control::connect(&host).fetch("").ring(pid);
    seen.extend(last.events.iter().map(|event| event.number));
    assert!(seen.is_sorted_by(|a, b| a < b), "each once, in order");
    let account = &last.account;
    assert_eq!(told["recorded"].as_u64(), Some(account.claimed), "{told}");
    assert_eq!(account.delivered, seen.len() as u64, "{account:?}");
    assert_eq!(account.claimed, account.delivered + account.overwritten);
    assert_eq!(told["refused"], 0, "its gates were open all the time");
    assert_eq!(told["slept"], 0, "{told}");
}

/// Processes that attach, emit and end, one after the other: once their events are read, the daemon holds no more descriptors,
/// mappings and memory than before. A thousand of them with `NRT_TRACE_LONG_TESTS=1`.
#[test]
fn processes_that_come_and_go_leave_nothing_behind() {
    let long = std::env::var_os("NRT_TRACE_LONG_TESTS").is_some();
    let rounds = if long { 25 } else { 2 };
    let host = Host::with_daemon();
    host.tracectl(&["start", "--nc", "0", "--max-events-per-nc", CAP])
        .ok();
    let round = || {
        (0..40).for_each(|_| drop(host.probe(&["-n", "1"]).ok()));
        assert_eq!(host.fetch().events.len(), 40);
    };
    round();
    let daemon = host.daemon_pid();
    let base = Held::of(daemon);
    (0..rounds).for_each(|_| round());
    until("what they had to go", || {
        Held::of(daemon).is_flat(base).then_some(())
    });
}
