//! The documents as a caller of this crate sees them.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod golden;
mod host;
mod json;
mod json_any;
mod json_read;
mod native;
mod pairs;
mod parts;
mod regroup;
mod summary;
