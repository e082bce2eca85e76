//! The arguments, and the manual that `--help` prints.
//!
//! Long: one table of all commands and options, which users read as one manual.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{Args, Parser, Subcommand, ValueEnum};
use nrt_trace_export::{Format, GroupKey, Grouping, PftraceOptions};
use nrt_trace_workload::{Config, WorkerArgs};

use crate::output::tell;
use crate::values::{self, EventTerms, NcList, When};

/// Where the daemon's control socket is when nobody says otherwise.
pub(crate) const DEFAULT_SOCKET: &str = "/run/nrt-trace/control.sock";

/// Environment variable with the path of the control socket.
pub(crate) const SOCKET_VARIABLE: &str = "NRT_TRACE_SOCKET";

#[derive(Debug, Parser)]
#[command(
    name = "nrt-tracectl",
    version,
    about = "Records and reads traces of NeuronCore workloads",
    long_about = "Records and reads traces of NeuronCore workloads.\n\n\
        `record` runs a command and writes its trace to a file; that is all most people need, and it needs no \
        daemon. `start`, `stop` and `fetch` steer the daemon of this host (nrt-traced), which captures every \
        process that links libnrt_trace. `demo` shows the whole way on a built-in workload.",
    after_long_help = "Examples:\n  \
        nrt-tracectl demo\n  \
        nrt-tracectl record -o trace.json -- ./train --steps 10\n  \
        nrt-tracectl start --nc 0-3 --events hardware,^cc_running\n  \
        nrt-tracectl fetch -o trace.json\n  \
        nrt-tracectl convert trace.json -o trace.pftrace\n\n\
        Exit status:\n  \
        0    done\n  \
        1    it failed; nothing was consumed\n  \
        2    an argument is wrong\n  \
        126  record: the command can't be executed\n  \
        127  record: the command was not found\n  \
        else record: the command's own status, or 128 + N if signal N ended it\n\n\
        Colours are used on a terminal only, and never when NO_COLOR is set.",
    max_term_width = 100
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) socket: SocketArg,
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

/// Which daemon.
#[derive(Args, Clone, Debug)]
pub(crate) struct SocketArg {
    /// Control socket of the daemon
    #[arg(
        long = "socket",
        global = true,
        value_name = "PATH",
        env = SOCKET_VARIABLE,
        hide_env_values = true,
        help_heading = "Global options",
        long_help = "Control socket of the daemon [default: /run/nrt-trace/control.sock]"
    )]
    path: Option<PathBuf>,
}

impl SocketArg {
    /// The path to connect to.
    pub(crate) fn path(&self) -> PathBuf {
        self.path
            .clone()
            .unwrap_or_else(|| PathBuf::from(DEFAULT_SOCKET))
    }

    /// Whether somebody named this daemon, so that no other answer will do.
    pub(crate) fn is_explicit(&self) -> bool {
        self.path.is_some()
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    Start(StartArgs),
    SetFilter(SetFilterArgs),
    Stop(StopArgs),
    Fetch(FetchArgs),
    Snapshot(SnapshotArgs),
    Status(StatusArgs),
    Metrics(MetricsArgs),
    Doctor(DoctorArgs),
    Producers(ProducersArgs),
    Events(EventsArgs),
    Strings(StringsArgs),
    Host(HostArgs),
    Record(RecordArgs),
    Convert(ConvertArgs),
    Summary(SummaryArgs),
    View(ViewArgs),
    Demo(DemoArgs),
    /// What `demo` records
    #[command(hide = true)]
    DemoWorkload(DemoWorkloadArgs),
    /// One process of it
    #[command(hide = true)]
    DemoWorker(WorkerArgs),
    /// What `demo` measures the rate with
    #[command(hide = true)]
    DemoPump(DemoPumpArgs),
}

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
        long_help = "NeuronCores to capture: numbers and inclusive ranges, such as 0-3,8. They are cores of the \
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
            `software`, and ^NAME to take one out again, such as hardware,^cc_running. Absent: NEURON_RT_INSPECT_EVENT_FILTER_TYPE, \
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

/// Start capturing on this host
///
/// Tells the daemon to capture the events of every attached process, and of those that attach later. Each NeuronCore of
/// each process keeps its newest events until `fetch` takes them. Unread events of the previous run are given up,
/// and counted, unless --keep is given.
#[derive(Args, Debug)]
#[command(after_long_help = "Examples:\n  \
    nrt-tracectl start\n  \
    nrt-tracectl start --nc 0-3,8 --events hardware,^cc_running\n  \
    nrt-tracectl start --max-events-per-nc 4000000 --keep")]
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
        value_parser = values::nc_list_or_all,
        long_help = "NeuronCores to capture from now on: `all`, or numbers and inclusive ranges, such as 0-3,8, as for \
            `start`"
    )]
    pub(crate) nc: Option<NcList>,

    /// Event types to capture from now on, such as `hardware,^cc_running`, or `all`
    #[arg(
        long,
        value_name = "LIST",
        value_parser = values::event_terms_or_all,
        long_help = "Event types to capture from now on: `all`, or names, `hardware`, `software` and ^NAME, as for `start`"
    )]
    pub(crate) events: Option<EventTerms>,

    /// How long to wait for processes that need rings for more NeuronCores, in ms [default: 250]
    #[arg(long, value_name = "MS")]
    pub(crate) arm_timeout: Option<u32>,

    #[command(flatten)]
    pub(crate) scope: ScopeArg,
}

