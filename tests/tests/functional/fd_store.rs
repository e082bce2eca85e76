//! The daemon ends and starts again under a service manager that keeps descriptors: not even what processes left that
//! have ended is lost.

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;

use nrt_trace_proto::v1::ProducerState;
use nrt_trace_shm::memfd;
use nrt_trace_tests::control::Control;
use nrt_trace_tests::manager::Manager;
use nrt_trace_tests::wait::until;
use nrt_trace_tests::{Host, Running, payload};

use crate::restart::{emit, kill_daemon, range, sum};

/// Room for everything.
const ROOM: usize = 1000;

/// Numbers of a process's events in a document.
pub(crate) fn numbers_of(document: &nrt_trace_tests::Document, pid: u32) -> Vec<u64> {
    let mine = document.events.iter();
    let mine = mine.filter(|event| event.process_id.is_none_or(|of| of == pid));
    payload::numbers(mine).remove(&0).unwrap_or_default()
}

/// A host with a run, whose daemon's manager keeps so many descriptors.
fn capturing(most: usize) -> (Host, Manager) {
    let mut host = Host::new();
    let manager = Manager::new(&host, most);
    manager.start_daemon(&mut host, &[]);
    until("the daemon to be ready", || {
        manager.was_told("READY=1").then_some(())
    });
    host.tracectl(&["start", "--max-events-per-nc", "2048", "--nc", "0"])
        .ok();
    (host, manager)
}

/// A probe whose events carry the name of a model.
pub(crate) fn named_probe(host: &Host, model: &str) -> Running {
    host.interactive_probe(&["-n", "100", "--model", model])
}

/// Waits until the manager keeps nothing.
fn until_nothing_is_kept(manager: &Manager) {
    until("all descriptors to be given up", || {
        manager.kept().is_empty().then_some(())
    });
}

/// Waits until the daemon has just written its record, as it does each second: by itself it does not for the next one.
fn until_written_down(host: &Host) {
    let record = host.path("nrt-traced.state");
    let written = || record.metadata().and_then(|meta| meta.modified()).unwrap();
    let before = written();
    until("the record to be written", || {
        (written() != before).then_some(())
    });
}

/// One ended before the daemon did, one while there was none, one lives: everything of all three is there, with the
/// names, and then nothing is kept any more.
#[test]
fn ended_processes_lose_nothing() {
    let (mut host, manager) = capturing(ROOM);
    let models = ["before.neff", "during.neff", "alive.neff"];
    let [mut before, mut during, mut alive] = models.map(|model| named_probe(&host, model));
    for probe in [&mut before, &mut during, &mut alive] {
        emit(probe, 100);
    }
    let pids = [&before, &during, &alive].map(Running::pid);
    before.wait().ok();
    host.until_state(pids[0], "dead");
    kill_daemon(&mut host);
    emit(&mut during, 100);
    during.wait().ok();
    emit(&mut alive, 100);
    manager.start_daemon(&mut host, &[]);
    // As soon as it answers: nobody has to come back for that.
    assert_eq!(host.state_of(pids[0]).as_deref(), Some("dead"));
    assert_eq!(host.state_of(pids[1]).as_deref(), Some("dead"));
    host.until_state(pids[2], "capturing");
    emit(&mut alive, 100);

    let fetched = Control::connect(&host).fetch("");
    let document = fetched.document().unwrap();
    for (pid, events) in pids.into_iter().zip([100, 200, 300]) {
        assert_eq!(
            numbers_of(&document, pid),
            range(1..=events),
            "each once, {pid}"
        );
    }
    // A model's start and stop come first.
    assert_eq!(document.events.len(), 606);
    let names = fetched.names();
    assert!(
        models.iter().all(|model| names.contains(model)),
        "{names:?}"
    );

    // What is left is what the living one has: its rings, and its tables of names.
    until("the rings of the ended to be given up", || {
        let kept = manager.kept();
        let segments = kept.iter().filter(|name| name.starts_with("segment-"));
        (segments.count() == 1).then_some(())
    });
    host.tracectl(&["stop"]).ok();
    assert!(numbers_of(&host.fetch(), pids[2]).is_empty());
    alive.wait().ok();
    host.tracectl(&["start"]).ok();
    host.tracectl(&["stop"]).ok();
    until_nothing_is_kept(&manager);
}

/// A run that was stopped, and a process that ended since, through several daemons: one consumes a part.
#[test]
fn a_stopped_runs_rings_are_kept_from_daemon_to_daemon() {
    let (mut host, manager) = capturing(ROOM);
    let mut probe = named_probe(&host, "model.neff");
    emit(&mut probe, 100);
    host.tracectl(&["stop"]).ok();
    let pid = probe.pid();
    probe.wait().ok();
    host.until_state(pid, "dead");
    let mut seen = Vec::new();
    for part in 0..3 {
        kill_daemon(&mut host);
        manager.start_daemon(&mut host, &[]);
        let limit = if part < 2 { "40" } else { "1000" };
        let fetched = host.tracectl(&["fetch", "-o", "-", "--max-events-per-nc", limit]);
        let document = nrt_trace_tests::Document::parse(&fetched.ok().stdout);
        seen.extend(numbers_of(&document, pid));
    }
    assert_eq!(seen, range(1..=100));
    until_nothing_is_kept(&manager);
}

