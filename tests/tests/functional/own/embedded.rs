//! Captures without a daemon: the process makes its rings itself.

use std::process::Command;

use nrt_trace_tests::payload::numbers;
use nrt_trace_tests::{Host, Link, compile, run, until};

use super::{FAILURE, Own, SUCCESS, document};

fn embedded(host: &Host) -> Command {
    let mut command = Own::command(host);
    command.env("NRT_TRACE_EMBEDDED", "1");
    command
}

#[test]
fn the_steps_of_the_public_documentation_need_no_daemon() {
    let host = Host::new();
    let mut command = host.command(compile(&host, "tests/c/public_steps.c", Link::Linked));
    command.env("NRT_TRACE_EMBEDDED", "1");
    let ended = run(command).ok();
    let text = ended.text();
    let (_, fetched) = text.split_once("fetched ").unwrap();
    let document = nrt_trace_tests::Document::parse(fetched.trim().as_bytes());
    let types: Vec<_> = document
        .events
        .iter()
        .map(|e| e.event_type.as_str())
        .collect();
    assert_eq!(types, ["nrt_execute", "nrt_execute", "nrt_tensor_read"]);
    assert_eq!(document.events[0].data["model_name"], "model.neff");
    assert_eq!(ended.stderr, "");
    let mut mistakes = host.command(compile(&host, "tests/c/own_mistakes.c", Link::Linked));
    mistakes.env("NRT_TRACE_EMBEDDED", "1");
    assert!(run(mistakes).ok().text().ends_with("done\n"));
}

#[test]
fn everything_else_is_the_same_too() {
    let host = Host::new();
    let mut own = Own::start(embedded(&host));
    own.does(&[
        ("emit 1", "0"),
        ("types nrt_dma_mem_alloc", "1"),
        ("start 1024 0 2", SUCCESS),
    ]);
    own.does(&[
        ("start", FAILURE),
        ("size", "1024"),
        ("emit 3000", "3000"),
        ("other 1", "0"),
    ]);
    own.does(&[
        ("on 1", "ok"),
        ("emit 1", "0"),
        ("on 2", "ok"),
        ("emit 1", "1"),
        ("count", "1025"),
    ]);
    assert_eq!(
        numbers(own.fetch("fetch 0 2").events).remove(&0).unwrap(),
        [3003]
    );
    let document = own.fetch("fetch");
    assert_eq!(
        numbers(&document.events).remove(&0).unwrap(),
        (1978..=3001).collect::<Vec<_>>()
    );
    assert!(document.events.is_sorted_by_key(|e| e.timestamp_ns));
    own.does(&[
        ("stop", SUCCESS),
        ("emit 1", "0"),
        ("stop", FAILURE),
        ("start", SUCCESS),
        ("emit 1", "1"),
    ]);
    assert_eq!(own.numbers(), [3005]);
    own.does(&[
        ("fork", "child"),
        ("size", "0"),
        ("emit 1", "0"),
        ("fetch", FAILURE),
        ("as 9", "ok"),
    ]);
    own.does(&[("start", SUCCESS), ("emit 2", "2")]);
    assert_eq!(numbers(own.fetch("fetch").events), [(9, vec![1, 2])].into());
    assert_eq!(own.end().stderr, "");
}

#[test]
fn fetches_under_writers_deliver_nothing_twice_and_nothing_torn() {
    let host = Host::new();
    let mut own = Own::start(embedded(&host));
    own.does(&[("start 1048576 0 1", SUCCESS)]);
    own.0.tell("threads 4 25000");
    let mut events = 0;
    let mut seen = std::collections::BTreeSet::new();
    loop {
        let line = own.0.read_line();
        if line.trim() == "done" {
            break;
        }
        for (thread, more) in numbers(document(line.trim()).events) {
            events += more.len();
            seen.extend(more.into_iter().map(|number| (thread, number)));
        }
    }
    assert_eq!((events, seen.len()), (100_000, 100_000));
}

/// A daemon that comes while the process captures itself does not take its rings away; afterwards the process attaches.
#[test]
fn a_daemon_that_comes_waits_for_the_end_of_the_capture() {
    let mut host = Host::new();
    let mut own = Own::start(embedded(&host));
    own.does(&[("start", SUCCESS), ("emit 3", "3")]);
    host.start_daemon(&[]);
    host.tracectl(&["start"]).ok();
    own.does(&[("emit 3", "3")]);
    assert_eq!(own.numbers(), (1..=6).collect::<Vec<_>>());
    own.does(&[("stop", SUCCESS)]);
    until("the process to attach", || {
        host.attached().contains(&own.0.pid()).then_some(())
    });
    until("the host's run to have it", || {
        (own.ask("emit 1") == "1").then_some(())
    });
}

/// With a daemon the variable changes nothing.
#[test]
fn a_daemon_is_preferred() {
    let host = Host::with_daemon();
    let mut own = Own::start(embedded(&host));
    own.does(&[("start", SUCCESS), ("emit 1", "1")]);
    assert_ne!(host.status()["reserved_bytes"], 0);
}
