//! Programs that come and go quickly, whatever else happens at that moment.

use nrt_trace_tests::payload::numbers;
use nrt_trace_tests::{Host, Running};
use rustix::process::Signal;

use crate::checks::assert_no_hole;

#[test]
fn thirty_in_a_row_that_kill_themselves_leave_every_event() {
    let host = Host::with_daemon();
    host.tracectl(&["start"]).ok();
    for _ in 0..30 {
        let ended = host.probe(&["-n", "300", "--end", "kill"]);
        assert_eq!(ended.signal(), Some(9));
    }
    let document = host.fetch();
    assert_no_hole(&document, 1);
    let by_process = document.by_process();
    assert_eq!(by_process.len(), 30);
    for events in by_process.values() {
        assert_eq!(
            numbers(events.iter().copied())[&0],
            (1..=300).collect::<Vec<_>>()
        );
    }
}

/// Case F02: a stop at about the end of a program cuts nothing out.
#[test]
fn f02_a_stop_around_the_end_of_a_program_leaves_all_or_a_beginning() {
    for round in 0..12 {
        let host = Host::with_daemon();
        host.tracectl(&["start"]).ok();
        let probe = Running::start(host.probe_command(&["-n", "20000"]));
        if round % 2 == 0 {
            // Now and then before the program is even attached.
            let _armed = host.status();
        }
        host.tracectl(&["stop"]).ok();
        let said = probe.wait().ok();
        let document = host.fetch();
        assert_no_hole(&document, 1);
        let there = numbers(&document.events).remove(&0).unwrap_or_default();
        assert_eq!(there, (1..=there.len() as u64).collect::<Vec<_>>());
        let recorded = format!(
            "{{\"recorded\":{},\"refused\":{}}}\n",
            there.len(),
            20_000 - there.len()
        );
        assert_eq!(
            said.text(),
            recorded,
            "what the program was told is what is there"
        );
    }
}

#[test]
fn programs_killed_at_any_moment_leave_a_beginning_without_a_hole() {
    let host = Host::with_daemon();
    host.tracectl(&["start", "--max-events-per-nc", "200000"])
        .ok();
    let mut least = Vec::new();
    for round in 0..16 {
        let mut probe = host.interactive_probe(&["-n", "2000", "-t", "2", "--nc", "0"]);
        for _ in 0..round % 4 {
            probe.ask("go");
        }
        probe.tell("go");
        probe.signal(Signal::KILL);
        least.push((probe.pid(), round % 4 * 2000));
        assert_eq!(probe.wait().signal(), Some(9));
    }
    let document = host.fetch();
    let by_process = document.by_process();
    for (pid, at_least) in least {
        let numbers = by_process
            .get(&pid)
            .map(|events| numbers(events.iter().copied()))
            .unwrap_or_default();
        for thread in [0, 1] {
            let there = numbers.get(&thread).cloned().unwrap_or_default();
            assert_eq!(
                there,
                (1..=there.len() as u64).collect::<Vec<_>>(),
                "thread {thread} of {pid}"
            );
            assert!(
                there.len() >= at_least,
                "{} of at least {at_least}",
                there.len()
            );
        }
    }
    let status = host.status();
    for ring in status["runs"][0]["accounts"].as_array().unwrap() {
        let field = |name: &str| ring[name].as_u64().unwrap();
        assert_eq!(
            field("claimed"),
            field("delivered") + field("lost") + field("pending") + field("unread"),
            "{ring}"
        );
    }
}
