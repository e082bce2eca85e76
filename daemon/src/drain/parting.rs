//! What a run lets go before a subscriber's next look: a process that came, ended, and was fetched and freed in between.
//!
//! The registry leaves it here, for each subscriber, with the memory that it frees; the subscriber takes it within a round. One
//! that does not keep up holds no memory: its box is closed until it looks again.

use std::sync::{Arc, Mutex, PoisonError};

use super::fetch::ProducerJob;
use crate::run::request::FetchSpec;

/// A subscriber's box.
#[derive(Debug)]
pub(crate) struct Parting {
    /// What it wants.
    pub spec: Arc<FetchSpec>,
    /// None while it is closed.
    jobs: Mutex<Option<Vec<ProducerJob>>>,
}

impl Parting {
    /// An empty box.
    pub(crate) fn new(spec: Arc<FetchSpec>) -> Arc<Self> {
        let jobs = Mutex::new(Some(Vec::new()));
        Arc::new(Self { spec, jobs })
    }

    /// Leaves what a producer had, as it stands before its memory goes.
    pub(crate) fn leave(&self, job: ProducerJob) {
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(jobs) = jobs.as_mut() {
            jobs.push(job);
        }
    }

    /// Takes what there is; the box is open again.
    pub(crate) fn take(&self) -> Vec<ProducerJob> {
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        jobs.replace(Vec::new()).unwrap_or_default()
    }

    /// Lets all of it go, and takes nothing until the next look.
    pub(crate) fn close(&self) {
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        let gone = jobs.take();
        drop(jobs);
        // The registry may leave something meanwhile: memory is unmapped without the lock.
        drop(gone);
    }
}
