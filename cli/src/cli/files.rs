//! `convert`, `summary` and `view`: traces that were written.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::options::{JsonArgs, PftraceArgs, TraceFormat};
use crate::values::{self, EventTerms, NcList, When};

/// Which events of a trace.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct FilterArgs {
    /// Only these NeuronCores, such as 0-3,8: the host's where the trace knows them, else the process's own
    #[arg(long, value_name = "LIST", value_parser = values::nc_list)]
    pub(crate) nc: Option<NcList>,

    /// Only these event types, such as `hardware,^cc_running`
    #[arg(long, value_name = "LIST", value_parser = values::event_terms)]
    pub(crate) events: Option<EventTerms>,

    /// Only these processes
    #[arg(long, value_name = "PID,…", value_delimiter = ',', value_parser = values::pid)]
    pub(crate) process: Vec<i32>,

    /// Only events from this time on: ns since 1970, or +TIME since capturing began, with its unit: +0s, +250ms, +1.5s, +2m
    #[arg(long, value_name = "TIME", value_parser = values::when)]
    pub(crate) after: Option<When>,

    /// Only events before this time
    #[arg(long, value_name = "TIME", value_parser = values::when)]
    pub(crate) before: Option<When>,
}

/// Write a trace in another format
///
/// Reads the native format (.nrtt) and JSON documents (`data_version` 2), told apart by what is in them, and writes by the
/// extension of the output: .json, .nrtt, .pftrace (Perfetto), .chrome.json (Chrome's trace events) or .csv (a line for each
/// span and each instant). Filters go by the time at which an event was recorded.
///
/// The output appears whole or not at all. Of an input that is cut, what stands before is used, and the exit status is 1.
#[derive(Args, Debug)]
#[command(after_long_help = "Examples:\n  \
    nrt-tracectl convert trace.nrtt -o trace.pftrace\n  \
    nrt-tracectl convert trace.json -o trace.pftrace --primary-group lnc_idx\n  \
    nrt-tracectl convert trace.nrtt -o part.json --nc 0-3 --events hardware --after +10s --before +12s\n  \
    zstd -dc trace.json.zst | nrt-tracectl convert - -o - --to csv | head")]
pub(crate) struct ConvertArgs {
    /// Trace to read, .nrtt or .json; `-` is standard input
    #[arg(value_name = "IN")]
    pub(crate) input: PathBuf,

    /// File to write; `-` is standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,

    /// Format, whatever the extension says
    #[arg(long, value_name = "FORMAT")]
    pub(crate) to: Option<TraceFormat>,

    #[command(flatten)]
    pub(crate) filter: FilterArgs,

    #[command(flatten)]
    pub(crate) json: JsonArgs,

    #[command(flatten)]
    pub(crate) pftrace: PftraceArgs,
}

/// Show what a trace holds
///
/// Events and durations by type and by NeuronCore, the longest spans and where they are, idle gaps, what the host used, and
/// what was lost and why.
#[derive(Args, Debug)]
#[command(after_long_help = "Examples:\n  \
    nrt-tracectl summary trace.nrtt\n  \
    nrt-tracectl summary trace.json --format json | jq '.types[] | {event_type, durations}'")]
pub(crate) struct SummaryArgs {
    /// Trace to read, .nrtt or .json; `-` is standard input
    #[arg(value_name = "IN")]
    pub(crate) input: PathBuf,

    /// How to print it
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: SummaryFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SummaryFormat {
    /// Columns for people
    #[value(alias = "table")]
    Text,
    /// JSON for programs
    Json,
}

/// Open a trace in the Perfetto UI
///
/// Serves the trace once, to a browser of this machine, and prints the link to open. The trace goes from this program to the
/// browser over the loopback interface; it is sent nowhere else. Traces in other formats are converted first.
#[derive(Args, Debug)]
#[command(after_long_help = "Examples:\n  \
    nrt-tracectl view trace.pftrace\n  \
    nrt-tracectl view trace.nrtt\n\n\
    On a machine without a browser, forward the port: ssh -L 9001:127.0.0.1:9001 HOST")]
pub(crate) struct ViewArgs {
    /// Trace to show, .pftrace, .nrtt or .json
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Port to serve it at; ui.perfetto.dev fetches from 9001 of this machine only, so that another is for a --ui of your own
    #[arg(long, value_name = "PORT", default_value_t = 9001)]
    pub(crate) port: u16,

    /// Where the UI is
    #[arg(long, value_name = "URL", default_value = "https://ui.perfetto.dev")]
    pub(crate) ui: String,
}
