//! How much a log holds.

/// The least that a line must matter to be in the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogLevel {
    /// An operator must act.
    Error,
    /// Something is degraded.
    Warn,
    /// A step of a life cycle.
    #[default]
    Info,
    /// Details of one session.
    Debug,
    /// Everything.
    Trace,
}

impl LogLevel {
    const ALL: [Self; 5] = [
        Self::Error,
        Self::Warn,
        Self::Info,
        Self::Debug,
        Self::Trace,
    ];
}

impl std::fmt::Display for LogLevel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        })
    }
}

impl std::str::FromStr for LogLevel {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        (Self::ALL.into_iter())
            .find(|level| level.to_string() == text)
            .ok_or(())
    }
}
