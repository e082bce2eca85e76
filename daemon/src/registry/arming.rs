//! Rings and gates of a producer: which run it belongs to, and the steps into it and out of it.
//!
//! ```text
//!          Arm sent                Armed: gates open, Go sent
//!   Idle ───────────▶ Arming ─────────────────────────────────▶ Open
//!    ▲                   │                                        │
//!    │                   │ run over, or another one's now:        │
//!    │                   ▼ gates closed, Disarm sent              ▼
//!    └───────────────────────────── Closing ◀─────────────────────┘
//!        Disarmed
//! ```
//!
//! While a Disarm is unanswered nothing more is sent, so that a stopped producer's socket never fills up. A producer that
//! comes back into a run, because the token's run that took it is over, gets other rings, whose numbers go on where those of
//! the first ones ended (`run::parts`).

use std::time::{Duration, Instant};

use nrt_trace_abi::MAX_NCS;
use nrt_trace_abi::message::{Arm, Armed, Disarm, Disarmed, Go, Message};
use nrt_trace_ring::step;
use nrt_trace_shm::clock::realtime_ns;

use super::Registry;
use super::budget::{Denial, NO_CORES, cannot_map};
use super::producer::{Life, Link, Phase, Producer};
use crate::drain::segment::Segment;
use crate::run::share::Writers;
use crate::run::{Run, RunId};

impl Registry {
    /// The run that shall have the producer's rings: its own, else its token's, else the host's.
    pub(super) fn wanted_run(&self, producer: &Producer) -> Option<u64> {
        if producer.life == Life::Attached {
            self.covering_run(producer)
        } else {
            None
        }
    }

    /// The run that a producer's rings belong to, once it is welcomed.
    pub(super) fn covering_run(&self, producer: &Producer) -> Option<u64> {
        if !producer.is_connected() || producer.quarantined {
            return None;
        }
        if let Some(own) = self.own_run(producer.id) {
            // The rings that it shares stay its rings until their run ends; then it has its own.
            let joined = own.own.as_ref().and_then(|own| own.joined);
            let shares = |run: &&Run| Some(run.id) == joined && run.is_capturing();
            return Some(self.runs.iter().find(shares).unwrap_or(own).id);
        }
        let capturing = |token: &str| self.run_of(token).filter(|run| run.is_capturing());
        let of_token = if producer.token().is_empty() {
            None
        } else {
            capturing(producer.token())
        };
        of_token.or_else(|| capturing("")).map(|run| run.id)
    }

    /// Whether the producer gets rings as soon as it is welcomed.
    pub(super) fn will_be_armed(&self, id: u32) -> bool {
        let Some(producer) = self.producers.get(&id) else {
            return false;
        };
        let run = self
            .wanted_run(producer)
            .and_then(|id| self.runs.iter().find(|run| run.id == id));
        run.is_some_and(|run| {
            !run.filter
                .cores
                .rings(&producer.visible, self.config.default_cores)
                .is_empty()
        })
    }

    /// Opens the gates of a producer that came back with its rings, as far as its run still captures; false if there is
    /// none that it still writes.
    pub(super) fn goes_on(&mut self, id: u32) -> bool {
        let Some(producer) = self.producers.get(&id) else {
            return false;
        };
        let Phase::Open { run, generation } = producer.phase else {
            return false;
        };
        let run = self.runs.iter().find(|other| other.id == run);
        if run.is_some_and(Run::is_capturing) {
            let page = producer.page.clone();
            self.open_gates(id);
            page.set_state(true, generation);
        }
        true
    }

    /// Takes the next step from where the producer is to where it shall be.
    pub(super) fn reconcile(&mut self, id: u32) {
        let Some(producer) = self.producers.get(&id) else {
            return;
        };
        if matches!(producer.life, Life::Introducing { .. }) {
            return; // nothing comes before its Welcome, and then this is asked again
        }
        let wanted = self.wanted_run(producer);
        match producer.phase {
            Phase::Idle => {
                if let Some(run) = wanted {
                    self.arm(id, run);
                }
            }
            Phase::Arming { run, .. } | Phase::Open { run, .. } => {
                if wanted != Some(run) {
                    self.disarm(id);
                }
            }
            Phase::Closing { .. } => {}
        }
    }

