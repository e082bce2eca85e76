//! What killed processes leave behind in the daemon: nothing but their events.

use std::collections::BTreeMap;
use std::fs;

use nrt_trace_proto::v1::ProducerState;
use nrt_trace_tests::oracle::Oracle;
use nrt_trace_tests::stepper::{Stepper, labels};
use nrt_trace_tests::until;

use crate::random::rounds;
use crate::world::{World, token};

/// Slots of the rings.
const CAP: u64 = 64;
/// The thread that emits.
const STEADY: u64 = 2;

fn descriptors(world: &World) -> usize {
    fs::read_dir(format!("/proc/{}/fd", world.host.daemon_pid()))
        .unwrap()
        .count()
}

/// Case S02: a hundred programs that are killed in the middle of attaching leave no descriptor open.
#[test]
fn s02_programs_killed_while_they_attach_leave_nothing_open() {
    let mut world = World::new();
    world.ask_witness();
    let before = descriptors(&world);
    let labels: Vec<String> = labels()
        .into_iter()
        .filter(|label| label.starts_with("attach:"))
        .collect();
    for label in labels.iter().cycle().take(100) {
        let token = token();
        let mut stepper = Stepper::start(&world.host, &token, Some(label));
        stepper.expect("parked bg", &format!("parked {label}"));
        stepper.kill();
    }
    until("the daemon's descriptors to be back", || {
        (descriptors(&world) <= before).then_some(())
    });
    world.ask_witness();
}

/// Case S04: killed, and started again under the same name before the daemon has noticed.
#[test]
fn s04_killed_and_started_again_at_once() {
    let mut world = World::new();
    let token = token();
    world.control.start(&token, CAP, 0);
    let mut killed = Vec::new();
    for _ in 0..rounds(50) {
        let mut stepper = Stepper::start(&world.host, &token, None);
        stepper.until_armed();
        stepper.emit(STEADY, CAP + 5);
        killed.push((stepper.pid(), stepper.log()));
        stepper.kill();
        world.ask_witness();
    }
    for (pid, _) in &killed {
        world
            .control
            .until_state(&token, *pid, &[ProducerState::Dead]);
    }
    let fetched = world.control.fetch(&token);
    for (pid, log) in &killed {
        Oracle::new(CAP).check(log, &BTreeMap::new(), &fetched.ring(*pid));
    }
    world.ask_witness();
}
