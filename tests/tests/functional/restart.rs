//! The daemon ends, in whatever way, and starts again: processes never notice, and nothing is lost or told twice.

use std::ops::RangeInclusive;

use nrt_trace_tests::control::Control;
use nrt_trace_tests::wait::until;
use nrt_trace_tests::{Document, Host, Running, payload};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Kills the daemon.
pub(crate) fn kill_daemon(host: &mut Host) {
    let pid = Pid::from_raw(host.daemon_pid().cast_signed()).expect("a pid");
    kill_process(pid, Signal::KILL).expect("the daemon is there");
    assert_eq!(host.wait_daemon(), None);
}

pub(crate) fn numbers(document: &Document) -> Vec<u64> {
    payload::numbers(&document.events)
        .remove(&0)
        .unwrap_or_default()
}

pub(crate) fn range(numbers: RangeInclusive<u64>) -> Vec<u64> {
    numbers.collect()
}

/// The sum of a field over all rings of the host's run.
pub(crate) fn sum(host: &Host, field: &str) -> u64 {
    let status = host.status();
    let rings = status["runs"][0]["accounts"]
        .as_array()
        .expect("rings")
        .iter();
    rings.map(|ring| ring[field].as_u64().unwrap()).sum()
}

pub(crate) fn emit(probe: &mut Running, events: u64) {
    let answer = probe.ask("go");
    assert_eq!(answer, format!("{{\"recorded\":{events},\"refused\":0}}\n"));
}

/// A run of 100 events before the end, 100 without a daemon, 100 after it.
fn goes_on(end: impl Fn(&mut Host)) {
    let mut host = Host::with_daemon();
    let mut probe = host.interactive_probe(&["-n", "100", "--nc", "0,1"]);
    host.tracectl(&["start", "--max-events-per-nc", "2048"])
        .ok();
    emit(&mut probe, 100);
    assert_eq!(numbers(&host.fetch()), range(1..=100));
    emit(&mut probe, 100);
    end(&mut host);
    emit(&mut probe, 100);
    host.start_daemon(&[]);
    host.until_state(probe.pid(), "capturing");
    emit(&mut probe, 100);
    let document = host.fetch();
    assert_eq!(numbers(&document), range(101..=400), "each once");
    assert_eq!(
        ["claimed", "delivered", "lost", "unread"].map(|field| sum(&host, field)),
        [400, 400, 0, 0]
    );
    host.tracectl(&["stop"]).ok();
    assert_eq!(probe.ask("go"), "{\"recorded\":0,\"refused\":100}\n");
    assert!(host.fetch().events.is_empty());
}

/// Case G09: whoever runs on over a restart delivers to the next daemon, by itself.
#[test]
fn g09_a_killed_daemons_runs_go_on_with_the_next_one() {
    goes_on(kill_daemon);
}

#[test]
fn an_upgraded_daemons_runs_go_on_with_the_next_one() {
    goes_on(|host| assert_eq!(host.stop_daemon(), Some(0)));
}

#[test]
fn a_stopped_runs_unread_events_survive_a_kill() {
    let mut host = Host::with_daemon();
    let mut probe = host.interactive_probe(&["-n", "100"]);
    host.tracectl(&["start"]).ok();
    emit(&mut probe, 100);
    host.tracectl(&["stop"]).ok();
    kill_daemon(&mut host);
    host.start_daemon(&[]);
    host.until_state(probe.pid(), "attached");
    assert_eq!(numbers(&host.fetch()), range(1..=100));
    // And then their memory is of no use to anybody.
    host.tracectl(&["start"]).ok();
    emit(&mut probe, 100);
    assert_eq!(numbers(&host.fetch()), range(101..=200));
}

