//! No system call, no allocation, no growth, no signal touched.

use nrt_trace_tests::{Document, Host, Link, compile, run};

use crate::{numbers, printed};

/// Promise: in steady state emit makes no system call and allocates nothing.
#[test]
fn emit_makes_no_system_call_and_allocates_nothing() {
    let host = Host::new();
    let program = compile(&host, "tests/c/quiet.c", Link::Linked);
    let ended = host.tracectl(&[
        "record",
        "-o",
        "t.json",
        "--",
        program.to_str().unwrap(),
        "100000",
    ]);
    if ended.code() == Some(77) {
        eprintln!("NOT RUN: {}", ended.text());
        return;
    }
    assert_eq!(printed(&ended.ok()), [100_000]);
    assert_eq!(
        numbers(&Document::read(&host.path("t.json")), 0),
        (1..=100_000).collect::<Vec<_>>()
    );
}

/// The same, with nobody listening, and with the daemon killed under it.
#[test]
fn nor_does_it_without_a_daemon_or_with_a_dead_one() {
    let host = Host::new();
    let program = compile(&host, "tests/c/quiet.c", Link::Linked);
    let mut alone = host.command(&program);
    alone.arg("100000");
    let ended = run(alone);
    if ended.code() == Some(77) {
        eprintln!("NOT RUN: {}", ended.text());
        return;
    }
    assert_eq!(printed(&ended.ok()), [0]);

    let host = Host::with_daemon();
    let program = compile(&host, "tests/c/quiet.c", Link::Linked);
    host.tracectl(&["start"]).ok();
    let mut orphan = host.command(&program);
    orphan
        .env("NRT_TRACE_WAIT_MS", "30000")
        .arg("100000")
        .arg(host.daemon_pid().to_string());
    assert_eq!(
        printed(&run(orphan).ok()),
        [100_000],
        "it goes on into the rings that it has"
    );
}

/// Case C11: nobody listens; nothing grows. Case C09: no signal is blocked, ignored or caught that was not before.
#[test]
fn c11_without_a_listener_nothing_grows() {
    let host = Host::new();
    let program = compile(&host, "tests/c/idle.c", Link::Linked);
    let run_it = |off: bool| {
        let mut idle = host.command(&program);
        idle.arg("2000000");
        if off {
            idle.env("NRT_TRACE_DISABLE", "1");
        }
        run(idle).ok().text()
    };
    let (on, off) = (run_it(false), run_it(true));
    let growth: i64 = on.split_whitespace().next().unwrap().parse().unwrap();
    assert!(growth < 5 * 1024, "{growth} kB more after 8 million events");
    let signals = |text: &str| text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(signals(&on), signals(&off));
}
