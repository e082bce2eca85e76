//! A process of a case, its ring, and what that must hold.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use nrt_trace_proto::v1::ProducerState;
use nrt_trace_tests::control::Fetched;
use nrt_trace_tests::ledger::{self, Emit, Gave};
use nrt_trace_tests::oracle::{Oracle, holds_slot};
use nrt_trace_tests::stepper::{Stepper, Stop};

use crate::world::World;

/// The thread that emits what the others don't, and is never stopped.
const STEADY: u64 = 2;
/// The thread that is stopped in a slot so that another one has to drop its event.
const BLOCKER: u64 = 3;

/// A process with a ring. Its threads 0 and 1 are those of the case.
#[derive(Debug)]
pub(crate) struct Ring {
    pub token: String,
    pid: u32,
    cap: u64,
    /// `None`: killed.
    stepper: Option<Stepper>,
    log: PathBuf,
    /// Entries of the log that are of earlier rings.
    skip: usize,
    stopped: BTreeMap<u64, Stopped>,
    oracle: Oracle,
    claims: u64,
    /// Names that must be known, and that must not.
    names: BTreeMap<String, bool>,
}

/// A thread that is stopped.
#[derive(Debug)]
struct Stopped {
    label: String,
    stop: Stop,
    /// Whether it may still write to what the daemon shares with its process.
    inside: bool,
}

impl Ring {
    /// Starts a process that carries `token`, whose run has begun, and waits until it is armed.
    pub(crate) fn start(world: &World, token: &str, cap: u64) -> Self {
        let mut stepper = Stepper::start(&world.host, token, None);
        stepper.until_armed();
        Self::of(stepper, token, cap)
    }

    /// The ring of a process whose events are recorded from now on.
    pub(crate) fn of(stepper: Stepper, token: &str, cap: u64) -> Self {
        Self {
            token: token.to_owned(),
            pid: stepper.pid(),
            cap,
            log: stepper.log_path(),
            skip: stepper.log().len(),
            stepper: Some(stepper),
            stopped: BTreeMap::new(),
            oracle: Oracle::new(cap),
            claims: 0,
            names: BTreeMap::new(),
        }
    }

    pub(crate) fn stepper(&mut self) -> &mut Stepper {
        self.stepper.as_mut().unwrap()
    }

    /// The steady thread emits.
    pub(crate) fn emit(&mut self, events: u64) {
        self.stepper().emit(STEADY, events);
        self.claims += events;
    }

    /// Brings a thread to `label` and stops it there. False if no thread can come there now: every slot is another
    /// one's.
    pub(crate) fn stop_at(&mut self, thread: u64, label: &str, stop: Stop) -> bool {
        if let Some(step) = label.strip_prefix("name:") {
            self.stop_interning(thread, label, step, stop);
            return true;
        }
        if matches!(label, "push:drop" | "push:dropped") {
            if self.held().is_empty() && !self.stop_at(BLOCKER, "push:taken", Stop::Thread) {
                return false;
            }
            let held = self.held();
            while !held.contains(&(self.claims % self.cap)) {
                self.emit(1);
            }
        } else {
            let held = self.held();
            if held.len() as u64 == self.cap && !matches!(label, "push:claimed" | "push:found") {
                return false;
            }
            while held.contains(&(self.claims % self.cap)) && (held.len() as u64) < self.cap {
                self.emit(1);
            }
        }
        let stepper = self.stepper();
        stepper.trap(&thread.to_string(), label, 1, stop);
        stepper.order_into_trap(&format!("emit {thread} 1"), label, stop);
        self.claims += 1;
        self.note(thread, label, stop, true);
        true
    }

    fn note(&mut self, thread: u64, label: &str, stop: Stop, inside: bool) {
        let label = label.to_owned();
        self.stopped.insert(
            thread,
            Stopped {
                label,
                stop,
                inside,
            },
        );
    }

