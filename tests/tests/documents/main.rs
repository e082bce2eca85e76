//! What the documents tell people to do, done as they say.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod completions;
mod install;
mod man;
mod pages;
mod snippets;
