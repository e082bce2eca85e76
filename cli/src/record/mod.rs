//! Recording: a command and its descendants, or the whole host, from start to file.
//!
//! ```text
//!  GrowingFile (FILE.part) ◀── Collector ◀── gRPC ◀── Host (the host's daemon, or one inside)
//!        │                                        ▲ attach
//!        │ at the end, regrouped                  │
//!        ▼                                    Recorded (the command)
//!      FILE
//! ```
//!
//! | module | what |
//! |---|---|
//! | [`host`] | which daemon |
//! | [`child`] | the command |
//! | [`signals`] | Ctrl-C and its like |
//! | [`collect`] | fetch, append, commit |
//! | [`pace`] | how soon again |
//! | [`rate`] | how fast it went without a loss |
//! | [`growing`] | the file that grows meanwhile |
//! | [`finish`] | the trace and its summary |

pub(crate) mod child;
pub(crate) mod collect;
pub(crate) mod finish;
mod growing;
pub(crate) mod host;
mod pace;
pub(crate) mod rate;
mod signals;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use nrt_trace_export::Summary;
use nrt_trace_proto::v1;
use tokio::time::Instant;

use crate::cli::CaptureArgs;
use crate::client::Client;
use crate::error::Failure;
use crate::output::progress::Progress;
use crate::output::table::printable;
use crate::output::target::Target;
use crate::output::tell;
use child::{Environment, Recorded};
use collect::Collector;
use growing::GrowingFile;
use host::Host;
use signals::{EndSignal, Signals};

/// How long a command may take to end after a signal while it is still recorded. Then the trace is written, and only
/// waiting goes on.
const GRACE: Duration = Duration::from_secs(2);

/// Fetches after the end that bring nothing, before what is still pending is given up.
const LAST_TRIES: u32 = 100;

/// Pause between two of those.
const LAST_PAUSE: Duration = Duration::from_millis(10);

/// What to record, and where to.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) target: Target,
    pub(crate) capture: CaptureArgs,
    pub(crate) duration: Option<Duration>,
    /// Program and arguments; empty: the whole host.
    pub(crate) command: Vec<OsString>,
    /// Control socket of the host's daemon; `None`: an embedded one in any case.
    pub(crate) socket: Option<PathBuf>,
}

/// A recording that has been written.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) summary: Summary,
    pub(crate) events: u64,
    /// From the start of the run to the last fetch.
    pub(crate) lasted: Duration,
    pub(crate) rate: rate::Rate,
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

/// A recording under way.
struct Recording {
    collector: Collector,
    control: Client,
    token: String,
    signals: Signals,
    child: Option<Recorded>,
    progress: Progress,
    started: Instant,
    signal: Option<EndSignal>,
    failure: Option<Failure>,
}

/// Records, and writes the trace to its place.
pub(crate) async fn record(plan: Plan) -> Result<Outcome, Failure> {
    // First whatever can be wrong without anything having happened yet.
    let growing = GrowingFile::create(&plan.target)?;
    let signals = Signals::install()?;
    let host = match &plan.socket {
        Some(socket) => Host::choose(socket).await?,
        None => Host::embedded().await?,
    };
    let token = if plan.command.is_empty() {
        String::new()
    } else {
        random_token()
    };
    let mut control = host.client.clone();
    let reply = control
        .start(crate::command::start_request(
            token.clone(),
            plan.capture.clone(),
        ))
        .await?;
    tell_start(&reply);
    let cut_off = (
        control.socket().to_owned(),
        token.clone(),
        host.folder().map(Path::to_owned),
    );
    signals.last_act().set(Some(Box::new(move || {
        abandon(&cut_off.0, &cut_off.1, cut_off.2.as_deref());
    })));

    let capacity = reply.run.map_or(0, |run| run.max_events_per_nc);
    let mut recording = Recording {
        collector: Collector::new(host.client.clone(), token.clone(), capacity, growing),
        control,
        token,
        signals,
        child: None,
        progress: Progress::new(),
        started: Instant::now(),
        signal: None,
        failure: None,
    };
    let environment = Environment {
        token: recording.token.clone(),
        control_socket: absolute(host.client.socket()),
        producer_socket: absolute(&host.producer_socket),
    };
    if !plan.command.is_empty() {
        match Recorded::spawn(&plan.command, &environment, plan.target.is_stdout()) {
            Ok(child) => recording.child = Some(child),
            Err(failure) => {
                recording.stop(true).await;
                host.close();
                return Err(failure);
            }
        }
    }
    recording.follow(plan.duration).await;
    recording.stop(false).await;
    recording.collect_rest().await;
    let lasted = recording.started.elapsed();
    recording.progress.clear();
    let daemon = recording.control.status().await.unwrap_or_default();
    recording.write(&plan.target, host, lasted, daemon).await
}

