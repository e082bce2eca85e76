//! The library's background thread stops: while it attaches, is armed, and lets go.
//!
//! The program's threads go on meanwhile: an emit waits for nothing that the background thread does.

use std::collections::BTreeMap;

use nrt_trace_proto::v1::ProducerState;
use nrt_trace_tests::Host;
use nrt_trace_tests::control::Control;
use nrt_trace_tests::ledger::{Emit, Gave};
use nrt_trace_tests::oracle::Oracle;
use nrt_trace_tests::stepper::{Stepper, Stop, labels};
use rustix::process::{Pid, Signal, kill_process};

use crate::spec::{Filling, Told};
use crate::world::{World, host, token};

/// Slots of the rings.
const CAP: u64 = 4;
/// The thread that emits.
const STEADY: u64 = 2;

/// Whether the stopped process is killed, or its thread goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    Kill,
    GoOn,
}

fn labels_of(step: &str) -> Vec<String> {
    let labels: Vec<String> = labels()
        .into_iter()
        .filter(|label| label.split(':').next() == Some(step))
        .collect();
    assert!(!labels.is_empty(), "{step}");
    labels
}

/// Each label of a step, each filling of the ring that the process had before, killed or not.
fn each_case(test: &str, step: &str, mut case: impl FnMut(&str, Filling, Then)) {
    for label in labels_of(step) {
        for filling in Filling::ALL {
            for then in [Then::Kill, Then::GoOn] {
                let _told = Told::of_test(test, &format!("{label} {filling:?} {then:?}"));
                case(&label, filling, then);
            }
        }
    }
}

/// What was stored since the log had `from` entries. Nothing is dropped in these cases, so that these are all claims.
fn stored(stepper: &Stepper, from: usize) -> Vec<Emit> {
    let log = stepper.log().split_off(from);
    log.into_iter()
        .filter(|emit| matches!(emit.gave, Gave::Id(_)))
        .collect()
}

/// Kills it and waits until the daemon has seen it.
fn kill(control: &mut Control, token: &str, stepper: Stepper) {
    let pid = stepper.pid();
    stepper.kill();
    control.until_state(token, pid, &[ProducerState::Dead]);
}

/// A run of the token, in which the process has its rings and has had none of its events lost.
fn check_new_run(control: &mut Control, token: &str, stepper: &mut Stepper) {
    let from = stepper.log().len();
    let started = control.start(token, CAP, 10_000);
    // One that was killed may still be among them; of that there is no answer.
    let mine = Some(stepper.pid().cast_signed());
    assert!(
        started.producers.iter().any(|p| p.pid == mine && p.armed),
        "{started:?}"
    );
    stepper.emit(STEADY, 2 * CAP + 1);
    check_stopped(control, token, stepper, from, &mut Oracle::new(CAP));
}

/// Ends the run and finds in it what the process recorded since its log had `from` entries.
fn check_stopped(
    control: &mut Control,
    token: &str,
    stepper: &Stepper,
    from: usize,
    oracle: &mut Oracle,
) {
    let stopped = control.stop(token);
    assert_eq!(stopped.not_quiescent.len(), 0, "{stopped:?}");
    let ring = control.fetch(token).ring(stepper.pid());
    let stored = stored(stepper, from);
    assert!(!stored.is_empty());
    oracle.check(&stored, &BTreeMap::new(), &ring);
    assert!(ring.account.exact);
}

#[test]
fn stopped_while_armed() {
    let mut world = World::new();
    each_case("stopped_while_armed", "arm", |label, filling, then| {
        let token = token();
        world.control.start(&token, CAP, 0);
        let mut stepper = Stepper::start(&world.host, &token, None);
        stepper.until_armed();
        stepper.emit(STEADY, filling.events(CAP));
        world.control.stop(&token);

        stepper.trap("bg", label, 1, Stop::Thread);
        let from = stepper.log().len();
        // It answers when the timeout is over, or at once where the rings are in use already.
        let started = world.control.start(&token, CAP, 20);
        assert_eq!(started.producers.len(), 1, "{started:?}");
        stepper.expect("parked bg", &format!("parked {label}"));
        stepper.emit(STEADY, CAP + 1);
        let open = label == "arm:go";
        let recorded = stored(&stepper, from).len() as u64;
        assert_eq!(recorded, if open { CAP + 1 } else { 0 }, "gates open late");
        match then {
            Then::Kill => {
                let (pid, claims) = (stepper.pid(), stored(&stepper, from));
                kill(&mut world.control, &token, stepper);
                let ring = world.control.fetch(&token).ring(pid);
                Oracle::new(CAP).check(&claims, &BTreeMap::new(), &ring);
                // Another one takes its place.
                stepper = Stepper::start(&world.host, &token, None);
                stepper.until_armed();
                stepper.emit(STEADY, 2 * CAP + 1);
                check_stopped(
                    &mut world.control,
                    &token,
                    &stepper,
                    0,
                    &mut Oracle::new(CAP),
                );
            }
            Then::GoOn => {
                stepper.expect("release bg", "ok");
                stepper.until_armed();
                stepper.emit(STEADY, 2 * CAP + 1);
                check_stopped(
                    &mut world.control,
                    &token,
                    &stepper,
                    from,
                    &mut Oracle::new(CAP),
                );
            }
        }
        let _ended = stepper.end();
        world.ask_witness();
    });
}

