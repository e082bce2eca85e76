//! Ctrl-C and its like, from another process and from a terminal.

use std::fs;
use std::io::{Read, Write};
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::place::{PROGRAM, Place, events, runs, signal, spawn, until, wait};
use crate::terminal::on_terminal;

#[test]
fn l02_a_signal_ends_a_recording_of_the_host_with_its_file() {
    let place = Place::new();
    for (number, status) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let file = place.path("t.json");
        let child = spawn(&place.record(&file, &[]));
        until("a recording", || place.path("t.json.part").exists());
        // The handlers are in place before the private daemon's folder is.
        until("a private daemon", || {
            place
                .names()
                .iter()
                .any(|name| name.to_string_lossy().starts_with("nrt-trace-"))
        });
        signal(&child, number);
        let ended = wait(child);
        assert_eq!(
            (ended.status, events(&file)),
            (Some(status), 0),
            "{ended:?}"
        );
        assert_eq!(place.names(), ["t.json"]);
        fs::remove_file(&file).unwrap();
    }
}

/// Signals of a process that are ignored, and those that it has a handler for, as masks.
fn ignored_and_caught(pid: &str) -> (u64, u64) {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let mask = |key| {
        let line = status.lines().find_map(|line| line.strip_prefix(key));
        u64::from_str_radix(line.unwrap().trim(), 16).unwrap()
    };
    (mask("SigIgn:"), mask("SigCgt:"))
}

#[test]
fn a_signal_that_is_ignored_stays_so_for_the_command_too() {
    let place = Place::new();
    let (file, command, input) = (
        place.path("t.json"),
        place.path("command"),
        place.path("input"),
    );
    let made = Command::new("mkfifo").arg(&input).status().unwrap();
    assert!(made.success());
    let script = format!(
        "echo $$ > '{0}.new'; mv '{0}.new' '{0}'; exec cat '{1}'",
        command.display(),
        input.display()
    );
    let mut record = Command::new("env");
    record.args(["--default-signal=HUP", "--ignore-signal=INT,TERM"]);
    record.env("XDG_RUNTIME_DIR", place.folder.path());
    record.args([PROGRAM, "--socket"]);
    record.arg(place.path("control.sock"));
    record.args(["record", "-o"]).arg(&file);
    record.args(["--", "sh", "-c", &script]);
    let record = (record.stdin(Stdio::null()).stdout(Stdio::piped()))
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    until("the command", || command.exists());
    let mask = |signal: Signal| 1 << (signal.as_raw() - 1);
    let both = mask(Signal::INT) | mask(Signal::TERM);
    let (ignored, caught) = ignored_and_caught(&record.id().to_string());
    let of_record = (ignored & both, caught & (both | mask(Signal::HUP)));
    assert_eq!(of_record, (both, mask(Signal::HUP)));
    let pid = fs::read_to_string(&command).unwrap();
    let (ignored, _) = ignored_and_caught(pid.trim());
    assert_eq!(ignored & (both | mask(Signal::HUP)), both);
    signal(&record, Signal::TERM);
    signal(&record, Signal::INT);
    fs::write(&input, "read to the end\n").unwrap();
    let ended = wait(record);
    assert_eq!((ended.status, events(&file)), (Some(0), 0), "{ended:?}");
    assert!(ended.stdout.starts_with("read to the end\n"), "{ended:?}");
    assert!(!ended.stderr.contains("leaving"), "{ended:?}");
}

/// Who ignores SIGCHLD, as some job runners do, has the kernel throw the statuses of its children away.
#[test]
fn a_command_that_failed_is_told_where_sigchld_is_ignored() {
    for (script, status) in [("exit 5", 5), ("kill -KILL $$", 137)] {
        let place = Place::new();
        let mut record = Command::new("env");
        record.args(["--default-signal=HUP,INT,TERM", "--ignore-signal=CHLD"]);
        record.env("XDG_RUNTIME_DIR", place.folder.path());
        record.args([PROGRAM, "--socket"]);
        record.arg(place.path("control.sock"));
        record.args(["record", "-o"]).arg(place.path("t.json"));
        record.args(["--", "sh", "-c", script]);
        let record = (record.stdin(Stdio::null()).stdout(Stdio::piped()))
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let ended = wait(record);
        assert_eq!(ended.status, Some(status), "{ended:?}");
    }
}

