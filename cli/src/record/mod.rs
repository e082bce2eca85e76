//! Recording: a command and its descendants, or the whole host, from start to file.
//!
//! ```text
//!  GrowingFile ◀── Collector ◀── gRPC ◀── Host (the host's daemon, or one inside)
//!   (FILE.part)                            ▲ attach
//!        │ at the end, in order            │
//!        ▼                             Recorded (the command)
//!      FILE
//! ```
//!
//! | module | what |
//! |---|---|
//! | [`host`] | which daemon |
//! | [`run`] | one recording, from start to stop |
//! | [`child`] | the command |
//! | [`signals`] | Ctrl-C and its like |
//! | [`absence`] | a daemon that ends meanwhile, and the next one |
//! | [`collect`] | fetch, append, commit |
//! | [`pace`] | how soon again |
//! | [`rate`] | how fast it went without a loss |
//! | [`growing`] | the file that grows meanwhile |
//! | [`ticks`] | what machine and processes used meanwhile |
//! | [`survivors`] | processes that outlive the command |
//! | [`finish`] | the trace and its summary |

pub(crate) mod absence;
pub(crate) mod child;
mod collect;
mod finish;
mod growing;
mod host;
mod pace;
mod rate;
mod run;
pub(crate) mod signals;
mod survivors;
mod ticks;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use nrt_trace_proto::v1;

use crate::cli::CaptureArgs;
use crate::error::Failure;
use crate::output::target::Target;
use finish::Written;
use growing::GrowingFile;
use host::Host;
use rate::Rate;
use signals::{EndSignal, Signals};
pub(crate) use ticks::HostPlan;

/// What to record.
#[derive(Clone, Debug, Default)]
pub(crate) struct Plan {
    pub(crate) capture: CaptureArgs,
    pub(crate) duration: Option<Duration>,
    /// Program and arguments; empty: the whole host.
    pub(crate) command: Vec<OsString>,
    /// How long a daemon that ends is waited for; absent: [`absence::PATIENCE`].
    pub(crate) reconnect: Option<Duration>,
    /// What machine and processes use is recorded too.
    pub(crate) host: Option<HostPlan>,
}

/// Where a recording goes while it grows, and where it goes at last.
#[derive(Debug)]
pub(crate) struct Destination {
    growing: GrowingFile,
    target: Option<Target>,
}

impl Destination {
    /// Makes sure that the place can be written, before anything else happens.
    pub(crate) fn open(target: Target) -> Result<Self, Failure> {
        Ok(Self {
            growing: GrowingFile::create(&target)?,
            target: Some(target),
        })
    }

    /// Nowhere: for a recording that only counts.
    pub(crate) fn nowhere() -> Result<Self, Failure> {
        Ok(Self {
            growing: GrowingFile::nameless()?,
            target: None,
        })
    }
}

/// A recording that has ended.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// The trace; `None` if it went nowhere.
    pub(crate) written: Option<Written>,
    pub(crate) events: u64,
    pub(crate) lost: u64,
    /// From the start of the run to the last fetch.
    pub(crate) lasted: Duration,
    pub(crate) rate: Rate,
    /// The daemon at the end.
    pub(crate) daemon: v1::GetStatusResponse,
    pub(crate) command: Option<ExitStatus>,
    pub(crate) signal: Option<EndSignal>,
    /// Why the trace is not all that it could be.
    pub(crate) failure: Option<Failure>,
}

impl Outcome {
    /// The exit status: the command's, else the signal's; a failure of ours shows where the command had none.
    pub(crate) fn status(&self) -> u8 {
        let own = self.failure.as_ref().map_or(0, Failure::status);
        match (self.command.map(child::shell_status), self.signal) {
            (Some(0), _) => own,
            (Some(status), _) => status,
            (None, Some(signal)) => signal.status(),
            (None, None) => own,
        }
    }
}

/// A daemon and the signals of this process, for one recording after the other.
#[derive(Debug)]
pub(crate) struct Session {
    host: Host,
    signals: Signals,
}

impl Session {
    /// Uses the daemon at `socket`, or an embedded one if there is none; `None`: an embedded one in any case.
    pub(crate) async fn open(socket: Option<&Path>) -> Result<Self, Failure> {
        let signals = Signals::install()?;
        let host = match socket {
            Some(socket) => Host::choose(socket).await?,
            None => Host::embedded().await?,
        };
        Ok(Self { host, signals })
    }

    /// Records, and writes the trace to its place.
    pub(crate) async fn record(
        &mut self,
        plan: Plan,
        destination: Destination,
    ) -> Result<Outcome, Failure> {
        run::record(&self.host, &mut self.signals, plan, destination).await
    }

    /// Ends an embedded daemon.
    pub(crate) fn close(self) {
        self.host.close();
    }
}
