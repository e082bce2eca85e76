//! A recording whose daemon goes away: the wait for the next one, and going on with it.

use super::super::absence::{Absence, LOOK, Seen};
use super::{GRACE, Recording};
use crate::error::Failure;
use crate::output::{human, tell};

impl Recording<'_> {
    /// The daemon is not there any more: it is waited for. Anything else ends the recording.
    pub(super) fn lose_daemon_or_fail(&mut self, failure: Failure) {
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
    pub(super) async fn await_daemon(&mut self) -> bool {
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
    pub(super) async fn look_for_daemon(&mut self) {
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
}
