//! `host`: what the machine uses.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::options::FormatArg;
use crate::values;

/// Show what the machine and the attached processes use
///
/// Cores, memory, load, disks, network, and each attached process. The daemon samples once a second while somebody
/// wants it: this command does, and starts it if it is off; `host start` lets it sample until `host stop`.
#[derive(Args, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    after_long_help = "Examples:\n  \
    nrt-tracectl host\n  \
    nrt-tracectl host --follow --format json | jq '.cpu_util[].util'\n  \
    nrt-tracectl host -o host.json\n  \
    nrt-tracectl host start --period 200ms --retention ring\n  \
    nrt-tracectl host stop\n\n\
    With --follow --format json each tick is one line:\n  \
    {\"timestamp\":ns,\"cpu_util\":[{\"cpu_id\":\"0\",\"util\":percent},…],\"mem_usage\":{…},\"producers\":[…],\"saturated\":bool}\n\
    A key is left out where its value is not known."
)]
pub(crate) struct HostArgs {
    #[command(subcommand)]
    pub(crate) action: Option<HostAction>,

    /// Show each tick from now on
    #[arg(short, long)]
    pub(crate) follow: bool,

    /// Write all ticks that the daemon keeps to this file, as `cpu_util` and `mem_usage` objects
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["follow", "format", "period"])]
    pub(crate) output: Option<PathBuf>,

    /// Time between two ticks if this starts the sampling, such as 500ms, from 100ms to 60s [default: 1s]
    #[arg(long, value_name = "TIME", value_parser = values::period)]
    pub(crate) period: Option<u32>,

    #[command(flatten)]
    pub(crate) format: FormatArg,
}

#[derive(Debug, Subcommand)]
pub(crate) enum HostAction {
    /// Let the daemon sample until it is stopped
    Start(HostStartArgs),
    /// Stop it; what it kept stays until it starts again
    Stop(HostStopArgs),
}

/// How its state is told.
#[derive(Args, Debug)]
pub(crate) struct HostStopArgs {
    #[command(flatten)]
    pub(crate) format: FormatArg,
}

/// How the daemon samples.
#[derive(Args, Debug)]
pub(crate) struct HostStartArgs {
    /// Time between two ticks, such as 500ms, from 100ms to 60s [default: 1s]
    #[arg(long, value_name = "TIME", value_parser = values::period)]
    pub(crate) period: Option<u32>,

    /// Ticks that are kept [default: 10000]
    #[arg(long, value_name = "N", value_parser = values::ring_size)]
    pub(crate) max_samples: Option<u64>,

    /// What happens when so many are kept [default: saturate]
    #[arg(long, value_name = "MODE")]
    pub(crate) retention: Option<Retention>,

    #[command(flatten)]
    pub(crate) format: FormatArg,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Retention {
    /// Sampling stops
    Saturate,
    /// The oldest gives way
    Ring,
}
