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
