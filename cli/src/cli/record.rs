//! `record`: a command, from its first event to its last.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::options::{CaptureArgs, JsonArgs, PftraceArgs, TraceFormat};
use crate::values;

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
/// one leaves at once. One that is ignored already (nohup, a shell's job in the background) stays ignored, for the command too.
#[derive(Args, Debug)]
#[command(after_long_help = "Examples:\n  \
    nrt-tracectl record -- ./train --steps 10\n  \
    nrt-tracectl record -o run.nrtt --events nrt_execute,hardware -- python3 train.py\n  \
    nrt-tracectl record -o host.json --duration 10s\n\n\
    The exit status is the command's. With `-o -` the command's standard output goes to standard error.")]
pub(crate) struct RecordArgs {
    /// File to write, .json, .nrtt, .pftrace, .chrome.json or .csv; `-` is JSON on standard output
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
