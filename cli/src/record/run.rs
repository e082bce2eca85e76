//! One recording, from start to stop.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use nrt_trace_proto::v1;
use nrt_trace_proto::v1::trace_part::Part;
use tokio::time::Instant;

use super::absence::{Absence, LOOK, PATIENCE, Seen};
use super::child::{Environment, Recorded};
use super::collect::Collector;
use super::finish::finish;
use super::host::Host;
use super::signals::{EndSignal, Signals};
use super::ticks::HostTicks;
use super::{Destination, HostPlan, Outcome, Plan, survivors};
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

/// Fetches after the end that bring nothing, before what is still pending is given up.
const LAST_TRIES: u32 = 100;

/// Pause between two of those.
const LAST_PAUSE: Duration = Duration::from_millis(10);

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
            end_run(&socket, &token);
            remove(folder.as_deref());
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
            Err(Failure::Busy(_)) => begun + LAST_PAUSE,
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

    /// Ends the run. That somebody else has ended it already is fine.
    async fn stop(&mut self, discard: bool, host: &Host) {
        let request = v1::StopRequest {
            token: self.token.clone(),
            discard,
        };
        while self.failure.is_none() && self.await_daemon().await {
            match self.control.stop(request.clone()).await {
                Err(failure @ Failure::Gone(_)) => self.lose_daemon_or_fail(failure),
                _done_or_ended_already => break,
            }
        }
        self.stopped = true;
        // The next run of this scope may be somebody else's.
        let folder = host.folder().map(Path::to_owned);
        self.signals
            .last_act()
            .set(Some(Box::new(move || remove(folder.as_deref()))));
    }

    /// Fetches what is left of a run that has ended.
    async fn collect_rest(&mut self) {
        let mut empty = 0;
        let all_back = Instant::now() + self.patience.unwrap_or_default();
        while self.failure.is_none() && empty < LAST_TRIES {
            if !self.await_daemon().await {
                return;
            }
            match self.collector.fetch().await {
                Ok(fetched) if fetched.run_ended => return,
                // Processes that have not come back to the next daemon are not waited for by somebody who wants to leave.
                Ok(fetched)
                    if fetched.events > 0
                        || fetched.away > 0
                            && self.signal.is_none()
                            && Instant::now() < all_back =>
                {
                    empty = 0;
                    tokio::time::sleep(LAST_PAUSE).await;
                }
                Ok(_) => {
                    empty += 1;
                    tokio::time::sleep(LAST_PAUSE).await;
                }
                Err(Failure::Busy(why)) => {
                    empty += 1;
                    if empty == LAST_TRIES {
                        self.fail(Failure::Failed(why)); // what is left is not here
                    }
                    tokio::time::sleep(LAST_PAUSE).await;
                }
                Err(failure) => self.lose_daemon_or_fail(failure),
            }
        }
    }

    /// Says who goes on without being recorded. While the command itself still runs, that is what [`tell_wait`] says.
    async fn tell_survivors(&mut self) {
        let over = (self.child.as_ref()).is_some_and(|child| child.ended().is_some());
        if !over || self.failure.is_some() {
            return;
        }
        // A daemon that does not answer any more has told of all that the trace has.
        let producers = self.control.producers(Some(self.token.clone())).await;
        if let Some(said) = survivors::warning(&producers.unwrap_or_default()) {
            self.progress.clear();
            tell::warning(said);
        }
    }

    /// The daemon is not there any more: it is waited for. Anything else ends the recording.
    fn lose_daemon_or_fail(&mut self, failure: Failure) {
        match (failure, self.patience) {
            (Failure::Gone(why), Some(patience)) => {
                self.progress.clear();
                tell::note(format_args!(
                    "{why}; waiting up to {} for the next one, which goes on with the run",
                    human::span(patience)
                ));
                let mut absence = Absence::new(patience);
                if self.signal.is_some() {
                    absence.shorten(GRACE);
                }
                self.absence = Some(absence);
            }
            (failure, _) => self.fail(failure),
        }
    }

    /// Waits for a daemon, if there is none; false if none came.
    async fn await_daemon(&mut self) -> bool {
        while self.absence.is_some() && self.failure.is_none() {
            tokio::select! {
                biased;
                signal = self.signals.first(), if self.signal.is_none() => {
                    self.signal = Some(signal);
                    if let Some(child) = &self.child {
                        child.pass_on(signal);
                    }
                    if let Some(absence) = &mut self.absence {
                        absence.shorten(GRACE);
                    }
                }
                () = tokio::time::sleep(LOOK) => self.look_for_daemon().await,
            }
        }
        self.absence.is_none() && self.failure.is_none()
    }

    /// Looks once for a daemon, and goes on with it.
    async fn look_for_daemon(&mut self) {
        let Some(absence) = &self.absence else { return };
        let since = absence.since;
        let seen = absence
            .look(self.control.socket(), self.run_id, !self.stopped)
            .await;
        let (client, run) = match seen {
            Ok(Seen::Absent) => {
                let got = self.collector.got();
                return self.progress.waiting(since.elapsed(), got.events);
            }
            Ok(Seen::Back(found)) => *found,
            Err(failure) => {
                self.absence = None;
                return self.fail(failure);
            }
        };
        self.absence = None;
        self.progress.clear();
        tell::note(format!(
            "the daemon is back after {}",
            human::span(since.elapsed())
        ));
        self.control = client.clone();
        self.ticks.resume(&client, self.host_plan.as_ref()).await;
        if let Err(failure) = self.collector.resume(client, run.as_ref()) {
            self.fail(failure);
        }
    }

    /// Nothing more can be recorded. The command goes on.
    fn fail(&mut self, failure: Failure) {
        self.progress.clear();
        tell::error(&format_args!("{failure}; nothing more is recorded"));
        self.failure = Some(failure);
    }

    /// Turns the growing file into the trace, and waits for a command that still runs.
    async fn end(
        mut self,
        host: &Host,
        target: Option<&Target>,
        host_file: Option<&Path>,
    ) -> Result<Outcome, Failure> {
        let lasted = self.started.elapsed();
        let daemon = self.control.status().await.unwrap_or_default();
        if self.failure.is_some() && !host.is_embedded() {
            self.progress.clear();
            let scope = if self.token.is_empty() {
                String::new()
            } else {
                format!(" --token {}", self.token)
            };
            tell::note(format!(
                "what was not recorded may still be with the daemon, and its run may go on: nrt-tracectl stop{scope}; \
                 nrt-tracectl fetch{scope} -o FILE"
            ));
        }
        let (got, rate) = (self.collector.got(), self.collector.rate());
        if got.elsewhere > 0 {
            self.progress.clear();
            tell::warning(format!(
                "{} events of this run are not in the recording: somebody else fetched them",
                human::count(got.elsewhere)
            ));
        }
        self.ticks.close();
        let growing = self.collector.into_growing();
        let written =
            target.map(|target| finish(growing, target, host_file, got.events, &mut self.progress));
        self.progress.clear();
        let command = match &mut self.child {
            Some(child) => {
                tell_wait(child, target);
                Some(child.wait().await)
            }
            None => None,
        };
        Ok(Outcome {
            written: match written.transpose() {
                // The reader of standard output has seen enough; the command's end counts all the same.
                Err(Failure::Closed) => None,
                written => written?,
            },
            events: got.events,
            lost: got.lost,
            lasted,
            rate,
            daemon,
            command,
            signal: self.signal,
            failure: self.failure,
        })
    }
}

/// Says what is being waited for, if that may take a while.
fn tell_wait(child: &Recorded, target: Option<&Target>) {
    if let (None, Some(pid), Some(target)) = (child.ended(), child.pid(), target) {
        let name = printable(child.name());
        tell::note(format!(
            "the recording is over, its trace in {}; waiting for {name} (pid {pid}) to end, Ctrl-C to leave it alone",
            target.name()
        ));
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

/// Ends the run from outside the event loop, which may be busy.
fn end_run(socket: &Path, token: &str) {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    else {
        return;
    };
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
    let _unheard = runtime.block_on(bounded);
}

/// Removes the folder of an embedded daemon.
fn remove(folder: Option<&Path>) {
    if let Some(folder) = folder {
        let _best_effort = std::fs::remove_dir_all(folder);
    }
}
