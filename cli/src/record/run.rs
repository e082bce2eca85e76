//! One recording, from start to stop: beginning, and following the command. [`away`] is what happens while there is no
//! daemon, [`end`] what happens after the command.

mod away;
mod end;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use nrt_trace_proto::v1;
use nrt_trace_proto::v1::trace_part::Part;
use tokio::time::Instant;

use super::absence::{Absence, LOOK, PATIENCE};
use super::child::{Environment, Recorded};
use super::collect::Collector;
use super::host::Host;
use super::signals::{EndSignal, Signals};
use super::ticks::HostTicks;
use super::{Destination, HostPlan, Outcome, Plan};
use crate::client::Client;
use crate::command::start_request;
use crate::error::Failure;
use crate::output::progress::Progress;
use crate::output::table::printable;
use crate::output::target::Target;
use crate::output::{human, tell};

/// How long a command may take to end after a signal while it is still recorded. Then the trace is written, and only
/// waiting goes on.
const GRACE: Duration = Duration::from_secs(2);

/// Pause before another fetch where one brought nothing, and somebody waits for it.
const SHORT_PAUSE: Duration = Duration::from_millis(10);

/// A recording under way.
struct Recording<'a> {
    signals: &'a mut Signals,
    collector: Collector,
    control: Client,
    token: String,
    child: Option<Recorded>,
    progress: Progress,
    ticks: HostTicks,
    started: Instant,
    signal: Option<EndSignal>,
    failure: Option<Failure>,
    run_id: u64,
    /// How long a daemon may be away; `None` for one that is inside this program, and does not come back.
    patience: Option<Duration>,
    /// Set while there is no daemon.
    absence: Option<Absence>,
    /// Whether the run was stopped.
    stopped: bool,
    host_plan: Option<HostPlan>,
}

/// Records what the plan says, with this daemon.
pub(super) async fn record(
    host: &Host,
    signals: &mut Signals,
    plan: Plan,
    destination: Destination,
) -> Result<Outcome, Failure> {
    let Destination { growing, target } = destination;
    let token = if plan.command.is_empty() {
        String::new()
    } else {
        random_token()
    };
    let mut control = host.client.clone();
    let ticks = HostTicks::begin(&control, plan.host.as_ref()).await?;
    let reply = control
        .start(start_request(token.clone(), plan.capture))
        .await?;
    tell_start(&reply);
    if token.is_empty() && host.is_embedded() {
        tell::warning(format!(
            "only programs that are started with NRT_TRACE_PRODUCER_SOCKET={} will be in it; to record the whole host, \
             start nrt-traced first",
            host.producer_socket.display()
        ));
    }
    let (capacity, run_id) =
        (reply.run.as_ref()).map_or((0, 0), |run| (run.max_events_per_nc, run.run_id));
    let mut recording = Recording {
        signals,
        collector: Collector::new(host.client.clone(), token.clone(), capacity, growing),
        control,
        token,
        child: None,
        progress: Progress::new(),
        ticks,
        started: Instant::now(),
        signal: None,
        failure: None,
        run_id,
        patience: (!host.is_embedded()).then(|| plan.reconnect.unwrap_or(PATIENCE)),
        absence: None,
        stopped: false,
        host_plan: plan.host.clone(),
    };
    recording.guard(host);
    recording.signal = recording.signals.pending();
    // A command that is started after the signal would never hear of it.
    if recording.signal.is_none() {
        if let Err(failure) = recording.spawn(&plan.command, host, target.as_ref()) {
            recording.stop(true, host).await;
            return Err(failure);
        }
        recording.follow(plan.duration).await;
    }
    recording.stop(false, host).await;
    recording.collect_rest().await;
    recording.tell_survivors().await;
    let host_file = plan.host.and_then(|host| host.file);
    recording
        .end(host, target.as_ref(), host_file.as_deref())
        .await
}

