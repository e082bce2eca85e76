//! How a command ends badly: one line for the person, one status for the shell.
//!
//! | status | meaning |
//! |---|---|
//! | 0 | done; also when the reader of the output went away |
//! | 1 | it failed, and nothing was consumed |
//! | 3 | it was done, but the answer could not be written |
//! | 2 | usage: an argument is wrong, or the daemon refused one |
//! | 126, 127 | `record`: the command can't be executed, or does not exist |
//! | 129, 130, 143 | SIGHUP, SIGINT (Ctrl-C) or SIGTERM ended it; a file that was not finished is not there |
//! | else | `record`: the command's own status, 128 + N when signal N ended it |

use std::fmt::Display;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use nrt_trace_proto::STATUS_METADATA;
use tonic::{Code, Status};

use crate::output::tell;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// An argument is wrong: says which, and what is allowed.
    #[error("{0}")]
    Usage(String),
    /// It could not be done.
    #[error("{0}")]
    Failed(String),
    /// Somebody else is at it just now; a moment later it may work.
    #[error("{0}")]
    Busy(String),
    /// The daemon is not there any more, or not there yet.
    #[error("{0}")]
    Gone(String),
    /// The command of `record` could not be started.
    #[error("{message}")]
    Command {
        /// What happened.
        message: String,
        /// 126 or 127.
        status: u8,
    },
    /// It was done; only what there is to say of it could not be written.
    #[error("{0}")]
    Untold(String),
    /// The reader of our output went away. That is its right, and no failure of ours.
    #[error("the reader of the output went away")]
    Closed,
}

impl Failure {
    /// A failure of reading or writing `path`.
    pub(crate) fn file(action: &str, path: impl AsRef<Path>, error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::Closed;
        }
        Self::Failed(format!(
            "cannot {action} {}: {}",
            path.as_ref().display(),
            reason(error)
        ))
    }

    /// A failure that keeps this one's kind and says in front what was being done.
    pub(crate) fn while_doing(self, what: impl Display) -> Self {
        match self {
            Self::Usage(text) => Self::Usage(format!("{what}: {text}")),
            Self::Failed(text) => Self::Failed(format!("{what}: {text}")),
            Self::Gone(text) => Self::Gone(format!("{what}: {text}")),
            other => other,
        }
    }

    /// The same after it was done, which `done` says: it must not look as if it had failed, and be done again.
    pub(crate) fn after(self, done: impl Display) -> Self {
        match self {
            Self::Failed(text) => {
                Self::Untold(format!("{done}; only the answer is missing: {text}"))
            }
            other => other,
        }
    }

    /// What the shell gets.
    pub(crate) fn status(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Failed(_) | Self::Busy(_) | Self::Gone(_) => 1,
            Self::Command { status, .. } => *status,
            Self::Untold(_) => 3,
            Self::Closed => 0,
        }
    }

    /// Says it on standard error.
    pub(crate) fn report(&self) -> ExitCode {
        if !matches!(self, Self::Closed) {
            tell::error(self);
        }
        ExitCode::from(self.status())
    }
}

/// Errors of writing to standard output, where nothing needs to be named.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::file("write", "standard output", &error)
    }
}

/// What the system says, without the number that Rust appends.
pub(crate) fn reason(error: &io::Error) -> String {
    if error.raw_os_error() == Some(rustix::io::Errno::MFILE.raw_os_error()) {
        return "no descriptor is left, raise the limit of open files (ulimit -n)".to_owned();
    }
    let text = error.to_string();
    match text.split_once(" (os error ") {
        Some((words, _)) => words.to_owned(),
        None => text,
    }
}

/// What the daemon at `socket` answered, or that it does not answer any more.
pub(crate) fn from_status(status: &Status, socket: &Path) -> Failure {
    let text = &with_code(status);
    match status.code() {
        Code::Aborted => Failure::Busy(text.to_owned()),
        Code::InvalidArgument => Failure::Usage(text.to_owned()),
        Code::Unimplemented => Failure::Failed(format!(
            "the daemon at {} does not know this request: it is of another version",
            socket.display()
        )),
        Code::DeadlineExceeded => Failure::Failed(format!(
            "the daemon at {} did not answer in time: {text}",
            socket.display()
        )),
        Code::Unavailable | Code::Unknown | Code::Cancelled => Failure::Gone(format!(
            "the connection to the daemon at {} broke: {}",
            socket.display(),
            innermost(status)
        )),
        // The daemon wrote these for a person: which run, which fetch, which limit.
        _ => Failure::Failed(text.to_owned()),
    }
}

/// The daemon's words, with the runtime's code where it says one: `… NRT_FAILURE (1)`.
fn with_code(status: &Status) -> String {
    let text = status.message();
    let code = status.metadata().get(STATUS_METADATA);
    match code.and_then(|code| code.to_str().ok()?.parse::<i32>().ok()) {
        Some(code) => format!("{text}: {} ({code})", nrt_trace_model::status::name(code)),
        None => text.to_owned(),
    }
}

/// The cause at the bottom of a transport error, whose own text is only "transport error".
pub(crate) fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut deepest = error;
    while let Some(next) = deepest.source() {
        deepest = next;
    }
    match deepest.downcast_ref::<Status>() {
        Some(status) => status.message().to_owned(),
        None => deepest.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_pipe_is_success_and_silent() {
        let failure = Failure::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert!(matches!(failure, Failure::Closed));
        assert_eq!(failure.status(), 0);
    }

    #[test]
    fn a_system_error_reads_as_words() {
        let failure = Failure::file("write", "/x/t.json", &io::Error::from_raw_os_error(28));
        assert_eq!(
            failure.to_string(),
            "cannot write /x/t.json: No space left on device"
        );
        assert_eq!(failure.status(), 1);
    }

    #[test]
    fn what_the_daemon_refuses_as_an_argument_is_usage() {
        let refused = from_status(&Status::invalid_argument("no such event"), Path::new("/s"));
        assert_eq!(
            (refused.status(), refused.to_string().as_str()),
            (2, "no such event")
        );
        let mut coded = Status::failed_precondition("not now");
        for (code, words) in [
            (1, "not now: NRT_FAILURE (1)"),
            (-7, "not now: UNKNOWN (-7)"),
        ] {
            coded.metadata_mut().insert(STATUS_METADATA, code.into());
            let failure = from_status(&coded, Path::new("/s"));
            assert_eq!((failure.status(), failure.to_string().as_str()), (1, words));
        }
        let busy = from_status(
            &Status::aborted("another fetch is running"),
            Path::new("/s"),
        );
        assert_eq!(
            (busy.status(), busy.to_string().as_str()),
            (1, "another fetch is running")
        );
        let gone = from_status(&Status::unavailable("reset"), Path::new("/s"));
        assert!(gone.to_string().contains("/s broke: reset"), "{gone}");
    }
}
