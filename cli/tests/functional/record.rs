//! Recording with real processes. The program records itself: its hidden verb `demo-pump` emits a given number of events.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::Signal;
use tonic::Status;

use crate::fake::{Fake, Script};
use crate::fetch::parts;
use crate::place::{PROGRAM, Place, events, runs, signal, spawn, until, wait};
use crate::tool::{finish, in_own_mounts, tool};

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
            ended.stderr.contains("no process was captured"),
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
fn a_duration_ends_a_recording_of_the_host() {
    let place = Place::new();
    let file = place.path("t.json");
    let ended = finish(&mut place.record(&file, &["--duration", "50ms"]));
    assert_eq!((ended.status, events(&file)), (Some(0), 0), "{ended:?}");
    let words = "only programs that are started with NRT_TRACE_PRODUCER_SOCKET=";
    assert!(ended.stderr.contains(words), "{ended:?}");
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
fn l03_a_full_disk_is_told_and_the_command_goes_on() {
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

/// A folder that takes no file, for root neither; one that is there is protected like the folder.
#[test]
fn a_read_only_folder_is_told_before_the_command_runs() {
    let place = Place::new();
    let folder = place.path("folder");
    fs::create_dir(&folder).unwrap();
    let script = "mount -t tmpfs tmpfs \"$1\" && touch \"$1/old.json\" && mount -o remount,ro \"$1\" || exit 99; \
        exec \"$0\" --socket \"$1/none\" record -o \"$1/$2\" -- touch \"$3\"";
    let ran = place.path("ran");
    for name in ["new.json", "new.nrtt", "old.json"] {
        let arguments = [folder.as_os_str(), name.as_ref(), ran.as_os_str()];
        let Some(ended) = in_own_mounts(script, &arguments) else {
            return;
        };
        ended.one_line(1, &["cannot write", name, "Read-only file system"]);
        assert!(!ran.exists(), "{name}");
    }
}

/// A reader that has seen enough ends the trace, not the command, and is no failure of the recording.
#[test]
fn l01_the_status_is_the_commands_also_when_nobody_reads_the_trace() {
    for status in [0, 7] {
        let place = Place::new();
        let script = format!("'{PROGRAM}' demo-pump --rate 20000 --threads 1; exit {status}");
        let mut record = place.record("-".as_ref(), &["--", "sh", "-c", &script]);
        let mut child = (record.stdout(Stdio::piped()).stderr(Stdio::piped()))
            .spawn()
            .unwrap();
        let mut stdout = child.stdout.take().unwrap();
        let mut first = [0];
        stdout.read_exact(&mut first).unwrap();
        drop(stdout);
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(
            (first, output.status.code()),
            (*b"{", Some(status)),
            "{said}"
        );
        assert!(!said.contains("error") && !said.contains("panic"), "{said}");
        assert_eq!(place.names(), Vec::<OsString>::new());
    }
}

/// The summary is for people; the command's own status says more than that nobody could read it.
#[test]
fn a_summary_that_cannot_be_written_is_no_failure_of_the_command() {
    for (script, status) in [("exit 0", 3), ("exit 7", 7)] {
        let place = Place::new();
        let file = place.path("t.json");
        let mut record = place.record(&file, &["--", "sh", "-c", script]);
        record.stdout(File::options().write(true).open("/dev/full").unwrap());
        let child = record.stderr(Stdio::piped()).spawn().unwrap();
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(
            (output.status.code(), events(&file)),
            (Some(status), 0),
            "{said}"
        );
        assert!(
            said.contains("the recording is over; only the answer is missing"),
            "{said}"
        );
    }
}

/// The events are consumed by then: a trace that can't be written where it is wanted is kept elsewhere.
#[test]
fn l03_a_full_disk_behind_standard_output_leaves_what_was_recorded() {
    let full = || File::options().write(true).open("/dev/full").unwrap();
    for (output, to) in [
        ("-", "json"),
        ("-", "csv"),
        ("-", "nrtt"),
        ("/dev/full", "json"),
    ] {
        let place = Place::new();
        let rest = place.path("rest");
        fs::create_dir(&rest).unwrap();
        let pump = [
            "--to",
            to,
            "--",
            PROGRAM,
            "demo-pump",
            "--rate",
            "1000",
            "--threads",
            "1",
        ];
        let mut record = place.record(output.as_ref(), &pump);
        let record = record.env("TMPDIR", &rest).stdout(full());
        let child = record.stderr(Stdio::piped()).spawn().unwrap();
        let said = child.wait_with_output().unwrap();
        let (status, said) = (said.status.code(), String::from_utf8(said.stderr).unwrap());
        let kept = fs::read_dir(&rest).unwrap().next();
        let kept = kept.unwrap_or_else(|| panic!("nothing is kept: {said}"));
        let kept = kept.unwrap().path();
        let words = format!(
            "No space left on device; what was recorded is in {} (native format)",
            kept.display()
        );
        assert!(
            status == Some(1) && said.contains(&words),
            "{status:?} {said}"
        );
        let json = place.path("kept.json");
        let mut convert = tool();
        let converted = finish(convert.arg("convert").arg(&kept).arg("-o").arg(&json));
        assert_eq!((converted.status, events(&json)), (Some(0), 1000));
    }
}

#[test]
fn l03_what_can_be_kept_nowhere_is_told_as_lost() {
    let place = Place::new();
    let rest = place.path("rest");
    fs::create_dir(&rest).unwrap();
    let script = format!("'{PROGRAM}' demo-pump --rate 1000 --threads 1; rmdir \"$TMPDIR\"");
    let mut record = place.record("/dev/full".as_ref(), &["--", "sh", "-c", &script]);
    let ended = finish(record.env("TMPDIR", &rest));
    assert_eq!(ended.status, Some(1), "{ended:?}");
    let words = format!(
        "cannot write /dev/full: No space left on device; 1,000 events are lost: they can't be kept in {} either: ",
        rest.display()
    );
    assert!(ended.stderr.contains(&words), "{ended:?}");
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
    let refused = |script: &mut Script| script.commit = Some(Status::internal("no room for it"));
    what_came_is_kept(refused, "no room for it");
}

/// A fetch that another one made void is taken back, and comes again; one that never holds ends the recording, in words.
#[test]
fn a_fetch_that_is_always_void_ends_the_recording() {
    let fake = Fake::start(|script| {
        script.parts = parts(3, 3);
        script.commit = Some(Status::not_found("not the last fetch"));
    });
    let file = fake.folder().join("t.json");
    let mut record = tool();
    record.arg("--socket").arg(fake.socket());
    record.arg("record").arg("-o").arg(&file);
    let ended = finish(record.args(["--", "true"]));
    assert_eq!((ended.status, events(&file)), (Some(1), 0), "{ended:?}");
    assert!(ended.stderr.contains("not the last fetch"), "{ended:?}");
    let kept = "what was not recorded may still be with the daemon";
    assert!(ended.stderr.contains(kept), "{ended:?}");
}
