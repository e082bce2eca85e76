//! Ctrl-C and its like, from another process and from a terminal.

use std::fs;
use std::io::{Read, Write};

use rustix::process::{Pid, Signal, kill_process};

use crate::place::{Place, events, runs, signal, spawn, until, wait};
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
