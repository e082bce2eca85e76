//! A fetch as a stream: a thread reads, a short channel hands over, the client sets the pace.

use std::time::Instant;

use nrt_trace_abi::record::RECORD_BYTES;
use nrt_trace_proto::v1;
use nrt_trace_proto::v1::trace_part::Part;
use tokio::sync::mpsc;
use tonic::Status;

use super::status;
use crate::drain::fetch::{self, BrokenOff, FetchJob};
use crate::metrics::{Calls, Outcome};
use crate::registry::command::{Command, Handle};

/// Parts between the reading thread and the stream: a few chunks, so that neither waits for each of them.
pub(super) const PARTS: usize = 4;

/// What the stream carries.
pub(super) type Item = Result<v1::TracePart, Status>;

/// Reads all that `job` says into `parts`, and commits it at the end if `commit`.
pub(super) fn feed(
    job: FetchJob,
    commit: bool,
    parts: &mpsc::Sender<Item>,
    handle: &Handle,
    runtime: &tokio::runtime::Handle,
    calls: &Calls,
) {
    let fetch_id = job.lease.slot().id;
    let (began, mut events) = (Instant::now(), 0);
    let read = fetch::run(
        job,
        |part| {
            if let Part::Records(records) = &part {
                events += (records.packed.len() / RECORD_BYTES) as u64;
            }
            let item = Ok(v1::TracePart { part: Some(part) });
            parts.blocking_send(item).map_err(|_| BrokenOff::ClientGone)
        },
        // When the door is full, the next fetch finds the same words.
        |producer, impossible| drop(handle.send(Command::Quarantine(producer, impossible))),
    );
    let outcome = match read {
        Ok(()) => Outcome::Whole,
        Err(_) => Outcome::BrokenOff,
    };
    calls.fetched(outcome, events, began.elapsed());
    let failed = match read {
        Ok(()) if commit => {
            // Only what the client's connection has taken is consumed: the channel must be empty.
            if runtime
                .block_on(parts.reserve_many(parts.max_capacity()))
                .is_err()
            {
                return;
            }
            match handle.ask_blocking(|reply| Command::Commit(fetch_id, reply)) {
                Ok(()) => return,
                Err(error) => status::of_error(&error),
            }
        }
        Ok(()) => return,
        Err(why) => status::of_break(why),
    };
    // A client that is gone needs no reason.
    drop(parts.blocking_send(Err(failed)));
}
