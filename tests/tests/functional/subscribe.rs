//! `subscribe`: events as they come, a line each.

use nrt_trace_tests::{Host, Running, artifacts, run};
use rustix::process::Signal;
use serde_json::Value;

fn subscriber(host: &Host, arguments: &[&str]) -> Running {
    Running::start(host.tracectl_command(&[&["subscribe"], arguments].concat()))
}

/// The next event.
fn event(subscriber: &mut Running) -> Value {
    let text = subscriber.read_line();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn events_come_while_the_run_lasts_and_a_signal_is_a_clean_end() {
    let host = Host::with_daemon();
    let none = host.tracectl(&["subscribe"]).with_code(1);
    assert!(none.stderr.contains("no run"), "{}", none.stderr);
    host.tracectl(&["start"]).ok();
    // The oldest, so that it does not matter who comes first.
    let mut subscriber = subscriber(&host, &["--from", "oldest"]);
    let mut probe = host.interactive_probe(&["-n", "20"]);
    probe.ask("go");
    for n in 1..=20 {
        let event = event(&mut subscriber);
        assert_eq!(event["process_id"], probe.pid());
        assert_eq!(event["nc_local_id"], n);
    }
    subscriber.signal(Signal::INT);
    let ended = subscriber.wait().ok();
    assert!(
        ended.stderr.contains("20 events, 0 missed"),
        "{}",
        ended.stderr
    );
    // Nothing was consumed.
    assert_eq!(host.fetch().events.len(), 20);
}

#[test]
fn it_ends_with_the_run_and_shows_a_table_where_asked() {
    let host = Host::with_daemon();
    host.tracectl(&["start"]).ok();
    host.probe(&["-n", "3"]).ok();
    let mut subscriber = subscriber(&host, &["--from", "unread", "--format", "table"]);
    assert!(subscriber.read_line().starts_with("time "));
    host.tracectl(&["stop"]).ok();
    let ended = subscriber.wait().ok();
    assert_eq!(ended.text().lines().count(), 3);
    assert!(
        ended.stderr.contains("the run ended: 3 events, 0 missed"),
        "{}",
        ended.stderr
    );
}

/// Nothing more comes that would be written: that its reader went away it has to notice by itself.
#[test]
fn it_ends_with_its_reader() {
    let host = Host::with_daemon();
    host.tracectl(&["start"]).ok();
    host.probe(&["-n", "3"]).ok();
    let program = &artifacts().tracectl;
    let mut shell = host.command("bash");
    let line = "\"$0\" subscribe --from oldest | head -1 >/dev/null; echo ${PIPESTATUS[0]}";
    shell.args(["-c", line]).arg(program);
    let ended = run(shell).ok();
    assert_eq!((ended.text().trim(), ended.stderr.as_str()), ("0", ""));
}
