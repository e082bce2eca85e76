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

/// The daemon lets go of the rings of a process whose connection has ended, once they are read out; a thread that was let in
/// before may take a number yet, and goes into the account: as one that nobody will read.
#[test]
fn a_claim_after_the_rings_were_let_go_is_counted() {
    let mut world = World::new();
    for (label, _) in LABELS {
        for filling in Filling::ALL {
            for ended in [false, true] {
                let test = "a_claim_after_the_rings_were_let_go_is_counted";
                let _told = Told::of_test(test, &format!("{label} {filling:?} {ended}"));
                let token = token();
                let mut stepper = stopped_at(&mut world, &token, label, filling, Stop::Thread);
                let pid = stepper.pid();
                // It does not say Hello again: what it has is what it had.
                stepper.trap("bg", "attach:connected", 1, Stop::Thread);
                stepper.expect("disconnect", "ok");
                stepper.expect("parked bg", "parked attach:connected");
                (world.control).until_state(&token, pid, &[ProducerState::Detached]);
                let read = world.control.fetch(&token).sum(pid);
                assert_eq!((read.unread, read.pending), (0, 0), "all is read: {read:?}");

                stepper.release(0, label, Stop::Thread);
                let claims = stepper.log();
                assert!(
                    claims.iter().all(|emit| matches!(emit.gave, Gave::Id(_))),
                    "it has its rings"
                );
                if ended {
                    stepper.kill();
                    (world.control).until_state(&token, pid, &[ProducerState::Dead]);
                }
                let whole = world.control.fetch(&token).sum(pid);
                assert_eq!(whole.claimed, claims.len() as u64, "{whole:?}");
                assert_eq!(
                    (whole.lost, whole.abandoned),
                    (read.lost + 1, read.abandoned + 1)
                );
                assert_eq!(whole.claimed, whole.delivered + whole.lost, "{whole:?}");
                let again = world.control.fetch(&token).sum(pid);
                assert_eq!(again.claimed, whole.claimed, "it is counted once");
                world.ask_witness();
            }
        }
    }
}
