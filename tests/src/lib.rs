//! The harness of the end-to-end tests: builds the programs, gives each test a host of its own, reads what comes out.
//!
//! | module | what |
//! |---|---|
//! | [`mod@artifacts`] | the programs under test, built once for a test run |
//! | [`host`] | a folder, sockets, environment and daemon for one test |
//! | [`manager`] | a service manager that keeps descriptors for the next daemon |
//! | [`mod@run`] | programs under a deadline, with what they said when they fail |
//! | [`checkout`] | a source tree that has been built, to install from |
//! | [`mod@compile`] | C programs against the library of the build tree |
//! | [`document`] | JSON traces, read strictly |
//! | [`control`] | the control API, for tests that make thousands of calls |
//! | [`stepper`] | a producer whose threads stop at labelled steps |
//! | [`ledger`] | a producer's private log: what there must be |
//! | [`oracle`] | what a fetch has to bring, by that log |
//! | [`held`] | what a process holds, at two moments |
//! | [`dice`] | random choices that a seed repeats |
//! | [`page`] | a document whose commands are run |
//! | [`payload`] | numbered events with a checksum: what the `probe` program emits |
//! | [`wait`] | conditions with a deadline |
//!
//! The tests themselves are in `tests/`, by kind of promise.

#![forbid(unsafe_code)]
#![expect(clippy::panic, reason = "a harness fails a test by panicking")]

/// Compiled and run by `cargo test`: the README's program in Rust.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub struct Readme;

pub mod artifacts;
pub mod checkout;
pub mod compile;
pub mod control;
pub mod dice;
pub mod document;
pub mod held;
pub mod host;
pub mod ledger;
pub mod manager;
pub mod oracle;
pub mod page;
pub mod payload;
pub mod run;
pub mod stepper;
pub mod wait;

pub use artifacts::{Artifacts, artifacts};
pub use compile::{Link, compile};
pub use document::{Document, Event};
pub use host::{Host, PATIENT};
pub use run::{Ended, Running, run};
pub use wait::until;
