//! Start and stop, and their waiting for producers.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use nrt_trace_proto::v1;
use nrt_trace_ring::step;
use nrt_trace_shm::clock::realtime_ns;

use super::Registry;
use super::command::Reply;
use super::producer::{Life, Phase, Producer};
use crate::run::error::RunError;
use crate::run::filter::{Filter, PastFilters};
use crate::run::request::StartSpec;
use crate::run::share::Share;
use crate::run::tally::{Cause, Tally};
use crate::run::{Run, RunId, scope_name};

/// A start or a stop whose answer waits for producers.
#[derive(Debug)]
pub(super) struct Wait {
    pub(super) run: u64,
    /// When it is answered at the latest.
    pub(super) until: Instant,
    pub(super) asked: Asked,
}

#[derive(Debug)]
pub(super) enum Asked {
    Start {
        warnings: Vec<String>,
        abandoned: u64,
        reply: Reply<v1::StartResponse>,
    },
    SetFilter {
        warnings: Vec<String>,
        producers: u32,
        /// Producers that get other rings.
        rearmed: Vec<u32>,
        reply: Reply<v1::SetFilterResponse>,
    },
    Stop {
        discard: bool,
        reply: Reply<v1::StopResponse>,
    },
}

impl Registry {
    /// Begins a run; the answer comes when all producers in scope are capturing, or at the timeout.
    pub(super) fn start(&mut self, spec: StartSpec, reply: Reply<v1::StartResponse>) {
        let (abandoned, before) = match self.clear_scope(&spec) {
            Ok(old) => old,
            // Whoever asked and went away needs no answer.
            Err(error) => return drop(reply.send(Err(error))),
        };
        let StartSpec {
            token,
            cap,
            cores,
            types,
            timeout,
            warnings,
            ..
        } = spec;
        let run = Run {
            id: super::random().max(1),
            token,
            started_ns: realtime_ns(),
            stopped_ns: None,
            cap,
            filter: Filter { cores, types },
            past: PastFilters::default(),
            shares: BTreeMap::new(),
            earlier: Vec::new(),
            forgotten: (None, 0),
            counted: Tally::default(),
            before,
            fetch: None,
            followers: Vec::new(),
            asked: Instant::now(),
            own: None,
        };
        let (id, scope) = (run.id, scope_name(&run.token));
        tracing::info!(run = %RunId(id), events_per_nc = cap, "capturing {scope}");
        self.runs.push(run);
        self.note_capturing();
        self.write_down();
        let attached: Vec<u32> = self.producers.keys().copied().collect();
        attached
            .iter()
            .for_each(|producer| self.reconcile(*producer));
        let until = Instant::now() + timeout;
        self.waits.push(Wait {
            run: id,
            until,
            asked: Asked::Start {
                warnings,
                abandoned,
                reply,
            },
        });
        self.settle_waits(Instant::now());
    }

    /// Makes room for a new run; the answer is how many events of the old one are given up, and what became of all events
    /// of the scope.
    fn clear_scope(&mut self, spec: &StartSpec) -> Result<(u64, Tally), RunError> {
        let Some(old) = self.run_of(&spec.token) else {
            return Ok((0, Tally::default()));
        };
        let scope = scope_name(&spec.token);
        if old.is_capturing() {
            let seconds = realtime_ns().saturating_sub(old.started_ns) / 1_000_000_000;
            return Err(RunError::AlreadyCapturing { scope, seconds });
        }
        let (id, unread) = (old.id, old.unread());
        let given_up = |tally: &Tally| tally.lost[Cause::Abandoned as usize];
        if spec.keep && unread > 0 {
            return Err(RunError::Unread { scope, unread });
        }
        if unread > 0 {
            tracing::info!(
                run = %RunId(id),
                unread,
                "a new start of {scope} gives up the unread events of the last run"
            );
        }
        // Not all that is unread is given up now: of a ring that went round more was lost before.
        let already = self.run_mut(id).map_or(0, |old| {
            old.count();
            given_up(&old.before).saturating_add(given_up(&old.tally()))
        });
        let before = self.drop_run(id);
        Ok((given_up(&before).saturating_sub(already), before))
    }

