//! A producer whose threads stop at labelled steps, and a daemon that is killed at one: what the crash tests drive.
//!
//! `producer` takes commands on standard input and answers each with one line (see [`producer`]). `daemon` is the real
//! daemon, but for the step at which it kills itself. `labels` prints every label that is compiled in.

#![forbid(unsafe_code)]

mod producer;
mod trap;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use nrt_traced::{Flags, service};

#[derive(Debug, Parser)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Emits numbered events, as told on standard input
    Producer {
        /// The private log: one entry before and one after each emit
        #[arg(long)]
        log: PathBuf,
        /// Step at which the background thread stops, from the start on
        #[arg(long)]
        trap: Option<String>,
    },
    /// Runs the daemon
    Daemon {
        /// Step at which it comes to its end, or to a rest
        #[arg(long)]
        at: String,
        /// At which time that it passes the step
        #[arg(long, default_value_t = 1)]
        pass: u32,
        /// Passes count from the moment on at which there is this file
        #[arg(long)]
        from: Option<PathBuf>,
        /// In place of killing itself, the thread makes this file, and goes on when it is gone
        #[arg(long)]
        rest: Option<PathBuf>,
        #[command(flatten)]
        flags: Flags,
    },
    /// Prints the labels, one a line
    Labels,
}

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _closed = writeln!(io::stderr(), "stepper: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> io::Result<()> {
    match command {
        Command::Producer { log, trap } => producer::run(&log, trap.as_deref()),
        Command::Daemon {
            at,
            pass,
            from,
            rest,
            flags,
        } => {
            trap::end_at(at, pass, from, rest);
            service::run(&flags).map_err(io::Error::other)
        }
        Command::Labels => {
            let mut out = io::stdout().lock();
            let labels = (nrt_trace_ring::step::LABELS.iter())
                .chain(&nrt_trace_client::step::LABELS)
                .chain(&nrt_traced::step::LABELS);
            for label in labels {
                writeln!(out, "{label}")?;
            }
            Ok(())
        }
    }
}