/// Stop capturing
///
/// Unread events stay until they are fetched or the next start. What each process and core recorded, and what was
/// lost, is printed.
#[derive(Args, Debug)]
#[command(after_long_help = "Examples:\n  nrt-tracectl stop\n  nrt-tracectl stop --discard")]
pub(crate) struct StopArgs {
    /// Drop the unread events too
    #[arg(long)]
    pub(crate) discard: bool,

    #[command(flatten)]
    pub(crate) scope: ScopeArg,
}

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
    Findings, by their codes: no_daemon, daemon_away, no_permission, not_the_daemon, path_too_long, cannot_connect,\n\
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
    Stop,
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
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Retention {
    /// Sampling stops
    Saturate,
    /// The oldest gives way
    Ring,
}

/// Run a command and write its trace to a file
///
/// Records the command and all its descendants, reading their events all the while, so that a run of any length fits.
/// Uses the daemon of this host if there is one, else a private one inside this program; says which. Several
/// recordings, and a run of the whole host, can go on at once: each gets its own processes' events.
///
/// Without a command the whole host is recorded, for --duration or until Ctrl-C.
///
/// While it records, the events are in FILE.part (native format, readable after a crash); FILE appears at the end.
/// Ctrl-C, SIGTERM and SIGHUP are passed on to the command, and end the recording with the file written; a second
/// one leaves at once.
#[derive(Args, Debug)]
#[command(after_long_help = "Examples:\n  \
    nrt-tracectl record -- ./train --steps 10\n  \
    nrt-tracectl record -o run.nrtt --events nrt_execute,hardware -- python3 train.py\n  \
    nrt-tracectl record -o host.json --duration 10s\n\n\
    The exit status is the command's. With `-o -` the command's standard output goes to standard error.")]
pub(crate) struct RecordArgs {
    /// File to write, .json, .nrtt or .pftrace; `-` is JSON on standard output
    #[arg(short, long, value_name = "FILE", default_value = "trace.json")]
    pub(crate) output: PathBuf,

    /// Format, whatever the extension says
    #[arg(long, value_name = "FORMAT")]
    pub(crate) to: Option<TraceFormat>,

    #[command(flatten)]
    pub(crate) json: JsonArgs,

    #[command(flatten)]
    pub(crate) pftrace: PftraceArgs,

    /// Record for this long at most, such as 10s, 500ms or 2m
    #[arg(long, value_name = "TIME", value_parser = values::duration)]
    pub(crate) duration: Option<Duration>,

