//! `demo`, and the hidden commands that it runs itself with.

use std::path::PathBuf;

use clap::Args;
use nrt_trace_workload::Config;

/// Record a built-in workload, as a first try and as a check
///
/// Runs a data-parallel training step over several processes, which multiplies real matrices and exchanges real buffers
/// over sockets, and emits the events that Neuron's runtime would. Records it with a private daemon, writes the
/// trace, and compares what was recorded with what the workload says it emitted: any difference is a failure.
#[derive(Args, Debug)]
#[command(after_long_help = "Examples:\n  \
    nrt-tracectl demo\n  \
    nrt-tracectl demo -o demo.nrtt --processes 2 --threads 4 --steps 500")]
pub(crate) struct DemoArgs {
    /// File to write, .json, .nrtt, .pftrace, .chrome.json or .csv; `-` is JSON on standard output
    #[arg(short, long, value_name = "FILE", default_value = "trace.json")]
    pub(crate) output: PathBuf,

    /// Leave out the measurement of the rate up to which nothing is lost
    #[arg(long)]
    pub(crate) no_rate: bool,

    #[command(flatten)]
    pub(crate) workload: Config,
}

/// The workload's first process, which starts the others.
#[derive(Args, Debug)]
pub(crate) struct DemoWorkloadArgs {
    /// File that gets the account of events and the result
    #[arg(long, value_name = "FILE")]
    pub(crate) report: PathBuf,

    #[command(flatten)]
    pub(crate) workload: Config,
}

/// Emits at a given rate for a second.
#[derive(Args, Debug)]
pub(crate) struct DemoPumpArgs {
    /// Events per second, over all threads
    #[arg(long, value_name = "N")]
    pub(crate) rate: u64,

    /// Threads, each on a NeuronCore of its own
    #[arg(long, value_name = "N")]
    pub(crate) threads: u32,
}
