//! What can be wrong with the settings.

use std::fmt;
use std::path::PathBuf;

use super::origin::Origin;

/// Settings that can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The configuration file can't be read.
    #[error("can't read the configuration file {}: {source}", .path.display())]
    Read {
        /// Its path.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// All that is wrong, in the order in which it stands.
    #[error("{}", .0.iter().map(Wrong::to_string).collect::<Vec<_>>().join("; "))]
    Wrong(Vec<Wrong>),
}

impl ConfigError {
    /// Each defect by itself, on a line.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        match self {
            Self::Wrong(all) => all.iter().map(Wrong::to_string).collect(),
            Self::Read { .. } => vec![self.to_string()],
        }
    }
}

/// One thing that is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Wrong {
    /// Where it was said.
    pub at: Origin,
    /// What is wrong.
    pub problem: Problem,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.at, &self.problem) {
            (Origin::Default, problem) => problem.fmt(f),
            // Of the variable itself.
            (at, problem @ (Problem::Empty | Problem::UnknownVariable { .. })) => {
                write!(f, "{at} {problem}")
            }
            (at, problem) => write!(f, "{at}: {problem}"),
        }
    }
}

/// What is wrong with a setting.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The file is no TOML.
    #[error("{0}")]
    Syntax(String),
    /// The line of a key is no TOML.
    #[error("{key}: {said}; allowed: {allowed}")]
    Line {
        /// The key.
        key: &'static str,
        /// What is wrong.
        said: String,
        /// What would be right, and how it is written.
        allowed: String,
    },
    /// A key that has a line already.
    #[error("{key} is set already, in line {first}; allowed: one line, with {allowed}")]
    Twice {
        /// The key.
        key: &'static str,
        /// The other line.
        first: usize,
        /// What it may be.
        allowed: &'static str,
    },
    /// There is no such key.
    #[error("unknown key {key}; {} (nrt-traced print-config --sample lists all)", near.map_or_else(
        || format!("allowed: {}", super::keys::names().join(", ")),
        |near| format!("did you mean {near}?"),
    ))]
    Unknown {
        /// The key.
        key: String,
        /// One that is written almost like it.
        near: Option<&'static str>,
    },
    /// A variable of the environment under the daemon's prefix stands for no key.
    #[error("stands for no key; {}", near.as_ref().map_or_else(
        || format!("keys: {}", super::keys::names().join(", ")),
        |near| format!("did you mean {near}?"),
    ))]
    UnknownVariable {
        /// One that is written almost like it.
        near: Option<String>,
    },
    /// A value of another type than the key's.
    #[error("{key} is {found}; allowed: {allowed}")]
    Type {
        /// The key.
        key: &'static str,
        /// What it is.
        found: &'static str,
        /// What would be right.
        allowed: &'static str,
    },
    /// A value outside what is allowed.
    #[error("{key} is {value}; allowed: {allowed}")]
    Value {
        /// The key.
        key: &'static str,
        /// The value given.
        value: String,
        /// What would be right.
        allowed: &'static str,
    },
    /// A variable of the environment that is set and empty.
    #[error("is set, but to nothing: give it a value, or unset it")]
    Empty,
}
