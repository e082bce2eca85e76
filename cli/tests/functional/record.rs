//! Recording with real processes. The program records itself: its hidden verb `demo-pump` emits a given number of events.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nrt_traced::{Config, Daemon, Running};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::OpenptFlags;
use tempfile::TempDir;
use tonic::Status;

use crate::fake::{Fake, Script};
use crate::fetch::parts;
use crate::tool::{Ended, finish, tool};

const PROGRAM: &str = env!("CARGO_BIN_EXE_nrt-tracectl");

/// Longer than anything here takes on a busy machine.
const DEADLINE: Duration = Duration::from_secs(60);

/// A folder, and the path of a socket at which there is no daemon.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// `record -o OUTPUT … -- COMMAND…`, with a private daemon unless one is put at the socket.
    fn record(&self, output: &Path, more: &[&str]) -> Command {
        let mut record = tool();
        record.env("XDG_RUNTIME_DIR", self.folder.path());
        record.arg("--socket").arg(self.path("control.sock"));
        record.arg("record").arg("-o").arg(output).args(more);
        record
    }

    fn daemon(&self) -> Running {
        Daemon::start(Config::embedded_in(self.folder.path())).unwrap()
    }

    fn names(&self) -> Vec<OsString> {
        let entries = fs::read_dir(self.folder.path()).unwrap();
        let mut names: Vec<OsString> = entries.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    }
}

fn events(file: &Path) -> usize {
    let document: serde_json::Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    document["events"].as_array().unwrap().len()
}

fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < DEADLINE, "{what} did not come about");
        std::thread::park_timeout(Duration::from_millis(2));
    }
}

