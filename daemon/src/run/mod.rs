//! Captures.
pub(crate) mod error;