impl Recording<'_> {
    /// Sees to it that a second signal ends the run too.
    fn guard(&self, host: &Host) {
        let socket = self.control.socket().to_owned();
        let token = self.token.clone();
        let folder = host.folder().map(Path::to_owned);
        self.signals.last_act().set(Some(Box::new(move || {
            end::end_run(&socket, &token);
            end::remove(folder.as_deref());
        })));
    }

    /// Starts the command, if there is one.
    fn spawn(
        &mut self,
        command: &[OsString],
        host: &Host,
        target: Option<&Target>,
    ) -> Result<(), Failure> {
        if command.is_empty() {
            return Ok(());
        }
        let environment = Environment {
            token: self.token.clone(),
            control_socket: absolute(host.client.socket()),
            producer_socket: absolute(&host.producer_socket),
        };
        let to_stderr = target.is_some_and(Target::is_stdout);
        self.child = Some(Recorded::spawn(command, &environment, to_stderr)?);
        Ok(())
    }

    /// Fetches while the command runs, or the time is not over, or nobody wants to stop.
    async fn follow(&mut self, duration: Option<Duration>) {
        let mut until = duration.map(|duration| self.started + duration);
        let mut next = Instant::now();
        loop {
            tokio::select! {
                biased;
                signal = self.signals.first(), if self.signal.is_none() => {
                    self.signal = Some(signal);
                    if let Some(absence) = &mut self.absence {
                        absence.shorten(GRACE);
                    }
                    match &self.child {
                        Some(child) => child.pass_on(signal),
                        None => return,
                    }
                    let grace = Instant::now() + GRACE;
                    until = Some(until.map_or(grace, |until| until.min(grace)));
                }
                () = ended(self.child.as_mut()) => return,
                () = at(until) => return,
                parts = self.ticks.next() => self.take_tick(parts),
                () = tokio::time::sleep_until(next), if self.failure.is_none() => {
                    next = self.fetch().await;
                }
            }
        }
    }

    /// A tick of the host monitor.
    fn take_tick(&mut self, parts: Vec<Part>) {
        if self.failure.is_none()
            && let Err(failure) = self.collector.take_tick(parts)
        {
            self.fail(failure);
        }
    }

    /// One fetch; says when the next is due.
    async fn fetch(&mut self) -> Instant {
        let begun = Instant::now();
        if self.absence.is_some() {
            self.look_for_daemon().await;
            return begun + LOOK;
        }
        let next = match self.collector.fetch().await {
            Ok(fetched) => begun + fetched.wait,
            // Somebody else reads this run; its fetch is over in a moment.
            Err(Failure::Busy(_)) => begun + SHORT_PAUSE,
            Err(failure) => {
                self.lose_daemon_or_fail(failure);
                begun
            }
        };
        let got = self.collector.got();
        self.progress
            .recording(got.events, self.collector.bytes(), got.lost);
        next
    }

    /// Nothing more can be recorded. The command goes on.
    fn fail(&mut self, failure: Failure) {
        self.progress.clear();
        tell::error(&format_args!("{failure}; nothing more is recorded"));
        self.failure = Some(failure);
    }
}

/// Completes when the command has ended; never without one.
async fn ended(child: Option<&mut Recorded>) {
    match child {
        Some(child) => {
            let _status: ExitStatus = child.wait().await;
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
    for producer in (reply.producers.iter()).filter(|producer| !producer.refused.is_empty()) {
        tell::warning(format!(
            "{} is not captured: {}",
            printable(&producer.name),
            printable(&producer.refused)
        ));
    }
    if reply.abandoned > 0 {
        let given_up = human::events(reply.abandoned);
        tell::warning(format!(
            "{given_up} of the previous run, which nobody had fetched, were given up"
        ));
    }
}

/// A token that no other run has.
fn random_token() -> String {
    let mut bytes = [0; 16];
    let filled = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    if filled != Ok(bytes.len()) {
        // Kernels since 3.17 always fill it; the pid alone would still not meet another recording's.
        bytes[..4].copy_from_slice(&std::process::id().to_le_bytes());
    }
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
