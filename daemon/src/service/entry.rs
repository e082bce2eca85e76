//! The program: from its arguments to its exit status.

use std::fmt::Display;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;

use super::log::error_mark;
use super::run;
use crate::config::{
    Checked, Command, CommandLine, ConfigError, DEFAULT_FILE, check_file, one_line, sample,
};
use crate::listen::StartError;

/// Exit status for flags and settings that can't be used.
const BAD_SETTINGS: u8 = 2;

/// Does what the command line says.
#[must_use]
pub fn main() -> ExitCode {
    let line = match CommandLine::try_parse() {
        Ok(line) => line,
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
    match line.command {
        None => match run(&line.flags) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error @ StartError::Config(_)) => fail(&error, BAD_SETTINGS),
            Err(error) => fail(&error, 1),
        },
        Some(Command::CheckConfig { file }) => {
            let path = file.as_deref().unwrap_or_else(|| Path::new(DEFAULT_FILE));
            let path = path.display();
            match check_file(file.as_deref()) {
                Ok(Checked::Good) => print(&format!("{path}: no mistakes\n")),
                Ok(Checked::Absent) => print(&format!(
                    "{path}: there is no such file; the defaults hold\n"
                )),
                Err(error) => each_line(&error),
            }
        }
        Some(Command::PrintConfig { sample: true, .. }) => print(&sample()),
        Some(Command::PrintConfig { flags, .. }) => match flags.settings() {
            Ok(settings) => print(&settings.print()),
            Err(error) => each_line(&error),
        },
    }
}

/// Prints a text; a reader that has seen enough is no failure.
fn print(text: &str) -> ExitCode {
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => fail(&error, 1),
        _ => ExitCode::SUCCESS,
    }
}

/// All that is wrong with the settings, each on a line.
fn each_line(error: &ConfigError) -> ExitCode {
    for line in error.lines() {
        fail(&line, BAD_SETTINGS);
    }
    ExitCode::from(BAD_SETTINGS)
}

#[expect(
    clippy::print_stderr,
    reason = "the one line that a person who started it by hand needs"
)]
fn fail(error: &dyn Display, status: u8) -> ExitCode {
    eprintln!("{}nrt-traced: {error}", error_mark());
    ExitCode::from(status)
}
