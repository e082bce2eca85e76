//! Fetch and commit, and letting go of what was consumed.

use std::sync::{Arc, Weak};
use std::time::Instant;

use nrt_trace_proto::v1;
use nrt_trace_ring::step;

use super::Registry;
use crate::drain::fetch::{FetchJob, ProducerJob};
use crate::drain::parting::Parting;
use crate::drain::slot::FetchSlot;
use crate::run::error::RunError;
use crate::run::request::FetchSpec;
use crate::run::share::Share;
use crate::run::{Run, scope_name};

impl Registry {
    /// Hands out all that a fetch needs to run alone.
    pub(super) fn begin_fetch(&mut self, spec: &FetchSpec) -> Result<FetchJob, RunError> {
        let at = self.position_of(&spec.token)?;
        let run = &self.runs[at];
        if run.fetch.as_ref().is_some_and(|slot| slot.is_under_way()) {
            return Err(RunError::FetchUnderWay);
        }
        self.check_filters(run, spec)?;
        let (slot, job) = self.job(at, spec);
        let run = &mut self.runs[at];
        run.fetch = Some(slot);
        run.asked = Instant::now();
        Ok(job)
    }

    /// Hands out all that a snapshot needs: the jobs of a fetch, but from the beginning of each ring on. Nobody keeps its
    /// slot, so that nothing of it is ever consumed, and a new start does not break it off: it holds the memory that it
    /// reads.
    pub(super) fn begin_snapshot(&mut self, spec: &FetchSpec) -> Result<FetchJob, RunError> {
        let at = self.position_of(&spec.token)?;
        self.check_filters(&self.runs[at], spec)?;
        let (_, mut job) = self.job(at, spec);
        job.producers.iter_mut().for_each(ProducerJob::start_over);
        Ok(job)
    }

    /// What a subscriber reads, with the number of the state that it is of; `None` if that is the one it has `seen`. What
    /// its filters name may be still to come.
    pub(super) fn look(
        &mut self,
        parting: &Arc<Parting>,
        run: Option<u64>,
        seen: Option<u64>,
    ) -> Result<Option<(u64, FetchJob)>, RunError> {
        let spec = &*parting.spec;
        let at = self.position_of(&spec.token)?;
        if run.is_some_and(|run| run != self.runs[at].id) {
            let scope = scope_name(&spec.token);
            return Err(RunError::NoRun { scope });
        }
        self.runs[at].asked = Instant::now();
        if seen.is_none() {
            let followers = &mut self.runs[at].followers;
            followers.retain(|other| other.strong_count() > 0);
            followers.push(Arc::downgrade(parting));
        }
        if self.changed {
            self.revision += 1; // what is not written down yet
        }
        if seen == Some(self.revision) {
            return Ok(None);
        }
        let (_, job) = self.job(at, spec);
        Ok(Some((self.revision, job)))
    }

    fn position_of(&self, token: &str) -> Result<usize, RunError> {
        let at = self.runs.iter().position(|run| run.has_scope(token));
        at.ok_or_else(|| RunError::NoRun {
            scope: scope_name(token),
        })
    }

    /// All that a fetch of the run at `at` reads, and the slot for what it takes.
    fn job(&mut self, at: usize, spec: &FetchSpec) -> (Arc<FetchSlot>, FetchJob) {
        let run = &self.runs[at];
        let producers = (run.shares.keys())
            .filter_map(|id| self.producer_job(run, *id, spec))
            .collect();
        let (slot, lease) = FetchSlot::begin(self.next.fetch);
        self.next.fetch += 1;
        let job = FetchJob {
            lease,
            run: run.message(),
            ended: !run.is_capturing(),
            away: u32::try_from(self.away_in(run).count()).unwrap_or(u32::MAX),
            producers,
            max_events_per_nc: spec.max_events_per_nc,
            discard: spec.discard,
            strings_from: spec.strings_from,
            machine: self.machine.clone(),
            names: self.names.clone(),
        };
        (slot, job)
    }

    /// What a reader needs of a producer in a run.
    fn producer_job(&self, run: &Run, id: u32, spec: &FetchSpec) -> Option<ProducerJob> {
        let (share, producer) = (run.shares.get(&id)?, self.producers.get(&id)?);
        let selected =
            spec.pids.is_empty() || producer.pid().is_some_and(|pid| spec.pids.contains(&pid));
        let wanted = |nc| spec.cores.passes(&producer.visible, nc);
        Some(ProducerJob {
            info: producer.message(Some((run, share))),
            selected,
            names: producer.names.clone(),
            parts: (run.parts_of(id))
                .map(|part| part.job(id, wanted))
                .collect(),
        })
    }

