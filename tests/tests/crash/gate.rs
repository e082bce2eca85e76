//! A thread stops between its look at the gate and its claim: it has seen a run that may be over when it goes on.

use std::collections::BTreeMap;

use nrt_trace_proto::v1::ProducerState;
use nrt_trace_tests::ledger::Gave;
use nrt_trace_tests::oracle::Oracle;
use nrt_trace_tests::stepper::{Stepper, Stop};

use crate::spec::{Filling, Told};
use crate::world::{World, token};

/// Slots of the rings.
const CAP: u64 = 4;
/// The thread that emits.
const STEADY: u64 = 2;
/// The labels, and whether a thread that is stopped there is inside.
const LABELS: [(&str, bool); 2] = [("emit:open", false), ("emit:entered", true)];

/// A process in a run, with one thread at the label.
fn stopped_at(
    world: &mut World,
    token: &str,
    label: &str,
    filling: Filling,
    stop: Stop,
) -> Stepper {
    world.control.start(token, CAP, 0);
    let mut stepper = Stepper::start(&world.host, token, None);
    stepper.until_armed();
    stepper.emit(STEADY, filling.events(CAP));
    stepper.trap("0", label, 1, stop);
    stepper.order_into_trap("emit 0 1", label, stop);
    stepper
}

/// The rings of the next run get nothing from a thread that was let in by the last.
#[test]
fn a_stale_gate_opens_no_later_ring() {
    let mut world = World::new();
    for (label, inside) in LABELS {
        for filling in Filling::ALL {
            let test = "a_stale_gate_opens_no_later_ring";
            let _told = Told::of_test(test, &format!("{label} {filling:?}"));
            let token = token();
            let mut stepper = stopped_at(&mut world, &token, label, filling, Stop::Thread);
            let stopped = world.control.stop(&token);
            assert_eq!(
                stopped.not_quiescent.len(),
                usize::from(inside),
                "{stopped:?}"
            );

            let started = world.control.start(&token, CAP, 10_000);
            assert!(started.producers.iter().all(|p| p.armed), "{started:?}");
            let from = stepper.log().len();
            stepper.emit(STEADY, 1);
            stepper.release(0, label, Stop::Thread);
            stepper.emit(STEADY, CAP + 1);
            let log = stepper.log();
            let late = log.iter().find(|emit| emit.thread == 0).unwrap();
            assert_eq!(late.gave, Gave::Nothing, "its run is over");

            let stopped = world.control.stop(&token);
            assert_eq!(stopped.not_quiescent.len(), 0, "{stopped:?}");
            let ring = world.control.fetch(&token).ring(stepper.pid());
            // Without a claim of the late thread: it took no number, and no drop is counted.
            Oracle::new(CAP).check(&log[from..], &BTreeMap::new(), &ring);
            assert!(ring.account.exact);
            let _ended = stepper.end();
            world.ask_witness();
        }
    }
}

/// Within its run a late thread comes as if it had only begun.
#[test]
fn stopped_before_the_claim_for_a_lap() {
    let mut world = World::new();
    for (label, _) in LABELS {
        for filling in Filling::ALL {
            let test = "stopped_before_the_claim_for_a_lap";
            let _told = Told::of_test(test, &format!("{label} {filling:?}"));
            let token = token();
            let mut stepper = stopped_at(&mut world, &token, label, filling, Stop::Thread);
            stepper.emit(STEADY, CAP);
            stepper.release(0, label, Stop::Thread);
            world.control.stop(&token);
            let ring = world.control.fetch(&token).ring(stepper.pid());
            let mut claims = stepper.log();
            let late = claims.iter().position(|emit| emit.thread == 0).unwrap();
            let late = claims.remove(late);
            claims.push(late);
            Oracle::new(CAP).check(&claims, &BTreeMap::new(), &ring);
            assert_eq!(ring.events.last().map(|event| event.thread), Some(0));
            let _ended = stepper.end();
        }
    }
}

#[test]
fn killed_before_the_claim() {
    let mut world = World::new();
    for (label, _) in LABELS {
        for filling in Filling::ALL {
            let _told = Told::of_test("killed_before_the_claim", &format!("{label} {filling:?}"));
            let token = token();
            let stepper = stopped_at(&mut world, &token, label, filling, Stop::Process);
            let (pid, mut claims) = (stepper.pid(), stepper.log());
            stepper.kill();
            world
                .control
                .until_state(&token, pid, &[ProducerState::Dead]);
            let ring = world.control.fetch(&token).ring(pid);
            claims.retain(|emit| emit.thread != 0);
            Oracle::new(CAP).check(&claims, &BTreeMap::new(), &ring);
            world.ask_witness();
        }
    }
}