#[test]
fn stopped_while_it_lets_go() {
    let mut world = World::new();
    each_case(
        "stopped_while_it_lets_go",
        "disarm",
        |label, filling, then| {
            let token = token();
            world.control.start(&token, CAP, 0);
            let mut stepper = Stepper::start(&world.host, &token, None);
            stepper.until_armed();
            stepper.emit(STEADY, filling.events(CAP));
            let claims = stored(&stepper, 0);
            assert_eq!(claims.len() as u64, filling.events(CAP));

            stepper.trap("bg", label, 1, Stop::Thread);
            let stopped = world.control.stop(&token);
            assert_eq!(stopped.not_quiescent.len(), 1, "no answer: {stopped:?}");
            stepper.expect("parked bg", &format!("parked {label}"));
            stepper.emit(STEADY, CAP);
            assert_eq!(stored(&stepper, 0), claims, "the gates are closed");
            let mut oracle = Oracle::new(CAP);
            let pid = stepper.pid();
            match then {
                Then::Kill => {
                    kill(&mut world.control, &token, stepper);
                    let ring = world.control.fetch(&token).ring(pid);
                    oracle.check(&claims, &BTreeMap::new(), &ring);
                }
                Then::GoOn => {
                    let ring = world.control.fetch(&token).ring(pid);
                    oracle.check(&claims, &BTreeMap::new(), &ring);
                    assert!(!ring.account.exact, "it has not said that all threads left");
                    stepper.expect("release bg", "ok");
                    check_new_run(&mut world.control, &token, &mut stepper);
                    let _ended = stepper.end();
                }
            }
            world.ask_witness();
        },
    );
}

/// The first attach of a process.
#[test]
fn stopped_while_it_attaches() {
    let mut world = World::new();
    for label in labels_of("attach") {
        for then in [Then::Kill, Then::GoOn] {
            let _told = Told::of_test("stopped_while_it_attaches", &format!("{label} {then:?}"));
            let token = token();
            world.control.start(&token, CAP, 0);
            let mut stepper = Stepper::start(&world.host, &token, Some(&label));
            stepper.expect("parked bg", &format!("parked {label}"));
            stepper.emit(STEADY, CAP);
            assert_eq!(stored(&stepper, 0), [], "nobody listens yet");
            let name = format!("{token}-early");
            stepper.expect(&format!("intern {STEADY} {name}"), "done");
            if then == Then::Kill {
                stepper.kill();
                // Whether it was attached or not, another one takes its place.
                stepper = Stepper::start(&world.host, &token, None);
            } else {
                stepper.expect("release bg", "ok");
            }
            stepper.until_armed();
            stepper.emit(STEADY, 2 * CAP + 1);
            check_stopped(
                &mut world.control,
                &token,
                &stepper,
                0,
                &mut Oracle::new(CAP),
            );
            let known = world.control.fetch(&token).names().contains(&*name);
            // From there on the daemon's table of names is in use.
            let shared = matches!(&*label, "attach:names" | "attach:shared");
            assert_eq!(known, then == Then::GoOn || shared, "{name}");
            let _ended = stepper.end();
            world.ask_witness();
        }
    }
}

/// The attach to a daemon that took the place of a killed one, with the rings of the old one still in use.
#[test]
fn stopped_while_it_attaches_again() {
    each_case(
        "stopped_while_it_attaches_again",
        "attach",
        |label, filling, then| {
            let (mut host, config) = host();
            let config = config.each_ref().map(String::as_str);
            host.start_daemon(&config);
            let mut control = Control::connect(&host);
            control.start("again", CAP, 0);
            let mut stepper = Stepper::start(&host, "again", None);
            stepper.until_armed();
            stepper.emit(STEADY, filling.events(CAP));
            stepper.expect(&format!("intern {STEADY} early"), "done");
            stepper.trap("bg", label, 1, Stop::Thread);
            kill_daemon(&mut host);
            stepper.emit(STEADY, CAP);
            host.start_daemon(&config);
            let mut control = Control::connect(&host);
            stepper.expect("parked bg", &format!("parked {label}"));
            stepper.emit(STEADY, CAP);
            if then == Then::Kill {
                stepper.kill();
                stepper = Stepper::start(&host, "again", None);
            } else {
                stepper.expect("release bg", "ok");
            }
            // The run goes on, with what came into its rings while there was no daemon.
            control.until_state("again", stepper.pid(), &[ProducerState::Capturing]);
            stepper.emit(STEADY, 1);
            check_stopped(&mut control, "again", &stepper, 0, &mut Oracle::new(CAP));
            check_new_run(&mut control, "again", &mut stepper);
            let told = control.fetch("again").names().contains("early");
            assert!(told || then == Then::Kill, "a name is told to each daemon");
            let _ended = stepper.end();
        },
    );
}

fn kill_daemon(host: &mut Host) {
    let pid = Pid::from_raw(host.daemon_pid().cast_signed()).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
    assert_eq!(host.wait_daemon(), None);
}