#[test]
fn overwritten_events_are_counted_across_a_restart() {
    let mut host = Host::with_daemon();
    let mut probe = host.interactive_probe(&["-n", "1000"]);
    host.tracectl(&["start", "--max-events-per-nc", "1024"])
        .ok();
    emit(&mut probe, 1000);
    kill_daemon(&mut host);
    (0..3).for_each(|_| emit(&mut probe, 1000));
    host.start_daemon(&[]);
    host.until_state(probe.pid(), "capturing");
    assert_eq!(numbers(&host.fetch()), range(2977..=4000));
    assert_eq!(
        ["claimed", "delivered", "lost", "overwritten"].map(|field| sum(&host, field)),
        [4000, 1024, 2976, 2976]
    );
}

#[test]
fn what_ended_processes_recorded_stays_in_the_runs_sum() {
    let mut host = Host::with_daemon();
    host.tracectl(&["start"]).ok();
    for _ in 0..2 {
        let mut probe = host.interactive_probe(&["-n", "100"]);
        emit(&mut probe, 100);
        let pid = probe.pid();
        probe.wait().ok();
        host.until_state(pid, "dead");
    }
    assert_eq!(host.fetch().events.len(), 200);
    assert_eq!(sum(&host, "claimed"), 0, "they are in no list any more");
    kill_daemon(&mut host);
    host.start_daemon(&[]);
    let stopped = host.tracectl(&["stop"]).ok().text();
    for line in [
        "recorded by 2 processes that ended and were fetched: 200 events",
        "in all   200 events recorded, 200 fetched, 0 unread, 0 lost",
    ] {
        assert!(stopped.contains(line), "{stopped}");
    }
}

#[test]
fn a_process_that_ends_without_a_daemon_is_told_of_with_its_last_counts() {
    let mut host = Host::with_daemon();
    let mut probe = host.interactive_probe(&["-n", "100"]);
    let mut other = host.interactive_probe(&["-n", "10"]);
    host.tracectl(&["start", "--nc", "0"]).ok();
    emit(&mut probe, 100);
    emit(&mut other, 10);
    assert_eq!(host.fetch().events.len(), 110);
    emit(&mut probe, 100);
    kill_daemon(&mut host);
    let pid = probe.pid();
    probe.wait().ok();
    host.start_daemon(&[]);
    host.until_state(other.pid(), "capturing");
    host.until_state(pid, "dead");
    assert_eq!(sum(&host, "delivered"), 110, "as it was last known");
    let ring = Control::connect(&host).fetch("").ring(pid);
    assert!(ring.events.is_empty());
    let account = &ring.account;
    assert!(!account.exact && account.delivered == 100, "{account:?}");
    assert_eq!(account.claimed, account.delivered + account.lost);
    emit(&mut other, 10);
    assert_eq!(host.fetch().events.len(), 10);
}

#[test]
fn a_changed_filter_holds_with_the_next_daemon() {
    let mut host = Host::with_daemon();
    let mut probe = host.interactive_probe(&["-n", "10"]);
    host.tracectl(&["start", "--nc", "0"]).ok();
    emit(&mut probe, 10);
    host.tracectl(&["set-filter", "--events", "hardware,^cc_running"])
        .ok();
    kill_daemon(&mut host);
    host.start_daemon(&[]);
    host.until_state(probe.pid(), "capturing");
    let run = &host.status()["runs"][0];
    assert_eq!(
        (&run["filter_change_count"], &run["nc"]),
        (&1.into(), &vec![0].into())
    );
    assert_eq!(probe.ask("go"), "{\"recorded\":0,\"refused\":10}\n");
    host.tracectl(&["set-filter", "--events", "all"]).ok();
    emit(&mut probe, 10);
    assert_eq!(numbers(&host.fetch()).len(), 20);
}

