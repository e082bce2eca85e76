//! What a process that attaches can do to others: nothing.

mod users;

use std::fs;

use nrt_trace_tests::{Document, Host, Link, PATIENT, Running, compile, payload};

/// What it has to be refused, at least: whichever line is missing was not tried.
const TRIES: [&str; 16] = [
    "page: map for writing",
    "page: make the mapping writable",
    "page: write",
    "page: punch a hole",
    "page: remove the page from the mapping",
    "page: reopen and cut",
    "page: send a file into it",
    "page: write through /proc/self/mem",
    "page: change a word",
    "page: cut to nothing",
    "names: cut to a page",
    "names: grow",
    "rings: cut to nothing",
    "rings: grow by allocating",
    "rings: seal against writing",
    "rings: another size",
];

/// Cases S05 and S06, I8: an intruder tries every way to write the control page, to cut, grow or seal what is shared
/// with it, and to open what is not. It may spoil its own rings, with words and with holes: the daemon puts it aside in
/// one line, and a neighbour's events are all there. Nothing has a name that somebody could remove.
#[test]
fn s05_an_intruder_is_refused_and_spoils_only_its_own() {
    let mut host = Host::new();
    fs::write(
        host.path("traced.toml"),
        format!("{PATIENT}default_cores = 2\n"),
    )
    .expect("a file");
    let names = || {
        let all = fs::read_dir("/dev/shm").into_iter().flatten().flatten();
        all.filter(|entry| entry.file_name().to_string_lossy().contains("nrt"))
            .count()
    };
    let before = names();
    host.start_daemon(&["--config", "traced.toml"]);
    let program = compile(&host, "tests/c/intruder.c", Link::Opened);
    host.tracectl(&["start", "--max-events-per-nc", "1024"])
        .ok();
    let mut neighbour = host.interactive_probe(&["-n", "100"]);
    assert!(neighbour.ask("").contains("\"recorded\":100"));

    let mut command = host.command(program);
    command
        .arg(host.producer_socket())
        .arg(host.daemon_pid().to_string());
    let mut intruder = Running::start(command);
    let mut told = Vec::new();
    while told.last().is_none_or(|line| line != "spoiled") {
        told.push(intruder.read_line().trim().to_owned());
    }
    let done: Vec<_> = told.iter().filter(|line| line.ends_with("DONE")).collect();
    assert!(done.is_empty(), "{done:?}");
    for what in TRIES {
        let line = format!("{what}: refused");
        assert!(told.contains(&line), "{what} was not tried: {told:#?}");
    }
    // 0x5A5A… is no claim counter: put aside at the first look, and with holes in its place there is nothing to see.
    host.tracectl(&["fetch", "-o", "a.json"]).ok();
    assert!(neighbour.ask("").contains("\"recorded\":100"));
    assert_eq!(intruder.ask("go on").trim(), "punched");
    host.tracectl(&["fetch", "-o", "b.json"]).ok();
    intruder.tell("go on");
    let ended = intruder.wait();
    assert!(!ended.text().contains("DONE"), "{ended}");
    assert!(ended.text().contains("others: "), "not tried: {ended}");

    assert!(neighbour.ask("").contains("\"recorded\":100"));
    drop(neighbour.wait().ok());
    host.tracectl(&["stop"]).ok();
    host.tracectl(&["fetch", "-o", "c.json"]).ok();
    let mut numbers = Vec::new();
    for file in ["a.json", "b.json", "c.json"] {
        let document = Document::read(&host.path(file));
        numbers.extend(
            payload::numbers(&document.events)
                .remove(&0)
                .unwrap_or_default(),
        );
    }
    let all: Vec<u64> = (1..=300).collect();
    assert_eq!(numbers, all, "the neighbour's, each once");
    let log = host.log_with("quarantined");
    let lines: Vec<_> = log
        .lines()
        .filter(|line| line.contains("quarantined"))
        .collect();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert_eq!(names(), before, "nothing has a name");
    assert_eq!(host.stop_daemon(), Some(0));
}