fn signal(child: &Child, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

/// Starts a recording whose output is kept. The tests may have been started with signals ignored (nohup), which a
/// recording would rightly leave so: `env` gives it a clean start.
fn spawn(record: &Command) -> Child {
    let mut clean = Command::new("env");
    clean
        .arg("--default-signal=HUP,INT,TERM")
        .arg(record.get_program())
        .args(record.get_args());
    for (name, value) in record.get_envs() {
        match value {
            Some(value) => clean.env(name, value),
            None => clean.env_remove(name),
        };
    }
    clean
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Waits for the end. What it says fits a pipe.
fn wait(mut child: Child) -> Ended {
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if start.elapsed() > DEADLINE {
            child.kill().unwrap();
        }
        std::thread::park_timeout(Duration::from_millis(2));
    }
    let output = child.wait_with_output().unwrap();
    Ended {
        status: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

#[test]
fn a_command_is_recorded_whole_and_summed_up() {
    let place = Place::new();
    let file = place.path("trace.json");
    let mut record = place.record(
        &file,
        &[
            "--",
            PROGRAM,
            "demo-pump",
            "--rate",
            "1000",
            "--threads",
            "2",
        ],
    );
    let ended = finish(&mut record);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    assert_eq!(events(&file), 1000);
    assert!(
        ended.stderr.contains("no daemon at") && ended.stderr.contains("private one"),
        "{ended:?}"
    );
    assert!(
        ended
            .stdout
            .contains("claimed 1000 = delivered 1000 + lost 0"),
        "{ended:?}"
    );
    assert!(
        ended.stdout.contains("1,000 events recorded in"),
        "{ended:?}"
    );
    assert_eq!(place.names(), ["trace.json"], "nothing else is left");
}

#[test]
fn the_native_format_reads_back() {
    let place = Place::new();
    let file = place.path("t.nrtt");
    let pump = [
        "--",
        PROGRAM,
        "demo-pump",
        "--rate",
        "1000",
        "--threads",
        "1",
    ];
    assert_eq!(finish(&mut place.record(&file, &pump)).status, Some(0));
    let mut summary = nrt_trace_export::Summary::new();
    for part in nrt_trace_export::NativeReader::new(File::open(&file).unwrap()).unwrap() {
        summary.part(&part.unwrap());
    }
    assert_eq!(summary.events(), 1000);
}

#[test]
fn the_status_is_the_commands() {
    let place = Place::new();
    for (script, status, words) in [
        ("exit 0", 0, ""),
        ("exit 7", 7, "sh ended with status 7"),
        ("kill -9 $$", 137, "sh was ended by SIGKILL (9)"),
    ] {
        let file = place.path("t.json");
        let ended = finish(&mut place.record(&file, &["--", "sh", "-c", script]));
        assert_eq!(ended.status, Some(status), "{ended:?}");
        assert!(ended.stderr.contains(words), "{ended:?}");
        assert!(
            ended.stderr.contains("no process was attached"),
            "{ended:?}"
        );
        assert_eq!(events(&file), 0, "an empty trace is a trace");
    }
}

#[test]
fn a_command_that_cannot_run_leaves_nothing() {
    let place = Place::new();
    let daemon = place.daemon();
    let before = place.names();
    for (command, status, words) in [
        (
            "/no/such/program",
            127,
            "cannot run /no/such/program: No such file",
        ),
        (
            "no-such-program-anywhere",
            127,
            "no such command in the folders of PATH",
        ),
        (
            "/etc/passwd",
            126,
            "cannot run /etc/passwd: Permission denied",
        ),
    ] {
        let ended = finish(&mut place.record(&place.path("t.json"), &["--", command]));
        assert_eq!(ended.status, Some(status), "{ended:?}");
        assert!(ended.stderr.contains(words), "{ended:?}");
        assert_eq!(place.names(), before);
    }
    assert_eq!(runs(&place), 0);
    daemon.shutdown();
}

/// Runs that the daemon knows of.
fn runs(place: &Place) -> usize {
    let mut status = tool();
    status
        .arg("--socket")
        .arg(place.path("control.sock"))
        .args(["status", "--format", "json"]);
    let ended = finish(&mut status);
    let document: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    document["runs"].as_array().unwrap().len()
}

#[test]
fn a_running_daemon_is_used_and_left_as_it_was() {
    let place = Place::new();
    let daemon = place.daemon();
    let file = place.path("t.json");
    let pump = [
        "--",
        PROGRAM,
        "demo-pump",
        "--rate",
        "1000",
        "--threads",
        "1",
    ];
    let ended = finish(&mut place.record(&file, &pump));
    assert_eq!((ended.status, events(&file)), (Some(0), 1000), "{ended:?}");
    assert!(ended.stderr.contains("using the daemon at"), "{ended:?}");
    assert_eq!(runs(&place), 0);
    daemon.shutdown();
}

#[test]
fn recordings_at_once_get_their_own_events() {
    let place = Place::new();
    let daemon = place.daemon();
    let rates = [500, 1000, 1500];
    let children: Vec<(u64, PathBuf, Child)> = rates
        .into_iter()
        .map(|rate| {
            let file = place.path(&format!("{rate}.json"));
            let rate_text = rate.to_string();
            let pump = [
                "--",
                PROGRAM,
                "demo-pump",
                "--rate",
                &rate_text,
                "--threads",
                "1",
            ];
            let child = spawn(&place.record(&file, &pump));
            (rate, file, child)
        })
        .collect();
    for (rate, file, child) in children {
        let ended = wait(child);
        assert_eq!(
            (ended.status, events(&file) as u64),
            (Some(0), rate),
            "{ended:?}"
        );
    }
    daemon.shutdown();
}

#[test]
fn the_trace_on_standard_output_is_alone_there() {
    let place = Place::new();
    let ended = finish(&mut place.record(Path::new("-"), &["--", "echo", "from the command"]));
    assert_eq!(ended.status, Some(0), "{ended:?}");
    assert!(
        serde_json::from_str::<serde_json::Value>(&ended.stdout).is_ok(),
        "{ended:?}"
    );
    assert!(ended.stderr.contains("from the command"), "{ended:?}");
    assert!(ended.stderr.contains("0 events recorded in"), "{ended:?}");
}

#[test]
fn the_file_grows_while_the_command_runs() {
    let place = Place::new();
    let (file, part) = (place.path("t.json"), place.path("t.json.part"));
    // The pump emits for a second; the shell waits for ever after it.
    let script = format!("'{PROGRAM}' demo-pump --rate 20000 --threads 1; exec sleep 1000");
    let child = spawn(&place.record(&file, &["--", "sh", "-c", &script]));
    let size = || fs::metadata(&part).map_or(0, |meta| meta.len());
    until("a part of some size", || size() > 1000);
    let first = size();
    until("a larger part", || size() > first);
    assert!(!file.exists());
    signal(&child, Signal::TERM);
    let ended = wait(child);
    assert_eq!(ended.status, Some(143), "{ended:?}");
    assert!(file.exists() && !part.exists());
}

#[test]
fn a_signal_ends_a_recording_of_the_host_with_its_file() {
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
fn a_duration_ends_a_recording_of_the_host() {
    let place = Place::new();
    let file = place.path("t.json");
    let ended = finish(&mut place.record(&file, &["--duration", "50ms"]));
    assert_eq!((ended.status, events(&file)), (Some(0), 0), "{ended:?}");
    let words = "only programs that are started with NRT_TRACE_PRODUCER_SOCKET=";
    assert!(ended.stderr.contains(words), "{ended:?}");
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
fn a_second_signal_leaves_at_once_and_takes_the_run_away() {
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
fn a_socket_of_somebody_else_is_an_error_and_no_reason_for_a_private_daemon() {
    let place = Place::new();
    fs::write(place.path("control.sock"), "x").unwrap();
    let ran = place.path("ran");
    let ended = finish(
        place
            .record(&place.path("t.json"), &["--", "touch"])
            .arg(&ran),
    );
    ended.one_line(1, &["control.sock", "it is no socket"]);
    assert_eq!(place.names(), ["control.sock"]);
}

#[test]
fn a_full_disk_is_told_and_the_command_goes_on() {
    let place = Place::new();
    let done = place.path("done");
    let file = place.path("t.json");
    // Limits the recording's file to 4 KiB, and through it the command's.
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -f 8; exec \"$@\"", "sh", PROGRAM]);
    limited.env("XDG_RUNTIME_DIR", place.folder.path());
    let daemon = place.daemon();
    limited
        .arg("--socket")
        .arg(place.path("control.sock"))
        .arg("record")
        .arg("-o")
        .arg(&file);
    let script = format!(
        "'{PROGRAM}' demo-pump --rate 20000 --threads 1 && mkdir '{}'",
        done.display()
    );
    limited.args(["--", "sh", "-c", &script]);
    let ended = finish(&mut limited);
    assert_eq!(ended.status, Some(1), "{ended:?}");
    assert!(
        ended
            .stderr
            .contains("t.json.part: File too large; nothing more is recorded"),
        "{ended:?}"
    );
    assert!(
        ended.stderr.contains("nrt-tracectl fetch --token"),
        "{ended:?}"
    );
    assert!(done.exists(), "{ended:?}");
    daemon.shutdown();
}

/// What a terminal shows, and its controlling end.
struct Terminal {
    keyboard: File,
    screen: JoinHandle<String>,
}

/// Runs a command as the foreground of a terminal of its own.
fn on_terminal(command: &Command) -> (Child, Terminal) {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
    let master = rustix::pty::openpt(flags).unwrap();
    rustix::pty::grantpt(&master).unwrap();
    rustix::pty::unlockpt(&master).unwrap();
    let name = rustix::pty::ptsname(&master, Vec::new()).unwrap();
    let slave = || {
        let mut options = File::options();
        options
            .read(true)
            .write(true)
            .open(name.to_str().unwrap())
            .unwrap()
    };
    // A new session without another process between: `setsid` replaces itself.
    let mut session = Command::new("setsid");
    session
        .arg("--ctty")
        .arg(command.get_program())
        .args(command.get_args());
    session
        .env("XDG_RUNTIME_DIR", std::env::temp_dir())
        .env("TERM", "xterm")
        .env_remove("NO_COLOR");
    session.stdin(slave()).stdout(slave()).stderr(slave());
    let child = session.spawn().unwrap();
    drop(session);
    let keyboard = File::from(master);
    let mut output = keyboard.try_clone().unwrap();
    let screen = std::thread::spawn(move || {
        let mut shown = Vec::new();
        // The read fails once nobody has the terminal open any more.
        let _end = output.read_to_end(&mut shown);
        String::from_utf8_lossy(&shown).into_owned()
    });
    (child, Terminal { keyboard, screen })
}

#[test]
fn ctrl_c_on_a_terminal_reaches_the_command_once() {
    let place = Place::new();
    let (file, ready, got) = (place.path("t.json"), place.path("ready"), place.path("got"));
    let script = format!(
        "trap 'echo INT >> \"{got}\"' INT; : > '{ready}'; until [ -e '{got}' ]; do sleep 0.01; done; sleep 0.2; exit 3",
        got = got.display(),
        ready = ready.display()
    );
    let (mut child, mut terminal) = on_terminal(&place.record(&file, &["--", "sh", "-c", &script]));
    until("the command", || ready.exists());
    terminal.keyboard.write_all(&[3]).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(3));
    let screen = terminal.screen.join().unwrap();
    assert_eq!(fs::read_to_string(&got).unwrap(), "INT\n", "{screen}");
    assert!(
        screen.contains("\r\x1b[K") && screen.contains(" 0 events, 0 /s"),
        "no progress in {screen:?}"
    );
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
    let screen = terminal.screen.join().unwrap();
    assert!(screen.contains("waiting for setsid"), "{screen}");
    assert!(!got.exists(), "{screen}");
}

/// Events that came are in the trace once, however their fetch ended.
fn what_came_is_kept(write: impl FnOnce(&mut Script), words: &str) {
    let fake = Fake::start(|script| {
        script.parts = parts(3, 3);
        write(script);
    });
    let file = fake.folder().join("t.json");
    let mut record = tool();
    record
        .arg("--socket")
        .arg(fake.socket())
        .arg("record")
        .arg("-o")
        .arg(&file);
    let ended = finish(record.args(["--", "true"]));
    assert_eq!((ended.status, events(&file)), (Some(1), 3), "{ended:?}");
    assert!(ended.stderr.contains(words), "{ended:?}");
    assert!(
        ended.stderr.contains("; nothing more is recorded"),
        "{ended:?}"
    );
    let fetches = fake
        .asked()
        .iter()
        .filter(|line| line.starts_with("fetch"))
        .count();
    assert_eq!(
        fetches, 1,
        "after a failure the same events would come again"
    );
}

#[test]
fn a_fetch_that_breaks_ends_the_recording_with_what_came() {
    let broken = |script: &mut Script| {
        script.parts.pop();
        script.broken = Some(Status::internal("the reader is gone"));
    };
    what_came_is_kept(broken, "the reader is gone");
}

#[test]
fn a_fetch_that_was_not_committed_ends_the_recording_with_what_came() {
    let refused = |script: &mut Script| script.commit = Some(Status::not_found("no such fetch"));
    what_came_is_kept(refused, "no such fetch");
}
