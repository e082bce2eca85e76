//! Signal handlers, destructors, libraries that come and go, threads by the thousand.

use std::process::Command;

use nrt_trace_tests::{Document, Host, Link, artifacts, compile, run};

use crate::{numbers, printed};

/// How long the signal test emits; set `NRT_TRACE_LONG_TESTS=1` for the minute that case C07 asks for.
fn seconds() -> &'static str {
    if std::env::var_os("NRT_TRACE_LONG_TESTS").is_some() {
        "60"
    } else {
        "2"
    }
}

fn interrupted(source: &str, link: Link) {
    let host = Host::new();
    let program = compile(&host, source, link);
    let program = program.to_str().unwrap();
    let library = artifacts().library.to_str().unwrap();
    let ended = host
        .tracectl(&[
            "record",
            "-o",
            "t.json",
            "--max-events-per-nc",
            "4194304",
            "--",
            program,
            seconds(),
            library,
        ])
        .ok();
    let [emitted, recorded, handled, handled_recorded] = printed(&ended)[..] else {
        panic!("{ended}")
    };
    assert!(emitted > 1000 && handled > 50, "{ended}");
    let document = Document::read(&host.path("t.json"));
    // What emit said it recorded is there, whole and once; when the ring went round, the newest are.
    let (main, handler) = (numbers(&document, 0), numbers(&document, 1));
    assert!(main.len() as u64 <= recorded && handler.len() as u64 <= handled_recorded);
    if link == Link::Linked {
        assert_eq!(
            (recorded, handled_recorded),
            (emitted, handled),
            "nothing is dropped: {ended}"
        );
    }
    let lost = (recorded + handled_recorded) - (main.len() + handler.len()) as u64;
    assert!(
        lost == 0 || ended.text().contains("lost"),
        "{lost} lost in silence: {ended}"
    );
    assert!(handler.len() > 10, "{ended}");
}

/// Case C07: an emit in a handler that interrupts an emit, or malloc.
#[test]
fn c07_a_signal_handler_may_emit() {
    interrupted("tests/c/signals.c", Link::Linked);
}

/// Case C07, with a library that is opened while the handler runs already.
#[test]
fn c07_a_signal_handler_may_emit_through_an_opened_library() {
    interrupted("tests/c/signals_opened.c", Link::Opened);
}

/// Case C06: destructors of thread-locals and statics, atexit, 200 ended threads.
#[test]
fn c06_teardown_may_emit() {
    if Command::new("c++").arg("--version").output().is_err() {
        eprintln!("NOT RUN: no C++ compiler");
        return;
    }
    let host = Host::new();
    let program = compile(&host, "tests/c/teardown.cpp", Link::Linked);
    host.tracectl(&["record", "-o", "t.json", "--", program.to_str().unwrap()])
        .ok();
    let document = Document::read(&host.path("t.json"));
    assert_eq!(
        numbers(&document, 1),
        [1, 2],
        "static constructor and destructor"
    );
    assert_eq!(
        numbers(&document, 2),
        (1..=200).collect::<Vec<_>>(),
        "thread-local destructors"
    );
    assert_eq!(
        numbers(&document, 3),
        (1..=200).collect::<Vec<_>>(),
        "ended threads"
    );
    assert_eq!(numbers(&document, 4), [1], "atexit");
}

/// Records threads that open the library, emit ten events and close it again, under a program if there is one: every event
/// is there, once.
fn opened_and_closed(host: &Host, under: &[&str], threads: u64) {
    let program = compile(host, "tests/c/opened.c", Link::Opened);
    let library = artifacts().library.to_str().unwrap();
    let threads_argument = threads.to_string();
    let recorded = [program.to_str().unwrap(), library, &threads_argument];
    let ended = host
        .tracectl(&[&["record", "-o", "t.json", "--"], under, &recorded[..]].concat())
        .ok();
    assert_eq!(printed(&ended), [10 * threads], "{ended}");
    let document = Document::read(&host.path("t.json"));
    assert_eq!(
        numbers(&document, 0),
        (1..=10 * threads).collect::<Vec<_>>()
    );
}

/// Case C05: the library is opened, used and closed by a thousand threads.
#[test]
fn c05_the_library_may_be_closed_at_any_time() {
    let host = Host::new();
    opened_and_closed(&host, &[], 1000);
    let mut readelf = host.command("readelf");
    readelf.args(["-d", artifacts().library.to_str().unwrap()]);
    assert!(run(readelf).ok().text().contains("NODELETE"));
}

/// Case C05 under memcheck, whose world differs from the kernel's: no vDSO, no membarrier, one thread at a time.
#[test]
fn c05_valgrind_finds_nothing() {
    let memcheck = ["valgrind", "--quiet", "--error-exitcode=9"];
    opened_and_closed(&Host::new(), &memcheck, 40);
}
