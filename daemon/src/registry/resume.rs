//! Going on where an earlier daemon stopped, in whatever way it stopped.
//!
//! ```text
//!  before                 without a daemon               after
//!  record written   ──▶   gates stay open,         ──▶   record read: runs are there again, their producers "away"
//!  at each change         producers keep emitting        Hello + their rings: taken over, cursors go on, gates stay open
//!                                                        a process that ended meanwhile: its last counts, the rest lost
//! ```
//!
//! Memory is taken from a process only if it is exactly what the record names: device, inode, size, seals, the random
//! number and every other word of its header, from the same user and, where both are known, the same pid. Runs that
//! a process asked for itself are not written down: they end with the connection.

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nrt_trace_abi::message::Hello;
use nrt_trace_model::filter::TypeSet;
use nrt_trace_shm::control::ControlPage;
use nrt_trace_shm::memfd;
use nrt_trace_shm::socket::Peer;
use nrt_trace_shm::strings::StringReader;
use rustix::event::epoll::{self, EventFlags};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::attach::ORPHAN_KEEP_S;
use super::keep::take_tables;
use super::producer::{Life, Phase, Producer};
use super::{Registry, Source, WRITTEN_WITHIN};
use crate::drain::segment::Segment;
use crate::handshake::ProcFolder;
use crate::run::cores::CoreFilter;
use crate::run::filter::{Filter, PastFilters};
use crate::run::share::{Share, total};
use crate::run::tally::{Cause, Tally};
use crate::run::{Run, RunId, scope_name};
use crate::state::{Found, ProducerRecord, RunRecord, ShareRecord, State};
use crate::strings::ProducerNames;

impl Registry {
    /// Writes down what changed, with all that changes within a moment: a hundred processes that come or go at once are
    /// written down once.
    pub(super) fn write_soon(&mut self, now: Instant) {
        if self.changed && *self.write_at.get_or_insert(now + WRITTEN_WITHIN) <= now {
            self.write_down();
        }
    }

    /// Writes down what a client is about to be told, so that a next daemon knows no less: that a process has ended, with its
    /// last numbers, and that memory which was let go is free.
    pub(super) fn write_what_is_told(&mut self) {
        if self.changed || !self.to_free.is_empty() {
            self.write_down();
        }
    }

    /// Writes down what a next daemon needs, and does what had to wait for that. At once, before a promise is given; else see
    /// [`Self::write_soon`].
    pub(super) fn write_down(&mut self) {
        self.changed = false;
        self.write_at = None;
        self.revision += 1;
        let held = self.save();
        self.after_record(&held);
    }

    /// Writes down what a next daemon needs, and says which producers are named.
    pub(super) fn save(&mut self) -> BTreeSet<u32> {
        let mut held = BTreeSet::new();
        let state = self.state.is_some().then(|| self.record());
        if let (Some(file), Some(state)) = (&mut self.state, state) {
            if state.runs.is_empty() && self.counted == Tally::default() {
                file.remove();
            } else {
                file.save(&state);
            }
            held.extend(state.producers.iter().filter_map(id_of));
        }
        held
    }

    fn record(&self) -> State {
        let runs = self.runs.iter().filter(|run| run.own.is_none());
        let runs: Vec<RunRecord> = runs.map(record_of_run).collect();
        let held = |id: u32| {
            (runs.iter())
                .flat_map(|run| &run.shares)
                .any(|share| share.producer == id)
        };
        let producers = (self.producers.values()).filter(|producer| held(producer.id));
        State {
            boot_id: self.boot_id.clone(),
            next_producer: self.next.producer,
            generation: self.next.generation,
            counted: Some(self.counted.record()),
            producers: producers.map(Producer::record).collect(),
            runs,
        }
    }

    /// Takes up what an earlier daemon left.
    pub(super) fn take_up(&mut self) {
        if let Some(state) = self.load() {
            self.go_on_from(state);
        }
        self.store.give_up_rest();
        if let Some(spool) = &self.spool {
            spool.clear_rest();
        }
    }

