//! Why a request about a run is refused.

use nrt_trace_model::Status;

/// A refused request. The message is for the caller; it shows nothing of other users' processes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum RunError {
    /// The scope is being captured already.
    #[error("{scope} is being captured already, for {seconds} s now; stop that run first")]
    AlreadyCapturing {
        /// The scope, in words.
        scope: String,
        /// How long the run has lasted, s.
        seconds: u64,
    },
    /// Events would be lost, and the caller asked not to lose any.
    #[error(
        "{scope} has {unread} unread events of the previous run; fetch or discard them, or start without keep"
    )]
    Unread {
        /// The scope, in words.
        scope: String,
        /// Events that are still there.
        unread: u64,
    },
    /// Nothing to stop.
    #[error("{scope} is not being captured")]
    NotCapturing {
        /// The scope, in words.
        scope: String,
    },
    /// Nothing whose filter could be changed.
    #[error("{scope} is not being captured, so that it has no filter to change; start it first")]
    NoFilter {
        /// The scope, in words.
        scope: String,
    },
    /// No run has this scope.
    #[error("there is no run of {scope}; start one first")]
    NoRun {
        /// The scope, in words.
        scope: String,
    },
    /// One fetch at a time.
    #[error("another fetch of this run is under way")]
    FetchUnderWay,
    /// A commit that fits no fetch.
    #[error("fetch {fetch_id} can't be committed: {why}")]
    NoSuchFetch {
        /// The number given.
        fetch_id: u64,
        /// What is the matter with it.
        why: &'static str,
    },
    /// A value that is not allowed.
    #[error("{0}")]
    Invalid(String),
    /// More requests are waiting than the daemon queues.
    #[error("the daemon has too many requests waiting; try again")]
    Busy,
    /// As many subscribers are there as may be.
    #[error("{0} subscribers are there already; no more are served at a time")]
    Subscribers(usize),
    /// The daemon is on its way out.
    #[error("the daemon is shutting down")]
    ShuttingDown,
}

impl RunError {
    /// What a call of Neuron's runtime would have returned.
    pub(crate) const fn status(&self) -> Status {
        match self {
            Self::AlreadyCapturing { .. }
            | Self::Unread { .. }
            | Self::NotCapturing { .. }
            | Self::FetchUnderWay => Status::Failure,
            Self::NoRun { .. } | Self::NoFilter { .. } | Self::NoSuchFetch { .. } => {
                Status::InvalidHandle
            }
            Self::Invalid(_) => Status::Invalid,
            Self::Busy => Status::QueueFull,
            Self::Subscribers(_) => Status::Resource,
            Self::ShuttingDown => Status::Closed,
        }
    }

    /// A refusal of a value, in words.
    pub(crate) fn invalid(message: impl std::fmt::Display) -> Self {
        Self::Invalid(message.to_string())
    }
}
