//! The daemon stops in the middle of a copy, and producers go round meanwhile.

use std::collections::BTreeMap;
use std::fs;
use std::thread;

use nrt_trace_tests::control::{Control, Numbered};
use nrt_trace_tests::ledger::Gave;
use nrt_trace_tests::stepper::Stepper;
use nrt_trace_tests::{artifacts, until};

use crate::spec::Told;
use crate::world::host;

/// Slots of the ring.
const CAP: u64 = 4;
/// The thread that emits.
const STEADY: u64 = 2;

/// Stopped at the `pass`-th copy, for so long that `lap` events are emitted.
fn stopped(pass: u64, lap: u64) {
    let (mut host, config) = host();
    let rest = host.path("rest");
    let mut daemon = host.command(artifacts::stepper());
    daemon.args(["daemon", "--at", "look:half", "--pass", &pass.to_string()]);
    daemon.arg("--rest").arg(&rest).args(&config);
    host.start_daemon_as(daemon);
    let mut control = Control::connect(&host);
    control.start("lap", CAP, 0);
    let mut stepper = Stepper::start(&host, "lap", None);
    stepper.until_armed();
    stepper.emit(STEADY, CAP);

    let first = thread::scope(|scope| {
        let first = scope.spawn(|| control.fetch("lap"));
        until("the daemon to stop", || rest.exists().then_some(()));
        stepper.emit(STEADY, lap);
        fs::remove_file(&rest).unwrap();
        first.join().unwrap()
    });
    let first = first.ring(stepper.pid());
    control.stop("lap");
    let second = control.fetch("lap").ring(stepper.pid());

    // What was copied before, what is copied after; what was being copied only if nobody wrote there meanwhile.
    let seqs = |events: &[Numbered]| -> Vec<u64> { events.iter().map(|event| event.seq).collect() };
    let kept = (1..=CAP).filter(|seq| *seq < pass || *seq > lap);
    assert_eq!(seqs(&first.events), kept.collect::<Vec<_>>());
    let newest = CAP + lap;
    let expected = (newest - lap.min(CAP) + 1..=newest).collect::<Vec<_>>();
    assert_eq!(seqs(&second.events), expected);
    let log: BTreeMap<_, _> = (stepper.log().iter())
        .map(|emit| (emit.number, emit.gave))
        .collect();
    for event in first.events.iter().chain(&second.events) {
        assert_eq!(log[&event.number], Gave::Id(event.seq), "two events mixed");
    }
    let a = second.account;
    assert_eq!(
        a.claimed,
        a.delivered + a.lost + a.pending + a.unread,
        "{a:?}"
    );
    assert_eq!(a.claimed, CAP + lap);
    assert_eq!(
        a.delivered,
        (first.events.len() + second.events.len()) as u64
    );
    let _ended = stepper.end();
}

#[test]
fn stopped_in_the_middle_of_a_copy() {
    for pass in 1..=CAP {
        for lap in 0..=2 * CAP + 1 {
            let case = format!("copy {pass}, {lap} events meanwhile");
            let _told = Told::of_test("stopped_in_the_middle_of_a_copy", &case);
            stopped(pass, lap);
        }
    }
}
