//! The daemon is killed at a step of its own, with producers running: they go on, and the next daemon has them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::thread;

use nrt_trace_proto::v1::ProducerState;
use nrt_trace_tests::control::Control;
use nrt_trace_tests::dice::Dice;
use nrt_trace_tests::ledger::{Emit, Gave};
use nrt_trace_tests::oracle::Oracle;
use nrt_trace_tests::stepper::{Stepper, labels};
use nrt_trace_tests::{Host, artifacts, until};
use rustix::process::{Pid, Signal, kill_process};
use tonic::{Code, Status};

use crate::random::{grown, rounds};
use crate::spec::Told;
use crate::world::host;

/// Slots of the rings.
const CAP: u64 = 16;
/// Pause of a producer after each event, in microseconds: fast enough to be in the middle of things, slow enough for
/// the log.
const PAUSE: &str = "100";
/// The token of all producers.
const TOKEN: &str = "survivors";

/// The daemon's labels, by what it does there.
fn daemon_labels(steps: &[&str]) -> Vec<String> {
    let mine = |label: &String| steps.contains(&label.split(':').next().unwrap());
    let labels: Vec<String> = labels().into_iter().filter(mine).collect();
    assert!(!labels.is_empty());
    labels
}

/// Kills a daemon at each of the labels, the first and the second time that it comes there.
fn killed_at(test: &str, steps: &[&str]) {
    for label in daemon_labels(steps) {
        for pass in [1, 2] {
            let _told = Told::of_test(test, &format!("{label} {pass}"));
            killed(&label, pass);
        }
    }
}

fn killed(label: &str, pass: u32) {
    let (mut host, config) = host();
    let mut mortal = host.command(artifacts::stepper());
    mortal.args(["daemon", "--at", label, "--pass", &pass.to_string()]);
    mortal.args(&config);
    host.start_daemon_as(mortal);
    survive(host, &config, |_, _| ());
}

/// Two producers go through the death of their daemon, which comes by itself or by what `begin` starts.
fn survive(mut host: Host, config: &[String; 2], begin: impl FnOnce(&Host, &Path)) {
    let mut control = Control::connect(&host);

    let mut producers: Vec<Stepper> = (0..2).map(|_| Stepper::start(&host, TOKEN, None)).collect();
    for producer in &mut producers {
        producer.expect(&format!("run 0 {PAUSE}"), "ok");
    }
    begin(&host, &producers[0].log_path());
    until("the daemon to come to its end", || {
        use_it(&mut control).is_err().then_some(())
    });
    assert_eq!(host.wait_daemon(), None, "it was killed");
    drop(control);

    // Without a daemon they go on.
    producers.iter().for_each(check_progress);

    host.start_daemon(&[&config[0], &config[1]]);
    check_next_daemon(&host, &mut producers);
    for mut producer in producers {
        producer.expect("halt 0", "done");
        let _ended = producer.end();
    }
}

/// Everything that a client may ask for; an error when the daemon is gone.
fn use_it(control: &mut Control) -> Result<(), Status> {
    control.try_start(TOKEN, CAP, 100)?;
    control.try_capture_all(TOKEN)?;
    control.try_fetch(TOKEN)?;
    control.try_stop(TOKEN)?;
    control.try_fetch(TOKEN)?;
    Ok(())
}

fn check_progress(producer: &Stepper) {
    // Two entries of 24 bytes for each emit.
    let written = || fs::metadata(producer.log_path()).unwrap().len();
    let enough = written() + 20 * 48;
    until("a producer to go on", || (written() > enough).then_some(()));
}

/// What the killed daemon's run had, and what came into its rings since, is there: but for what was overwritten, and
/// what had been fetched.
fn check_what_was_left(control: &mut Control, producers: &[Stepper]) {
    let captured = match control.try_stop(TOKEN) {
        Ok(stopped) => {
            assert_eq!(stopped.not_quiescent.len(), 0, "{stopped:?}");
            assert!(stopped.away.is_empty(), "both are back: {stopped:?}");
            true
        }
        Err(status) => {
            let none = matches!(status.code(), Code::FailedPrecondition | Code::NotFound);
            assert!(none, "{status:?}");
            false
        }
    };
    let fetched = match control.try_fetch(TOKEN) {
        Ok(fetched) => fetched,
        Err(status) => {
            assert!(
                !captured && matches!(status.code(), Code::FailedPrecondition | Code::NotFound),
                "{status:?}"
            );
            return;
        }
    };
    for producer in producers {
        let claims = last_ring(&producer.log());
        let Some(ring) = fetched.rings(producer.pid()).pop() else {
            continue; // none was on loan yet, or it was fetched whole
        };
        let account = &ring.account;
        // A stop that the kill interrupted goes on in the background.
        assert!(account.exact || !captured, "{account:?}");
        assert_eq!(account.claimed, claims.len() as u64, "{account:?}");
        assert_eq!(
            account.claimed,
            account.delivered + account.lost,
            "{account:?}"
        );
        if captured && account.claimed >= CAP {
            assert_eq!(
                ring.events.len() as u64,
                CAP,
                "what the ring holds: {account:?}"
            );
        }
        let newest = &claims[claims.len() - ring.events.len()..];
        let numbers = |claim: &Emit| claim.number;
        assert!(
            newest
                .iter()
                .map(numbers)
                .eq(ring.events.iter().map(|event| event.number)),
            "{ring:?}"
        );
    }
}