    /// What an earlier daemon wrote down, if it is of use.
    fn load(&self) -> Option<State> {
        let state = match self.state.as_ref()?.load() {
            Found::Nothing => return None,
            Found::Aside { why, place } => {
                tracing::warn!(
                    aside = place.map(|place| place.display().to_string()),
                    "what an earlier daemon wrote down is of no use: {why}"
                );
                let files = self.spool.as_ref().map_or(0, |spool| spool.put_aside());
                if files > 0 {
                    tracing::warn!(
                        files,
                        "what ended processes left unread can't be told apart without it: it is put aside, too"
                    );
                }
                return None;
            }
            Found::State(state) => *state,
        };
        if state.boot_id != self.boot_id {
            tracing::info!("an earlier daemon's runs ended with the machine's last boot");
            return None;
        }
        Some(state)
    }

    fn go_on_from(&mut self, state: State) {
        self.next.producer = self.next.producer.max(state.next_producer);
        self.next.generation = state.generation;
        self.counted = Tally::restored(state.counted.as_ref());
        for record in &state.runs {
            match run_of(record) {
                Some(run) => self.runs.push(run),
                None => tracing::warn!(run = %RunId(record.id), "a run was written down wrongly"),
            }
        }
        let gone: Vec<_> = (state.producers.into_iter())
            .filter_map(|record| self.await_return(record))
            .collect();
        // A part of nobody: its producer was not written down.
        let known: Vec<u32> = self.producers.keys().copied().collect();
        for run in &mut self.runs {
            let gone = (run.shares.iter_mut()).filter(|(id, _)| !known.contains(id));
            for (_, share) in gone {
                share.count_last(Cause::NotKept);
                run.counted.add(&share.tally());
            }
            run.shares.retain(|id, _| known.contains(id));
            let shares = &run.shares;
            run.earlier.retain(|(id, _)| shares.contains_key(id));
        }
        self.adopt_kept();
        for (id, life) in gone {
            self.lose_away(id, life);
        }
        for run in &self.runs {
            let (run, scope, parts) = (run.id, scope_name(&run.token), run.shares.len());
            tracing::info!(run = %RunId(run), processes = parts, "going on with the run of {scope}");
        }
        self.note_capturing();
        let ids: Vec<u32> = self.producers.keys().copied().collect();
        ids.into_iter().for_each(|id| self.retire(id));
    }

    /// Notes a process of an earlier daemon, which is expected to come back; if it has ended, that is the answer.
    fn await_return(&mut self, record: ProducerRecord) -> Option<(u32, Life)> {
        let shared = |id| {
            let (page, _) = ControlPage::create(id).ok()?;
            let (names, _) = StringReader::create(4096).ok()?;
            Some((page, names))
        };
        let info = record.info?;
        let id = info.producer_id;
        let Some((page, names)) = shared(id) else {
            tracing::warn!(producer = id, "no room for a process of an earlier daemon");
            return None;
        };
        let uid = info.uid;
        let (tables, kept) = take_tables(&mut self.store, &record.tables, uid, &self.names);
        let names = Arc::new(kept.unwrap_or_else(|| ProducerNames::new(uid, names)));
        let pidfd = info.pid.and_then(|pid| alive(pid, record.start_ticks));
        let until = Instant::now() + Duration::from_secs(ORPHAN_KEEP_S.into());
        let mut producer = Producer::away(info, record.start_ticks, until, Arc::new(page), names);
        let gone = match &pidfd {
            None => Some(Life::Dead),
            Some(_) => record.ended.then_some(Life::Detached),
        };
        producer.tables = tables;
        producer.pidfd = pidfd;
        if let Some(pidfd) = &producer.pidfd {
            let source = Source::Process(id).data();
            // Without it the time that it has to come back must do.
            let _unwatched = epoll::add(&self.epoll, pidfd, source, EventFlags::IN);
        }
        self.producers.insert(id, producer);
        gone.map(|life| (id, life))
    }

