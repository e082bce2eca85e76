//! `nrt-tracectl`: records, controls and reads traces of NeuronCore workloads.

#![forbid(unsafe_code)]

mod cli;
mod client;
mod command;
mod environment;
mod error;
mod input;
mod output;
mod record;
mod values;

use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = match cli::parse(std::env::args_os()) {
        Ok(cli) => cli,
        Err(ended) => return ended,
    };
    match command::run(cli) {
        Ok(code) => code,
        Err(failure) => failure.report(),
    }
}
