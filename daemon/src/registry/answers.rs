//! Status and lists.

use nrt_trace_abi::ABI_VERSION;
use nrt_trace_proto::v1;

use super::Registry;
use super::command::{NameTables, Totals};
use super::producer::Producer;
use crate::run::Run;
use crate::state::Spool;

impl Registry {
    /// The state of things, but for what the process itself knows.
    pub(super) fn status(&self) -> v1::GetStatusResponse {
        let shown = |run: &&Run| {
            let rest = || run.has_more() || self.away_in(run).next().is_some();
            run.own.is_none() && (run.is_capturing() || rest())
        };
        let run_status = |run: &Run| v1::RunStatus {
            run: Some(run.message()),
            capturing: run.is_capturing(),
            producers: u32::try_from(run.shares.len()).unwrap_or(u32::MAX),
            accounts: run.accounts(),
            away: u32::try_from(self.away_in(run).count()).unwrap_or(u32::MAX),
        };
        let connected = self
            .producers
            .values()
            .filter(|producer| producer.is_connected())
            .count();
        let mut status = v1::GetStatusResponse {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            abi_version: u32::from(ABI_VERSION),
            started_ns: self.started_ns,
            runs: self.runs.iter().filter(shown).map(run_status).collect(),
            producers: u32::try_from(connected).unwrap_or(u32::MAX),
            quarantined: self.counts.quarantined,
            attached: self.counts.attached,
            refused: self.counts.refused,
            tsc_clock: self.clock.uses_tsc(),
            control_socket: self.config.control_socket.display().to_string(),
            producer_socket: self.config.producer_socket.display().to_string(),
            embedded: self.config.embedded,
            not_kept: self.spool.as_ref().map_or(0, Spool::not_kept),
            ..v1::GetStatusResponse::default()
        };
        self.fill_memory(&mut status);
        self.fill_budgets(&mut status);
        status
    }

    /// What became of all events until now. What is told is written down, so that no later daemon tells less.
    pub(super) fn totals(&mut self) -> Totals {
        let mut totals = Totals {
            all: self.counted,
            scopes: Vec::new(),
            names_refused: self.names.refused(),
        };
        for run in self.runs.iter_mut().filter(|run| run.own.is_none()) {
            run.count();
            let (tally, mut scope) = (run.tally(), run.before);
            totals.all.add(&tally);
            scope.add(&tally);
            totals.scopes.push((run.token.clone(), scope));
        }
        self.changed |= totals.all != self.told;
        self.told = totals.all;
        totals
    }

    /// The names, for somebody who merges and reads them in a thread of its own.
    pub(super) fn name_tables(&self) -> NameTables {
        let tables = self
            .producers
            .values()
            .map(|producer| producer.names.clone());
        (self.names.clone(), tables.collect())
    }

    /// Producers that carry `token` (none: all), in attach order, those that ended among them.
    pub(super) fn list(&self, token: Option<&str>) -> Vec<v1::Producer> {
        let fits = |carried: &str| token.is_none_or(|token| token == carried);
        let former = self
            .former
            .iter()
            .filter(|producer| fits(&producer.token))
            .cloned();
        let present = self
            .producers
            .values()
            .filter(|producer| fits(producer.token()));
        let mut all: Vec<v1::Producer> = former
            .chain(present.map(|producer| self.describe(producer)))
            .collect();
        all.sort_unstable_by_key(|producer| producer.producer_id);
        all
    }

    /// Producers of a run that have not come back from an earlier daemon.
    pub(super) fn away_in(&self, run: &Run) -> impl Iterator<Item = u32> {
        let away = |id: &u32| self.producers.get(id).is_some_and(Producer::is_away);
        run.shares.keys().copied().filter(away)
    }

    /// A producer with its part in the run that has its rings, else in the last that had.
    fn describe(&self, producer: &Producer) -> v1::Producer {
        let of = |run| self.runs.iter().find(|r: &&Run| Some(r.id) == run);
        let run = of(producer.phase.run()).or_else(|| {
            self.runs
                .iter()
                .rev()
                .find(|run| run.shares.contains_key(&producer.id))
        });
        producer.message(run.and_then(|run| Some((run, run.shares.get(&producer.id)?))))
    }
}