impl Recording {
    /// Fetches while the command runs, or the time is not over, or nobody wants to stop.
    async fn follow(&mut self, duration: Option<Duration>) {
        let mut until = duration.map(|duration| self.started + duration);
        let mut next = Instant::now();
        loop {
            let child = self.child.as_mut();
            tokio::select! {
                biased;
                signal = self.signals.first(), if self.signal.is_none() => {
                    self.signal = Some(signal);
                    match &self.child {
                        Some(child) => child.pass_on(signal),
                        None => return,
                    }
                    let grace = Instant::now() + GRACE;
                    until = Some(until.map_or(grace, |until| until.min(grace)));
                }
                () = ended(child) => return,
                () = at(until) => return,
                () = tokio::time::sleep_until(next), if self.failure.is_none() => {
                    let begun = Instant::now();
                    next = match self.collector.fetch().await {
                        Ok(fetched) => begun + fetched.wait,
                        // Somebody else reads this run; its fetch is over in a moment.
                        Err(Failure::Busy(_)) => begun + LAST_PAUSE,
                        Err(failure) => {
                            self.fail(failure);
                            begun
                        }
                    };
                    let got = self.collector.got();
                    self.progress.show(got.events, self.collector.bytes(), got.lost);
                }
            }
        }
    }

    /// Ends the run. That somebody else has ended it already is fine.
    async fn stop(&mut self, discard: bool) {
        let request = v1::StopRequest {
            token: self.token.clone(),
            discard,
        };
        let _best_effort = self.control.stop(request).await;
    }

    /// Fetches what is left of a run that has ended.
    async fn collect_rest(&mut self) {
        let mut empty = 0;
        while self.failure.is_none() && empty < LAST_TRIES {
            match self.collector.fetch().await {
                Ok(fetched) if fetched.run_ended => return,
                Ok(fetched) if fetched.events > 0 => empty = 0,
                Ok(_) | Err(Failure::Busy(_)) => {
                    empty += 1;
                    tokio::time::sleep(LAST_PAUSE).await;
                }
                Err(failure) => self.fail(failure),
            }
        }
    }

    /// Nothing more can be recorded. The command goes on.
    fn fail(&mut self, failure: Failure) {
        self.progress.clear();
        tell::error(&format_args!(
            "{failure}; nothing more is recorded, the command goes on"
        ));
        self.failure = Some(failure);
    }

    /// Turns the growing file into the trace, ends the daemon, and waits for a command that still runs.
    async fn write(
        mut self,
        target: &Target,
        host: Host,
        lasted: Duration,
        daemon: v1::GetStatusResponse,
    ) -> Result<Outcome, Failure> {
        let (events, rate) = (self.collector.got().events, self.collector.rate());
        let unread = match (&self.failure, host.is_embedded()) {
            (Some(_), false) => Some(format!(
                "what was not recorded may still be fetched: nrt-tracectl fetch --token {} -o FILE",
                self.token
            )),
            _ => None,
        };
        host.close();
        if let Some(unread) = unread {
            tell::note(unread);
        }
        let written = finish::finish(self.collector.into_growing(), target);
        self.signals.last_act().set(None);
        let command = match &mut self.child {
            Some(child) => Some(wait_for(child, target).await),
            None => None,
        };
        Ok(Outcome {
            summary: written?,
            events,
            lasted,
            rate,
            daemon,
            command,
            signal: self.signal,
            failure: self.failure,
        })
    }
}

/// Waits for the command, and says so if that may take a while.
async fn wait_for(child: &mut Recorded, target: &Target) -> ExitStatus {
    if let (None, Some(pid)) = (child.ended(), child.pid()) {
        let name = printable(child.name());
        tell::note(format!(
            "the trace is in {}; waiting for {name} (pid {pid}) to end, Ctrl-C to leave it",
            target.name()
        ));
    }
    child.wait().await
}

/// Completes when the command has ended; never without one.
async fn ended(child: Option<&mut Recorded>) {
    match child {
        Some(child) => {
            child.wait().await;
        }
        None => std::future::pending().await,
    }
}

/// Completes at a moment; never without one.
async fn at(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

fn tell_start(reply: &v1::StartResponse) {
    for warning in &reply.warnings {
        tell::warning(printable(warning));
    }
    if reply.abandoned > 0 {
        tell::warning(format!(
            "{} unread events of the previous run were given up",
            crate::output::human::count(reply.abandoned)
        ));
    }
}

/// A token that no other run has.
fn random_token() -> String {
    let mut bytes = [0; 16];
    let filled = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    if filled != Ok(bytes.len()) {
        // Kernels since 3.17 always fill it; the pid and the time would still not meet another recording's.
        bytes[..4].copy_from_slice(&std::process::id().to_le_bytes());
    }
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// Ends the run from outside the event loop, which may be busy, and removes the folder of an embedded daemon.
fn abandon(socket: &Path, token: &str, folder: Option<&Path>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    if let Ok(runtime) = runtime {
        let stop = async {
            let mut client = Client::connect(socket).await.ok()?;
            let request = v1::StopRequest {
                token: token.to_owned(),
                discard: true,
            };
            client.stop(request).await.ok()
        };
        // A daemon that does not answer in this time keeps nobody from leaving.
        let bounded = async { tokio::time::timeout(Duration::from_millis(500), stop).await };
        let _best_effort = runtime.block_on(bounded);
    }
    if let Some(folder) = folder {
        let _best_effort = std::fs::remove_dir_all(folder);
    }
}
