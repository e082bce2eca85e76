//! `start`, `set-filter` and `stop`: what is captured.

use clap::Args;

use super::options::{CaptureArgs, FormatArg, ScopeArg};
use crate::values::{self, EventTerms, NcList};

/// Start capturing on this host
///
/// Tells the daemon to capture the events of every attached process, and of those that attach later. Each NeuronCore of
/// each process keeps its newest events until `fetch` takes them. Unread events of the previous run are given up,
/// and counted, unless --keep is given.
#[derive(Args, Debug)]
#[command(after_long_help = "Examples:\n  \
    nrt-tracectl start\n  \
    nrt-tracectl start --nc 0-3,8 --events hardware,^cc_running\n  \
    nrt-tracectl start --max-events-per-nc 4000000 --keep\n  \
    nrt-tracectl start --format json | jq -r .run.run_id")]
pub(crate) struct StartArgs {
    #[command(flatten)]
    pub(crate) capture: CaptureArgs,

    /// Refuse to start if the previous run has unread events
    #[arg(long)]
    pub(crate) keep: bool,

    /// How long to wait until the processes are armed, in ms [default: 250]
    #[arg(long, value_name = "MS")]
    pub(crate) arm_timeout: Option<u32>,

    #[command(flatten)]
    pub(crate) scope: ScopeArg,

    #[command(flatten)]
    pub(crate) format: FormatArg,
}

/// Change what a run captures, while it goes on
///
/// In effect for every process when this returns: what the new filter leaves out is not recorded from then on. Nothing that
/// was recorded is touched, and the trace says that the filter changed. A filter that is not given stays as it is; `all`
/// takes it away. A process that has no ring yet for some of the NeuronCores gets other rings, and records nothing for the
/// moment that this takes.
#[derive(Args, Debug)]
#[command(
    group = clap::ArgGroup::new("filter").required(true).multiple(true).args(["nc", "events"]),
    after_long_help = "Examples:\n  \
    nrt-tracectl set-filter --events hardware,^cc_running\n  \
    nrt-tracectl set-filter --nc 0-3 --events all"
)]
pub(crate) struct SetFilterArgs {
    /// NeuronCores to capture from now on, such as 0-3,8, or `all`
    #[arg(
        long,
        value_name = "LIST",
        value_parser = values::nc_list,
        long_help = "NeuronCores to capture from now on: `all`, or numbers and inclusive ranges, such as 0-3,8, as for \
            `start`"
    )]
    pub(crate) nc: Option<NcList>,

    /// Event types to capture from now on, such as `hardware,^cc_running`, or `all`
    #[arg(
        long,
        value_name = "LIST",
        value_parser = values::event_terms,
        long_help = "Event types to capture from now on: `all`, or names, `hardware`, `software` and ^NAME, as for `start`"
    )]
    pub(crate) events: Option<EventTerms>,

    /// How long to wait for processes that need rings for more NeuronCores, in ms [default: 250]
    #[arg(long, value_name = "MS")]
    pub(crate) arm_timeout: Option<u32>,

    #[command(flatten)]
    pub(crate) scope: ScopeArg,

    #[command(flatten)]
    pub(crate) format: FormatArg,
}

/// Stop capturing
///
/// Unread events stay until they are fetched or the next start. What each process and core recorded, and what was
/// lost, is printed.
#[derive(Args, Debug)]
#[command(after_long_help = "Examples:\n  \
    nrt-tracectl stop\n  \
    nrt-tracectl stop --discard\n  \
    nrt-tracectl stop --format json | jq '[.accounts[].lost] | add'")]
pub(crate) struct StopArgs {
    /// Drop the unread events too
    #[arg(long)]
    pub(crate) discard: bool,

    #[command(flatten)]
    pub(crate) scope: ScopeArg,

    #[command(flatten)]
    pub(crate) format: FormatArg,
}
