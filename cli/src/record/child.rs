//! The recorded command.

use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};

use rustix::process::{Pid, Signal};
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};

use super::signals::EndSignal;
use crate::error::{Failure, reason};

/// How the command finds the daemon.
#[derive(Clone, Debug)]
pub(crate) struct Environment {
    /// Token of the run.
    pub(crate) token: String,
    /// Control socket, for a `nrt-tracectl` inside the command.
    pub(crate) control_socket: PathBuf,
    /// Socket to which the library attaches.
    pub(crate) producer_socket: PathBuf,
}

/// How long the library may hold the start of a program, or of a forked child, back until it is armed, ms. A daemon answers
/// within one or two, and hundreds that start at once within some seconds; this only bounds what a stuck one can do to them.
const WAIT_MS: &str = "5000";

/// A running command.
#[derive(Debug)]
pub(crate) struct Recorded {
    child: Child,
    /// Keeps the kernel from throwing statuses away, which it does for whoever ignores SIGCHLD, as some job runners have
    /// their children do.
    _statuses: tokio::signal::unix::Signal,
    name: String,
    /// Its status, once it has ended.
    ended: Option<ExitStatus>,
}

impl Recorded {
    /// Starts `command` (program and arguments).
    pub(crate) fn spawn(
        command: &[OsString],
        environment: &Environment,
        output_to_stderr: bool,
    ) -> Result<Self, Failure> {
        let [program, arguments @ ..] = command else {
            return Err(Failure::Usage("there is no command after --".to_owned()));
        };
        let name = program.display().to_string();
        let mut spawn = Command::new(program);
        spawn.args(arguments).envs(variables(environment));
        if output_to_stderr {
            let stderr = io::stderr().as_fd().try_clone_to_owned()?;
            spawn.stdout(Stdio::from(stderr));
        }
        // What the person set for the library holds; the rest is ours.
        if std::env::var_os("NRT_TRACE_WAIT_MS").is_none() {
            spawn.env("NRT_TRACE_WAIT_MS", WAIT_MS);
        }
        let statuses = signal(SignalKind::child())?;
        match spawn.spawn() {
            Ok(child) => Ok(Self {
                child,
                _statuses: statuses,
                name,
                ended: None,
            }),
            Err(error) => Err(not_started(&name, &error)),
        }
    }

    /// How it is called in lines for people.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Its pid, while it runs.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.child.id()
    }

    /// Waits for its end. May be called again, and dropped half-way.
    pub(crate) async fn wait(&mut self) -> ExitStatus {
        if let Some(status) = self.ended {
            return status;
        }
        // It fails only if someone else took the status: then nothing is known but that it ended, which is no success.
        let unknown = |_| ExitStatus::from_raw(1 << 8);
        let status = self.child.wait().await.unwrap_or_else(unknown);
        self.ended = Some(status);
        status
    }

    /// Its status, if it has ended.
    pub(crate) fn ended(&self) -> Option<ExitStatus> {
        self.ended
    }

    /// Passes a signal on, unless the terminal has sent it to the command as well.
    pub(crate) fn pass_on(&self, signal: EndSignal) {
        let pid = self
            .pid()
            .and_then(|pid| i32::try_from(pid).ok())
            .and_then(Pid::from_raw);
        if let (Some(pid), Some(number), false) = (
            pid,
            Signal::from_named_raw(signal.number),
            signal.from_terminal,
        ) {
            // Gone already: then it needs no signal.
            let _best_effort = rustix::process::kill_process(pid, number);
        }
    }
}

fn variables(environment: &Environment) -> Vec<(&'static str, OsString)> {
    vec![
        ("NRT_TRACE_TOKEN", environment.token.clone().into()),
        (
            "NRT_TRACE_SOCKET",
            environment.control_socket.clone().into(),
        ),
        (
            "NRT_TRACE_PRODUCER_SOCKET",
            environment.producer_socket.clone().into(),
        ),
        ("NRT_TRACE_FOLLOW_FORK", "1".into()),
    ]
}

fn not_started(name: &str, error: &io::Error) -> Failure {
    let status = if error.kind() == ErrorKind::NotFound {
        127
    } else {
        126
    };
    let message = match status {
        127 if !name.contains('/') => {
            format!("cannot run {name}: no such command in the folders of PATH")
        }
        _ => format!("cannot run {name}: {}", reason(error)),
    };
    Failure::Command { message, status }
}

/// The exit status that stands for the command's.
pub(crate) fn shell_status(status: ExitStatus) -> u8 {
    let code = match (status.code(), status.signal()) {
        (Some(code), _) => code,
        (None, Some(signal)) => 128 + signal,
        (None, None) => 1,
    };
    u8::try_from(code).unwrap_or(u8::MAX)
}

/// How the command ended, if not well.
pub(crate) fn bad_end(status: ExitStatus) -> Option<String> {
    match (status.code(), status.signal()) {
        (Some(0), _) => None,
        (Some(code), _) => Some(format!("ended with status {code}")),
        (None, Some(signal)) => {
            let name = signal_hook::low_level::signal_name(signal).unwrap_or("a signal");
            Some(format!("was ended by {name} ({signal})"))
        }
        (None, None) => Some("ended in an unknown way".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_the_shells() {
        assert_eq!(shell_status(ExitStatus::from_raw(0)), 0);
        assert_eq!(shell_status(ExitStatus::from_raw(7 << 8)), 7);
        assert_eq!(shell_status(ExitStatus::from_raw(9)), 137);
        assert_eq!(
            bad_end(ExitStatus::from_raw(9)).unwrap(),
            "was ended by SIGKILL (9)"
        );
    }

    #[test]
    fn what_cannot_be_run_has_the_shells_status() {
        let environment = Environment {
            token: String::new(),
            control_socket: PathBuf::new(),
            producer_socket: PathBuf::new(),
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let _inside = runtime.enter();
        let status = |command: &str| {
            Recorded::spawn(&[command.into()], &environment, false)
                .unwrap_err()
                .status()
        };
        assert_eq!(status("/no/such/program"), 127);
        assert_eq!(status("no-such-program-anywhere"), 127);
        assert_eq!(status("/etc/passwd"), 126);
        assert_eq!(status("/"), 126);
    }
}
