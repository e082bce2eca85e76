//! Where a setting's value comes from.

use std::fmt;
use std::path::PathBuf;

/// Who said it. A later one overrides an earlier one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Origin {
    /// Nobody: it is the default.
    #[default]
    Default,
    /// A configuration file.
    File {
        /// Its path; none for a text that is in no file.
        path: Option<PathBuf>,
        /// Line, from 1.
        line: usize,
    },
    /// A variable of the environment.
    Environment(String),
    /// A flag of the command line.
    Flag(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line } => match path {
                Some(path) => write!(f, "{}, line {line}", path.display()),
                None => write!(f, "line {line}"),
            },
            Self::Environment(name) => f.write_str(name),
            Self::Flag(name) => f.write_str(name),
        }
    }
}