    /// A name goes into the process's own table, and then into the one that the daemon reads: half of the cases stop in
    /// the first, half in the second.
    fn stop_interning(&mut self, thread: u64, label: &str, step: &str, stop: Stop) {
        let pass = 1 + u32::try_from(self.claims % 2).unwrap();
        // Not by the pid alone: a long test sees a number again.
        let name = format!("{}-{}-{}", self.token, self.pid, self.names.len());
        let stepper = self.stepper();
        stepper.trap(&thread.to_string(), label, pass, stop);
        stepper.order_into_trap(&format!("intern {thread} {name}"), label, stop);
        self.names.insert(name, pass == 2 && step == "published");
        self.note(thread, label, stop, pass == 2);
    }

    /// Slots that stopped threads hold.
    fn held(&self) -> BTreeSet<u64> {
        let claims = self.log();
        let holds = |emit: &Emit| {
            let label = self.stopped.get(&emit.thread);
            emit.gave == Gave::Unfinished && label.is_some_and(|stopped| holds_slot(&stopped.label))
        };
        (0..)
            .zip(&claims)
            .filter(|(_, emit)| holds(emit))
            .map(|(n, _)| n % self.cap)
            .collect()
    }

    /// Whether some thread may still write to what the daemon shares with its process.
    pub(crate) fn is_inside(&self) -> bool {
        self.stopped.values().any(|stopped| stopped.inside)
    }

    /// The stopped threads of the case go on, and so does the one that was stopped for their sake.
    pub(crate) fn release(&mut self, order: [u64; 2]) {
        for thread in order.into_iter().chain([BLOCKER]) {
            if let Some(Stopped { label, stop, .. }) = self.stopped.remove(&thread) {
                self.stepper().release(thread, &label, stop);
                if label.starts_with("name:") {
                    self.names.values_mut().for_each(|known| *known = true);
                }
            }
        }
    }

    /// After all threads have gone on, nothing of the past is in the way: a lap of events is stored, every one.
    pub(crate) fn check_progress(&mut self) {
        assert!(self.stopped.is_empty());
        let before = self.log().len();
        self.emit(self.cap);
        let log = self.log();
        for emit in &log[before..] {
            assert!(matches!(emit.gave, Gave::Id(_)), "{emit:?} of {log:?}");
        }
    }

    /// Kills the process, and waits until the daemon has seen it.
    pub(crate) fn kill(&mut self, world: &mut World) {
        self.stepper.take().unwrap().kill();
        world
            .control
            .until_state(&self.token, self.pid, &[ProducerState::Dead]);
    }

    /// Compares a fetch with what must be there.
    pub(crate) fn check(&mut self, fetched: &Fetched) {
        let ring = fetched.ring(self.pid);
        let stopped = self
            .stopped
            .iter()
            .map(|(thread, stopped)| (*thread, stopped.label.clone()))
            .collect();
        self.oracle.check(&self.log(), &stopped, &ring);
        let known = fetched.names();
        for (name, expected) in &self.names {
            assert_eq!(known.contains(name.as_str()), *expected, "{name}");
        }
        if self.stepper.is_none() {
            let settled = ring.account.overwritten == 0;
            assert_eq!(ring.account.exact, settled, "{:?}", ring.account);
        }
    }

    /// The last fetch of a run that all threads have left: also the split of the losses is certain.
    pub(crate) fn check_exact(&mut self, fetched: &Fetched) {
        self.check(fetched);
        assert!(fetched.ring(self.pid).account.exact);
    }

    /// Begins anew with the rings of another run.
    pub(crate) fn renew(&mut self) {
        self.skip = ledger::read(&self.log).len();
        self.oracle = Oracle::new(self.cap);
        self.claims = 0;
    }

    /// Its claims, in their order: one thread at a time emits, so they are in the order of the log.
    pub(crate) fn log(&self) -> Vec<Emit> {
        ledger::read(&self.log).split_off(self.skip)
    }

    /// Has the process end, if it lives.
    pub(crate) fn end(self) {
        if let Some(stepper) = self.stepper {
            let _ended = stepper.end();
        }
    }
}