/// A token's run takes a process from the host's and gives it back; then the daemon is killed. The process has both sets of the
/// host's rings, and each event is delivered once.
#[test]
fn a_process_that_came_back_into_a_run_has_all_its_rings_with_the_next_daemon() {
    let mut host = Host::with_daemon();
    let mut command = host.probe_command(&["--interactive", "-n", "100"]);
    command.env("NRT_TRACE_TOKEN", "t");
    let mut probe = host.interactive(command);
    let start: &[&str] = &["start", "--nc", "0", "--max-events-per-nc", "2048"];
    host.tracectl(start).ok();
    emit(&mut probe, 100);
    host.tracectl(&["start", "--token", "t", "--nc", "0"]).ok();
    emit(&mut probe, 100);
    host.tracectl(&["stop", "--token", "t"]).ok();
    let back = || (host.status()["runs"][0]["capturing"] == true).then_some(());
    until("the host's run", back);
    host.until_state(probe.pid(), "capturing");
    emit(&mut probe, 100);
    kill_daemon(&mut host);
    emit(&mut probe, 100);
    host.start_daemon(&[]);
    host.until_state(probe.pid(), "capturing");
    emit(&mut probe, 100);
    let expected: Vec<u64> = (1..=100).chain(201..=500).collect();
    assert_eq!(numbers(&host.fetch()), expected, "each once, in order");
    let ring = Control::connect(&host).fetch("").ring(probe.pid());
    assert_eq!((ring.account.claimed, ring.account.delivered), (400, 400));
}

/// A record that is torn is put aside, and the daemon begins anew: with processes that are attached, and no run.
#[test]
fn a_torn_record_is_put_aside() {
    let mut host = Host::with_daemon();
    let mut probe = host.interactive_probe(&["-n", "100"]);
    host.tracectl(&["start"]).ok();
    emit(&mut probe, 100);
    kill_daemon(&mut host);
    let state = host.path("nrt-traced.state");
    let whole = std::fs::read(&state).unwrap();
    std::fs::write(&state, &whole[..whole.len() - 1]).unwrap();
    host.start_daemon(&[]);
    host.until_state(probe.pid(), "attached");
    assert!(host.path("nrt-traced.aside-0").exists());
    let _said = host.log_with("it is torn");
    assert_eq!(host.status()["runs"], Value::Array(Vec::new()));
    host.tracectl(&["start"]).ok();
    emit(&mut probe, 100);
    assert_eq!(numbers(&host.fetch()), range(101..=200));
}

/// Killed again and again at full speed: every event is delivered or overwritten, in order, once.
#[test]
fn killed_again_and_again_the_account_stays_exact() {
    const KILLS: usize = 10;
    let mut host = Host::with_daemon();
    host.tracectl(&["start", "--max-events-per-nc", "4096", "--nc", "0"])
        .ok();
    // Without an end, at a rate at which rings wrap now and then.
    let probe = Running::start(host.probe_command(&["-n", "0", "--rate", "20000", "--linger"]));
    let pid = probe.pid();
    host.until_state(pid, "capturing");
    let mut seen: Vec<u64> = Vec::new();
    for _ in 0..KILLS {
        kill_daemon(&mut host);
        host.start_daemon(&[]);
        host.until_state(pid, "capturing");
        seen.extend(numbers(&host.fetch()));
        until("events", || (sum(&host, "unread") > 100).then_some(()));
    }
    host.tracectl(&["stop"]).ok();
    let last = Control::connect(&host).fetch("").ring(pid);
    seen.extend(last.events.iter().map(|event| event.number));
    assert!(seen.is_sorted_by(|a, b| a < b), "each once, in order");
    let account = &last.account;
    assert_eq!(account.delivered, seen.len() as u64, "{account:?}");
    assert_eq!(account.claimed, account.delivered + account.overwritten);
    assert_eq!(seen.last(), Some(&account.claimed), "to the very end");
    drop(probe);
}