    /// Lets a run go with all that it holds; the answer is what became of the events of its scope.
    pub(super) fn drop_run(&mut self, id: u64) -> Tally {
        self.answer_waits(|wait| wait.run == id);
        let Some(at) = self.runs.iter().position(|run| run.id == id) else {
            return Tally::default();
        };
        let members: Vec<u32> = self.runs[at].shares.keys().copied().collect();
        members
            .into_iter()
            .for_each(|member| self.part_from_joined(member, id));
        let members: Vec<u32> = self.runs[at].shares.keys().copied().collect();
        members
            .into_iter()
            .for_each(|member| self.leave_to_followers(at, member));
        let mut run = self.runs.remove(at);
        run.stopped_ns.get_or_insert_with(realtime_ns);
        run.cancel_fetch();
        let members: Vec<u32> = run.shares.keys().copied().collect();
        let released: Vec<_> = (members.iter())
            .flat_map(|id| run.release(*id, true).into_iter().map(|one| (*id, one)))
            .collect();
        // Of what has no memory here.
        run.count_last();
        let (mut before, counted) = (run.before, run.tally());
        before.add(&counted);
        if run.own.is_none() {
            self.counted.add(&counted);
        }
        for (producer, mut released) in released {
            // A process reads its own capture's account itself.
            released.doubtful &= run.own.is_none();
            self.free_released((run.id, &run.token), producer, released);
        }
        for producer in members {
            self.retire(producer);
            self.reconcile(producer);
        }
        self.note_capturing();
        self.changed = true;
        before
    }

    /// Ends a run; the answer comes when all producers have let go, or at the timeout.
    pub(super) fn stop(&mut self, token: &str, discard: bool, reply: Reply<v1::StopResponse>) {
        let id = self
            .run_of(token)
            .filter(|run| run.is_capturing())
            .map(|run| run.id);
        let Some(id) = id else {
            let scope = scope_name(token);
            return drop(reply.send(Err(RunError::NotCapturing { scope })));
        };
        self.answer_waits(|wait| wait.run == id); // a start that still waits for producers
        if let Some(run) = self.run_mut(id) {
            run.stopped_ns = Some(realtime_ns());
            run.asked = Instant::now();
        }
        self.write_down();
        step::at("stop:noted");
        tracing::info!(run = %RunId(id), "stopped capturing {}", scope_name(token));
        let attached: Vec<u32> = self.producers.keys().copied().collect();
        attached
            .iter()
            .for_each(|producer| self.reconcile(*producer));
        self.note_capturing();
        let until = Instant::now() + Duration::from_millis(self.config.disarm_timeout_ms.into());
        self.waits.push(Wait {
            run: id,
            until,
            asked: Asked::Stop { discard, reply },
        });
        self.settle_waits(Instant::now());
    }

    pub(super) fn note_capturing(&self) {
        let capturing = self.runs.iter().any(Run::is_capturing);
        self.clock.set_capturing(capturing);
        self.memory.set_capturing(capturing);
    }

    /// Producers whose rings the run shall have.
    fn in_scope(&self, run: u64) -> impl Iterator<Item = &Producer> {
        self.producers
            .values()
            .filter(move |producer| self.wanted_run(producer) == Some(run))
    }

    /// Answers what has nothing to wait for any more.
    pub(super) fn settle_waits(&mut self, now: Instant) {
        let ready: Vec<bool> = self
            .waits
            .iter()
            .map(|wait| wait.until <= now || !self.is_awaited(wait))
            .collect();
        if ready.contains(&true) {
            let mut ready = ready.into_iter();
            self.answer_waits(|_| ready.next().unwrap_or(false));
        }
    }