    fn arm(&mut self, id: u32, run_id: u64) {
        let Some(run) = self.runs.iter().find(|run| run.id == run_id) else {
            return;
        };
        let Some(producer) = self.producers.get(&id) else {
            return;
        };
        if run.shares.get(&id).is_some_and(|share| share.barred) {
            return;
        }
        let rings: Vec<usize> = self.rings_in(run, producer).into_iter().collect();
        if rings.is_empty() {
            let text = "it sees none of the NeuronCores that are captured (--nc)".to_owned();
            return self.deny(
                id,
                run_id,
                Denial {
                    cause: NO_CORES,
                    text,
                },
            );
        }
        let events = run.cap * rings.len() as u64;
        let mut next = run.next_numbers(id);
        next.extend(run.own.iter().flat_map(|own| own.next.clone()));
        let segment = self.make_segment(id, run_id, run.cap, &rings, &next);
        let segment = match segment {
            Ok(segment) => segment,
            Err(denial) => return self.deny(id, run_id, denial),
        };
        let (Some(run), Some(producer)) = (
            self.runs.iter_mut().find(|run| run.id == run_id),
            self.producers.get_mut(&id),
        ) else {
            return;
        };
        step::at("lend:made");
        // A process may start captures of its own as often as it likes, and must not fill the log with it.
        if run.own.is_none() && self.talk.may(Instant::now()) {
            tell_of_rings(
                id,
                producer,
                run,
                &segment,
                events,
                self.config.default_cores,
            );
        }
        let given_up = run.admit(id, segment.clone());
        if given_up > 0 {
            tracing::warn!(
                producer = id,
                run = %RunId(run_id),
                events = given_up,
                "it came back into the run so often that unread events of its first rings are given up"
            );
        }
        let generation = segment.generation();
        self.memory.add(segment, producer.page.clone());
        producer.phase = Phase::Arming {
            run: run_id,
            generation,
        };
        self.to_lend.push(id);
    }

    /// Sends the rings that were made to their producers, after they were written down: a next daemon must know every
    /// ring that can have events. All at once, because writing takes as long for one as for all.
    pub(super) fn lend(&mut self) {
        if !self.to_lend.is_empty() {
            let ready = self.take_ready();
            self.lend_to(ready);
        }
    }

    fn lend_to(&mut self, ids: Vec<u32>) {
        if ids.is_empty() {
            return;
        }
        self.write_down();
        step::at("lend:noted");
        for id in ids {
            let Some(producer) = self.producers.get(&id) else {
                continue;
            };
            let Phase::Arming { run, generation } = producer.phase else {
                continue;
            };
            let share = (self.runs.iter().find(|other| other.id == run))
                .and_then(|run| run.shares.get(&id));
            let Some(segment) = share.and_then(|share| share.segment()) else {
                continue;
            };
            if let Some(Err(error)) = self.memory.is_ready(segment) {
                let segment = segment.clone();
                self.no_memory(id, run, segment, &error);
                continue;
            }
            let arm = Arm {
                header: Arm::header(),
                generation,
                segment_bytes: segment.bytes(),
            };
            let segment = segment.clone();
            self.keep_rings(id, &segment);
            let Some(producer) = self.producers.get_mut(&id) else {
                continue;
            };
            if producer.send_segment(&arm, segment) == Link::Down {
                self.connection_lost(id);
            } else {
                step::at("lend:sent");
            }
        }
    }

    /// A producer has its rings in place: the gates open. False if nobody asked.
    pub(super) fn armed(&mut self, id: u32, message: &Armed) -> bool {
        let Some(producer) = self.producers.get_mut(&id) else {
            return true;
        };
        let Phase::Arming {
            run: run_id,
            generation,
        } = producer.phase
        else {
            // Its answer to an Arm that was taken back meanwhile; it comes once, before the answer to the Disarm.
            return match &mut producer.phase {
                Phase::Closing {
                    generation,
                    arm_unanswered,
                    ..
                } if *generation == message.generation => std::mem::take(arm_unanswered),
                _ => false,
            };
        };
        if generation != message.generation {
            return false;
        }
        let Some(run) = self.runs.iter_mut().find(|run| run.id == run_id) else {
            return true;
        };
        let Some(share) = run.shares.get_mut(&id) else {
            return true;
        };
        if message.errno != 0 {
            let bytes = share.segment().map_or(0, |segment| segment.bytes());
            producer.phase = Phase::Idle;
            share.writers = Writers::Quiescent;
            share.barred = true;
            self.let_go(run_id, id);
            self.deny(id, run_id, cannot_map(bytes, message.errno));
            self.answer_own(id);
            self.settle_waits(Instant::now());
            return true;
        }
        step::at("lend:answered");
        self.clock.refresh();
        share.writers = Writers::Open;
        share.armed_from_ns.get_or_insert_with(realtime_ns);
        let quiet = run.own.is_some();
        producer.phase = Phase::Open {
            run: run_id,
            generation,
        };
        self.open_gates(id);
        step::at("lend:opening");
        let Some(producer) = self.producers.get_mut(&id) else {
            return true;
        };
        producer.page.set_state(true, generation);
        step::at("lend:open");
        if !quiet && self.talk.may(Instant::now()) {
            tracing::info!(
                producer = id,
                pid = producer.pid(),
                uid = producer.uid,
                run = %RunId(run_id),
                "capturing"
            );
        }
        if producer.send(&Go {
            header: Go::header(),
            generation,
        }) == Link::Down
        {
            self.connection_lost(id);
        }
        step::at("lend:told");
        self.complete_rings(id); // if the filter was changed while these were on their way
        self.answer_own(id);
        self.settle_waits(Instant::now());
        true
    }

