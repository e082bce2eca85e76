//! What a run captures, changed while it goes on.
//!
//! Every gate is a word of its process's control page, so that a new filter is in effect as soon as the words are written:
//! nobody is asked, and a process that is stopped or busy has it all the same.
//!
//! Only where an NC is captured now that the process has no ring for, the process is asked: it gives its rings up and gets
//! others, for that NC and for all that it had, as one does that comes back into the run.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use nrt_trace_proto::v1;
use nrt_trace_ring::step;
use nrt_trace_shm::clock::realtime_ns;

use super::Registry;
use super::capture::{Asked, Wait};
use super::command::Reply;
use super::producer::{Phase, Producer};
use crate::run::error::RunError;
use crate::run::filter::Filter;
use crate::run::request::FilterSpec;
use crate::run::{Run, RunId, scope_name};

impl Registry {
    /// Changes the filter of the run that captures a scope; the answer comes when it is in effect, and who gets other rings
    /// has them, or at the timeout.
    pub(super) fn set_filter(&mut self, spec: FilterSpec, reply: Reply<v1::SetFilterResponse>) {
        let capturing = |run: &&mut Run| run.has_scope(&spec.token) && run.is_capturing();
        let scope = scope_name(&spec.token);
        let Some(run) = self.runs.iter_mut().find(capturing) else {
            // Whoever asked and went away needs no answer.
            return drop(reply.send(Err(RunError::NoFilter { scope })));
        };
        run.asked = Instant::now();
        let filter = Filter {
            cores: spec.cores.unwrap_or_else(|| run.filter.cores.clone()),
            types: spec.types.unwrap_or(run.filter.types),
        };
        let id = run.id;
        if filter != run.filter {
            let old = std::mem::replace(&mut run.filter, filter);
            run.past.push(realtime_ns(), old);
            tracing::info!(run = %RunId(id), "another filter for {scope}");
        }
        let members: Vec<u32> = (self.producers.values())
            .filter(|producer| matches!(producer.phase, Phase::Open { run, .. } if run == id))
            .map(|producer| producer.id)
            .collect();
        members.iter().for_each(|member| self.open_gates(*member));
        step::at("filter:set");
        self.write_down();
        // Who had nothing of it to record may have now.
        let all: Vec<u32> = self.producers.keys().copied().collect();
        all.into_iter()
            .for_each(|producer| self.reconcile(producer));
        let (mut rearmed, mut without) = (Vec::new(), BTreeMap::<String, u32>::new());
        for member in &members {
            match self.lacking(*member) {
                Lacking::Nothing => {}
                Lacking::Room(why) => *without.entry(why).or_insert(0) += 1,
                Lacking::Rings => {
                    self.disarm(*member);
                    rearmed.push(*member);
                }
            }
        }
        let warning = |(why, processes): (String, u32)| {
            format!(
                "processes that have no ring for some of these NeuronCores, whose events are counted and not recorded: \
                 {processes}; {why}"
            )
        };
        self.waits.push(Wait {
            run: id,
            until: Instant::now() + spec.timeout,
            asked: Asked::SetFilter {
                warnings: without.into_iter().map(warning).collect(),
                producers: u32::try_from(members.len()).unwrap_or(u32::MAX),
                rearmed,
                reply,
            },
        });
        self.settle_waits(Instant::now());
    }

    /// Gives a producer other rings if the filter was changed and it has none for an NC that is captured now.
    pub(super) fn complete_rings(&mut self, id: u32) {
        if self.lacking(id) == Lacking::Rings {
            self.disarm(id);
        }
    }

    fn lacking(&self, id: u32) -> Lacking {
        let Some((producer, run)) = self.producers.get(&id).and_then(|producer| {
            let Phase::Open { run: open, .. } = producer.phase else {
                return None;
            };
            let run = self.runs.iter().find(|run| run.id == open)?;
            (self.wanted_run(producer) == Some(open)).then_some((producer, run))
        }) else {
            return Lacking::Nothing;
        };
        let had = run.shares.get(&id).map(|share| share.ring_ncs());
        let all = self.rings_in(run, producer);
        if had.is_none_or(|had| had.is_superset(&all)) {
            return Lacking::Nothing;
        }
        let all: Vec<usize> = all.into_iter().collect();
        match self.check_rings(id, run.cap, &all) {
            Ok(_) => Lacking::Rings,
            Err(denial) => Lacking::Room(denial.text),
        }
    }

    /// NCs that a producer gets rings for: those that the filter lets through, and those that it has in the run already, so
    /// that a filter that goes back and forth changes rings once.
    pub(super) fn rings_in(&self, run: &Run, producer: &Producer) -> BTreeSet<usize> {
        let cores = &run.filter.cores;
        let mut all: BTreeSet<usize> = (cores.rings(&producer.visible, self.config.default_cores))
            .into_iter()
            .collect();
        if run.past.changes() > 0 && !all.is_empty() {
            let share = run.shares.get(&producer.id);
            all.extend(share.map(|share| share.ring_ncs()).unwrap_or_default());
        }
        all
    }
}

/// What a producer lacks for a run's filter.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Lacking {
    Nothing,
    /// Rings, which it can have.
    Rings,
    /// Rings, and it can't have that many: why.
    Room(String),
}
