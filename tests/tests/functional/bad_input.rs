//! Bad input: one clear line that says what is allowed, exit status 2 for usage and 1 for failures, nothing lost.

use std::fs;
use std::os::unix::net::UnixListener;
use std::thread;

use nrt_trace_tests::payload::numbers;
use nrt_trace_tests::{Document, Ended, Host, run, until};

/// One line on standard error, nothing on standard output, this status, and each of these words.
#[track_caller]
fn assert_told(ended: &Ended, status: i32, words: &[&str]) {
    assert_eq!(ended.code(), Some(status), "{ended}");
    assert_eq!(
        ended.stderr.trim_end().lines().count(),
        1,
        "one line: {ended}"
    );
    assert_eq!(ended.text(), "", "{ended}");
    for word in words {
        assert!(ended.stderr.contains(word), "{word}: {ended}");
    }
}

#[test]
fn usage_errors_name_the_value_and_what_is_allowed() {
    let host = Host::with_daemon();
    let table: [(&[&str], &[&str]); 13] = [
        (
            &["start", "--events", "nrt_exekute"],
            &["nrt_exekute", "nrt_execute"],
        ),
        (&["start", "--events", "^hardware,^software"], &[]),
        (&["start", "--nc", "256"], &["256", "255"]),
        (&["start", "--nc", "3-1"], &["3-1"]),
        (&["start", "--nc", "x"], &["x"]),
        (
            &["start", "--max-events-per-nc", "0"],
            &["--max-events-per-nc", "at least 1"],
        ),
        (&["start", "--max-events-per-nc", "many"], &["many"]),
        (&["fetch"], &["--output"]),
        (&["fetch", "-o", "t.xml"], &["t.xml", ".json", ".nrtt"]),
        (&["fetch", "-o", "t.json", "--nc", "0-300"], &["300", "255"]),
        (
            &["record", "-o", "t.txt", "--", "true"],
            &["t.txt", ".json"],
        ),
        (
            &["record", "--max-events-per-nc", "0", "--", "true"],
            &["at least 1"],
        ),
        (&["strat"], &["strat", "start"]),
    ];
    for (arguments, words) in table {
        assert_told(&host.tracectl(arguments), 2, words);
    }
    assert_eq!(
        host.status()["runs"].as_array().unwrap().len(),
        0,
        "nothing was started"
    );
}

#[test]
fn no_daemon_at_the_socket() {
    let host = Host::new();
    let socket = host.control_socket();
    for arguments in [
        &["start"][..],
        &["stop"],
        &["status"],
        &["producers"],
        &["fetch", "-o", "t.json"],
    ] {
        assert_told(
            &host.tracectl(arguments),
            1,
            &["no daemon", socket.to_str().unwrap()],
        );
    }
    // A socket that nobody listens at any more.
    drop(UnixListener::bind(&socket).unwrap());
    assert_told(
        &host.tracectl(&["status"]),
        1,
        &["no daemon", socket.to_str().unwrap()],
    );
    assert!(!host.path("t.json").exists());
}

#[test]
fn a_socket_that_is_not_ours() {
    let host = Host::new();
    fs::write(host.control_socket(), "a file").unwrap();
    assert_told(&host.tracectl(&["status"]), 1, &["control.sock"]);

    // Something that hangs up at once, and something that speaks another protocol.
    for answer in [&b""[..], b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"] {
        let path = host.path("other.sock");
        let listener = UnixListener::bind(&path).unwrap();
        thread::spawn(move || {
            while let Ok((mut stream, _)) = listener.accept() {
                let _gone = std::io::Write::write_all(&mut stream, answer);
            }
        });
        let ended = host.tracectl(&["--socket", path.to_str().unwrap(), "status"]);
        assert_told(&ended, 1, &["other.sock", "nrt-traced"]);
        fs::remove_file(&path).unwrap();
    }
}

#[test]
fn a_socket_path_that_is_too_long() {
    let host = Host::new();
    let long = format!("/tmp/{}/s", "0".repeat(120));
    assert_told(&host.tracectl(&["--socket", &long, "status"]), 1, &["107"]);
    let daemon = run(host.daemon_command(&["--socket", &long]));
    assert!(
        daemon.stderr.contains("107") && daemon.code() != Some(0),
        "{daemon}"
    );
}

#[test]
fn an_unwritable_output_loses_nothing() {
    let host = Host::with_daemon();
    host.tracectl(&["start"]).ok();
    host.probe(&["-n", "5000"]).ok();
    fs::create_dir(host.path("folder.json")).unwrap();
    for (output, words) in [
        ("/no/such/folder/t.json", &["/no/such/folder"][..]),
        ("folder.json", &["folder.json"]),
        ("/proc/t.json", &["/proc/t.json"]),
        ("/dev/full", &["/dev/full"]),
    ] {
        let arguments = ["fetch", "--to", "json", "-o", output];
        assert_told(&host.tracectl(&arguments), 1, words);
    }
    let fetched = until("the daemon to see that the last fetch is gone", || {
        let fetched = host.tracectl(&["fetch", "-o", "-"]);
        (fetched.code() == Some(0)).then_some(fetched)
    });
    assert_eq!(
        numbers(&Document::parse(&fetched.stdout).events)[&0],
        (1..=5000).collect::<Vec<_>>()
    );
}

#[test]
fn a_recording_to_an_unwritable_output_does_not_run_the_command() {
    let host = Host::new();
    let arguments = [
        "record",
        "-o",
        "/no/such/folder/t.json",
        "--",
        "touch",
        "ran",
    ];
    assert_told(&host.tracectl(&arguments), 1, &["/no/such/folder"]);
    assert!(!host.path("ran").exists());
}

#[test]
fn start_and_stop_twice() {
    let host = Host::with_daemon();
    assert_told(&host.tracectl(&["stop"]), 1, &[]);
    assert_told(&host.tracectl(&["fetch", "-o", "t.json"]), 1, &[]);
    host.tracectl(&["start"]).ok();
    assert_told(&host.tracectl(&["start"]), 1, &[]);
    host.tracectl(&["stop"]).ok();
    assert_told(&host.tracectl(&["stop"]), 1, &[]);
}

#[test]
fn arguments_of_the_daemon() {
    let host = Host::new();
    for arguments in [&["--sokcet", "x"][..], &["--config", "none.toml"]] {
        let ended = run(host.daemon_command(arguments));
        assert_told(&ended, 2, &[arguments[0].trim_start_matches('-')]);
    }
    fs::write(host.path("bad.toml"), "no_such_key = 1\n").unwrap();
    assert_told(
        &run(host.daemon_command(&["--config", "bad.toml"])),
        2,
        &["bad.toml", "no_such_key"],
    );
}
