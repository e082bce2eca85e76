//! What became of all events, as metrics say it: no loss is told late, twice, or never.

use std::sync::atomic::Ordering;

use nrt_trace_abi::layout::ring;
use nrt_trace_abi::message::Go;
use nrt_trace_proto::v1::{self, ProducerState};

use crate::metrics::{Samples, samples, text};
use crate::support::{Fake, Host, fetch, host_run, token_run, wait_for};

/// Looks at a daemon's metrics, and holds at each look what holds always.
#[derive(Default)]
struct Watch {
    last: Samples,
}

impl Watch {
    /// Recorded, delivered, skipped, open; and lost: overwritten, dropped, abandoned, quarantined, not kept.
    #[track_caller]
    fn look(&mut self, host: &mut Host) -> ([u64; 4], [u64; 5]) {
        let now = samples(&text(host));
        for (name, before) in &self.last {
            let counts = name.contains("_events_") || name.contains("_scope_");
            if counts && name.contains("_total") && !name.contains("token=\"gone") {
                assert!(now[name] >= *before, "{name} went back from {before}");
            }
        }
        let whole = |name: &str| {
            let value = now[name];
            assert!(value >= 0.0 && value.fract() == 0.0, "{name} {value}");
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "looked at above"
            )]
            let value = value as u64;
            value
        };
        let of = |name: &str| whole(&format!("nrt_trace_events_{name}"));
        let sums = [
            of("recorded_total"),
            of("delivered_total"),
            of("skipped_total"),
            of("open"),
        ];
        let causes = [
            "overwritten",
            "dropped",
            "abandoned",
            "quarantined",
            "not_kept",
        ];
        let lost = causes.map(|cause| of(&format!("lost_total{{cause=\"{cause}\"}}")));
        let [recorded, delivered, skipped, open] = sums;
        let all = delivered + skipped + open + lost.iter().sum::<u64>();
        assert_eq!(recorded, all, "{sums:?} {lost:?}");
        self.last = now;
        (sums, lost)
    }

    /// A counter of a scope.
    fn scope(&self, name: &str, labels: &str) -> f64 {
        self.last[&format!("nrt_trace_scope_{name}{{{labels}}}")]
    }
}

fn attach(host: &Host, name: &str) -> Fake {
    let fake = Fake::attach(host, name);
    fake.wait_heard::<Go>(1);
    fake
}

/// Nobody fetches: what the ring can't hold any more is told as it happens, and a fetch changes nothing about it.
#[test]
fn a_lapped_rings_losses_are_told_before_anybody_reads() {
    let (mut host, mut watch) = (Host::new(), Watch::default());
    host.start(host_run(64)).unwrap();
    let fake = attach(&host, "x");
    assert_eq!(watch.look(&mut host), ([0; 4], [0; 5]));
    fake.emit_many(0, 64);
    assert_eq!(watch.look(&mut host), ([64, 0, 0, 64], [0; 5]));
    fake.emit_many(0, 36);
    assert_eq!(watch.look(&mut host), ([100, 0, 0, 64], [36, 0, 0, 0, 0]));
    // The account is the reader's, and says so when it has passed.
    let lost = |host: &mut Host| host.status().runs[0].accounts[0].lost;
    assert_eq!(lost(&mut host), 0);
    assert_eq!(
        host.consume().seqs(fake.id, 0),
        (37..=100).collect::<Vec<_>>()
    );
    assert_eq!(lost(&mut host), 36);
    assert_eq!(watch.look(&mut host), ([100, 64, 0, 0], [36, 0, 0, 0, 0]));
    let of_host = |watch: &Watch| watch.scope("lost_total", "token=\"\",cause=\"overwritten\"");
    assert!((of_host(&watch) - 36.0).abs() < 0.5);
    // A thousand laps, and the process's end, and what it left is fetched: nothing of it goes.
    fake.emit_many(0, 64_000);
    drop(fake);
    wait_for("its end", || {
        host.producers()[0].state() == ProducerState::Detached
    });
    let told = ([64_100, 64, 0, 64], [63_972, 0, 0, 0, 0]);
    assert_eq!(watch.look(&mut host), told);
    host.consume();
    assert!(host.status().runs[0].accounts.is_empty(), "it is forgotten");
    let told = ([64_100, 128, 0, 0], [63_972, 0, 0, 0, 0]);
    assert_eq!(watch.look(&mut host), told);
    assert!((of_host(&watch) - 63_972.0).abs() < 0.5);
}