#[test]
fn a_signal_is_passed_on_and_the_commands_answer_counts() {
    let place = Place::new();
    let file = place.path("t.json");
    let ready = place.path("ready");
    let script = format!(
        "trap 'exit 5' TERM; : > '{}'; while :; do sleep 0.01; done",
        ready.display()
    );
    let child = spawn(&place.record(&file, &["--", "sh", "-c", &script]));
    until("the command", || ready.exists());
    signal(&child, Signal::TERM);
    let ended = wait(child);
    assert_eq!((ended.status, events(&file)), (Some(5), 0), "{ended:?}");
}

#[test]
fn l02_a_second_signal_leaves_at_once_and_takes_the_run_away() {
    let place = Place::new();
    let daemon = place.daemon();
    let (file, ready) = (place.path("t.json"), place.path("ready"));
    let script = format!(
        "trap '' INT; echo $$ > '{0}.new'; mv '{0}.new' '{0}'; exec sleep 1000",
        ready.display()
    );
    let mut child = spawn(&place.record(&file, &["--", "sh", "-c", &script]));
    until("the command", || ready.exists());
    assert_eq!(runs(&place), 1);
    signal(&child, Signal::INT);
    let mut said = String::new();
    // Two signals within 50 ms are one wish, so the second is sent until it is heard.
    until("the end", || {
        signal(&child, Signal::INT);
        child.try_wait().unwrap().is_some()
    });
    // The command that would not end holds the pipe open: end it, as the person would.
    let pid: i32 = fs::read_to_string(&ready).unwrap().trim().parse().unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut said)
        .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{said}");
    assert_eq!(runs(&place), 0, "{said}");
    daemon.shutdown();
}

#[test]
fn ctrl_c_on_a_terminal_reaches_the_command_once() {
    let place = Place::new();
    let (file, ready, got) = (place.path("t.json"), place.path("ready"), place.path("got"));
    let script = format!(
        "trap 'echo INT >> \"{got}\"' INT; : > '{ready}'; until [ -e '{got}' ]; do sleep 0.01; done; exit 3",
        got = got.display(),
        ready = ready.display()
    );
    let (mut child, mut terminal) = on_terminal(&place.record(&file, &["--", "sh", "-c", &script]));
    until("the command", || ready.exists());
    until("progress", || terminal.screen().contains(" 0 events, 0 /s"));
    terminal.keyboard.write_all(&[3]).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(3));
    let screen = terminal.rest();
    assert_eq!(fs::read_to_string(&got).unwrap(), "INT\n", "{screen}");
    assert!(screen.contains("\r\x1b[K"), "{screen:?}");
    assert_eq!(events(&file), 0);
}

/// A command in a session of its own hears nothing from the terminal; nor must it from the recording, which takes the
/// terminal to have told it. The recording ends by itself then, and waits for the command.
#[test]
fn ctrl_c_on_a_terminal_is_not_passed_on() {
    let place = Place::new();
    let (file, ready, got) = (place.path("t.json"), place.path("ready"), place.path("got"));
    let script = format!(
        "trap 'echo INT > \"{got}\"' INT; : > '{ready}'; until [ -e '{file}' ]; do sleep 0.01; done; exit 4",
        got = got.display(),
        ready = ready.display(),
        file = file.display()
    );
    let command = place.record(&file, &["--", "setsid", "sh", "-c", &script]);
    let (mut child, mut terminal) = on_terminal(&command);
    until("the command", || ready.exists());
    terminal.keyboard.write_all(&[3]).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(4));
    let screen = terminal.rest();
    assert!(screen.contains("waiting for setsid"), "{screen}");
    assert!(!got.exists(), "{screen}");
}