    /// How long to wait for the daemon if it ends meanwhile, such as 10s or 2m [default: 30s]
    #[arg(
        long,
        value_name = "TIME",
        value_parser = values::duration,
        long_help = "How long to wait for the daemon if it ends meanwhile (an upgrade, a crash), such as 10s or 2m. The \
            processes go on recording, and the next daemon goes on with the run. If none comes back in this time, what \
            was recorded until then is written, and the exit status is 1 [default: 30s]"
    )]
    pub(crate) reconnect: Option<Duration>,

    /// Record what machine and processes use, too
    #[arg(
        long,
        long_help = "Record what the machine and its processes use, too, once a second: in the trace itself if that is \
            .nrtt; Neuron's JSON document has no place for it, so beside it in FILE.host.json (or --host-stats FILE)"
    )]
    pub(crate) host: bool,

    /// Write what the machine uses to this file, as `cpu_util` and `mem_usage` objects (implies --host)
    #[arg(long, value_name = "FILE")]
    pub(crate) host_stats: Option<PathBuf>,

    /// Time between two samples of it, if nobody samples yet, from 100ms to 60s [default: 1s]
    #[arg(long, value_name = "TIME", value_parser = values::period)]
    pub(crate) host_period: Option<u32>,

    #[command(flatten)]
    pub(crate) capture: CaptureArgs,

    /// The command and its arguments
    #[arg(last = true, value_name = "CMD")]
    pub(crate) command: Vec<OsString>,
}

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

    /// Only events from this time on: ns since 1970, or +TIME since capturing began, such as +1.5s
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
/// start with its stop). Filters go by the time at which an event was recorded.
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

    /// Port to serve it at; the UI accepts no other than the default
    #[arg(long, value_name = "PORT", default_value_t = 9001)]
    pub(crate) port: u16,

    /// Where the UI is
    #[arg(long, value_name = "URL", default_value = "https://ui.perfetto.dev")]
    pub(crate) ui: String,
}

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
    /// File to write, .json, .nrtt or .pftrace; `-` is JSON on standard output
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
    /// Pairs as a table
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

/// Reads the arguments. `Err` is how the program ends without a verb: help and version, or a usage error, which is
/// told in one line.
pub(crate) fn parse(arguments: impl Iterator<Item = OsString>) -> Result<Cli, ExitCode> {
    let arguments: Vec<OsString> = arguments.collect();
    Cli::try_parse_from(&arguments).map_err(|error| match error.kind() {
        ErrorKind::DisplayHelp
        | ErrorKind::DisplayVersion
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            // A reader that has seen enough (`--help | head -1`) is no failure.
            let _best_effort = error.print();
            ExitCode::from(u8::from(error.use_stderr()) * 2)
        }
        kind => {
            let mut text = one_line(&error.render().to_string());
            if kind == ErrorKind::UnknownArgument && arguments.iter().any(|a| a == "record") {
                text.push_str("; the command to record goes after --");
            }
            if text.contains("'--socket <PATH>'") && empty_variable() {
                text = format!(
                    "{SOCKET_VARIABLE} is set, but to nothing: give it a path, or unset it"
                );
            }
            tell::error(&text);
            ExitCode::from(2)
        }
    })
}

fn empty_variable() -> bool {
    std::env::var_os(SOCKET_VARIABLE).is_some_and(|path| path.is_empty())
}

/// Folds clap's paragraphs into one line: the error, its tips, and where to read on.
fn one_line(rendered: &str) -> String {
    let mut parts = Vec::new();
    let mut help = "see --help";
    for paragraph in rendered.split("\n\n") {
        let words: Vec<&str> = paragraph.split_whitespace().collect();
        let text = words.join(" ");
        match text.as_str() {
            "" => {}
            text if text.starts_with("Usage:") => {}
            text if text.starts_with("For more information") => help = "try --help",
            text => parts.push(text.trim_start_matches("error: ").to_owned()),
        }
    }
    format!("{} ({help})", parts.join("; "))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definitions_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn usage_errors_fold_into_one_line() {
        let folded = one_line(
            "error: invalid value 'x' for '--format <FORMAT>'\n  [possible values: table, json]\n\n  tip: a tip\n\n\
             For more information, try '--help'.\n",
        );
        assert_eq!(
            folded,
            "invalid value 'x' for '--format <FORMAT>' [possible values: table, json]; tip: a tip (try --help)"
        );
    }

    #[test]
    fn a_command_follows_two_dashes_with_its_own_flags() {
        let cli = Cli::try_parse_from(["t", "record", "-o", "x.nrtt", "--", "ls", "-o", "--help"])
            .unwrap();
        let Verb::Record(record) = cli.verb else {
            panic!("{cli:?}")
        };
        assert_eq!(record.command, ["ls", "-o", "--help"]);
        assert_eq!(record.output, PathBuf::from("x.nrtt"));
    }
}
