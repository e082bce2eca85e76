//! A daemon that ends while it records for us, and the next one.
//!
//! The processes go on recording, and the next daemon goes on with the run and its cursors. So a recording waits for it, and
//! goes on where the last commit left it. What it can't know is whether a commit that was not answered came to pass: the
//! next daemon's cursors say it ([`super::collect`]).

use std::path::Path;
use std::time::Duration;

use nrt_trace_proto::v1;
use tokio::time::{Instant, timeout};

use crate::client::Client;
use crate::error::Failure;

/// How long a daemon may be away, unless somebody says otherwise.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// Time between two looks for it.
pub(super) const LOOK: Duration = Duration::from_millis(100);
/// How long one look may take.
const LOOK_MOST: Duration = Duration::from_secs(1);

/// The time without a daemon.
#[derive(Debug)]
pub(super) struct Absence {
    pub(super) since: Instant,
    /// When it is given up.
    until: Instant,
    /// How long it was waited for, in words of the message.
    patience: Duration,
}

/// What a look for the daemon found.
#[derive(Debug)]
pub(super) enum Seen {
    /// It is back, and has the run.
    Back(Box<(Client, Option<v1::RunStatus>)>),
    /// Not yet.
    Absent,
}

impl Absence {
    /// It begins now, and may last this long.
    pub(super) fn new(patience: Duration) -> Self {
        let since = Instant::now();
        Self {
            since,
            until: since + patience,
            patience,
        }
    }

    /// Whoever waits wants to leave: it may last this much longer at most.
    pub(super) fn shorten(&mut self, left: Duration) {
        let until = Instant::now() + left;
        if until < self.until {
            self.until = until;
            self.patience = until - self.since;
        }
    }

    /// Looks once. `capturing`: the run must go on; else it may have been read to its end.
    ///
    /// # Errors
    /// The time is over, or the daemon is another one.
    pub(super) async fn look(
        &self,
        socket: &Path,
        run_id: u64,
        capturing: bool,
    ) -> Result<Seen, Failure> {
        let connected = timeout(LOOK_MOST, Client::connect(socket)).await;
        let Ok(Ok(client)) = connected else {
            if Instant::now() < self.until {
                return Ok(Seen::Absent);
            }
            let waited = crate::output::human::span(self.patience);
            return Err(Failure::Failed(format!(
                "the daemon at {} ended, and none came back within {waited}",
                socket.display()
            )));
        };
        let runs = &client.status_at_connect().runs;
        let ours = |one: &&v1::RunStatus| one.run.as_ref().is_some_and(|run| run.run_id == run_id);
        let run = runs.iter().find(ours).cloned();
        if run.is_none() && capturing {
            return Err(Failure::Failed(format!(
                "the daemon at {} started anew without this run",
                socket.display()
            )));
        }
        Ok(Seen::Back(Box::new((client, run))))
    }
}
