//! Measurements of the promises, as ratios within one run: these machines are noisy, and a nanosecond is not a
//! nanosecond an hour later.

#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "a program whose output is its purpose")]

use clap::{Parser, Subcommand};

mod clients;
mod emit;
mod export;
mod fetch;
mod host;
mod instructions;
mod json;
mod lifecycle;
mod soak;
mod world;

#[derive(Debug, Parser)]
#[command(
    name = "nrt-trace-bench",
    version,
    about = "Measures what nrt-trace promises"
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// What an emit costs, beside the original's engine and the floor.
    Emit(emit::Options),
    /// What clients that never stop asking cost a program that is traced.
    Clients(clients::Options),
    /// How fast events get from the rings into a document, beside dd.
    Fetch(fetch::Options),
    /// How fast a recording becomes a Perfetto trace, a document, a table or a summary, and in how much memory.
    Export(export::Options),
    /// How fast the JSON document is written, beside serde's derive.
    Json(json::Options),
    /// What the host monitor costs, and how late its ticks come, on an idle and on a loaded machine.
    Host(host::Options),
    /// How many instructions an emit takes; fails if it is more than it was. Needs valgrind.
    Instructions,
    /// Processes and daemons that are killed, runs that start and stop, and an exact account at the end. Needs nrt-traced
    /// beside it.
    Soak(soak::Options),
    /// Processes that attach, emit and end, one after the other, alone and beside many. Needs nrt-traced beside it.
    Attach(lifecycle::attach::Options),
    /// How soon a changed filter holds in eight processes that emit. Needs nrt-traced beside it.
    SetFilter(lifecycle::filter::Options),
    /// The daemon killed and started again and again under processes that emit without pause: what they notice, and the
    /// account. Needs nrt-traced beside it.
    Restart(lifecycle::restart::Options),
    /// A minute at the rate at which nothing is lost, and what it costs the daemon. Needs nrt-traced beside it.
    Sustained(lifecycle::sustained::Options),
    /// One process of `attach`.
    #[command(hide = true)]
    AttachWorker(lifecycle::attach::WorkerOptions),
    /// One process of `set-filter`.
    #[command(hide = true)]
    FilterWorker(lifecycle::filter::WorkerOptions),
    /// One process of `restart`.
    #[command(hide = true)]
    RestartWorker,
    /// The process of `sustained`.
    #[command(hide = true)]
    SustainedWorker(lifecycle::sustained::WorkerOptions),
    /// One process of the soak.
    #[command(hide = true)]
    SoakWorker(soak::worker::WorkerOptions),
    /// One measurement of `export`.
    #[command(hide = true)]
    ExportWorker(export::WorkOptions),
    /// One process that emits on request.
    #[command(hide = true)]
    EmitWorker,
    /// One process that is attached and does nothing, or nothing but run.
    #[command(hide = true)]
    HostWorker(host::WorkerOptions),
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse().command {
        Command::Clients(options) => clients::run(&options),
        Command::Emit(options) => emit::run(&options),
        Command::Export(options) => export::run(&options),
        Command::ExportWorker(options) => export::work(&options),
        Command::Fetch(options) => fetch::run(&options),
        Command::Json(options) => json::run(&options),
        Command::Instructions => instructions::run(),
        Command::Host(options) => host::run(&options),
        Command::HostWorker(options) => host::work(options),
        Command::Attach(options) => lifecycle::attach::run(&options),
        Command::AttachWorker(options) => lifecycle::attach::work(&options),
        Command::SetFilter(options) => lifecycle::filter::run(&options),
        Command::FilterWorker(options) => lifecycle::filter::work(&options),
        Command::Restart(options) => lifecycle::restart::run(&options),
        Command::RestartWorker => lifecycle::restart::work(),
        Command::Sustained(options) => lifecycle::sustained::run(&options),
        Command::SustainedWorker(options) => lifecycle::sustained::work(&options),
        Command::Soak(options) => soak::run(&options),
        Command::SoakWorker(options) => soak::worker::work(&options),
        Command::EmitWorker => emit::worker::serve(),
    }
}

/// The middle one.
fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples.get(samples.len() / 2).copied().unwrap_or(f64::NAN)
}
