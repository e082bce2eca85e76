//! Signals while a trace is read or written: a line that says what became of it, and nothing half.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::Signal;

use crate::convert::{Folder, trace};
use crate::fake::Fake;
use crate::fetch::{commits, parts};
use crate::place::{signal, spawn, until, wait};
use crate::terminal::on_terminal;
use crate::tool::tool;

pub(crate) fn named_pipe(path: &Path) {
    let made = Command::new("mkfifo").arg(path).status().unwrap();
    assert!(made.success());
}

/// Opens a named pipe for writing, once somebody reads it.
fn writer_of(path: &Path) -> File {
    let mut writer = None;
    until("a reader of the pipe", || {
        let mut options = File::options();
        options
            .write(true)
            .custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
        writer = options.open(path).ok();
        writer.is_some()
    });
    writer.unwrap()
}

const SIGNALS: [(Signal, i32, &str); 3] = [
    (Signal::INT, 130, "SIGINT"),
    (Signal::TERM, 143, "SIGTERM"),
    (Signal::HUP, 129, "SIGHUP"),
];

#[test]
fn l02_a_conversion_that_is_ended_leaves_the_old_file_and_says_so() {
    let folder = Folder::new();
    let (pipe, place) = (folder.path("in.json"), folder.path("out.pftrace"));
    named_pipe(&pipe);
    fs::write(&place, "old").unwrap();
    let there = folder.names();
    for (number, status, name) in SIGNALS {
        let mut command = tool();
        command.arg("convert").arg(&pipe).arg("-o").arg(&place);
        let child = spawn(&command);
        // It reads: a begun document that does not go on.
        let mut input = writer_of(&pipe);
        input.write_all(b"{\"events\":[").unwrap();
        signal(&child, number);
        let ended = wait(child);
        let said = format!("ended by {name}: {} was not written", place.display());
        ended.one_line(status, &[&said]);
        assert_eq!(fs::read(&place).unwrap(), b"old");
        assert_eq!(folder.names(), there);
    }
}

#[test]
fn l02_a_summary_that_is_ended_says_so() {
    let folder = Folder::new();
    let pipe = folder.path("in.json");
    named_pipe(&pipe);
    let mut command = tool();
    command.arg("summary").arg(&pipe);
    let child = spawn(&command);
    let _input = writer_of(&pipe);
    signal(&child, Signal::INT);
    wait(child).one_line(130, &["ended by SIGINT"]);
}

#[test]
fn l02_a_fetch_that_is_ended_consumes_nothing() {
    let fake = Fake::start(|script| script.parts = parts(9_000, 9_000));
    let pipe = fake.folder().join("out.json");
    named_pipe(&pipe);
    let mut command = tool();
    command.arg("--socket").arg(fake.socket());
    command.arg("fetch").arg("-o").arg(&pipe);
    let child = spawn(&command);
    let mut reader = File::open(&pipe).unwrap();
    let mut begin = [0; 10];
    reader.read_exact(&mut begin).unwrap();
    // The pipe holds less than the document: it waits for its reader.
    signal(&child, Signal::INT);
    let said = format!(
        "ended by SIGINT: {} ends in the middle; nothing was consumed",
        pipe.display()
    );
    wait(child).one_line(130, &[&said]);
    assert_eq!(commits(&fake), Vec::<String>::new());
}

#[test]
fn an_ignored_signal_stays_ignored() {
    let folder = Folder::new();
    let pipe = folder.path("in.json");
    named_pipe(&pipe);
    let mut command = Command::new("env");
    command
        .arg("--ignore-signal=INT,HUP")
        .arg(env!("CARGO_BIN_EXE_nrt-tracectl"))
        .arg("convert")
        .arg(&pipe)
        .arg("-o")
        .arg(folder.path("out.json"))
        .stdin(Stdio::null());
    let child = spawn(&command);
    let mut input = writer_of(&pipe);
    for number in [Signal::INT, Signal::HUP] {
        signal(&child, number);
    }
    input
        .write_all(b"{\"events\":[],\"data_version\":2}")
        .unwrap();
    drop(input);
    let ended = wait(child);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    assert!(folder.path("out.json").exists());
}

/// Ctrl-C, typed while the line with share, rate and time left is on the screen.
#[test]
fn l02_ctrl_c_takes_the_progress_away_and_says_what_is_left() {
    let folder = Folder::new();
    fs::write(folder.path("large.nrtt"), trace(3000)).unwrap();
    let pipe = folder.path("out.json");
    named_pipe(&pipe);
    let mut command = tool();
    command
        .arg("convert")
        .arg(folder.path("large.nrtt"))
        .arg("-o")
        .arg(&pipe);
    let (mut child, mut terminal) = on_terminal(&command);
    let mut reader = File::open(&pipe).unwrap();
    let mut piece = vec![0; 64 << 10];
    // As slowly as this the trace takes seconds, in which the line changes again and again.
    until("share, rate and time left", || {
        reader.read_exact(&mut piece).unwrap();
        let screen = terminal.screen();
        screen
            .split("\r\x1b[K")
            .any(|line| line.starts_with("writing the trace: ") && line.ends_with(" left"))
    });
    let screen = terminal.screen();
    let line = screen
        .split("\r\x1b[K")
        .find(|line| line.ends_with(" left"))
        .unwrap();
    let parts: Vec<&str> = line.split(", ").collect();
    assert_eq!(parts.len(), 3, "{line:?}");
    assert!(parts[0].ends_with(" %"), "{line:?}");
    assert!(parts[1].ends_with("/s"), "{line:?}");
    terminal.keyboard.write_all(&[3]).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let screen = terminal.rest();
    let last = screen.rsplit("\r\x1b[K").next().unwrap();
    assert!(
        last.contains("ended by SIGINT: ") && last.contains("ends in the middle"),
        "{screen:?}"
    );
}
