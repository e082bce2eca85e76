//! A folder for a test that records, and what such tests need.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nrt_traced::{Config, Daemon, Running};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::tool::{Ended, finish, tool};

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_nrt-tracectl");

/// Longer than anything here takes on a busy machine.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// A folder, and the path of a socket at which there is no daemon.
pub(crate) struct Place {
    pub(crate) folder: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// `record -o OUTPUT … -- COMMAND…`, with a private daemon unless one is put at the socket.
    pub(crate) fn record(&self, output: &Path, more: &[&str]) -> Command {
        let mut record = tool();
        record.env("XDG_RUNTIME_DIR", self.folder.path());
        record.arg("--socket").arg(self.path("control.sock"));
        record.arg("record").arg("-o").arg(output).args(more);
        record
    }

    pub(crate) fn daemon(&self) -> Running {
        Daemon::start(Config::embedded_in(self.folder.path())).unwrap()
    }

    pub(crate) fn names(&self) -> Vec<OsString> {
        let entries = fs::read_dir(self.folder.path()).unwrap();
        let mut names: Vec<OsString> = entries.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    }
}

pub(crate) fn events(file: &Path) -> usize {
    let document: serde_json::Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    document["events"].as_array().unwrap().len()
}

pub(crate) fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < DEADLINE, "{what} did not come about");
        std::thread::park_timeout(Duration::from_millis(2));
    }
}

pub(crate) fn signal(child: &Child, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

/// Starts a recording whose output is kept. The tests may have been started with signals ignored (nohup), which a
/// recording would rightly leave so: `env` gives it a clean start.
pub(crate) fn spawn(record: &Command) -> Child {
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
pub(crate) fn wait(mut child: Child) -> Ended {
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

/// Runs that the daemon knows of.
pub(crate) fn runs(place: &Place) -> usize {
    let mut status = tool();
    status
        .arg("--socket")
        .arg(place.path("control.sock"))
        .args(["status", "--format", "json"]);
    let ended = finish(&mut status);
    let document: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    document["runs"].as_array().unwrap().len()
}
