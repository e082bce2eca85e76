//! The end of a recording: the run is stopped, the rest fetched, the trace written.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nrt_trace_proto::v1;
use tokio::time::Instant;

use super::super::child::Recorded;
use super::super::finish::finish;
use super::super::host::Host;
use super::super::{Outcome, survivors};
use super::{Recording, SHORT_PAUSE};
use crate::client::Client;
use crate::error::Failure;
use crate::output::table::printable;
use crate::output::target::Target;
use crate::output::{human, tell};

/// Fetches after the end that bring nothing, before what is still pending is given up.
const LAST_TRIES: u32 = 100;

impl Recording<'_> {
    /// Ends the run. That somebody else has ended it already is fine.
    pub(super) async fn stop(&mut self, discard: bool, host: &Host) {
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
    pub(super) async fn collect_rest(&mut self) {
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
                    tokio::time::sleep(SHORT_PAUSE).await;
                }
                Ok(_) => {
                    empty += 1;
                    tokio::time::sleep(SHORT_PAUSE).await;
                }
                Err(Failure::Busy(why)) => {
                    empty += 1;
                    if empty == LAST_TRIES {
                        self.fail(Failure::Failed(why)); // what is left is not here
                    }
                    tokio::time::sleep(SHORT_PAUSE).await;
                }
                Err(failure) => self.lose_daemon_or_fail(failure),
            }
        }
    }

    /// Says who goes on without being recorded. While the command itself still runs, that is what [`tell_wait`] says.
    pub(super) async fn tell_survivors(&mut self) {
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

    /// Turns the growing file into the trace, and waits for a command that still runs.
    pub(super) async fn end(
        mut self,
        host: &Host,
        target: Option<&Target>,
        host_file: Option<&Path>,
    ) -> Result<Outcome, Failure> {
        let lasted = self.started.elapsed();
        let mut daemon = self.control.status().await.unwrap_or_default();
        let began = SystemTime::now().checked_sub(lasted);
        keep_since(&mut daemon, began.unwrap_or(UNIX_EPOCH));
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

/// Leaves those refusals that came since the recording began.
fn keep_since(daemon: &mut v1::GetStatusResponse, began: SystemTime) {
    let began = began.duration_since(UNIX_EPOCH).unwrap_or_default();
    let meanwhile = |refusal: &v1::Refusal| Duration::from_nanos(refusal.last_ns) >= began;
    daemon.refusals.retain(meanwhile);
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

/// Ends the run from outside the event loop, which may be busy.
pub(super) fn end_run(socket: &Path, token: &str) {
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
pub(super) fn remove(folder: Option<&Path>) {
    if let Some(folder) = folder {
        let _best_effort = std::fs::remove_dir_all(folder);
    }
}
