//! The arguments, and the manual that `--help` prints: one file for each group of commands.

mod capture;
mod demo;
mod files;
mod generate;
mod host;
mod look;
mod options;
mod parse;
mod record;
mod socket;
mod take;

use clap::{Parser, Subcommand};
use nrt_trace_workload::WorkerArgs;

pub(crate) use capture::{SetFilterArgs, StartArgs, StopArgs};
pub(crate) use demo::{DemoArgs, DemoPumpArgs, DemoWorkloadArgs};
pub(crate) use files::{ConvertArgs, FilterArgs, SummaryArgs, SummaryFormat, ViewArgs};
pub(crate) use generate::GenerateArgs;
pub(crate) use host::{HostAction, HostArgs, HostStartArgs, Retention};
pub(crate) use look::{
    DoctorArgs, EventsArgs, MetricsArgs, ProducersArgs, StatusArgs, StringsArgs,
};
pub(crate) use options::{CaptureArgs, JsonArgs, ListFormat, PftraceArgs};
pub(crate) use parse::parse;
pub(crate) use record::RecordArgs;
pub(crate) use socket::{SOCKET_VARIABLE, SocketArg};
pub(crate) use take::{FetchArgs, SnapshotArgs, SubscribeArgs, SubscribeFrom};

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
        0    done; also when the reader of the output went away\n  \
        1    it failed, and nothing was consumed; doctor: there is something to do\n  \
        2    an argument is wrong\n  \
        3    it was done, but the answer could not be written to standard output\n  \
        126  record: the command can't be executed\n  \
        127  record: the command was not found\n  \
        else record: the command's own status; 128 + N if signal N ended the command, or the recording of the host\n\n\
        Colours are used on a terminal only, and never when NO_COLOR is set.",
    max_term_width = 100
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) socket: SocketArg,
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    Start(StartArgs),
    SetFilter(SetFilterArgs),
    Stop(StopArgs),
    Fetch(FetchArgs),
    Snapshot(SnapshotArgs),
    Subscribe(SubscribeArgs),
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
    Generate(GenerateArgs),
}
