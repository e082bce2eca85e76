//! What a run captures, changed while it goes on.
//!
//! Every gate is a word of its process's control page, so that a new filter is in effect as soon as the words are written:
//! nobody is asked, and a process that is stopped or busy has it all the same.

use std::time::Instant;

use nrt_trace_proto::v1;
use nrt_trace_ring::step;
use nrt_trace_shm::clock::realtime_ns;

use super::Registry;
use super::producer::Phase;
use crate::run::error::RunError;
use crate::run::filter::Filter;
use crate::run::request::FilterSpec;
use crate::run::scope_name;

impl Registry {
    /// Changes the filter of the run that captures a scope.
    pub(super) fn set_filter(
        &mut self,
        spec: FilterSpec,
    ) -> Result<v1::SetFilterResponse, RunError> {
        let scope = scope_name(&spec.token);
        let capturing = self.run_of(&spec.token).filter(|run| run.is_capturing());
        let Some(id) = capturing.map(|run| run.id) else {
            return Err(RunError::NoFilter { scope });
        };
        let Some(run) = self.run_mut(id) else {
            return Err(RunError::NoFilter { scope });
        };
        run.asked = Instant::now();
        let filter = Filter {
            cores: spec.cores.unwrap_or_else(|| run.filter.cores.clone()),
            types: spec.types.unwrap_or(run.filter.types),
        };
        if filter != run.filter {
            let old = std::mem::replace(&mut run.filter, filter);
            run.past.push(realtime_ns(), old);
            tracing::info!(run = id, "another filter for {scope}");
        }
        let members: Vec<u32> = (self.producers.values())
            .filter(|producer| matches!(producer.phase, Phase::Open { run, .. } if run == id))
            .map(|producer| producer.id)
            .collect();
        members.iter().for_each(|member| self.open_gates(*member));
        step::at("filter:set");
        // Processes that had nothing of it to record may have now.
        let all: Vec<u32> = self.producers.keys().copied().collect();
        all.into_iter()
            .for_each(|producer| self.reconcile(producer));
        self.write_down();
        let run = self.runs.iter().find(|run| run.id == id);
        Ok(v1::SetFilterResponse {
            run: run.map(crate::run::Run::message),
            warnings: self.without_rings(id),
            producers: u32::try_from(members.len()).unwrap_or(u32::MAX),
        })
    }

    /// What a run's filter lets through, and nothing records, in words.
    fn without_rings(&self, id: u64) -> Vec<String> {
        let Some(run) = self.runs.iter().find(|run| run.id == id) else {
            return Vec::new();
        };
        let lacking = |producer: &&super::Producer| {
            let Some(share) = run.shares.get(&producer.id) else {
                return false;
            };
            let had = share.ncs();
            let wanted = (run.filter.cores).rings(&producer.visible, self.config.default_cores);
            producer.phase.run() == Some(id)
                && !wanted
                    .iter()
                    .all(|nc| had.iter().any(|had| *had as usize == *nc))
        };
        let lacking = self.producers.values().filter(lacking).count();
        if lacking == 0 {
            return Vec::new();
        }
        vec![format!(
            "{lacking} processes have no ring for some of these NeuronCores: events of those are counted, and not recorded"
        )]
    }
}
