//! Files for what ended processes left unread, where no service manager keeps their memory.
//!
//! A thread of its own writes them: the registry waits for no disk. While this daemon lives it goes on reading the memory;
//! the file is for the next one, which fills new memory from it (`layout`). A file is written beside its place and
//! renamed, and removed when a record was written that does not name it any more. Nothing is synced to a disk: after the
//! machine's end there is no run that the events would belong to.

mod folder;
mod layout;

use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use nrt_trace_ring::Cursor;

use super::FileId;
use crate::drain::segment::Segment;
use crate::listen::StartError;
use crate::strings::ProducerNames;
use crate::ticker::Ticker;
use folder::Folder;
pub(crate) use layout::{Label, Loaded};

/// Name of the folder inside the state's.
const FOLDER: &str = "ended";
/// Time between two visits of the thread that nobody called for.
const IDLE: Duration = Duration::from_secs(3600);
/// Time for what is still to be written when the daemon ends.
const LAST_WRITES: Duration = Duration::from_secs(1);

/// What one process left of one run.
#[derive(Debug)]
pub(crate) struct Left {
    /// Whose it is.
    pub label: Label,
    /// Its rings.
    pub segment: Arc<Segment>,
    /// How far each of them was consumed.
    pub cursors: Vec<(usize, Cursor)>,
    /// Its names.
    pub names: Arc<ProducerNames>,
}

/// The files of this daemon, and those that it found.
#[derive(Debug)]
pub(crate) struct Spool {
    queue: Arc<Queue>,
    /// Generations whose files are there, or on their way.
    kept: BTreeSet<u64>,
    thread: Option<Ticker>,
}

#[derive(Debug)]
struct Queue {
    folder: Folder,
    jobs: Mutex<VecDeque<Job>>,
    /// Events that could not be kept.
    not_kept: AtomicU64,
    /// Whether the last write failed: then it was said.
    failing: AtomicBool,
    /// When the daemon is to have ended.
    end: OnceLock<Instant>,
}

#[derive(Debug)]
enum Job {
    Write(Box<Left>),
    Remove(u64),
}

impl Spool {
    /// The files in `state_dir`. `None`, and a line in the log, if they can't be had there.
    pub(crate) fn in_folder(state_dir: &Path) -> Result<Option<Self>, StartError> {
        let path = state_dir.join(FOLDER);
        let folder = match Folder::open(&path) {
            Ok(folder) => folder,
            Err(error) => {
                tracing::warn!(
                    path = %path.display(),
                    "what ended processes leave unread would not survive this daemon: {error}"
                );
                return Ok(None);
            }
        };
        let queue = Arc::new(Queue {
            folder,
            jobs: Mutex::default(),
            not_kept: AtomicU64::new(0),
            failing: AtomicBool::new(false),
            end: OnceLock::new(),
        });
        let inner = queue.clone();
        let thread = Ticker::start("nrt-spool", IDLE, move || inner.work())?;
        Ok(Some(Self {
            queue,
            kept: BTreeSet::new(),
            thread: Some(thread),
        }))
    }

    /// Whether there is a file of this generation, or soon will be.
    pub(crate) fn has(&self, generation: u64) -> bool {
        self.kept.contains(&generation)
    }

    /// Notes that the memory of a file that may be there was kept otherwise too.
    pub(crate) fn note(&mut self, generation: u64) {
        if self.queue.folder.has(&folder::name(generation)) {
            self.kept.insert(generation);
        }
    }

    /// Has what a process left written.
    pub(crate) fn keep(&mut self, left: Left) {
        self.kept.insert(left.label.generation);
        self.call(Job::Write(Box::new(left)));
    }

    /// Has a file removed, if there is one.
    pub(crate) fn remove(&mut self, generation: u64) {
        if !self.kept.remove(&generation) {
            return;
        }
        let mut jobs = self.queue.jobs();
        let unwritten =
            |job: &Job| matches!(job, Job::Write(left) if left.label.generation == generation);
        if let Some(at) = jobs.iter().position(unwritten) {
            drop(jobs.remove(at));
        }
        drop(jobs);
        self.call(Job::Remove(generation));
    }

    fn call(&self, job: Job) {
        self.queue.jobs().push_back(job);
        if let Some(thread) = &self.thread {
            thread.call();
        }
    }

    /// Fills new memory from a file, if there is one that is whole and of this.
    pub(crate) fn load(
        &mut self,
        label: Label,
        layout: &nrt_trace_abi::layout::SegmentLayout,
        file: &FileId,
    ) -> Option<(OwnedFd, Loaded)> {
        let name = folder::name(label.generation);
        let result = match self.queue.folder.read(&name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => Err(error),
            Ok(opened) => layout::load(&opened, &label, layout, file),
        };
        match result {
            Ok(loaded) => {
                self.kept.insert(label.generation);
                Some(loaded)
            }
            Err(error) => {
                let aside = self.queue.folder.put_aside(&name);
                tracing::warn!(
                    file = name,
                    aside,
                    producer = label.producer,
                    "what an ended process left can't be read again: {error}"
                );
                None
            }
        }
    }

    /// Puts every file aside, for whom the record that named them is lost; says how many.
    pub(crate) fn put_aside(&self) -> usize {
        self.queue.folder.put_all_aside()
    }

    /// Removes files that no record names, and says once what else is there.
    pub(crate) fn clear_rest(&self) {
        self.queue.folder.clear_all_but(&self.kept);
    }

    /// Events that could not be kept for a next daemon.
    pub(crate) fn not_kept(&self) -> u64 {
        self.queue.not_kept.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests;

impl Drop for Spool {
    fn drop(&mut self) {
        let _first = self.queue.end.set(Instant::now() + LAST_WRITES);
        drop(self.thread.take());
        self.queue.work(); // what came after the thread's last look
    }
}

impl Queue {
    /// A panic while the queue was locked left it valid: every change is one call.
    fn jobs(&self) -> MutexGuard<'_, VecDeque<Job>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next(&self) -> Option<Job> {
        self.jobs().pop_front()
    }

    fn work(&self) {
        while let Some(job) = self.next() {
            match job {
                Job::Write(left) => self.write(&left),
                Job::Remove(generation) => self.folder.remove(&folder::name(generation)),
            }
        }
        self.folder.go_if_empty();
    }

    fn write(&self, left: &Left) {
        let in_time = || self.end.get().is_none_or(|end| Instant::now() < *end);
        let name = folder::name(left.label.generation);
        let result = self
            .folder
            .write(&name, |file| layout::write(file, left, &in_time));
        let failed = result.is_err();
        if let Err(error) = result {
            let events = layout::unread(left);
            let before = self.not_kept.fetch_add(events, Ordering::Relaxed);
            if !self.failing.load(Ordering::Relaxed) {
                tracing::warn!(
                    producer = left.label.producer,
                    events,
                    not_kept = before.saturating_add(events),
                    "unread events of an ended process would not survive this daemon: {error}"
                );
            }
        }
        self.failing.store(failed, Ordering::Relaxed);
    }
}
