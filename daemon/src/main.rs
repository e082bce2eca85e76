//! `nrt-traced`: the trace collector as a service. Everything is in the library.

#![forbid(unsafe_code)]

use std::error::Error;
use std::process::ExitCode;

use clap::Parser;
use nrt_traced::{Flags, StartError, service};

/// Exit status for settings that can't be used; clap exits with the same for bad usage.
const BAD_SETTINGS: u8 = 2;

fn main() -> ExitCode {
    let config = match Flags::parse().resolve() {
        Ok(config) => config,
        Err(error) => return fail(&error, BAD_SETTINGS),
    };
    service::log_to_stderr();
    match service::run(config) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error @ StartError::Config(_)) => fail(&error, BAD_SETTINGS),
        Err(error) => fail(&error, 1),
    }
}

#[expect(
    clippy::print_stderr,
    reason = "the one line that a person who started it by hand needs"
)]
fn fail(error: &dyn Error, status: u8) -> ExitCode {
    eprintln!("nrt-traced: {error}");
    ExitCode::from(status)
}
