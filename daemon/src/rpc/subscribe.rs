//! A subscription as a stream: a thread reads, a short channel hands over, and nobody waits for the client but that thread.

use std::sync::Arc;
use std::time::Duration;

use nrt_trace_proto::v1;
use nrt_trace_proto::v1::trace_part::Part;
use nrt_trace_ring::Impossible;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::SendTimeoutError;

use super::status;
use super::stream::Item;
use crate::drain::fetch::{FetchJob, ProducerJob};
use crate::drain::follow::{self, Link, Stopped, Untaken, Wish};
use crate::drain::parting::Parting;
use crate::metrics::{Calls, Seat};
use crate::registry::command::{Command, Handle};
use crate::run::error::RunError;
use crate::run::request::SubscribeSpec;

/// A subscriber's thread, before it runs.
#[derive(Debug)]
pub(super) struct Subscriber {
    handle: Handle,
    calls: Calls,
    parting: Arc<Parting>,
    wish: Wish,
    first: (u64, FetchJob),
    /// Counts it for as long as it lives.
    _seat: Seat,
}

impl Subscriber {
    /// Finds the run, and a place.
    pub(super) async fn new(
        spec: SubscribeSpec,
        handle: Handle,
        calls: Calls,
    ) -> Result<Self, RunError> {
        let seat = calls.subscribe().map_err(RunError::Subscribers)?;
        let SubscribeSpec { rings, wish } = spec;
        let parting = Parting::new(Arc::new(rings));
        let first = handle
            .ask(|reply| Command::Follow {
                parting: parting.clone(),
                run: None,
                seen: None,
                reply,
            })
            .await?;
        Ok(Self {
            // There is no state that it had seen.
            first: first.ok_or(RunError::Busy)?,
            handle,
            calls,
            parting,
            wish,
            _seat: seat,
        })
    }

    /// Reads into `parts` until the run or the client ends.
    pub(super) fn feed(self, parts: &mpsc::Sender<Item>, runtime: tokio::runtime::Handle) {
        let strings_from = self.parting.spec.strings_from;
        let mut link = Stream {
            parts,
            runtime,
            handle: self.handle,
            parting: self.parting,
            calls: self.calls,
        };
        let ended = follow::run(&mut link, self.wish, strings_from, self.first);
        if let Err(Stopped::Refused(error)) = ended {
            // A client that is gone needs no reason.
            drop(parts.blocking_send(Err(status::of_error(&error))));
        }
    }
}

struct Stream<'a> {
    parts: &'a mpsc::Sender<Item>,
    runtime: tokio::runtime::Handle,
    handle: Handle,
    parting: Arc<Parting>,
    calls: Calls,
}

impl Link for Stream<'_> {
    fn offer(&mut self, part: Part, wait: Option<Duration>) -> Result<(), Untaken> {
        let item: Item = Ok(v1::TracePart { part: Some(part) });
        let Some(wait) = wait else {
            return self.parts.blocking_send(item).map_err(|_| Untaken::Gone);
        };
        let sent = self.runtime.block_on(self.parts.send_timeout(item, wait));
        sent.map_err(|untaken| match untaken {
            SendTimeoutError::Timeout(Ok(v1::TracePart { part: Some(part) })) => {
                Untaken::Full(Box::new(part))
            }
            _ => Untaken::Gone,
        })
    }

    fn pause(&mut self, time: Duration) -> bool {
        let closed = async { tokio::time::timeout(time, self.parts.closed()).await };
        self.runtime.block_on(closed).is_err()
    }

    fn look(&mut self, run: u64, seen: u64) -> Result<Option<(u64, FetchJob)>, RunError> {
        self.handle.ask_blocking(|reply| Command::Follow {
            parting: self.parting.clone(),
            run: Some(run),
            seen: Some(seen),
            reply,
        })
    }

    fn parted(&mut self) -> Vec<ProducerJob> {
        self.parting.take()
    }

    fn let_go(&mut self) {
        self.parting.close();
    }

    fn quarantine(&mut self, producer: u32, impossible: Impossible) {
        // When the door is full, the next reader finds the same words.
        drop(self.handle.send(Command::Quarantine(producer, impossible)));
    }

    fn count(&mut self, delivered: u64, lost: u64) {
        self.calls.followed(delivered, lost);
    }
}
