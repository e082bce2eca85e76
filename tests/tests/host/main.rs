//! The host monitor of the built daemon: against the system's own tools, on fixtures of `/proc`, in recordings, in C.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests: helpers fail by panicking, as the tests themselves do"
)]

mod against_tools;
mod fixtures;
mod load;
mod outputs;
mod ticks;
