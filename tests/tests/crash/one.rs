//! One thread stops in an emit, or while it interns a name: at every step, with every filling of the ring.

use nrt_trace_tests::stepper::labels;

use crate::pairs;
use crate::spec::{Filling, Spec, Then};
use crate::world::World;

/// Labels of what threads of the program do.
pub(crate) fn thread_labels() -> Vec<String> {
    let mine = |label: &String| label.starts_with("push:") || label.starts_with("name:");
    let labels: Vec<String> = labels().into_iter().filter(mine).collect();
    assert_eq!(labels.len(), 13, "{labels:?}");
    labels
}

fn every_step(then: Then) {
    let mut world = World::new();
    for label in thread_labels() {
        for filling in Filling::ALL {
            for look in [true, false] {
                let spec = Spec {
                    processes: 1,
                    labels: vec![label.clone()],
                    filling,
                    cap: 4,
                    then,
                    look,
                };
                assert!(pairs::run(&mut world, &spec), "{spec}");
            }
        }
    }
}

#[test]
fn killed_at_any_step() {
    every_step(Then::Kill);
}

#[test]
fn stopped_at_any_step_for_a_lap() {
    every_step(Then::Lap);
}

#[test]
fn stopped_at_any_step_while_the_run_ends() {
    every_step(Then::Stop);
}
