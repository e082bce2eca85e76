//! `nrt-traced`: the trace collector as a service. Everything is in the library.

#![forbid(unsafe_code)]

use std::fmt::Display;
use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;
use nrt_traced::{Flags, StartError, one_line, service};

/// Exit status for flags and settings that can't be used.
const BAD_SETTINGS: u8 = 2;

fn main() -> ExitCode {
    let flags = match Flags::try_parse() {
        Ok(flags) => flags,
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
            ) =>
        {
            // A reader that has seen enough is no failure.
            let _best_effort = error.print();
            return ExitCode::SUCCESS;
        }
        Err(error) => return fail(&one_line(&error), BAD_SETTINGS),
    };
    let config = match flags.resolve() {
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
fn fail(error: &dyn Display, status: u8) -> ExitCode {
    eprintln!("nrt-traced: {error}");
    ExitCode::from(status)
}
