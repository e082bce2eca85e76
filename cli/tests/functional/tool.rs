//! Runs the program.

use std::ffi::OsStr;
use std::process::{Command, Output, Stdio};

/// The program, without anything of this process's environment that it would read, and with signals as they are by
/// default: what started the tests may ignore some (`nohup`), and the program leaves an ignored signal alone.
pub(crate) fn tool() -> Command {
    let mut command = Command::new("env");
    command
        .arg("--default-signal=HUP,INT,TERM")
        .arg(env!("CARGO_BIN_EXE_nrt-tracectl"));
    for variable in [
        "NRT_TRACE_SOCKET",
        "NRT_TRACE_PRODUCER_SOCKET",
        "NRT_TRACE_TOKEN",
        "NO_COLOR",
    ] {
        command.env_remove(variable);
    }
    command.stdin(Stdio::null());
    command
}

/// How a run ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs the program with these arguments.
pub(crate) fn run(arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Ended {
    finish(tool().args(arguments))
}

/// Runs a command to its end.
pub(crate) fn finish(command: &mut Command) -> Ended {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().unwrap();
    Ended {
        status: status.code(),
        stdout: String::from_utf8(stdout).unwrap(),
        stderr: String::from_utf8(stderr).unwrap(),
    }
}

/// Runs a shell script in a mount namespace of its own, which is possible for anybody; it ends with 99 where it can't mount.
/// `None`, and a loud word, where there is no such namespace.
#[expect(clippy::print_stdout, reason = "what was not run has to be said")]
pub(crate) fn in_own_mounts(script: &str, arguments: &[&OsStr]) -> Option<Ended> {
    let mut apart = Command::new("unshare");
    apart.args(["--map-root-user", "--mount", "sh", "-c", script]);
    apart
        .arg(env!("CARGO_BIN_EXE_nrt-tracectl"))
        .args(arguments);
    let ended = finish(&mut apart);
    if ended.status == Some(99) || ended.stderr.starts_with("unshare:") {
        println!("NOT RUN: no mount namespace here: {}", ended.stderr);
        return None;
    }
    Some(ended)
}

impl Ended {
    /// Checks that it failed with this status and exactly one line on standard error, which has all of `words`.
    pub(crate) fn one_line(&self, status: i32, words: &[&str]) {
        assert_eq!(self.status, Some(status), "{self:?}");
        assert_eq!(self.stderr.lines().count(), 1, "{self:?}");
        assert!(self.stderr.starts_with("nrt-tracectl: error: "), "{self:?}");
        for word in words {
            assert!(self.stderr.contains(word), "no {word:?} in {self:?}");
        }
        assert_eq!(self.stdout, "", "{self:?}");
    }
}
