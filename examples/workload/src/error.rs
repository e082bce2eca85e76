//! What stops a run.

use std::io;

/// Why a run could not be made, or a worker not go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkloadError {
    /// An option out of range.
    #[error("{option} {value} is not allowed: {low} to {high}")]
    Config {
        /// The option's name.
        option: &'static str,
        /// What was given.
        value: usize,
        /// Least value.
        low: usize,
        /// Greatest value.
        high: usize,
    },
    /// A call of the operating system failed.
    #[error("cannot {what}: {source}")]
    Io {
        /// What was to be done.
        what: &'static str,
        /// The cause.
        source: io::Error,
    },
    /// A worker did not come up.
    #[error("worker {rank} ended before it was ready ({status})")]
    NotReady {
        /// The worker.
        rank: usize,
        /// How it ended.
        status: String,
    },
    /// A worker wrote something else than it should.
    #[error("worker {rank} wrote a line that is not understood: {line}")]
    Line {
        /// The worker.
        rank: usize,
        /// The line.
        line: String,
    },
    /// A worker could not do all its steps; its report says why.
    #[error("{0}")]
    Incomplete(String),
}

impl WorkloadError {
    /// For `map_err`: the failure of an operation that `what` names.
    pub(crate) fn io(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { what, source }
    }
}
