//! The daemon on its sockets: one at a time, and a clean beginning and end.

use std::fs;
use std::io::Write;
use std::os::unix::net::UnixStream;

use nrt_trace_tests::payload::numbers;
use nrt_trace_tests::{Host, Running, run, until};
use rustix::process::{Pid, Signal, kill_process};

#[test]
fn a_second_daemon_on_the_socket_is_refused_and_the_first_goes_on() {
    let host = Host::with_daemon();
    host.tracectl(&["start"]).ok();
    host.probe(&["-n", "100"]).ok();
    let second = run(host.daemon_command(&[])).with_code(1);
    assert_eq!(second.stderr.trim_end().lines().count(), 1, "{second}");
    assert!(
        second
            .stderr
            .contains(host.control_socket().to_str().unwrap()),
        "{second}"
    );
    host.probe(&["-n", "50"]).ok();
    assert_eq!(host.fetch().events.len(), 150);
    assert_eq!(
        host.status()["pid"].as_u64(),
        Some(host.daemon_pid().into())
    );
}

#[test]
fn sigterm_ends_it_with_status_0_and_its_sockets_gone_also_with_idle_connections() {
    let mut host = Host::with_daemon();
    let silent = UnixStream::connect(host.control_socket()).unwrap();
    let probe = host.interactive_probe(&["-n", "10"]);
    assert_eq!(host.stop_daemon(), Some(0));
    assert!(!host.control_socket().exists() && !host.producer_socket().exists());
    drop(silent);
    probe.wait().ok();
}

/// Case G03: nobody who holds on to it keeps it: a client that connected and says nothing, one that reads nothing of a large
/// fetch, one that is stopped in the middle of a stream, a process that is stopped and never answers.
#[test]
fn g03_either_signal_ends_it_whoever_holds_on() {
    for signal in [Signal::TERM, Signal::INT] {
        let mut host = Host::with_daemon();
        host.tracectl(&["start", "--max-events-per-nc", "300000"])
            .ok();
        host.probe(&["-n", "200000"]).ok();
        let silent = UnixStream::connect(host.control_socket()).unwrap();
        let mute = host.interactive_probe(&[]);
        mute.signal(Signal::STOP);
        let mut unread = Running::start(host.tracectl_command(&["fetch", "-o", "-"]));
        assert_eq!(unread.read_byte(), b'{');
        let mut watching =
            Running::start(host.tracectl_command(&["host", "--follow", "--format", "json"]));
        assert_eq!(watching.read_byte(), b'{');
        watching.signal(Signal::STOP);
        let pid = Pid::from_raw(host.daemon_pid().cast_signed()).unwrap();
        kill_process(pid, signal).unwrap();
        assert_eq!(host.wait_daemon(), Some(0), "{signal:?}");
        assert!(!host.control_socket().exists() && !host.producer_socket().exists());
        drop((silent, unread, watching, mute));
    }
}

#[test]
fn after_sigkill_it_starts_again_on_the_same_sockets() {
    let mut host = Host::with_daemon();
    let pid = Pid::from_raw(host.daemon_pid().cast_signed()).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
    assert_eq!(host.wait_daemon(), None);
    assert!(host.control_socket().exists(), "nobody could take it away");
    host.start_daemon(&[]);
    host.tracectl(&["start"]).ok();
    host.probe(&["-n", "100"]).ok();
    assert_eq!(numbers(&host.fetch().events)[&0].len(), 100);
}

#[test]
fn a_file_in_the_place_of_a_socket_is_left_untouched() {
    let host = Host::new();
    fs::write(host.control_socket(), "precious").unwrap();
    let ended = run(host.daemon_command(&[])).with_code(1);
    assert_eq!(ended.stderr.trim_end().lines().count(), 1, "{ended}");
    assert_eq!(fs::read(host.control_socket()).unwrap(), b"precious");
}

#[test]
fn a_program_survives_the_daemons_death_and_attaches_to_the_next() {
    let mut host = Host::with_daemon();
    let mut probe = host.interactive_probe(&["-n", "100"]);
    host.tracectl(&["start"]).ok();
    probe.ask("go");
    let pid = Pid::from_raw(host.daemon_pid().cast_signed()).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
    host.wait_daemon();
    probe.ask("go");
    host.start_daemon(&[]);
    // In the list it is before it is back.
    host.until_state(probe.pid(), "capturing");
    probe.ask("go");
    assert_eq!(
        numbers(&host.fetch().events)[&0],
        (1..=300).collect::<Vec<_>>()
    );
}

#[test]
fn a_hundred_programs_leave_nothing_open() {
    let host = Host::with_daemon();
    host.tracectl(&["start"]).ok();
    let descriptors = || {
        fs::read_dir(format!("/proc/{}/fd", host.daemon_pid()))
            .unwrap()
            .count()
    };
    host.probe(&["-n", "1"]).ok();
    assert_eq!(host.fetch().events.len(), 1);
    let before = until("a quiet daemon", || Some(descriptors()));
    for _ in 0..10 {
        let probes: Vec<_> = (0..10)
            .map(|_| Running::start(host.probe_command(&["-n", "20"])))
            .collect();
        for probe in probes {
            probe.wait().ok();
        }
    }
    assert_eq!(host.fetch().events.len(), 2000);
    until("its descriptors to be back", || {
        (descriptors() <= before + 2).then_some(())
    });
}

#[test]
fn garbage_at_either_socket_harms_nobody() {
    let host = Host::with_daemon();
    host.tracectl(&["start"]).ok();
    let mut probe = host.interactive_probe(&["-n", "100"]);
    let mut control = UnixStream::connect(host.control_socket()).unwrap();
    control.write_all(&[0xFF; 4096]).unwrap();
    drop(control);
    // The producer socket takes packets, not a stream.
    UnixStream::connect(host.producer_socket()).unwrap_err();
    probe.ask("go");
    assert_eq!(host.fetch().events.len(), 100);
}
