//! What threads that emit without pause notice of a daemon that is killed and started again: nothing.

use nrt_trace_tests::control::Control;
use nrt_trace_tests::wait::until;
use nrt_trace_tests::{Host, Running};
use serde_json::Value;

use crate::restart::{kill_daemon, numbers};

/// How often the daemon is killed.
const KILLS: usize = 4;
/// Events of a ring.
const CAP: &str = "4096";

/// No emit of a thread that emits as fast as it goes puts it to sleep, whoever is killed and comes back; and each event is
/// delivered, in order and once, or was overwritten.
#[test]
fn threads_at_full_speed_never_sleep_while_the_daemon_is_killed() {
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
