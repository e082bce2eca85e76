//! `status`, `metrics`, `doctor` and the listings: what there is.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use super::options::FormatArg;

/// Show the daemon and its runs
#[derive(Args, Debug)]
#[command(after_long_help = "Examples:\n  \
    nrt-tracectl status\n  \
    nrt-tracectl status --format json | jq '.runs[].capturing'\n\n\
    In JSON, run ids and times (ns since 1970) are strings: they don't fit a JavaScript number.")]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    pub(crate) format: FormatArg,
}

/// Print the daemon's metrics, as Prometheus reads them
///
/// OpenMetrics text: the loss account of each ring, memory and limits, processes refused by cause, fetches and how long
/// they took, the host monitor.
#[derive(Args, Debug)]
#[command(after_long_help = "Examples:\n  \
    nrt-tracectl metrics\n  \
    nrt-tracectl metrics | grep -v '^#' | grep _lost_")]
pub(crate) struct MetricsArgs {}

/// Say what is wrong, and what to do about it
///
/// Looks at the daemon, its sockets, runs, losses and limits as this user sees them, and says in plain words what keeps
/// events from being recorded, or will. Changes nothing.
#[derive(Args, Debug)]
#[command(after_long_help = "Examples:\n  \
    nrt-tracectl doctor\n  \
    nrt-tracectl doctor --format json | jq -r '.findings[].code'\n\n\
    Exit status:\n  \
    0  all is well\n  \
    1  there is something to do\n\n\
    Findings, by their codes: no_daemon, daemon_away, no_permission, not_the_daemon, no_answer, path_too_long, cannot_connect,\n\
    other_version, producer_socket_gone, may_not_attach, disabled, nobody_attached, refused, over_budget, sees_no_core,\n\
    no_address_space, not_captured, not_capturing, filter_excludes_everything, nothing_emitted, ring_too_small,\n\
    budget_nearly_used_up, quarantined, clocksource.")]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    pub(crate) format: FormatArg,
}

/// List the processes that are or were attached
#[derive(Args, Debug)]
#[command(after_long_help = "Examples:\n  \
    nrt-tracectl producers\n  \
    nrt-tracectl producers --format json | jq '.producers[].pid'")]
pub(crate) struct ProducersArgs {
    #[command(flatten)]
    pub(crate) format: FormatArg,
}

/// List the event types
///
/// The names are what --events takes. Without a daemon on the default socket the types that this program knows are
/// listed.
#[derive(Args, Debug)]
#[command(after_long_help = "Examples:\n  \
    nrt-tracectl events\n  \
    nrt-tracectl events --format json | jq -r '.event_types[].name'")]
pub(crate) struct EventsArgs {
    #[command(flatten)]
    pub(crate) format: FormatArg,
}

/// List the names that programs registered, with their ids
///
/// Programs register the names of models, tensors and spans once, and events carry a name's id. The names come from
/// the daemon, or from a trace file. An id is made from the name alone, so it is the same everywhere: --of needs
/// neither.
#[derive(Args, Debug)]
#[command(after_long_help = "Examples:\n  \
    nrt-tracectl strings\n  \
    nrt-tracectl strings trace.nrtt --format json\n  \
    nrt-tracectl strings --id 566264322956826\n  \
    nrt-tracectl strings --of model.neff")]
pub(crate) struct StringsArgs {
    /// Trace file to list instead of the daemon's names, .nrtt
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,

    /// Only the names with these ids; it is a failure if one has none
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    pub(crate) id: Vec<u64>,

    /// Print the id of this text, and nothing else
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["file", "id", "format"])]
    pub(crate) of: Option<OsString>,

    #[command(flatten)]
    pub(crate) format: FormatArg,
}
