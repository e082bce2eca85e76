//! Options that several commands share.

use clap::{Args, ValueEnum};
use nrt_trace_export::{Format, GroupKey, Grouping, PftraceOptions};

use crate::values::{self, EventTerms, NcList};

/// Which events, of which cores, and how many are kept.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct CaptureArgs {
    /// Events kept for each NeuronCore of each process
    #[arg(
        long,
        value_name = "N",
        value_parser = values::ring_size,
        long_help = "Events kept for each NeuronCore of each process while nobody reads them; older ones are \
            overwritten, and counted. Absent: NEURON_RT_INSPECT_SYS_TRACE_MAX_EVENTS_PER_NC, else the daemon's default, \
            1048576 unless configured. 1 to 1023 become \
            1024. Memory is taken only as events come, 128 bytes each"
    )]
    pub(crate) max_events_per_nc: Option<u64>,

    /// NeuronCores to capture, such as 0-3,8 [default: all]
    #[arg(
        long,
        value_name = "LIST",
        value_parser = values::nc_list,
        long_help = "NeuronCores to capture: numbers and inclusive ranges, such as 0-3,8, or `all`. They are cores of the \
            host; a process whose cores are not known (NEURON_RT_VISIBLE_CORES, NEURON_RT_NUM_CORES) is filtered by \
            its own numbers. Absent: NEURON_RT_INSPECT_EVENT_FILTER_NC, else all"
    )]
    pub(crate) nc: Option<NcList>,

    /// Event types to capture, such as `hardware,^cc_running` [default: all]
    #[arg(
        long,
        value_name = "LIST",
        value_parser = values::event_terms,
        long_help = "Event types to capture: names as `nrt-tracectl events` lists them, the groups `hardware` and \
            `software`, and ^NAME to take one out again, such as hardware,^cc_running; or `all`. Absent: NEURON_RT_INSPECT_EVENT_FILTER_TYPE, \
            else all"
    )]
    pub(crate) events: Option<EventTerms>,
}

/// How a JSON document is to be.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct JsonArgs {
    /// JSON: one file for each process, as its own runtime would write it
    #[arg(
        long,
        long_help = "JSON: one file for each process, trace.PID.json for trace.json, each exactly as Neuron's \
            runtime would write it, without our own keys"
    )]
    pub(crate) split: bool,

    /// JSON: show the names of spans, and of tracking ids that are a string's
    #[arg(
        long,
        long_help = "JSON: show names beside ids: `name` for a `generic` span that carries one, `tracking_name` where \
            the tracking id is a registered string's"
    )]
    pub(crate) names: bool,

    /// JSON: write numbers above 2^53 as strings, for readers that round them
    #[arg(
        long,
        long_help = "JSON: write numbers above 2^53 - 1 as strings of digits. JavaScript, and jq before 1.7, round them \
            otherwise. Neuron's own documents have numbers"
    )]
    pub(crate) large_as_strings: bool,
}

/// How a Perfetto trace is to be.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct PftraceArgs {
    /// Perfetto: what events of one group have in common [default: `instance_id,process_id`]
    #[arg(
        long,
        alias = "system-trace-primary-group",
        value_name = "KEY,…",
        value_delimiter = ',',
        value_parser = values::primary_key,
        long_help = "Perfetto: what events of one group have in common: instance_id, process_id, thread_id, lnc_idx \
            [default: instance_id,process_id]"
    )]
    primary_group: Vec<GroupKey>,

    /// Perfetto: what events of one track have in common besides [default: `worker_gid,lnc_idx,thread_id`]
    #[arg(
        long,
        alias = "system-trace-secondary-group",
        value_name = "KEY,…",
        value_delimiter = ',',
        value_parser = values::secondary_key,
        long_help = "Perfetto: what events of one track have in common besides: as --primary-group, and worker_gid \
            [default: worker_gid,lnc_idx,thread_id]. Hardware events belong to no thread"
    )]
    secondary_group: Vec<GroupKey>,

    /// Perfetto: compress the file with zstd
    #[arg(
        long,
        long_help = "Perfetto: compress the file with zstd. Perfetto opens such files since 2026-07; for an older one, `zstd -d` first"
    )]
    zstd: bool,
}

impl PftraceArgs {
    /// What they say.
    pub(crate) fn options(&self) -> PftraceOptions {
        let or = |keys: &[GroupKey], default: Vec<GroupKey>| match keys {
            [] => default,
            keys => keys.to_vec(),
        };
        let default = Grouping::default();
        PftraceOptions {
            grouping: Grouping {
                primary: or(&self.primary_group, default.primary),
                secondary: or(&self.secondary_group, default.secondary),
            },
            zstd: self.zstd,
            filtered: false,
        }
    }
}

/// Which run.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct ScopeArg {
    /// The run of this token instead of the host's
    #[arg(
        long,
        value_name = "TOKEN",
        default_value = "",
        hide_default_value = true,
        long_help = "The run of the processes that carry this NRT_TRACE_TOKEN, instead of the host's. `record` \
            makes such a run; `status` shows the tokens"
    )]
    pub(crate) token: String,
}

/// How a listing is printed.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct FormatArg {
    /// How to print it
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    pub(crate) format: ListFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ListFormat {
    /// Columns for people
    Table,
    /// JSON for programs
    Json,
}

/// Formats of a trace file, by their extensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TraceFormat {
    /// Neuron's JSON document
    Json,
    /// The native format
    Nrtt,
    /// Perfetto's trace
    Pftrace,
    /// Chrome's trace events
    Chrome,
    /// Spans and instants as a table
    Csv,
}

impl From<TraceFormat> for Format {
    fn from(format: TraceFormat) -> Self {
        match format {
            TraceFormat::Json => Self::Json,
            TraceFormat::Nrtt => Self::Native,
            TraceFormat::Pftrace => Self::Pftrace,
            TraceFormat::Chrome => Self::Chrome,
            TraceFormat::Csv => Self::Csv,
        }
    }
}