/// What a fetch has read and nobody has committed yet is not lost, though its place in the ring is another event's.
#[test]
fn what_is_read_and_not_committed_is_not_lost() {
    let (mut host, mut watch) = (Host::new(), Watch::default());
    host.start(host_run(64)).unwrap();
    let fake = attach(&host, "x");
    fake.emit_many(0, 64);
    let taken = host.fetch(fetch()).unwrap();
    fake.emit_many(0, 64);
    assert_eq!(watch.look(&mut host), ([128, 0, 0, 128], [0; 5]));
    host.commit(taken.end.as_ref().unwrap().fetch_id).unwrap();
    assert_eq!(watch.look(&mut host), ([128, 64, 0, 64], [0; 5]));
    // One that is never committed keeps back no more than it had read.
    drop(host.fetch(fetch()).unwrap());
    fake.emit_many(0, 1000);
    assert_eq!(
        watch.look(&mut host),
        ([1128, 64, 0, 128], [936, 0, 0, 0, 0])
    );
    host.consume();
    assert_eq!(
        watch.look(&mut host),
        ([1128, 128, 0, 0], [1000, 0, 0, 0, 0])
    );
}

#[test]
fn what_is_given_up_is_told_with_its_cause() {
    let (mut host, mut watch) = (Host::new(), Watch::default());
    host.start(host_run(64)).unwrap();
    let fake = attach(&host, "x");
    fake.emit_many(0, 70);
    // Given up by a stop.
    host.stop("", true).unwrap();
    assert_eq!(watch.look(&mut host), ([70, 0, 0, 0], [6, 0, 64, 0, 0]));
    // By the next start, unread; the scope's counters go on.
    host.start(host_run(64)).unwrap();
    fake.wait_heard::<Go>(2);
    fake.emit_many(0, 10);
    host.stop("", false).unwrap();
    assert_eq!(watch.look(&mut host), ([80, 0, 0, 10], [6, 0, 64, 0, 0]));
    assert_eq!(host.start(host_run(64)).unwrap().abandoned, 10);
    assert_eq!(watch.look(&mut host), ([80, 0, 0, 0], [6, 0, 74, 0, 0]));
    assert!((watch.scope("recorded_total", "token=\"\"") - 80.0).abs() < 0.5);
    // By a fetch that discards.
    fake.wait_heard::<Go>(3);
    fake.emit_many(0, 5);
    let discard = v1::FetchRequest {
        discard: true,
        ..fetch()
    };
    host.fetch(discard).unwrap();
    assert_eq!(watch.look(&mut host), ([85, 0, 0, 0], [6, 0, 79, 0, 0]));
}

/// A ring that went round unread: a new start gives up what could still be had, and no more.
#[test]
fn a_new_start_gives_up_what_was_not_lost_before() {
    let (mut host, mut watch) = (Host::new(), Watch::default());
    host.start(host_run(64)).unwrap();
    attach(&host, "x").emit_many(0, 1000);
    host.stop("", false).unwrap();
    assert_eq!(host.start(host_run(64)).unwrap().abandoned, 64);
    assert_eq!(watch.look(&mut host), ([1000, 0, 0, 0], [936, 0, 64, 0, 0]));
}

/// Two runs of tokens beside the host's: each has its own counters, and all of them are in the sum.
#[test]
fn each_scope_has_its_own() {
    let (mut host, mut watch) = (Host::new(), Watch::default());
    host.start(token_run("a", 64)).unwrap();
    host.start(host_run(64)).unwrap();
    let of_token = Fake::attach_with_token(&host, "a");
    of_token.wait_heard::<Go>(1);
    let other = attach(&host, "x");
    of_token.emit_many(0, 100);
    other.emit_many(0, 10);
    assert_eq!(watch.look(&mut host), ([110, 0, 0, 74], [36, 0, 0, 0, 0]));
    let near = |value: f64, wanted: f64| assert!((value - wanted).abs() < 0.5, "{value}");
    near(watch.scope("recorded_total", "token=\"a\""), 100.0);
    near(
        watch.scope("lost_total", "token=\"a\",cause=\"overwritten\""),
        36.0,
    );
    near(watch.scope("recorded_total", "token=\"\""), 10.0);
    near(watch.scope("open", "token=\"\""), 10.0);
}