    /// Which producer of an earlier daemon it is: the one whose memory it hands back; or the same process, which that daemon
    /// had taken all memory from, or had not given any yet.
    pub(super) fn owner_of(
        &self,
        files: &[OwnedFd],
        peer: &Peer,
        start_ticks: Option<u64>,
    ) -> Option<u32> {
        let handed: Vec<_> = (files.iter())
            .filter_map(|file| memfd::identity(file).ok())
            .collect();
        let owns = |id: u32, share: &Share| {
            let file = share.expected()?;
            let producer = self.producers.get(&id)?;
            let itself = producer.uid == peer.uid
                && (producer.pid().is_none() || producer.pid() == peer.pid)
                && matches!(producer.life, Life::Away { .. })
                && handed.contains(&(file.device, file.inode));
            itself.then_some(id)
        };
        let shares = || self.runs.iter().flat_map(Run::parts);
        // Rings that were written down and never sent are with nobody: whoever was to get them hands nothing back.
        let was_armed = |share: &Share| share.expected().is_some() && share.armed_from_ns.is_some();
        let has_away = |id| shares().any(|(of, share)| of == id && was_armed(share));
        let is_same = |producer: &&Producer| {
            matches!(producer.life, Life::Away { .. })
                && producer.is_process(peer, start_ticks)
                && !has_away(producer.id)
        };
        (shares().find_map(|(id, share)| owns(id, share)))
            .or_else(|| Some(self.producers.values().find(is_same)?.id))
    }

    /// Another process with this pid attaches: the earlier one of that number does not come back. The same process may
    /// have a second copy of the library, which knows nothing of the first one's rings.
    pub(super) fn replaces_away(&mut self, peer: &Peer, start_ticks: Option<u64>) {
        let old = (self.producers.values())
            .find(|producer| {
                matches!(producer.life, Life::Away { .. })
                    && peer.pid.is_some()
                    && producer.pid() == peer.pid
                    && !producer.is_process(peer, start_ticks)
            })
            .map(|producer| producer.id);
        if let Some(id) = old {
            self.lose_away(id, Life::Dead);
        }
    }

    /// Takes over the memory that a producer hands back, and goes on with the run whose rings it still writes.
    pub(super) fn take_back(&mut self, id: u32, hello: &Hello, files: Vec<OwnedFd>) {
        let mut files: Vec<_> = (files.into_iter())
            .filter_map(|file| Some((memfd::identity(&file).ok()?, file)))
            .collect();
        let mut refused = Vec::new();
        for run in &mut self.runs {
            let run_id = run.id;
            for share in run.parts_of_mut(id) {
                let Some(away) = share.away() else {
                    // The service manager kept it, or it is let go.
                    let generation = share.segment().map(|segment| segment.generation());
                    let open = generation == Some(hello.armed_generation);
                    share.process_returns(open);
                    if let (Some(segment), Some(producer)) =
                        (share.segment().cloned(), self.producers.get(&id))
                    {
                        // Its process reads another page now.
                        self.memory.add(segment, producer.page.clone());
                    }
                    if let (true, Some(generation), Some(producer)) =
                        (open, generation, self.producers.get_mut(&id))
                    {
                        producer.phase = Phase::Open {
                            run: run_id,
                            generation,
                        };
                    }
                    continue;
                };
                let at = files
                    .iter()
                    .position(|(file, _)| *file == (away.file.device, away.file.inode));
                let Some((_, file)) = at.map(|at| files.swap_remove(at)) else {
                    if share.forget_unsent() {
                        continue;
                    }
                    refused.push((run_id, "it was not handed back".to_owned()));
                    continue;
                };
                let generation = away.file.generation;
                let segment = Segment::adopt(
                    file,
                    away.layout.clone(),
                    run_id,
                    &away.file,
                    id,
                    &away.firsts,
                );
                match segment {
                    Ok(segment) => {
                        let segment = Arc::new(segment);
                        let open = hello.armed_generation == generation;
                        if let Some(producer) = self.producers.get(&id) {
                            self.memory.add(segment.clone(), producer.page.clone());
                        }
                        share.come_back(segment, open);
                        tracing::info!(producer = id, run = %RunId(run_id), open, "its rings are back");
                        if let (true, Some(producer)) = (open, self.producers.get_mut(&id)) {
                            producer.phase = Phase::Open {
                                run: run_id,
                                generation,
                            };
                        }
                    }
                    Err(error) => refused.push((run_id, error.to_string())),
                }
            }
        }
        for (run, why) in refused {
            let Some(run) = self.run_mut(run) else {
                continue;
            };
            let events = total(
                run.parts_of_mut(id)
                    .map(|part| part.give_up_away(id, Cause::NotKept)),
            );
            if events > 0 {
                tracing::warn!(producer = id, events, "its rings are lost: {why}");
            }
        }
    }

