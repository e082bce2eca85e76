//! What can be wrong with the settings.

use std::path::PathBuf;

/// Settings that can't be used: each names the key or the file, and what is allowed.
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
    /// The configuration is no TOML, or has a key or a type that does not exist.
    #[error("bad configuration{}: {problem}", .line.map(|n| format!(", line {n}")).unwrap_or_default())]
    Syntax {
        /// Line of the text, from 1, where known.
        line: Option<usize>,
        /// What is wrong, on one line.
        problem: String,
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
    /// A value of a configuration file, with the file.
    #[error("{}: {error}", .path.display())]
    InFile {
        /// The file.
        path: PathBuf,
        /// What is wrong in it.
        error: Box<Self>,
    },
}
