//! `fetch`, `snapshot` and `subscribe`: what the rings hold, and what comes.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::options::{JsonArgs, ListFormat, PftraceArgs, ScopeArg, TraceFormat};
use crate::values::{self, EventTerms, NcList};

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
    nrt-tracectl fetch -o trace.nrtt --format json | jq .left_count\n  \
    nrt-tracectl fetch --discard")]
pub(crate) struct FetchArgs {
    /// File to write, .json, .nrtt, .pftrace, .chrome.json or .csv; `-` is JSON on standard output
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

    /// How to tell what was written: lines on standard error, or JSON on standard output
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    pub(crate) format: ListFormat,

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
    /// File to write, .json, .nrtt, .pftrace, .chrome.json or .csv; `-` is JSON on standard output
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

    /// How to tell what was written: lines on standard error, or JSON on standard output
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    pub(crate) format: ListFormat,

    #[command(flatten)]
    pub(crate) scope: ScopeArg,
}

/// Show events as they come, until the run ends or Ctrl-C
///
/// Nothing is consumed: a recording or a later fetch gets every event all the same. A line for each event: on a terminal for
/// people, else JSON with the keys of Neuron's document. Events reach this command within a few hundredths of a second.
///
/// Who reads too slowly delays nobody: what the rings lost before it could be sent is counted, and said on standard error.
#[derive(Args, Debug)]
#[command(after_long_help = "Examples:\n  \
    nrt-tracectl subscribe\n  \
    nrt-tracectl subscribe --events nrt_execute --nc 0-3\n  \
    nrt-tracectl subscribe --from oldest --format json | jq -r .event_type")]
pub(crate) struct SubscribeArgs {
    /// Where to begin
    #[arg(long, value_name = "WHERE", default_value = "now")]
    pub(crate) from: SubscribeFrom,

    /// Only these NeuronCores, such as 0-3,8
    #[arg(long, value_name = "LIST", value_parser = values::nc_list)]
    pub(crate) nc: Option<NcList>,

    /// Only these processes, which need not be there yet
    #[arg(long, value_name = "PID,…", value_delimiter = ',', value_parser = values::pid)]
    pub(crate) process: Vec<i32>,

    /// Only these event types, such as `hardware,^cc_running`
    #[arg(long, value_name = "LIST", value_parser = values::event_terms)]
    pub(crate) events: Option<EventTerms>,

    /// How to print them [default: table on a terminal, else json]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<ListFormat>,

    #[command(flatten)]
    pub(crate) scope: ScopeArg,
}

/// Where a subscription begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SubscribeFrom {
    /// With what is recorded from now on
    Now,
    /// With the oldest events that the rings still hold
    Oldest,
    /// With the first event that the next fetch would get
    Unread,
}
