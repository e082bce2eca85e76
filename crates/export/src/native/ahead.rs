//! The second pass on a thread of its own.

use std::io::{Read, Seek};
use std::panic::resume_unwind;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

use nrt_trace_proto::v1::{TracePart, trace_part::Part};

use super::NativeError;
use super::spool::Spool;

/// Batches that may wait. With the one that is being filled and the one that is being used they are what reading ahead costs.
const AHEAD: usize = 3;

/// A batch goes when its records reach this many bytes, or when it has this many parts: a recording that was fetched often has
/// small ones, and waking a thread for each would cost more than the part does.
const BATCH_BYTES: usize = 1 << 20;
const BATCH_PARTS: usize = 256;

/// Why reading ahead stopped.
enum Stopped {
    /// What is in front cannot be read.
    Read(NativeError),
    /// Nobody takes parts any more.
    Unwanted,
}

impl From<NativeError> for Stopped {
    fn from(error: NativeError) -> Self {
        Self::Read(error)
    }
}

/// Parts on their way to the other thread.
struct Batches {
    parts: Vec<TracePart>,
    bytes: usize,
    sender: SyncSender<Vec<TracePart>>,
}

impl Batches {
    fn push(&mut self, part: TracePart) -> Result<(), Stopped> {
        if let Some(Part::Records(records)) = &part.part {
            self.bytes += records.packed.len();
        }
        self.parts.push(part);
        if self.bytes >= BATCH_BYTES || self.parts.len() >= BATCH_PARTS {
            self.send()
        } else {
            Ok(())
        }
    }

    fn send(&mut self) -> Result<(), Stopped> {
        self.bytes = 0;
        let parts = std::mem::take(&mut self.parts);
        self.sender.send(parts).map_err(|_| Stopped::Unwanted)
    }
}

impl<R: Read + Seek + Send> Spool<R> {
    /// [`Spool::regroup`] with reading, decompressing and ordering on a thread of their own, a few MiB ahead of `sink`, which is
    /// called on this thread. The parts and their order are the same.
    ///
    /// # Errors
    /// Those of [`Spool::regroup`], and if there can be no further thread.
    pub fn regroup_ahead<E: From<NativeError>>(
        &mut self,
        mut sink: impl FnMut(TracePart) -> Result<(), E>,
    ) -> Result<(), E> {
        let (sender, receiver) = sync_channel(AHEAD);
        let mut batches = Batches {
            parts: Vec::new(),
            bytes: 0,
            sender,
        };
        let read = move || {
            let read = self.regroup(|part| batches.push(part));
            // Also what stands before something that cannot be read.
            batches.send().and(read)
        };
        thread::scope(|scope| {
            let reading = thread::Builder::new()
                .name("read ahead".to_owned())
                .spawn_scoped(scope, read)
                .map_err(NativeError::from)?;
            let taken = receiver.iter().flatten().try_for_each(&mut sink);
            // The other thread may wait for room, which does not come any more.
            drop(receiver);
            let read = reading.join().unwrap_or_else(|panic| resume_unwind(panic));
            taken?;
            match read {
                Err(Stopped::Read(error)) => Err(error.into()),
                Ok(()) | Err(Stopped::Unwanted) => Ok(()),
            }
        })
    }
}