    fn is_awaited(&self, wait: &Wait) -> bool {
        match wait.asked {
            // Also for one that has said Hello and is welcomed in a moment: lists show it as attached already.
            Asked::Start { .. } => self.producers.values().any(|producer| {
                let to_come = matches!(producer.life, Life::Introducing { .. })
                    || matches!(producer.phase, Phase::Arming { .. } | Phase::Closing { .. });
                to_come && self.covering_run(producer) == Some(wait.run)
            }),
            Asked::SetFilter { ref rearmed, .. } => rearmed.iter().any(|id| {
                self.producers.get(id).is_some_and(|producer| {
                    matches!(producer.phase, Phase::Arming { .. } | Phase::Closing { .. })
                        && self.covering_run(producer) == Some(wait.run)
                })
            }),
            Asked::Stop { .. } => self
                .producers
                .values()
                .any(|producer| match producer.phase {
                    Phase::Closing {
                        run,
                        until: Some(_),
                        ..
                    } => run == wait.run,
                    // It came back from an earlier daemon, and is asked to let go once it is welcomed.
                    Phase::Open { run, .. } => {
                        run == wait.run && matches!(producer.life, Life::Introducing { .. })
                    }
                    _ => false,
                }),
        }
    }

    /// Answers those that `ready` picks, in order.
    fn answer_waits(&mut self, mut ready: impl FnMut(&Wait) -> bool) {
        let (ready, waits) = std::mem::take(&mut self.waits)
            .into_iter()
            .partition(|wait| ready(wait));
        self.waits = waits;
        for wait in ready {
            let Some(at) = self.runs.iter().position(|run| run.id == wait.run) else {
                continue;
            };
            // Whoever asked and went away needs no answer.
            match wait.asked {
                Asked::Start {
                    warnings,
                    abandoned,
                    reply,
                } => {
                    drop(reply.send(Ok(self.started(&self.runs[at], warnings, abandoned))));
                }
                Asked::SetFilter {
                    warnings,
                    producers,
                    rearmed,
                    reply,
                } => {
                    let run = &self.runs[at];
                    let answer = v1::SetFilterResponse {
                        run: Some(run.message()),
                        warnings,
                        producers,
                        rearmed: (rearmed.iter())
                            .filter_map(|id| self.producers.get(id))
                            .map(|producer| armed(producer, run))
                            .collect(),
                    };
                    drop(reply.send(Ok(answer)));
                }
                Asked::Stop { discard, reply } => {
                    let answer = self.stopped(at, discard);
                    step::at("stop:counted");
                    // What was given up is not to be had from a next daemon either. Its memory goes a little later: a process
                    // whose gates never opened may be about to map it.
                    self.save();
                    drop(reply.send(Ok(answer)));
                }
            }
        }
    }

    fn started(&self, run: &Run, warnings: Vec<String>, abandoned: u64) -> v1::StartResponse {
        v1::StartResponse {
            run: Some(run.message()),
            warnings,
            producers: (self.in_scope(run.id))
                .map(|producer| armed(producer, run))
                .collect(),
            abandoned,
        }
    }

    fn stopped(&mut self, at: usize, discard: bool) -> v1::StopResponse {
        let away = self.away_in(&self.runs[at]).collect();
        let run = &mut self.runs[at];
        let mut not_quiescent = Vec::new();
        let members: Vec<u32> = run.shares.keys().copied().collect();
        for id in members {
            if run.parts_of(id).any(Share::is_doubtful) {
                not_quiescent.push(id);
            }
            if discard {
                for part in run.parts_of_mut(id) {
                    part.abandon();
                    // What a process has that is away can't be looked at; it is not taken when it comes back.
                    part.give_up_away(id, Cause::Abandoned);
                }
            }
        }
        self.changed = true;
        let answer = v1::StopResponse {
            run: Some(run.message()),
            not_quiescent,
            accounts: run.accounts(),
            away,
        };
        let (id, shares): (u64, Vec<u32>) = (run.id, run.shares.keys().copied().collect());
        shares.into_iter().for_each(|share| self.let_go(id, share));
        answer
    }
}

fn armed(producer: &Producer, run: &Run) -> v1::ArmedProducer {
    v1::ArmedProducer {
        producer_id: producer.id,
        pid: producer.pid(),
        name: producer.name().to_owned(),
        armed: matches!(producer.phase, Phase::Open { run: open, .. } if open == run.id),
        segment_bytes: run
            .shares
            .get(&producer.id)
            .and_then(|share| share.segment())
            .map_or(0, |segment| segment.bytes()),
        refused: (producer.not_captured.as_ref())
            .filter(|(of, _)| *of == run.id)
            .map(|(_, why)| why.clone())
            .unwrap_or_default(),
    }
}
