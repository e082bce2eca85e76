//! `nrt-trace-workload`: the instrumented training run by itself, with or without a tracer.

#![forbid(unsafe_code)]

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, Parser, Subcommand};
use nrt_trace_workload::{Config, Launcher, WorkerArgs, run_parent, run_worker};

/// Trains a small model over several processes, emitting what Neuron's runtime would, and checks the result.
#[derive(Debug, Parser)]
#[command(version, args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(subcommand)]
    worker: Option<Hidden>,
    #[command(flatten)]
    run: Run,
}

#[derive(Debug, Subcommand)]
enum Hidden {
    /// One worker process of a run
    #[command(hide = true)]
    Worker(WorkerArgs),
}

#[derive(Debug, Args)]
struct Run {
    #[command(flatten)]
    config: Config,
    /// Write the account of events and the result as JSON to this file
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    match cli.worker.map_or_else(
        || run(&cli.run),
        |Hidden::Worker(args)| Ok(run_worker(&args).map(|()| true)?),
    ) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            // Nobody is left to tell if stderr is closed.
            let _closed = writeln!(io::stderr(), "nrt-trace-workload: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs all of it; false if the result is not right.
fn run(run: &Run) -> anyhow::Result<bool> {
    let program = std::env::current_exe().context("cannot find this program's own file")?;
    let launcher = Launcher {
        program,
        arguments: vec!["worker".into()],
        environment: Vec::new(),
    };
    let report = run_parent(&run.config, &launcher)?;
    if let Some(path) = &run.report {
        report
            .write(path)
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    io::stdout()
        .write_all(report.to_text().as_bytes())
        .context("cannot write the report")?;
    Ok(report.check.ok)
}
