//! Two threads stop, of one process and of two: every step and filling at least once, and random pairs of all.

use std::env;

use nrt_trace_tests::dice::Dice;
use nrt_trace_tests::stepper::Stop;

use crate::one::thread_labels;
use crate::ring::Ring;
use crate::spec::{Filling, Spec, Then, Told};
use crate::world::{World, token};

/// Set for all pairs in place of a sample.
const LONG: &str = "NRT_TRACE_LONG_TESTS";
/// Random pairs of a test.
const SAMPLE: usize = 100;
/// Capacities of the rings.
const CAPS: [u64; 6] = [1, 2, 3, 4, 5, 8];

/// Runs a case; false if the second thread can't come to its label because the first holds every slot.
pub(crate) fn run(world: &mut World, spec: &Spec) -> bool {
    let _told = Told::case(spec);
    let reached = if spec.processes == 1 {
        in_one(world, spec)
    } else {
        in_two(world, spec);
        true
    };
    world.ask_witness();
    reached
}

fn in_one(world: &mut World, spec: &Spec) -> bool {
    let token = token();
    world.control.start(&token, spec.cap, 0);
    let mut ring = Ring::start(world, &token, spec.cap);
    ring.emit(spec.filling.events(spec.cap));
    let mut reached = true;
    for (thread, label) in (0..).zip(&spec.labels) {
        // The last one takes the process with it, when nothing is to happen in there any more.
        let last = thread + 1 == spec.labels.len() as u64;
        let stop = if last && spec.then == Then::Kill {
            Stop::Process
        } else {
            Stop::Thread
        };
        reached &= ring.stop_at(thread, label, stop);
    }
    if spec.look {
        ring.check(&world.control.fetch(&token));
    }
    match spec.then {
        Then::Kill => ring.kill(world),
        Then::Lap | Then::Reverse => {
            ring.emit(spec.cap);
            if spec.look {
                ring.check(&world.control.fetch(&token));
            }
            let reverse = spec.then == Then::Reverse;
            ring.release(if reverse { [1, 0] } else { [0, 1] });
            ring.check_progress();
        }
        Then::Stop => {
            next_run(world, &mut [&mut ring], spec);
        }
    }
    let stopped = world.control.stop(&token);
    assert_eq!(stopped.not_quiescent.len(), 0, "{stopped:?}");
    let fetched = world.control.fetch(&token);
    if spec.then == Then::Kill {
        ring.check(&fetched);
    } else {
        ring.check_exact(&fetched);
    }
    ring.end();
    reached
}

fn in_two(world: &mut World, spec: &Spec) {
    let token = token();
    world.control.start(&token, spec.cap, 0);
    let mut rings: Vec<Ring> = (spec.labels.iter())
        .map(|_| Ring::start(world, &token, spec.cap))
        .collect();
    for (ring, label) in rings.iter_mut().zip(&spec.labels) {
        ring.emit(spec.filling.events(spec.cap));
        assert!(ring.stop_at(0, label, Stop::Process) || spec.cap == 1);
    }
    if spec.look {
        let fetched = world.control.fetch(&token);
        rings.iter_mut().for_each(|ring| ring.check(&fetched));
    }
    let victim = match spec.then {
        Then::Kill => Some(0),
        Then::Reverse => Some(1),
        Then::Lap => None,
        Then::Stop => {
            next_run(world, &mut rings.iter_mut().collect::<Vec<_>>(), spec);
            None
        }
    };
    if let Some(victim) = victim {
        rings[victim].kill(world);
    }
    for (at, ring) in rings.iter_mut().enumerate() {
        if Some(at) != victim {
            ring.release([0, 1]);
            ring.check_progress();
        }
    }
    let stopped = world.control.stop(&token);
    assert_eq!(stopped.not_quiescent.len(), 0, "{stopped:?}");
    let fetched = world.control.fetch(&token);
    for (at, ring) in rings.iter_mut().enumerate() {
        if Some(at) == victim {
            ring.check(&fetched);
        } else {
            ring.check_exact(&fetched);
        }
    }
    rings.into_iter().for_each(Ring::end);
}

