//! Public reports of what went wrong with systems like this one, tried as they were reported.

use std::path::{Path, PathBuf};
use std::process::Command;

use nrt_trace_tests::control::Control;
use nrt_trace_tests::payload::numbers;
use nrt_trace_tests::{Document, Host, PATIENT, Running, run, until};

use crate::surroundings::unshared;

/// Case F03: whoever reads a trace of an overflowed ring hears how much is missing: from the command, from the file later, and
/// from what it is converted to.
#[test]
fn f03_a_fetch_of_an_overflowed_ring_says_what_is_missing() {
    let host = Host::with_daemon();
    host.tracectl(&["start", "--nc", "0", "--max-events-per-nc", "1024"])
        .ok();
    host.probe(&["-n", "10000"]).ok();
    let fetched = host.tracectl(&["fetch", "-o", "t.nrtt"]).ok();
    assert!(
        fetched.stderr.contains("Warning") && fetched.stderr.contains("8,976"),
        "{fetched}"
    );
    let summary = host
        .tracectl(&["summary", "--format", "json", "t.nrtt"])
        .ok();
    assert!(
        summary.text().contains("\"overwritten\":8976")
            || summary.text().contains("\"overwritten\": 8976"),
        "{summary}"
    );
    host.tracectl(&["convert", "t.nrtt", "-o", "t.pftrace"])
        .ok();
    let perfetto = std::fs::read(host.path("t.pftrace")).unwrap();
    let named = |name: &str| (perfetto.windows(name.len())).any(|bytes| bytes == name.as_bytes());
    assert!(named("8976 of 10000 events lost"), "an instant says it");
}

/// Case F06: a million events as fast as they come, with the settings as they are: each is in the trace, or counted as lost.
#[test]
fn f06_a_million_events_at_once_are_recorded_or_counted() {
    let host = Host::with_daemon();
    host.tracectl(&["start", "--nc", "0"]).ok();
    let probe = Running::start(host.probe_command(&["-n", "1000000"]));
    let pid = probe.pid();
    probe.wait().ok();
    let fetched = Control::connect(&host).try_fetch("").unwrap();
    let ring = fetched.ring(pid);
    let account = &ring.account;
    assert_eq!(account.claimed, 1_000_000, "{account:?}");
    assert_eq!(account.delivered + account.lost, 1_000_000, "{account:?}");
    // A ring of the default size holds them all.
    let numbers = ring.events.iter().map(|event| event.number);
    assert!(numbers.eq(1..=1_000_000), "{account:?}");
}

/// A folder that a private /tmp does not hide, for sockets and programs.
fn outside_tmp() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let hidden = ["/tmp", "/var/tmp"];
    (!hidden.iter().any(|tmp| folder.starts_with(tmp))).then(|| folder.to_owned())
}

/// A command whose /tmp is its own, empty and read-only, as a service's may be.
fn with_a_private_tmp(host: &Host, program: &Command) -> Option<Command> {
    let mount = "mount -t tmpfs -o ro none /tmp && exec \"$@\"";
    let mut shell = host.command("sh");
    shell.args(["-c", mount, "sh"]).arg(program.get_program());
    shell.args(program.get_args());
    unshared(host, &["-m"], &shell)
}

/// Case Y02: a private, read-only /tmp of the daemon's or of a process's keeps neither from the other: nothing that they share
/// lies there.
#[test]
fn y02_a_private_tmp_hides_nothing() {
    let Some(place) = outside_tmp() else {
        eprintln!("NOT RUN: the programs are in /tmp themselves");
        return;
    };
    for daemon_inside in [true, false] {
        let host = Host::new();
        // Short, because a socket's path has 107 bytes.
        let folder = tempfile::Builder::new().prefix("y").tempdir_in(&place);
        let folder = folder.unwrap();
        let config = folder.path().join("traced.toml");
        std::fs::write(&config, PATIENT).unwrap();
        let at_sockets = |mut command: Command| {
            command.env("NRT_TRACE_SOCKET", folder.path().join("c"));
            command.env("NRT_TRACE_PRODUCER_SOCKET", folder.path().join("p"));
            command.current_dir(folder.path());
            command
        };
        let tracectl = |arguments: &[&str]| run(at_sockets(host.tracectl_command(arguments)));
        let mut daemon = host.daemon_command(&["--config", config.to_str().unwrap()]);
        let mut probe = host.probe_command(&["-n", "1000"]);
        let inside = if daemon_inside {
            &mut daemon
        } else {
            &mut probe
        };
        let Some(command) = with_a_private_tmp(&host, inside) else {
            return;
        };
        *inside = command;
        let _daemon = Running::start(at_sockets(daemon));
        until("the daemon to answer", || {
            (tracectl(&["status"]).code() == Some(0)).then_some(())
        });
        tracectl(&["start", "--nc", "0"]).ok();
        run(at_sockets(probe)).ok();
        let fetched = Document::parse(&tracectl(&["fetch", "-o", "-"]).ok().stdout);
        let all: Vec<u64> = (1..=1000).collect();
        assert_eq!(numbers(&fetched.events).remove(&0), Some(all));
    }
}