/// A process keeps the rings of its last runs only, and goes on with the last of many.
#[test]
fn a_run_goes_on_after_many_others() {
    let mut host = Host::with_daemon();
    let mut probe = host.interactive_probe(&["-n", "10"]);
    for run in 0..12 {
        host.tracectl(&["start", "--nc", "0"]).ok();
        emit(&mut probe, 10);
        host.tracectl(&["stop"]).ok();
        let first = 10 * run + 1;
        assert_eq!(numbers(&host.fetch()), range(first..=first + 9));
    }
    host.tracectl(&["start", "--nc", "0"]).ok();
    emit(&mut probe, 10);
    kill_daemon(&mut host);
    emit(&mut probe, 10);
    host.start_daemon(&[]);
    host.until_state(probe.pid(), "capturing");
    assert_eq!(numbers(&host.fetch()), range(121..=140));
}

/// The daemon's counters of events: recorded, delivered, lost, open.
fn counters(host: &Host) -> [u64; 4] {
    let text = host.tracectl(&["metrics"]).ok().text();
    let sum = |name: &str| {
        let mine = text.lines().filter(|line| {
            let rest = line.strip_prefix(name);
            rest.is_some_and(|rest| rest.starts_with([' ', '{']))
        });
        let value = |line: &str| line.rsplit(' ').next()?.parse::<f64>().ok();
        let sum: f64 = mine.filter_map(value).sum();
        assert!(sum >= 0.0 && sum.fract() == 0.0, "{name} {sum}");
        format!("{sum}").parse().expect("a whole number")
    };
    let all = [
        sum("nrt_trace_events_recorded_total"),
        sum("nrt_trace_events_delivered_total"),
        sum("nrt_trace_events_lost_total"),
        sum("nrt_trace_events_open"),
    ];
    assert_eq!(all[0], all[1..].iter().sum::<u64>(), "{all:?}");
    all
}

/// No counter goes back over any end of the daemon, also while processes have not come back yet; and what ended with the
/// daemon is told as lost.
#[test]
fn counters_of_events_go_on_with_the_next_daemon() {
    let mut host = Host::with_daemon();
    let mut probe = host.interactive_probe(&["-n", "1000"]);
    host.tracectl(&["start", "--max-events-per-nc", "1024"])
        .ok();
    emit(&mut probe, 1000);
    assert_eq!(host.fetch().events.len(), 1000);
    (0..3).for_each(|_| emit(&mut probe, 1000));
    // Nobody has read: the ring has 1024 of 3000.
    assert_eq!(counters(&host), [4000, 1000, 1976, 1024]);
    kill_daemon(&mut host);
    host.start_daemon(&[]);
    assert_eq!(counters(&host), [4000, 1000, 1976, 1024]);
    host.until_state(probe.pid(), "capturing");
    assert_eq!(counters(&host), [4000, 1000, 1976, 1024]);
    assert_eq!(host.fetch().events.len(), 1024);
    assert_eq!(counters(&host), [4000, 2024, 1976, 0]);
    let pid = probe.pid();
    probe.wait().ok();
    host.until_state(pid, "dead");
    assert!(host.fetch().events.is_empty());
    assert_eq!(counters(&host), [4000, 2024, 1976, 0]);
    // It is forgotten; what it had lost is not.
    assert_eq!(host.stop_daemon(), Some(0));
    host.start_daemon(&[]);
    assert_eq!(counters(&host), [4000, 2024, 1976, 0]);
    // One that ends while there is no daemon, and nobody keeps what it had.
    let mut late = host.interactive_probe(&["-n", "100"]);
    host.until_state(late.pid(), "capturing");
    emit(&mut late, 100);
    assert_eq!(counters(&host), [4100, 2024, 1976, 100]);
    kill_daemon(&mut host);
    late.wait().ok();
    host.start_daemon(&[]);
    assert_eq!(counters(&host), [4100, 2024, 2076, 0]);
    // The run's end, and the start of another.
    host.tracectl(&["stop"]).ok();
    host.tracectl(&["start"]).ok();
    kill_daemon(&mut host);
    host.start_daemon(&[]);
    assert_eq!(counters(&host), [4100, 2024, 2076, 0]);
}
