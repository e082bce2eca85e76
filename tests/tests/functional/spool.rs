//! The daemon ends and starts again without a service manager: what ended processes left unread is in files.

use std::fs;
use std::path::PathBuf;

use nrt_trace_tests::control::Control;
use nrt_trace_tests::host::PATIENT;
use nrt_trace_tests::wait::until;
use nrt_trace_tests::{Document, Host, Running, run};
use serde_json::Value;

use crate::fd_store::{named_probe, numbers_of};
use crate::restart::{emit, kill_daemon, range, sum};

/// The files that are whole.
fn files(host: &Host) -> Vec<PathBuf> {
    let entries = fs::read_dir(host.path("ended")).into_iter().flatten();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_none()).collect()
}

fn until_files(host: &Host, count: usize) {
    until(&format!("{count} files"), || {
        (files(host).len() == count).then_some(())
    });
}

/// Waits until nothing is left of anything.
fn until_clean(host: &Host) {
    until("the files and their folder to go", || {
        (!host.path("ended").exists()).then_some(())
    });
}

/// A host with a run in which a process of this model emitted 100 events and ended.
fn ended(model: &str) -> (Host, u32) {
    let host = Host::with_daemon();
    host.tracectl(&["start", "--max-events-per-nc", "2048", "--nc", "0"])
        .ok();
    let mut probe = named_probe(&host, model);
    emit(&mut probe, 100);
    let pid = probe.pid();
    probe.wait().ok();
    host.until_state(pid, "dead");
    (host, pid)
}

fn fetch(host: &Host, arguments: &[&str]) -> Document {
    let all = [&["fetch", "-o", "-"], arguments].concat();
    Document::parse(&host.tracectl(&all).ok().stdout)
}

/// Events and names of processes that ended, through three daemons that are killed, consumed in parts; then the living
/// one's, and no file stays.
#[test]
fn what_an_ended_process_left_survives_kills() {
    let (mut host, pid) = ended("model.neff");
    let mut alive = named_probe(&host, "alive.neff");
    emit(&mut alive, 100);
    until_files(&host, 1);
    let mut seen = Vec::new();
    for limit in ["40", "40", "1000"] {
        kill_daemon(&mut host);
        host.start_daemon(&[]);
        assert_eq!(host.state_of(pid).as_deref(), Some("dead"));
        let names = host.tracectl(&["strings"]).ok().text();
        assert!(names.contains("model.neff"), "{names}");
        let limited = ["--process", &pid.to_string(), "--max-events-per-nc", limit];
        seen.extend(numbers_of(&fetch(&host, &limited), pid));
    }
    assert_eq!(seen, range(1..=100), "each once");
    until_clean(&host);
    host.until_state(alive.pid(), "capturing");
    assert_eq!(numbers_of(&host.fetch(), alive.pid()), range(1..=100));
    assert_eq!(sum(&host, "lost"), 0);
    alive.wait().ok();
}

/// Also what ended in the last moment, when the daemon is told to end.
#[test]
fn an_ending_daemon_writes_what_is_left() {
    let (mut host, pid) = ended("model.neff");
    assert_eq!(host.stop_daemon(), Some(0));
    assert_eq!(files(&host).len(), 1);
    host.start_daemon(&[]);
    assert_eq!(host.state_of(pid).as_deref(), Some("dead"));
    let fetched = Control::connect(&host).fetch("");
    assert_eq!(
        numbers_of(&fetched.document().unwrap(), pid),
        range(1..=100)
    );
    assert!(fetched.names().contains("model.neff"));
    until_clean(&host);
}

/// What a new start gives up, or a stop that discards, leaves no file.
#[test]
fn what_is_given_up_leaves_no_file() {
    let (mut host, _pid) = ended("model.neff");
    until_files(&host, 1);
    host.tracectl(&["stop", "--discard"]).ok();
    until_clean(&host);
    host.tracectl(&["start", "--nc", "0"]).ok();
    let mut probe = host.interactive_probe(&["-n", "100"]);
    emit(&mut probe, 100);
    let pid = probe.pid();
    probe.wait().ok();
    host.until_state(pid, "dead");
    host.tracectl(&["stop"]).ok();
    until_files(&host, 1);
    kill_daemon(&mut host);
    host.start_daemon(&[]);
    host.tracectl(&["start"]).ok();
    until_clean(&host);
    host.tracectl(&["stop"]).ok();
    assert_eq!(host.stop_daemon(), Some(0));
    assert!(!host.path("ended").exists());
}

/// The oldest gives way when all together are more than the budget, and takes its file with it.
#[test]
fn files_are_kept_within_the_budget() {
    let mut host = Host::new();
    let settings = host.path("settings.toml");
    // A ring of 1024 events takes 136 KiB: two fit.
    fs::write(&settings, format!("{PATIENT}ended_budget_bytes = 300000\n")).unwrap();
    host.start_daemon(&["--config", settings.to_str().unwrap()]);
    host.tracectl(&["start", "--max-events-per-nc", "1024", "--nc", "0"])
        .ok();
    let ended = || {
        let mut probe = host.interactive_probe(&["-n", "100"]);
        emit(&mut probe, 100);
        let pid = probe.pid();
        probe.wait().ok();
        host.until_state(pid, "dead");
        pid
    };
    let first = ended();
    until_files(&host, 1);
    let oldest = files(&host).remove(0);
    let pids = [first, ended(), ended()];
    until("the oldest to give way", || {
        (sum(&host, "abandoned") == 100).then_some(())
    });
    // Of two files one may still be the oldest's, while the newest's is being written.
    until("the others' files", || {
        let files = files(&host);
        (files.len() == 2 && !files.contains(&oldest)).then_some(())
    });
    kill_daemon(&mut host);
    host.start_daemon(&[]);
    let document = host.fetch();
    let counts = pids.map(|pid| numbers_of(&document, pid).len());
    assert_eq!(counts, [0, 100, 100]);
    until_clean(&host);
}

