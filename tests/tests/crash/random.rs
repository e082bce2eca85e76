//! No label: everybody runs at full speed on a ring of a few slots, and something is killed at some moment.
//!
//! What an order of steps can't show, a race may: a reader that copies a slot while it is written.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use nrt_trace_proto::v1::ProducerState;
use nrt_trace_tests::control::{Numbered, RingFetch};
use nrt_trace_tests::dice::Dice;
use nrt_trace_tests::ledger::{self, Emit, Gave};
use nrt_trace_tests::stepper::Stepper;
use nrt_trace_tests::until;

use crate::spec::Told;
use crate::world::{World, token};

/// Emitting threads of a process.
const THREADS: u64 = 4;
/// Kills of a test.
const ROUNDS: usize = 40;
/// Set for more of them.
const LONG: &str = "NRT_TRACE_LONG_TESTS";

pub(crate) fn rounds(usual: usize) -> usize {
    match std::env::var_os(LONG) {
        Some(_) => 10 * usual,
        None => usual,
    }
}

/// Whether a log has grown by `bytes` since it had `before`.
pub(crate) fn grown(log: &Path, before: u64, bytes: u64) -> bool {
    fs::metadata(log).map_or(0, |file| file.len()) >= before + bytes
}

/// What the fetches of one ring brought, with nothing known of the order of the claims.
#[derive(Debug, Default)]
struct Seen {
    events: BTreeMap<(u64, u64), u64>,
    numbers: BTreeSet<u64>,
}

impl Seen {
    fn take(&mut self, ring: &RingFetch) {
        for &Numbered {
            seq,
            thread,
            number,
        } in &ring.events
        {
            assert_eq!(
                self.events.insert((thread, number), seq),
                None,
                "came twice"
            );
            assert!(self.numbers.insert(seq), "{seq} came twice");
        }
        let a = &ring.account;
        assert_eq!(
            a.claimed,
            a.delivered + a.lost + a.pending + a.unread,
            "I4: {a:?}"
        );
        assert_eq!(a.delivered, self.numbers.len() as u64, "{a:?}");
    }

    /// Every event that came was emitted, and by its own account is what came.
    fn check_true(&self, log: &[Emit]) {
        let emitted: BTreeMap<_, _> = log.iter().map(|e| ((e.thread, e.number), e.gave)).collect();
        for (key, seq) in &self.events {
            match emitted.get(key) {
                Some(Gave::Id(id)) => assert_eq!(id, seq, "{key:?}"),
                Some(Gave::Unfinished) => {}
                other => panic!("{key:?} came, and was {other:?}"),
            }
        }
    }

    /// The newest stored event of each slot came, but for slots that a thread held which died inside.
    fn check_whole(&self, log: &[Emit], cap: u64) {
        let mut newest = BTreeMap::new();
        for emit in log {
            if let Gave::Id(seq) = emit.gave {
                let place = newest.entry(seq % cap).or_insert(seq);
                *place = seq.max(*place);
            }
        }
        let missing = newest
            .values()
            .filter(|seq| !self.numbers.contains(seq))
            .count();
        let unfinished = log.iter().filter(|e| e.gave == Gave::Unfinished).count();
        assert!(
            missing <= unfinished,
            "{missing} are missing, {unfinished} were under way"
        );
    }
}

#[test]
fn r01_a_process_killed_at_a_random_moment() {
    let test = "r01_a_process_killed_at_a_random_moment";
    let mut dice = Dice::roll(test);
    let mut world = World::new();
    for round in 0..rounds(ROUNDS) {
        let cap = *dice.pick(&[1, 2, 3, 4, 8]);
        let look = round % 2 == 0;
        let bytes = 24 * (1 + dice.below(20_000) as u64);
        let _told = Told::of_test(
            test,
            &format!("cap {cap}, look {look}, after {bytes} bytes of log"),
        );
        let token = token();
        world.control.start(&token, cap, 0);
        let mut stepper = Stepper::start(&world.host, &token, None);
        stepper.until_armed();
        for thread in 0..THREADS {
            stepper.expect(&format!("run {thread} 0"), "ok");
        }
        let (pid, log) = (stepper.pid(), stepper.log_path());
        let mut seen = Seen::default();
        until("the log to grow", || {
            if look {
                seen.take(&world.control.fetch(&token).ring(pid));
            }
            grown(&log, 0, bytes).then_some(())
        });
        stepper.kill();
        world
            .control
            .until_state(&token, pid, &[ProducerState::Dead]);
        seen.take(&world.control.fetch(&token).ring(pid));
        let log = ledger::read(&log);
        seen.check_true(&log);
        if !look {
            // A reader that comes late more than once may have passed by what was stored behind its back.
            seen.check_whole(&log, cap);
        }
        world.ask_witness();
    }
}
