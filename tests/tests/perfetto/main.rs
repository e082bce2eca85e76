//! The demo's own trace in Perfetto's Trace Processor, against what its JSON document says.

#![expect(clippy::unwrap_used, reason = "tests: a helper fails by panicking")]

mod counted;
mod demo;
#[path = "../../../crates/export/tests/perfetto/engine.rs"]
#[expect(dead_code, reason = "the other tests use the rest")]
mod engine;
