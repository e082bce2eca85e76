//! Eight processes that capture themselves at once.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use nrt_trace_tests::payload::numbers;
use nrt_trace_tests::{Host, artifacts, run};

use super::joined::assert_account;
use super::{Own, SUCCESS};

const PROCESSES: u64 = 8;

/// Tells all of them something, and then hears all of them.
fn all_do(all: &mut [Own], line: impl Fn(u64) -> String, answer: &str) {
    for (k, own) in (0..).zip(&mut *all) {
        own.0.tell(&line(k));
    }
    for own in all {
        assert_eq!(own.0.read_line().trim(), answer);
    }
}

/// Eight of `command`, all of whose events are told by a thread number of their own: they start, emit, fetch and stop at once,
/// twice, and each document holds exactly its own.
fn eight(command: impl Fn() -> Command) -> Vec<Own> {
    let mut all: Vec<Own> = (0..PROCESSES).map(|_| Own::start(command())).collect();
    for round in 0..2 {
        let thread = |k| round * PROCESSES + k;
        all_do(&mut all, |_| "start 2000".to_owned(), SUCCESS);
        all_do(&mut all, |k| format!("as {}", thread(k)), "ok");
        for batch in 0..2 {
            all_do(&mut all, |_| "emit 500".to_owned(), "500");
            for own in &mut all {
                own.0.tell("fetch");
            }
            let expected: Vec<u64> = (batch * 500 + 1..=batch * 500 + 500).collect();
            for (k, own) in (0..).zip(&mut all) {
                let document = super::document(own.0.read_line().trim());
                assert_eq!(document.events.len(), 500);
                assert_eq!(
                    numbers(document.events),
                    [(thread(k), expected.clone())].into()
                );
            }
        }
        all_do(&mut all, |_| "emit 7".to_owned(), "7"); // dropped by the stop
        all_do(&mut all, |_| "stop".to_owned(), SUCCESS);
    }
    all
}

#[test]
fn each_document_holds_exactly_its_own_events() {
    let host = Host::with_daemon();
    eight(|| Own::command(&host));
}

#[test]
fn the_same_while_a_host_wide_run_is_on() {
    let host = Host::with_daemon();
    host.tracectl(&["start", "--max-events-per-nc", "10000"])
        .ok();
    let all = eight(|| Own::command(&host));
    // The host's run wanted all of it, and has all of it, what the processes never fetched included.
    let document = host.fetch();
    let by_thread = numbers(&document.events);
    assert_eq!(by_thread.len() as u64, 2 * PROCESSES);
    for (thread, numbers) in by_thread {
        assert_eq!(numbers, (1..=1007).collect::<Vec<_>>(), "thread {thread}");
    }
    for own in &all {
        assert_account(&host, own.0.pid(), 2 * 1007, 0);
    }
}

/// A user whom the control socket refuses can capture its own processes, which shows it nothing of others.
#[test]
fn the_same_without_rights_on_the_control_socket() {
    const NOBODY: u32 = 65_521;
    if !rustix::process::getuid().is_root() {
        eprintln!("NOT RUN: only root can become another user");
        return;
    }
    let host = Host::with_daemon();
    fs::set_permissions(host.path(""), Permissions::from_mode(0o755)).unwrap();
    let command = || {
        let mut command = Own::command(&host);
        command.uid(NOBODY).gid(NOBODY);
        command
    };
    let mut refused = host.command(&artifacts().tracectl);
    refused.arg("status").uid(NOBODY).gid(NOBODY);
    let refused = run(refused);
    assert_ne!(refused.code(), Some(0), "{refused}");
    let all = eight(command);
    drop(all);

    // And while a host-wide run is on.
    host.tracectl(&["start", "--max-events-per-nc", "10000"])
        .ok();
    let all = eight(command);
    assert_eq!(numbers(&host.fetch().events).len() as u64, 2 * PROCESSES);
    for own in &all {
        assert_account(&host, own.0.pid(), 2 * 1007, 0);
    }
}