/// Drops are told as they happen; words that can't be take no counter back.
#[test]
fn drops_and_a_quarantine_are_told() {
    let (mut host, mut watch) = (Host::new(), Watch::default());
    host.start(host_run(64)).unwrap();
    let fake = attach(&host, "x");
    fake.emit_many(0, 20);
    let rings = fake.rings();
    let word = |at: usize| &rings.map.words()[rings.layout.ring_word(0).unwrap() + at];
    word(ring::TAIL).store(22, Ordering::Relaxed);
    word(ring::DROPPED_LAPPED).store(2, Ordering::Relaxed);
    assert_eq!(watch.look(&mut host), ([22, 0, 0, 20], [0, 2, 0, 0, 0]));
    host.consume();
    assert_eq!(watch.look(&mut host), ([22, 20, 0, 0], [0, 2, 0, 0, 0]));
    fake.emit_many(0, 8);
    assert_eq!(watch.look(&mut host), ([30, 20, 0, 8], [0, 2, 0, 0, 0]));
    word(ring::TAIL).store(1, Ordering::Relaxed);
    drop(host.fetch(fetch()));
    wait_for("the quarantine", || host.status().quarantined == 1);
    assert_eq!(watch.look(&mut host), ([30, 20, 0, 0], [0, 2, 0, 8, 0]));
    drop(fake);
    wait_for("its end", || host.status().producers == 0);
    assert_eq!(watch.look(&mut host), ([30, 20, 0, 0], [0, 2, 0, 8, 0]));
}

/// A claim whose thread died before it wrote: the account has it among what was overwritten, and so has the counter, when
/// nobody can publish it any more.
#[test]
fn a_claim_that_nobody_will_publish_is_open_until_its_process_ends() {
    let (mut host, mut watch) = (Host::new(), Watch::default());
    host.start(host_run(64)).unwrap();
    let fake = attach(&host, "x");
    fake.emit_many(0, 20);
    let rings = fake.rings();
    let tail = rings.layout.ring_word(0).unwrap() + ring::TAIL;
    rings.map.words()[tail].store(21, Ordering::Relaxed);
    host.consume();
    assert_eq!(watch.look(&mut host), ([21, 20, 0, 1], [0; 5]));
    drop(fake);
    wait_for("its end", || {
        host.producers()[0].state() == ProducerState::Detached
    });
    host.consume();
    assert_eq!(watch.look(&mut host), ([21, 20, 0, 0], [1, 0, 0, 0, 0]));
}

/// Rings of a run that a process's own capture shares have events that are none of the run's.
#[test]
fn what_only_the_process_asked_for_is_told_apart() {
    let (mut host, mut watch) = (Host::new(), Watch::default());
    let few = v1::StartRequest {
        events: vec!["nrt_execute".to_owned()],
        ..host_run(64)
    };
    host.start(few).unwrap();
    let fake = attach(&host, "x");
    fake.start_own(1, 64, u64::MAX, 1);
    fake.own_answer(1);
    fake.emit_many(0, 10);
    host.consume();
    let ([recorded, delivered, skipped, open], lost) = watch.look(&mut host);
    assert_eq!((recorded, delivered + skipped, open), (10, 10, 0));
    assert!(skipped > 0 && lost == [0; 5]);
}

#[test]
fn events_without_a_ring_are_told() {
    let (mut host, mut watch) = (Host::new(), Watch::default());
    host.start(host_run(64)).unwrap();
    let fake = attach(&host, "x");
    let rings = fake.rings();
    rings.map.words()[nrt_trace_abi::layout::segment::NO_RING].store(7, Ordering::Relaxed);
    watch.look(&mut host);
    let told = |watch: &Watch| watch.last["nrt_trace_events_unplaced_total{cause=\"no_ring\"}"];
    assert!((told(&watch) - 7.0).abs() < 0.5);
    drop((rings, fake));
    wait_for("its end", || {
        host.producers()[0].state() == ProducerState::Detached
    });
    host.consume();
    watch.look(&mut host);
    assert!(
        (told(&watch) - 7.0).abs() < 0.5,
        "it is forgotten, its count is not"
    );
}