/// The run is stopped while threads are; then they go on, into memory that the next run has no part in.
fn next_run(world: &mut World, rings: &mut [&mut Ring], spec: &Spec) {
    let token = rings[0].token.clone();
    let inside = rings.iter().filter(|ring| ring.is_inside()).count();
    let stopped = world.control.stop(&token);
    // A process that is stopped as a whole says nothing; one whose other threads run says that somebody is inside.
    let doubtful = if spec.processes == 2 { 2 } else { inside };
    assert_eq!(stopped.not_quiescent.len(), doubtful, "{stopped:?}");
    if spec.look {
        let fetched = world.control.fetch(&token);
        rings.iter_mut().for_each(|ring| ring.check(&fetched));
    }
    for ring in rings.iter_mut() {
        ring.release([0, 1]);
    }
    // What they were in the middle of is stored, or dropped and counted.
    let fetched = world.control.fetch(&token);
    rings.iter_mut().for_each(|ring| ring.check(&fetched));
    // The longest that a start may wait: for the answers to the end of the last run, and for the new rings.
    let started = world.control.start(&token, spec.cap, 10_000);
    assert!(started.producers.iter().all(|p| p.armed), "{started:?}");
    for ring in rings.iter_mut() {
        ring.renew();
        ring.check_progress();
    }
}

/// Each step and filling, with a partner and an end that the dice choose.
fn each_once(processes: usize, dice: &mut Dice) -> Vec<Spec> {
    let labels = thread_labels();
    let mut specs = Vec::new();
    for label in &labels {
        for filling in Filling::ALL {
            let mut pair = vec![label.clone(), dice.pick(&labels).clone()];
            if dice.below(2) == 1 {
                pair.reverse();
            }
            let spec = Spec {
                labels: pair,
                filling,
                cap: 4,
                ..any(processes, &labels, dice)
            };
            if processes == 2 && filling == Filling::Wrapping {
                let then = Then::Stop;
                specs.push(Spec {
                    then,
                    ..spec.clone()
                });
            }
            specs.push(spec);
        }
    }
    specs
}

fn any(processes: usize, labels: &[String], dice: &mut Dice) -> Spec {
    Spec {
        processes,
        labels: (0..2).map(|_| dice.pick(labels).clone()).collect(),
        filling: *dice.pick(&Filling::ALL),
        cap: *dice.pick(&CAPS),
        // Two processes that are stopped have a stop wait for its whole timeout: only some cases do so.
        then: *dice.pick(&Then::ALL[..if processes == 1 { 4 } else { 3 }]),
        look: dice.below(2) == 1,
    }
}

/// Every pair of steps with every filling, killed and gone on with.
fn all(processes: usize, dice: &mut Dice) -> Vec<Spec> {
    let labels = thread_labels();
    let mut specs = Vec::new();
    for first in &labels {
        for second in &labels {
            for filling in Filling::ALL {
                for then in [Then::Kill, Then::Lap] {
                    specs.push(Spec {
                        processes,
                        labels: vec![first.clone(), second.clone()],
                        filling,
                        then,
                        ..any(processes, &labels, dice)
                    });
                }
            }
        }
    }
    specs
}

fn pairs(test: &str, processes: usize) {
    let mut dice = Dice::roll(test);
    let specs = if env::var_os(LONG).is_some() {
        all(processes, &mut dice)
    } else {
        let labels = thread_labels();
        let mut specs = each_once(processes, &mut dice);
        specs.extend((0..SAMPLE).map(|_| any(processes, &labels, &mut dice)));
        specs
    };
    let mut world = World::new();
    let mut unreached = 0;
    for spec in &specs {
        let reached = run(&mut world, spec);
        assert!(reached || spec.cap <= 2, "{spec}");
        unreached += usize::from(!reached);
    }
    println!(
        "{} pairs, {unreached} of them with one thread only",
        specs.len()
    );
}

#[test]
fn pairs_of_one_process() {
    pairs("pairs_of_one_process", 1);
}

#[test]
fn pairs_of_two_processes() {
    pairs("pairs_of_two_processes", 2);
}

/// A case by its name, to repeat what failed.
#[test]
fn by_name() {
    if let Ok(name) = env::var("NRT_TRACE_CASE") {
        run(&mut World::new(), &name.parse().unwrap());
    }
}
