//! Bad input: one line that says what is allowed, status 2 for usage, 1 for what can't be done.

use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use crate::tool::{finish, run, tool};

#[test]
fn a_ring_of_nothing_is_refused() {
    for verb in ["start", "record"] {
        run([verb, "--max-events-per-nc", "0"]).one_line(2, &["--max-events-per-nc", "at least 1"]);
    }
}

#[test]
fn an_unknown_event_is_refused_with_the_names_that_exist() {
    for verb in ["start", "record"] {
        run([verb, "--events", "hardware,nrt_exceute"]).one_line(
            2,
            &[
                "nrt_exceute",
                "hardware, software",
                "nrt_execute",
                "hostcc_wait",
            ],
        );
    }
    run(["start", "--events", "hardware,^hardware"]).one_line(2, &["selects nothing"]);
    run(["start", "--events", ""]).one_line(2, &["--events"]);
}

#[test]
fn a_core_that_cannot_be_is_refused_with_the_range() {
    for verb in ["start", "record"] {
        run([verb, "--nc", "256"]).one_line(2, &["--nc", "256", "0 to 255"]);
        run([verb, "--nc", "3-1"]).one_line(2, &["--nc", "3-1"]);
        run([verb, "--nc", "a"]).one_line(2, &["--nc", "`a`"]);
    }
    run(["fetch", "-o", "-", "--nc", "999"]).one_line(2, &["--nc", "0 to 255"]);
}

#[test]
fn a_duration_has_a_unit_that_exists() {
    run(["record", "--duration", "10d"]).one_line(2, &["--duration", "ms, s, m or h"]);
    run(["record", "--duration", "0s"]).one_line(2, &["above 0"]);
    run(["record", "--duration", "10"]).one_line(2, &["--duration", "ms, s, m or h"]);
    let time = ["convert", "-", "-o", "-", "--after", "+1"];
    run(time).one_line(2, &["--after", "ms, s, m or h"]);
}

#[test]
fn a_command_without_dashes_is_explained() {
    run(["record", "ls"]).one_line(2, &["'ls'", "goes after --"]);
    let ended = run(["record", "ls", "-l"]);
    ended.one_line(2, &["goes after --"]);
    assert!(!ended.stderr.contains("tip"), "{ended:?}");
}

/// An empty variable behind the dashes must not record the whole host.
#[test]
fn dashes_without_a_command_are_refused() {
    run(["record", "--"]).one_line(2, &["no command after --", "whole host"]);
    let time = ["record", "-o", "t.json", "--duration", "1s", "--"];
    run(time).one_line(2, &["no command after --"]);
}

/// The library's tip, to put -- in front, would make a command of it.
#[test]
fn a_value_that_begins_with_a_dash_is_explained() {
    for (arguments, joined) in [
        (["record", "-o", "-y.json"], "join it: -o-y.json"),
        (
            ["record", "--output", "-y.json"],
            "join it: --output=-y.json",
        ),
        (["record", "--duration", "-1s"], "join it: --duration=-1s"),
        (["fetch", "--token", "-t"], "join it: --token=-t"),
    ] {
        let ended = run(arguments);
        ended.one_line(2, &[joined]);
        let misled = ended.stderr.contains("tip") || ended.stderr.contains("goes after --");
        assert!(!misled, "{ended:?}");
    }
    let ended = run(["record", "--host", "-y"]);
    assert!(
        !ended.stderr.contains("join it"),
        "--host has none: {ended:?}"
    );
    run(["record", "--duration=-1s"]).one_line(2, &["above 0"]);
}

#[test]
fn a_path_cannot_steer_the_terminal() {
    let ended = run(["convert", "/no/such\nfile\x1b[2J.nrtt", "-o", "x.json"]);
    ended.one_line(1, &["/no/such\\nfile\\u{1b}[2J.nrtt"]);
}

#[test]
fn an_output_of_no_known_format_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for verb in ["fetch", "record", "demo"] {
        let output = folder.path().join("trace.txt");
        run([verb.as_ref(), "-o".as_ref(), output.as_os_str()])
            .one_line(2, &["trace.txt", ".json", ".nrtt"]);
    }
    run(["fetch"]).one_line(2, &["--output <FILE>"]);
    run(["fetch", "--discard", "-o", "x.json"]).one_line(2, &["--discard", "--output"]);
}

/// The output is looked at before a daemon is, and before a command is started.
#[test]
fn an_output_that_cannot_be_written_is_refused_before_anything_happens() {
    let folder = tempfile::tempdir().unwrap();
    let ran = folder.path().join("ran");
    let closed = folder.path().join("closed");
    std::fs::create_dir(&closed).unwrap();
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o555)).unwrap();
    let mut places = vec![
        (folder.path().to_owned(), "it is a directory"),
        (folder.path().join("no/trace.json"), "there is no folder"),
        (ran.join("trace.json"), "there is no folder"),
        ("/proc/trace.json".into(), "/proc/trace.json"),
    ];
    if !rustix::process::geteuid().is_root() {
        places.push((closed.join("trace.json"), "Permission denied"));
    }
    for (place, why) in places {
        let mut record = tool();
        record
            .arg("record")
            .arg("-o")
            .arg(&place)
            .args(["--", "touch"])
            .arg(&ran);
        finish(&mut record).one_line(1, &[why]);
        assert!(
            !ran.exists(),
            "the command ran although {} cannot be written",
            place.display()
        );
        finish(tool().arg("fetch").arg("-o").arg(&place)).one_line(1, &[why]);
    }
}

#[test]
fn a_reader_that_stops_reading_is_no_failure() {
    for arguments in [&["--help"][..], &["record", "--help"], &["events"]] {
        let mut child = tool()
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {output:?}");
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(
            !stderr.contains("error") && !stderr.contains("panic"),
            "{stderr}"
        );
    }
}