    /// Closes the gates and asks whether anybody is still inside an emit.
    pub(super) fn disarm(&mut self, id: u32) {
        let until = Instant::now() + Duration::from_millis(self.config.disarm_timeout_ms.into());
        // An Arm comes before its Disarm, also that of rings that have not all of their memory yet.
        if let Some(at) = self.to_lend.iter().position(|other| *other == id) {
            self.to_lend.remove(at);
            self.lend_to(vec![id]);
        }
        let Some(producer) = self.producers.get_mut(&id) else {
            return;
        };
        let (run_id, generation, was_open) = match producer.phase {
            Phase::Arming { run, generation } => (run, generation, false),
            Phase::Open { run, generation } => (run, generation, true),
            Phase::Idle | Phase::Closing { .. } => return,
        };
        close_gates(producer, generation);
        step::at("stop:closed");
        // Gates that never opened let nobody in: there is nothing to wait for.
        let until = was_open.then_some(until);
        producer.phase = Phase::Closing {
            run: run_id,
            generation,
            until,
            arm_unanswered: !was_open,
        };
        let link = producer.send(&Disarm {
            header: Disarm::header(),
            generation,
        });
        step::at("stop:asked");
        if let Some(run) = self.run_mut(run_id)
            && let Some(share) = run.shares.get_mut(&id)
        {
            share.writers = if was_open {
                Writers::Closing
            } else {
                Writers::Quiescent
            };
        }
        if link == Link::Down {
            self.connection_lost(id);
        }
    }

    /// A producer gave its rings up. False if nobody asked.
    pub(super) fn disarmed(&mut self, id: u32, message: &Disarmed) -> bool {
        let Some(producer) = self.producers.get_mut(&id) else {
            return true;
        };
        let Phase::Closing {
            run: run_id,
            generation,
            ..
        } = producer.phase
        else {
            return false;
        };
        if generation != message.generation {
            return false;
        }
        step::at("stop:answered");
        producer.phase = Phase::Idle;
        if let Some(share) = self.run_mut(run_id).and_then(|run| run.shares.get_mut(&id))
            && share.writers == Writers::Closing
            && message.quiescent == 1
        {
            share.writers = Writers::Quiescent;
        }
        if message.quiescent == 1 {
            self.end_late_of(id);
        }
        let producer = self.producers.get(&id);
        if producer.and_then(|producer| self.wanted_run(producer)) != Some(run_id) {
            self.part_from_joined(id, run_id);
        }
        self.let_go(run_id, id);
        // First the next run's Arm: between the two runs it would look like a producer nobody waits for.
        self.reconcile(id);
        self.answer_own(id);
        self.settle_waits(Instant::now());
        true
    }
}

/// The lines that users of Neuron's runtime know.
fn tell_of_rings(
    id: u32,
    producer: &Producer,
    run: &Run,
    segment: &Segment,
    events: u64,
    default_cores: u32,
) {
    tracing::info!(
        producer = id,
        pid = producer.pid(),
        uid = producer.uid,
        run = %RunId(run.id),
        bytes = segment.bytes(),
        "Allocating memory for {events} events ({:.3} GB) for system trace ring buffer",
        gib(segment.bytes())
    );
    for nc in run.filter.cores.closed(&producer.visible, default_cores) {
        tracing::info!(
            producer = id,
            "System trace capture disabled for this NeuronCore: {nc}"
        );
    }
}

/// Closes every gate.
pub(super) fn close_gates(producer: &Producer, generation: u64) {
    producer.page.set_gates(&[0; MAX_NCS]);
    producer.page.set_state(false, generation);
}

#[expect(clippy::cast_precision_loss, reason = "a figure for a log line")]
fn gib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 30)
}