/// Without the record nobody can tell the files apart: they are put aside with it, not removed.
#[test]
fn files_of_a_torn_record_are_put_aside() {
    let (mut host, _pid) = ended("model.neff");
    until_files(&host, 1);
    kill_daemon(&mut host);
    let left = files(&host);
    let state = host.path("nrt-traced.state");
    let whole = fs::read(&state).unwrap();
    fs::write(&state, &whole[..whole.len() - 1]).unwrap();
    host.start_daemon(&[]);
    // It has looked at all when it answers.
    assert_eq!(host.status()["runs"], Value::Array(Vec::new()));
    assert!(files(&host).is_empty());
    for file in left {
        assert!(file.with_extension("aside-0").exists(), "{file:?}");
    }
    let _said = host.log_with("it is put aside, too");
}

/// A file that is not whole is put aside; the account says that its events are lost.
#[test]
fn a_torn_file_is_put_aside() {
    let (mut host, pid) = ended("model.neff");
    until_files(&host, 1);
    kill_daemon(&mut host);
    let file = files(&host).remove(0);
    let whole = fs::read(&file).unwrap();
    fs::write(&file, &whole[..whole.len() - 1]).unwrap();
    host.start_daemon(&[]);
    assert_eq!(host.state_of(pid).as_deref(), Some("dead"));
    assert!(files(&host).is_empty());
    let _said = host.log_with("it is torn");
    // A model's start and stop, and 100.
    let ring = Control::connect(&host).fetch("").ring(pid);
    let account = &ring.account;
    assert!(ring.events.is_empty() && !account.exact, "{account:?}");
    assert_eq!((account.claimed, account.lost), (102, 102), "{account:?}");
    host.until_state(pid, "dead");
}

/// No room on the disk: said once, counted, and the events are there as long as the daemon is.
#[test]
fn a_full_disk_is_said_and_does_no_harm() {
    let mut host = Host::new();
    let state = host.path("state");
    fs::create_dir(&state).unwrap();
    let settings = host.path("settings.toml");
    fs::write(&settings, format!("{PATIENT}state_dir = {state:?}\n")).unwrap();
    let daemon = host.daemon_command(&["--config", settings.to_str().unwrap()]);
    let mut small = host.command("unshare");
    small.args(["-m", "sh", "-c"]);
    small.arg("mount -t tmpfs -o size=256k tmpfs state && exec \"$@\"");
    small.arg("sh").arg(daemon.get_program());
    small.args(daemon.get_args());
    if !may_mount(&host) {
        return;
    }
    host.start_daemon_as(small);
    host.tracectl(&["start", "--max-events-per-nc", "8192", "--nc", "0"])
        .ok();
    let pids = [(); 2].map(|()| {
        let mut probe = host.interactive_probe(&["-n", "8000"]);
        emit(&mut probe, 8000);
        let pid = probe.pid();
        probe.wait().ok();
        pid
    });
    until("both to be counted", || {
        (host.status()["not_kept_count"] == 16000).then_some(())
    });
    assert!((host.metric("nrt_trace_not_kept_total") - 16000.0).abs() < 0.5);
    let log = host.log_with("would not survive");
    let said = log
        .lines()
        .filter(|line| line.contains("would not survive"));
    assert_eq!(said.count(), 1, "{log}");
    assert!(
        host.tracectl(&["status"])
            .ok()
            .text()
            .contains("not kept   16000 unread events")
    );
    let document = host.fetch();
    let counts = pids.map(|pid| numbers_of(&document, pid).len());
    assert_eq!(counts, [8000, 8000]);
    assert_eq!(host.stop_daemon(), Some(0));
}

#[expect(clippy::print_stderr, reason = "a test that did not run says so")]
fn may_mount(host: &Host) -> bool {
    let mut probe = host.command("unshare");
    probe.args(["-m", "mount", "-t", "tmpfs", "tmpfs", "state"]);
    let allowed = run(probe);
    if allowed.code() != Some(0) {
        eprintln!("NOT RUN: unshare -m: {}", allowed.text());
    }
    allowed.code() == Some(0)
}

/// A process that replaces itself by another program has ended as far as its events go; it is told of as one that lives.
#[test]
fn an_execed_process_is_kept_and_told_of_as_before() {
    let mut host = Host::with_daemon();
    host.tracectl(&["start", "--max-events-per-nc", "2048", "--nc", "0"])
        .ok();
    // Python stays the same process when it becomes `cat`.
    let script = host.path("exec.py");
    fs::write(
        &script,
        r"
import ctypes, os, sys
library = ctypes.CDLL(sys.argv[1])
emit = library.nrt_sys_trace_new_event
emit.restype = ctypes.c_uint64
emit.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_void_p]
assert library.nrt_trace_wait_armed(30000)
for _ in range(50):
    assert emit(3, 2, 0, 0, None)
os.execvp('cat', ['cat'])
",
    )
    .unwrap();
    let mut python = host.command("python3");
    python
        .arg(&script)
        .arg(&nrt_trace_tests::artifacts().library);
    let running = Running::start(python);
    let pid = running.pid();
    host.until_state(pid, "detached");
    until_files(&host, 1);
    kill_daemon(&mut host);
    host.start_daemon(&[]);
    assert_eq!(host.state_of(pid).as_deref(), Some("detached"));
    // Its end is noticed all the same.
    running.wait().ok();
    host.until_state(pid, "dead");
    assert_eq!(host.fetch().events.len(), 50);
    until_clean(&host);
}
