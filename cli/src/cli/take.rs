//! `fetch` and `snapshot`: what the rings hold.

use std::path::PathBuf;

use clap::Args;

use super::options::{JsonArgs, PftraceArgs, ScopeArg, TraceFormat};
use crate::values::{self, NcList};

/// Write the unread events to a file, and consume them
///
/// The format goes by the file's extension: .json is Neuron's JSON document (`data_version` 2), .nrtt is the native
/// format, lossless and small, .pftrace is for Perfetto. The file is written beside its place, and appears there whole or not at all; only
/// then are the events consumed. If anything fails before, the next fetch gets them again.
///
/// How many events came from each process and core, and what was lost, is said on standard error.
#[derive(Args, Debug)]
#[command(after_long_help = "Examples:\n  \
    nrt-tracectl fetch -o trace.json\n  \
    nrt-tracectl fetch -o - | jq '.events | length'\n  \
    nrt-tracectl fetch -o part.nrtt --nc 0-3 --max-events-per-nc 100000\n  \
    nrt-tracectl fetch --discard")]
pub(crate) struct FetchArgs {
    /// File to write, .json, .nrtt or .pftrace; `-` is JSON on standard output
    #[arg(short, long, value_name = "FILE", required_unless_present = "discard")]
    pub(crate) output: Option<PathBuf>,

    /// Format, whatever the extension says
    #[arg(long, value_name = "FORMAT")]
    pub(crate) to: Option<TraceFormat>,

    /// Only these NeuronCores, such as 0-3,8; the others' events stay
    #[arg(long, value_name = "LIST", value_parser = values::nc_list)]
    pub(crate) nc: Option<NcList>,

    /// Only these processes; the others' events stay
    #[arg(long, value_name = "PID,…", value_delimiter = ',', value_parser = values::pid)]
    pub(crate) process: Vec<i32>,

    /// Only the oldest N events of each NeuronCore of each process; the rest stays
    #[arg(long, value_name = "N", value_parser = values::ring_size)]
    pub(crate) max_events_per_nc: Option<u64>,

    #[command(flatten)]
    pub(crate) json: JsonArgs,

    #[command(flatten)]
    pub(crate) pftrace: PftraceArgs,

    /// Write what the host monitor keeps to this file, too, as `cpu_util` and `mem_usage` objects
    #[arg(long, value_name = "FILE")]
    pub(crate) host_stats: Option<PathBuf>,

    /// Give the unread events up instead of writing them
    #[arg(long, conflicts_with_all = ["output", "to", "max_events_per_nc", "host_stats"])]
    pub(crate) discard: bool,

    #[command(flatten)]
    pub(crate) scope: ScopeArg,
}

/// Write all that the rings hold now, and leave it there
///
/// What was fetched before is in it too, as long as it has not been overwritten; nothing is consumed, so that a recording
/// or a later fetch still gets every event. `lost` counts what the rings hold no more.
#[derive(Args, Debug)]
#[command(after_long_help = "Examples:\n  \
    nrt-tracectl snapshot -o now.json\n  \
    nrt-tracectl snapshot -o now.nrtt --process 4242")]
pub(crate) struct SnapshotArgs {
    /// File to write, .json or .nrtt; `-` is JSON on standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,

    /// Format, whatever the extension says
    #[arg(long, value_name = "FORMAT")]
    pub(crate) to: Option<TraceFormat>,

    /// Only these NeuronCores, such as 0-3,8
    #[arg(long, value_name = "LIST", value_parser = values::nc_list)]
    pub(crate) nc: Option<NcList>,

    /// Only these processes
    #[arg(long, value_name = "PID,…", value_delimiter = ',', value_parser = values::pid)]
    pub(crate) process: Vec<i32>,

    #[command(flatten)]
    pub(crate) json: JsonArgs,

    #[command(flatten)]
    pub(crate) scope: ScopeArg,
}
