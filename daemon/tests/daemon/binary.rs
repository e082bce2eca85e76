//! The binary: its messages, its exit status, its end.

use std::io::{PipeReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use crate::metrics::{samples, text};
use crate::support::{Answer, Client, Fake, fetch, hello, host_run, wait_for};

fn traced(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nrt-traced"));
    command
        .env_remove("RUST_LOG")
        .env("NRT_TRACE_SOCKET", folder.join("c.sock"))
        .env("NRT_TRACE_PRODUCER_SOCKET", folder.join("p.sock"))
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .stdout(Stdio::piped());
    command
}

fn start(folder: &Path) -> Child {
    let child = traced(folder).spawn().unwrap();
    wait_for("the daemon", || {
        UnixStream::connect(folder.join("c.sock")).is_ok()
    });
    child
}

#[track_caller]
fn fails(output: &Output, status: i32, words: &[&str]) {
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{text}");
    let told: Vec<_> = text
        .lines()
        .filter(|line| line.starts_with("nrt-traced: "))
        .collect();
    assert_eq!(
        (told.len(), text.lines().count()),
        (1, 1),
        "one line: {text}"
    );
    for word in words {
        assert!(told[0].contains(word), "{word}: {text}");
    }
}

fn signal(child: &Child, signal: rustix::process::Signal) {
    rustix::process::kill_process(rustix::process::Pid::from_child(child), signal).unwrap();
}

#[test]
fn it_ends_on_a_signal_and_takes_its_sockets_away() {
    for how in [rustix::process::Signal::TERM, rustix::process::Signal::INT] {
        let folder = tempfile::tempdir().unwrap();
        let mut child = start(folder.path());
        let silent = UnixStream::connect(folder.path().join("c.sock")).unwrap();
        signal(&child, how);
        assert!(child.wait().unwrap().success());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        let mut log = String::new();
        child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut log)
            .unwrap();
        assert!(
            log.contains("listening") && log.contains("shutting down"),
            "{log}"
        );
        drop(silent);
    }
}

/// Case G05: a second daemon is refused and the first undisturbed; one that was killed hard leaves no hurdle.
#[test]
fn g05_second_daemon_and_successor() {
    let folder = tempfile::tempdir().unwrap();
    let mut first = start(folder.path());
    let second = traced(folder.path()).output().unwrap();
    fails(
        &second,
        1,
        &[
            "already running",
            folder.path().join("c.sock").to_str().unwrap(),
        ],
    );
    UnixStream::connect(folder.path().join("c.sock")).unwrap();
    first.kill().unwrap();
    first.wait().unwrap();
    assert!(folder.path().join("c.sock").exists());
    let mut next = start(folder.path());
    next.kill().unwrap();
    next.wait().unwrap();
}

#[test]
fn a_regular_file_is_refused_and_untouched() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.sock");
    std::fs::write(&path, "precious").unwrap();
    fails(
        &traced(folder.path()).output().unwrap(),
        1,
        &[path.to_str().unwrap(), "not a socket"],
    );
    assert_eq!(std::fs::read_to_string(path).unwrap(), "precious");
}

#[test]
fn bad_settings_are_told_in_a_line() {
    let folder = tempfile::tempdir().unwrap();
    let long = format!("/tmp/{}", "x".repeat(110));
    let output = traced(folder.path())
        .args(["--socket", &long])
        .output()
        .unwrap();
    fails(&output, 1, &[&long, "115", "107"]);
    let file = folder.path().join("bad.toml");
    std::fs::write(&file, "default_coers = 3").unwrap();
    let output = traced(folder.path())
        .arg("--config")
        .arg(&file)
        .output()
        .unwrap();
    fails(&output, 2, &["bad.toml", "default_coers"]);
    let output = traced(folder.path())
        .args(["--config", "/no/such/file"])
        .output()
        .unwrap();
    fails(&output, 2, &["/no/such/file"]);
    let output = traced(folder.path()).arg("--sokcet").output().unwrap();
    fails(&output, 2, &["'--sokcet'", "'--socket'", "--help"]);
    let output = traced(folder.path())
        .env("NRT_TRACE_PRODUCER_SOCKET", "")
        .output()
        .unwrap();
    fails(
        &output,
        2,
        &["NRT_TRACE_PRODUCER_SOCKET is set, but to nothing"],
    );
    let output = traced(folder.path()).arg("--version").output().unwrap();
    assert_eq!(
        String::from_utf8_lossy(&output.stdout).trim(),
        concat!("nrt-traced ", env!("CARGO_PKG_VERSION"))
    );
}

/// A daemon whose standard error is a full pipe, and the end that nobody reads yet. It says whatever it can.
fn stuck(folder: &Path) -> (Child, PipeReader) {
    let (reader, mut writer) = std::io::pipe().unwrap();
    let blocking = rustix::fs::fcntl_getfl(&writer).unwrap();
    rustix::fs::fcntl_setfl(&writer, blocking | rustix::fs::OFlags::NONBLOCK).unwrap();
    while writer.write(&[b'\n'; 4096]).is_ok() {}
    while writer.write(b"\n").is_ok() {}
    rustix::fs::fcntl_setfl(&writer, blocking).unwrap();
    let child = traced(folder)
        .env("RUST_LOG", "trace")
        .stderr(writer)
        .spawn()
        .unwrap();
    wait_for("the daemon", || {
        UnixStream::connect(folder.join("c.sock")).is_ok()
    });
    (child, reader)
}

/// Nobody reads its log: it serves producers and clients all the same, counts what it could not say, and says so when somebody
/// reads.
#[test]
fn a_log_that_nobody_reads_holds_nobody_up() {
    let folder = tempfile::tempdir().unwrap();
    let (mut child, mut reader) = stuck(folder.path());
    let mut client = Client::of(&folder.path().join("c.sock"));
    wait_for("a dropped line", || {
        samples(&text(&mut client))["nrt_trace_log_dropped_total"] > 0.0
    });
    client.start(host_run(1024)).unwrap();
    let producers = folder.path().join("p.sock");
    let fake = Fake::attach_as(&producers, &hello("x", "", &[]), Answer::Honest);
    fake.wait_heard::<nrt_trace_abi::message::Go>(1);
    fake.emit_many(0, 10);
    let fetched = client.fetch(fetch()).unwrap();
    assert_eq!(fetched.seqs(fake.id, 0), (1..=10).collect::<Vec<_>>());
    let (told, heard) = std::sync::mpsc::channel();
    let reading = std::thread::spawn(move || {
        let (mut log, mut piece) = (Vec::new(), [0; 4096]);
        while let Ok(bytes @ 1..) = reader.read(&mut piece) {
            log.extend_from_slice(&piece[..bytes]);
            let words = b"lines of the log were dropped";
            if log.windows(words.len()).any(|some| some == words) {
                // It was told before.
                let _ = told.send(());
            }
        }
    });
    heard
        .recv_timeout(std::time::Duration::from_secs(60))
        .unwrap();
    signal(&child, rustix::process::Signal::TERM);
    assert!(child.wait().unwrap().success());
    reading.join().unwrap();
}

#[test]
fn a_log_that_nobody_reads_does_not_keep_it_from_ending() {
    let folder = tempfile::tempdir().unwrap();
    let (mut child, _reader) = stuck(folder.path());
    signal(&child, rustix::process::Signal::TERM);
    assert!(child.wait().unwrap().success());
}