    /// Leaves to the subscribers of the run at `at` what a producer has in it, which goes now: they may not have seen it.
    pub(super) fn leave_to_followers(&self, at: usize, id: u32) {
        let run = &self.runs[at];
        for parting in run.followers.iter().filter_map(Weak::upgrade) {
            if let Some(job) = self.producer_job(run, id, &parting.spec) {
                parting.leave(job);
            }
        }
    }

    /// A filter that fits nothing of a run that has something is a mistake, and not an empty answer.
    fn check_filters(&self, run: &Run, spec: &FetchSpec) -> Result<(), RunError> {
        let members = || {
            run.shares
                .iter()
                .filter_map(|(id, share)| Some((self.producers.get(id)?, share)))
        };
        if members().next().is_none() {
            return Ok(());
        }
        let pids: Vec<i32> = members()
            .filter_map(|(producer, _)| producer.pid())
            .collect();
        if let Some(pid) = spec.pids.iter().find(|pid| !pids.contains(pid)) {
            return Err(RunError::invalid(format_args!(
                "the run has no process {pid}; it has {}",
                list(&pids)
            )));
        }
        let mut cores = Vec::new();
        for (producer, share) in members() {
            for nc in share.ncs() {
                cores.push(
                    producer
                        .visible
                        .get(nc as usize)
                        .map_or(nc, |core| u32::from(*core)),
                );
            }
        }
        cores.sort_unstable();
        cores.dedup();
        if let Some(core) = spec.cores.cores().iter().find(|core| !cores.contains(core)) {
            return Err(RunError::invalid(format_args!(
                "the run has no NeuronCore {core}; it has {}",
                list(&cores)
            )));
        }
        Ok(())
    }

    /// Consumes what a fetch took.
    pub(super) fn commit(&mut self, fetch_id: u64) -> Result<(), RunError> {
        let why = "no run has it as its last fetch";
        let fits = |run: &&mut Run| run.fetch.as_ref().is_some_and(|slot| slot.id == fetch_id);
        let run = self
            .runs
            .iter_mut()
            .find(fits)
            .ok_or(RunError::NoSuchFetch { fetch_id, why })?;
        run.asked = Instant::now();
        step::at("commit:asked");
        let told = run.commit(fetch_id)?;
        step::at("commit:moved");
        let (id, shares): (u64, Vec<u32>) = (run.id, run.shares.keys().copied().collect());
        shares.into_iter().for_each(|share| self.let_go(id, share));
        let ended: Vec<u32> = self.ended().collect();
        let Some(run) = self.run_mut(id) else {
            return Ok(());
        };
        // Who ended, left nothing, and was told of in full need not be told of again in every later fetch.
        let told = told.into_iter().filter(|producer| ended.contains(producer));
        let done: Vec<u32> = told.filter(|producer| run.is_empty_of(*producer)).collect();
        for producer in &done {
            run.forget(*producer);
        }
        done.into_iter().for_each(|producer| self.retire(producer));
        // The answer says that these events are consumed: also for a next daemon.
        self.write_down();
        step::at("commit:done");
        Ok(())
    }

    /// Frees a producer's rings in a run if they are of no more use.
    pub(super) fn let_go(&mut self, run: u64, producer: u32) {
        let Some(at) = self.runs.iter().position(|other| other.id == run) else {
            return;
        };
        let goes = |part: &Share| part.segment().is_some() && part.is_done();
        if self.runs[at].parts_of(producer).any(goes) {
            self.leave_to_followers(at, producer);
        }
        let run = &mut self.runs[at];
        let (id, token) = (run.id, run.token.clone());
        let own = run.own.is_some();
        for mut released in run.release(producer, false) {
            tracing::debug!(producer, bytes = released.segment.bytes(), "rings freed");
            released.doubtful &= !own;
            self.free_released((id, &token), producer, released);
        }
    }

    /// Bytes promised, and bytes really taken, by all rings.
    pub(super) fn fill_memory(&self, status: &mut v1::GetStatusResponse) {
        (status.reserved_bytes, status.resident_bytes) = self.memory.bytes();
    }
}

fn list<T: ToString>(values: &[T]) -> String {
    if values.is_empty() {
        return "none".to_owned();
    }
    values
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}