/// Killed at full speed again and again, with processes that end at any time: all that is not overwritten comes once.
#[test]
fn killed_at_full_load_the_account_stays_exact() {
    const KILLS: usize = 5;
    let (mut host, manager) = capturing(ROOM);
    let load = Running::start(host.probe_command(&["-n", "0", "--rate", "20000", "--linger"]));
    let pid = load.pid();
    host.until_state(pid, "capturing");
    let (mut seen, mut short) = (Vec::new(), Vec::new());
    for _ in 0..KILLS {
        let mut ends = host.interactive_probe(&["-n", "50"]);
        emit(&mut ends, 50);
        short.push(ends.pid());
        kill_daemon(&mut host);
        drop(ends); // killed
        manager.start_daemon(&mut host, &[]);
        host.until_state(pid, "capturing");
        let document = host.fetch();
        seen.extend(numbers_of(&document, pid));
        let last = *short.last().unwrap();
        assert_eq!(numbers_of(&document, last), range(1..=50));
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
}

/// What no record names is closed and not kept any longer, whatever it is, and does no harm to what one names.
#[test]
fn foreign_descriptors_are_given_up() {
    let (mut host, manager) = capturing(ROOM);
    let mut probe = named_probe(&host, "model.neff");
    emit(&mut probe, 100);
    let pid = probe.pid();
    probe.wait().ok();
    host.until_state(pid, "dead");
    kill_daemon(&mut host);

    let good: BTreeSet<String> = manager.kept().into_iter().collect();
    let named = |prefix: &str| {
        let mut names = good.iter().filter(|name| name.starts_with(prefix));
        names.next().expect("it is kept").clone()
    };
    let (segment, strings) = (named("segment-"), named("strings-"));
    let memory = |bytes| memfd::create("foreign", bytes).unwrap();
    let sealed = |bytes| {
        let fd = memory(bytes);
        memfd::seal_size(&fd).unwrap();
        fd
    };
    let file: OwnedFd = std::fs::File::open("/dev/null").unwrap().into();
    for (name, fd) in [
        ("segment-1", file),
        ("segment-2", sealed(1 << 20)),
        ("strings-1", memory(1 << 20)),
        ("stored", sealed(4096)),
        ("", memory(4096)),
        (&*segment, memory(1 << 20)),
        (&*strings, sealed(1 << 20)),
    ] {
        manager.plant(name, fd);
    }
    manager.start_daemon(&mut host, &[]);
    // It has looked at all when it answers; the manager hears of it as fast as it listens.
    assert!(host.status()["runs"][0]["capturing"].as_bool().unwrap());
    until("all that is foreign to be given up", || {
        let kept: BTreeSet<String> = manager.kept().into_iter().collect();
        (kept == good).then_some(())
    });
    let log = host.log_with("no record names");
    let warned = log.lines().filter(|line| line.contains("no record names"));
    assert_eq!(warned.count(), 1, "{log}");
    let fetched = Control::connect(&host).fetch("");
    let document = fetched.document().unwrap();
    assert_eq!(numbers_of(&document, pid), range(1..=100));
    assert!(fetched.names().contains("model.neff"));
    until_nothing_is_kept(&manager);
}

/// Memory that is not what the record names any more is not read; the account says so.
#[test]
fn memory_that_was_changed_is_refused() {
    let (mut host, manager) = capturing(ROOM);
    let mut probe = named_probe(&host, "model.neff");
    let pid = probe.pid();
    let mut control = Control::connect(&host);
    until_written_down(&host);
    emit(&mut probe, 100);
    probe.wait().ok();
    // What is told is written down, before it is told: the next daemon knows the process's last numbers.
    control.until_state("", pid, &[ProducerState::Dead]);
    kill_daemon(&mut host);
    manager.spoil("segment-");
    manager.start_daemon(&mut host, &[]);
    assert_eq!(host.state_of(pid).as_deref(), Some("dead"));
    let _said = host.log_with("its header is not the one");
    let ring = Control::connect(&host).fetch("").ring(pid);
    assert!(ring.events.is_empty() && !ring.account.exact);
    assert_eq!((ring.account.claimed, ring.account.lost), (102, 102));
    until_nothing_is_kept(&manager);
}

/// A manager that keeps nothing, or too little: as without one. Living processes hand their rings back.
#[test]
fn a_manager_without_room_does_no_harm() {
    for most in [0, 1] {
        let (mut host, manager) = capturing(most);
        let mut probe = host.interactive_probe(&["-n", "100"]);
        emit(&mut probe, 100);
        kill_daemon(&mut host);
        emit(&mut probe, 100);
        manager.start_daemon(&mut host, &[]);
        host.until_state(probe.pid(), "capturing");
        assert_eq!(numbers_of(&host.fetch(), probe.pid()), range(1..=200));
        assert!(manager.kept().len() <= most);
    }
}

/// A daemon that is told not to go on gives up what an earlier one left.
#[test]
fn a_daemon_that_does_not_resume_keeps_nothing() {
    let (mut host, manager) = capturing(ROOM);
    let mut probe = host.interactive_probe(&["-n", "100"]);
    emit(&mut probe, 100);
    assert_eq!(host.stop_daemon(), Some(0));
    assert!(manager.was_told("STOPPING=1"));
    assert!(!manager.kept().is_empty());
    let settings = host.path("settings.toml");
    std::fs::write(&settings, "resume = false\n").unwrap();
    let settings = settings.to_str().unwrap();
    manager.start_daemon(&mut host, &["--config", settings]);
    until_nothing_is_kept(&manager);
}