/// Both are attached again, what they had is there, they are recorded anew, and their accounts are exact.
fn check_next_daemon(host: &Host, producers: &mut [Stepper]) {
    let mut control = Control::connect(host);
    let back = [ProducerState::Attached, ProducerState::Capturing];
    for producer in producers.iter() {
        control.until_state(TOKEN, producer.pid(), &back);
    }
    check_what_was_left(&mut control, producers);
    let logs: Vec<usize> = producers.iter().map(|p| p.log().len()).collect();
    let new_ring = |(producer, from): (&Stepper, &usize)| last_ring(&producer.log()[*from..]);
    let started = control.start(TOKEN, CAP, 10_000);
    assert_eq!(started.producers.len(), 2, "{started:?}");
    assert!(started.producers.iter().all(|p| p.armed), "{started:?}");
    until("more than two laps of all", || {
        let mut rings = producers.iter().zip(&logs).map(new_ring);
        rings
            .all(|claims| claims.len() as u64 > 2 * CAP + 1)
            .then_some(())
    });
    let stopped = control.stop(TOKEN);
    assert_eq!(stopped.not_quiescent.len(), 0, "{stopped:?}");
    let fetched = control.fetch(TOKEN);
    for (producer, from) in producers.iter().zip(&logs) {
        let ring = fetched.ring(producer.pid());
        let claims = new_ring((producer, from));
        Oracle::new(CAP).check(&claims, &BTreeMap::new(), &ring);
        assert!(ring.account.exact);
        assert_eq!(ring.events.len() as u64, CAP);
        check_progress(producer);
    }
}

/// What was stored in the newest ring: from the last event on that has the sequence number 1. The one thread of the
/// process drops nothing.
fn last_ring(log: &[Emit]) -> Vec<Emit> {
    let first = log.iter().rposition(|emit| emit.gave == Gave::Id(1));
    let stored = |emit: &&Emit| matches!(emit.gave, Gave::Id(_));
    let ring = log.get(first.unwrap_or(log.len())..).unwrap_or_default();
    ring.iter().filter(stored).copied().collect()
}

/// Case R03: no step in particular.
#[test]
fn r03_killed_at_a_random_moment() {
    let test = "r03_killed_at_a_random_moment";
    let mut dice = Dice::roll(test);
    for _ in 0..rounds(10) {
        let entries = dice.below(3000) as u64;
        let _told = Told::of_test(test, &format!("after {entries} entries of a log"));
        let (mut host, config) = host();
        host.start_daemon(&[&config[0], &config[1]]);
        let mut killer = None;
        survive(host, &config, |host, log| {
            let (pid, log) = (host.daemon_pid(), log.to_owned());
            killer = Some(thread::spawn(move || {
                until("the log to grow", || {
                    grown(&log, 0, 24 * entries).then_some(())
                });
                kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), Signal::KILL).unwrap();
            }));
        });
        killer.unwrap().join().unwrap();
    }
}

#[test]
fn killed_at_any_step_of_attach() {
    killed_at("killed_at_any_step_of_attach", &["greet"]);
}

#[test]
fn killed_at_any_step_of_arm() {
    killed_at("killed_at_any_step_of_arm", &["lend"]);
}

#[test]
fn killed_at_any_step_of_read_and_commit() {
    killed_at(
        "killed_at_any_step_of_read_and_commit",
        &["read", "look", "commit"],
    );
}

#[test]
fn killed_at_any_step_of_a_new_filter() {
    killed_at("killed_at_any_step_of_a_new_filter", &["filter"]);
}

#[test]
fn killed_at_any_step_of_stop() {
    killed_at("killed_at_any_step_of_stop", &["stop"]);
}