    /// A process that was away has ended, or will not come back: what it had is lost.
    pub(super) fn lose_away(&mut self, id: u32, life: Life) {
        let Some(producer) = self.producers.get_mut(&id) else {
            return;
        };
        if !matches!(producer.life, Life::Away { .. }) {
            return;
        }
        producer.end(life);
        let lives = life == Life::Detached && producer.pidfd.is_some();
        let pid = producer.pid();
        producer.names.merge_into(&self.names);
        let (mut events, mut runs) = (0, Vec::new());
        for run in &mut self.runs {
            for part in run.parts_of_mut(id) {
                events += part.give_up_away(id, Cause::NotKept);
                part.process_is_gone(lives);
            }
            if run.shares.contains_key(&id) {
                runs.push(run.id);
            }
        }
        if events > 0 {
            tracing::warn!(
                producer = id,
                pid,
                events,
                "a process does not come back, and it alone had its rings: its unread events are lost, these at least"
            );
        }
        runs.into_iter().for_each(|run| self.let_go(run, id));
        self.spool_ended([id], false);
        self.changed = true;
        self.retire(id);
    }

    /// Gives up those who have had their time to come back.
    pub(super) fn lose_the_late(&mut self, now: Instant) {
        let late: Vec<u32> = (self.producers.values())
            .filter(|producer| matches!(producer.life, Life::Away { until } if until <= now))
            .map(|producer| producer.id)
            .collect();
        late.into_iter()
            .for_each(|id| self.lose_away(id, Life::Detached));
    }
}

fn id_of(record: &ProducerRecord) -> Option<u32> {
    Some(record.info.as_ref()?.producer_id)
}

fn record_of_run(run: &Run) -> RunRecord {
    RunRecord {
        id: run.id,
        token: run.token.clone(),
        started_ns: run.started_ns,
        stopped_ns: run.stopped_ns,
        cap: run.cap,
        cores: run.filter.nc(),
        types: run.filter.types.bits(),
        filter_changes: run.past.changes(),
        past_filters: run.past.records(),
        earlier: (run.earlier.iter())
            .map(|(id, part)| part.record(*id))
            .collect(),
        shares: (run.shares.iter())
            .map(|(id, share)| share.record(*id))
            .collect(),
        forgotten: run.forgotten.0,
        forgotten_processes: run.forgotten.1,
        counted: Some(run.counted.record()),
        before: Some(run.before.record()),
    }
}

fn run_of(record: &RunRecord) -> Option<Run> {
    let part = |share: &ShareRecord| {
        let id = share.producer;
        Some((id, Share::restored(share, record.cap)?))
    };
    Some(Run {
        id: record.id,
        token: record.token.clone(),
        started_ns: record.started_ns,
        stopped_ns: record.stopped_ns,
        cap: record.cap,
        filter: Filter {
            cores: CoreFilter::new(&record.cores).ok()?,
            types: TypeSet::from_bits(record.types),
        },
        past: PastFilters::restored(record.filter_changes, &record.past_filters)?,
        shares: record.shares.iter().map(part).collect::<Option<_>>()?,
        earlier: record.earlier.iter().map(part).collect::<Option<_>>()?,
        forgotten: (record.forgotten, record.forgotten_processes),
        counted: Tally::restored(record.counted.as_ref()),
        before: Tally::restored(record.before.as_ref()),
        fetch: None,
        followers: Vec::new(),
        asked: Instant::now(),
        own: None,
    })
}

/// The process that had this pid when it was written down, if it lives: the number may be another's by now.
fn alive(pid: i32, start_ticks: Option<u64>) -> Option<OwnedFd> {
    let pidfd = pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?;
    let now = ProcFolder::open(pid, &pidfd)?.facts().start_ticks;
    (now.is_some() && now == start_ticks).then_some(pidfd)
}

/// The machine's boot.
pub(super) fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .unwrap_or_default()
        .trim()
        .to_owned()
}
