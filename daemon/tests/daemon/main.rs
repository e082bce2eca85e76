//! The daemon against a producer that speaks the protocol by hand, and a plain gRPC client.
//!
//! Each test has its own folder, sockets and daemon, in this process. Nothing sleeps: conditions are waited for.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests: helpers fail by panicking, as the tests themselves do"
)]

mod attach;
mod binary;
mod budgets;
mod capture;
mod ending;
mod fetch;
mod filter;
mod host;
mod hostile_memory;
mod hostile_socket;
mod journal;
mod metrics;
mod overload;
mod own;
mod refusals;
mod scopes;
mod scrape;
mod settings;
mod snapshot;
mod streams;
mod strings;
mod subscribe;
mod support;
mod totals;
mod units;
