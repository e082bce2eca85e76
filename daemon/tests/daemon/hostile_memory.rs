//! A producer that writes anything into everything it can write: only its own events are spoiled.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use nrt_trace_abi::SEQ_MAX;
use nrt_trace_abi::layout::{SLOT_WORDS, ring, segment, slot, strings};
use nrt_trace_abi::message::Go;
use nrt_trace_abi::stamp;
use nrt_trace_proto::v1;
use nrt_trace_proto::v1::ProducerState;

use crate::support::{
    Answer, Apart, Client, Fake, Fetched, Host, Random, Rings, fetch, hello, host_run,
};

/// Slots of each ring here: small, so that few words make many laps.
const CAP: u64 = 64;

/// Writes words where they matter: claim counters, drop counters, stamps, payloads, headers, entries of names.
struct Scribbler<'a> {
    rings: &'a Rings,
    names: &'a [AtomicU64],
    random: Random,
}

impl Scribbler<'_> {
    /// A word that means something to a reader, or nothing at all.
    fn word(&mut self) -> u64 {
        let geometry = self.rings.layout.geometry();
        let near = self.random.below(4 * CAP);
        match self.random.below(9) {
            0 => 0,
            1 => u64::MAX,
            2 => 1 << self.random.below(64),
            3 => near,
            4 => stamp::published(geometry.place(near).index),
            5 => stamp::in_flight(geometry.place(near).index),
            6 => SEQ_MAX - 2 + self.random.below(4),
            7 => 2 * SEQ_MAX - 2 + self.random.below(4),
            _ => self.random.next(),
        }
    }

    fn scribble(&mut self) {
        let word = self.word();
        let all = self.rings.map.words();
        let ncs: Vec<usize> = self.rings.layout.ncs().collect();
        let nc = ncs[self.random.index(ncs.len())];
        let first = self.rings.layout.ring_word(nc).unwrap();
        let slot_word = ring::SLOTS + self.random.index(64) * SLOT_WORDS;
        let (words, at) = match self.random.below(8) {
            0 => (all, first + ring::TAIL),
            1 => (all, first + ring::DROPPED_IN_FLIGHT + self.random.index(3)),
            2 | 3 => (all, first + slot_word + slot::STAMP),
            4 => (
                all,
                first + slot_word + slot::RECORD + self.random.index(14),
            ),
            5 => (all, self.random.index(segment::HEADER_WORDS)),
            6 => (
                self.names,
                strings::ENTRIES + self.random.index(3 + 16 + 64),
            ),
            _ => (self.names, self.random.index(self.names.len())),
        };
        words[at].store(word, Ordering::Relaxed);
    }
}

/// A neighbour that keeps to the protocol, and what it has emitted.
struct Neighbour {
    fake: Fake,
    emitted: u64,
}

impl Neighbour {
    fn emit(&mut self, events: u64) {
        for _ in 0..events {
            assert!(self.fake.emit(0, 0, [self.emitted, 0, 0, 0, 0]));
            self.emitted += 1;
        }
    }

    /// Emits, and has its events fetched and consumed beside those of producer `hostile`.
    fn visit(&mut self, daemon: &mut Client, hostile: u32) -> Fetched {
        let from = self.emitted;
        self.emit(20);
        let fetched = daemon.fetch_with(fetch(), &[hostile]).unwrap();
        self.check(&fetched, from);
        daemon.commit(fetched.id()).unwrap();
        fetched
    }

    /// What a fetch brought of it: all that it emitted after the first `from`.
    fn check(&self, fetched: &Fetched, from: u64) {
        let id = self.fake.id;
        let got = fetched.seqs(id, 0);
        assert_eq!(got, (from + 1..=self.emitted).collect::<Vec<_>>());
        let data = |at: usize| fetched.records[&(id, 0)][at].data()[0];
        assert!((0..got.len()).all(|at| data(at) == from + at as u64));
        let account = fetched.accounts[&(id, 0)];
        assert_eq!(
            (
                account.claimed,
                account.delivered,
                account.lost,
                account.pending,
                account.unread
            ),
            (self.emitted, self.emitted, 0, 0, 0)
        );
    }
}

/// Starts the host's run with one honest producer in it.
fn with_neighbour(daemon: &mut Client, path: &std::path::Path, cap: u64) -> Neighbour {
    daemon.start(host_run(cap)).unwrap();
    let fake = Fake::attach_as(path, &hello("neighbour", "", &[]), Answer::Honest);
    fake.wait_heard::<Go>(1);
    fake.intern("neighbour's name");
    Neighbour { fake, emitted: 0 }
}

/// Before, while and after the daemon reads: it answers, the neighbour's account stays exact, and the offender is put
/// aside with one line and one count, once for each time that it attaches.
#[test]
fn any_words_anywhere_spoil_only_their_own_events() {
    let mut random = Random::new();
    let mut daemon = Apart::with("default_cores = 2");
    let path = daemon.producer_socket();
    let mut neighbour = with_neighbour(&mut daemon, &path, CAP);
    for round in 1..=20 {
        let hostile = Fake::attach_as(&path, &hello("hostile", "", &[]), Answer::Mute);
        hostile.send_armed();
        hostile.wait_heard::<Go>(1);
        let rings = hostile.rings();
        let mut scribbler = || Scribbler {
            rings: &rings,
            names: hostile.names.words(),
            random: random.fork(),
        };
        let (mut before, mut during, mut after) = (scribbler(), scribbler(), scribbler());
        (0..50 * round).for_each(|_| before.scribble());
        drop(neighbour.visit(&mut daemon, hostile.id));
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    during.scribble();
                }
            });
            (0..3).for_each(|_| drop(neighbour.visit(&mut daemon, hostile.id)));
            stop.store(true, Ordering::Relaxed);
        });
        (0..50).for_each(|_| after.scribble());
        drop(neighbour.visit(&mut daemon, hostile.id));
        // By now its words may have been impossible already; now they are.
        let tail = rings.layout.ring_word(1).unwrap() + ring::TAIL;
        rings.map.words()[tail].store(u64::MAX, Ordering::Relaxed);
        drop(neighbour.visit(&mut daemon, hostile.id));
        daemon.wait_state(hostile.id, ProducerState::Quarantined);
        // Sane words come too late: nothing is read of it any more.
        let put_aside = neighbour.visit(&mut daemon, hostile.id);
        rings.map.words()[tail].store(2 * SEQ_MAX, Ordering::Relaxed);
        let later = neighbour.visit(&mut daemon, hostile.id);
        for nc in 0..2 {
            assert_eq!(later.seqs(hostile.id, nc), [0; 0]);
            let account = |fetched: &Fetched| fetched.accounts.get(&(hostile.id, nc)).copied();
            assert_eq!(account(&later), account(&put_aside));
        }
        assert_eq!(daemon.status().quarantined, round);
        let told = daemon.logged("quarantined");
        assert_eq!(told.len() as u64, round, "{told:#?}");
        assert!(
            told.last()
                .unwrap()
                .contains(&format!("producer={} ", hostile.id))
        );
        assert_eq!(hostile.gate(0), 0, "it is asked for nothing more");
    }
    let from = neighbour.emitted;
    neighbour.emit(5);
    daemon.stop("", false).unwrap();
    let last = daemon.fetch_with(fetch(), &[]).unwrap();
    neighbour.check(&last, from);
    assert!(last.accounts[&(neighbour.fake.id, 0)].exact);
    assert!(
        last.names
            .iter()
            .any(|name| name.text == "neighbour's name")
    );
    assert!(daemon.is_alive());
}

/// Words that change as fast as a core can write them cost the daemon no more than a ring full of events does.
#[test]
fn scribbling_does_not_make_a_fetch_dearer_than_a_full_ring() {
    const FETCHES: u64 = 30;
    let cap = 4096;
    let mut random = Random::new();
    let mut daemon = Apart::with("default_cores = 2");
    let path = daemon.producer_socket();
    let honest = with_neighbour(&mut daemon, &path, cap).fake;
    honest.emit_many(0, 2 * cap);
    honest.emit_many(1, 2 * cap);
    let cost = |daemon: &mut Client, hostile: &[u32]| {
        let before = daemon.status().cpu_ns;
        for _ in 0..FETCHES {
            drop(daemon.fetch_with(fetch(), hostile).unwrap());
        }
        daemon.status().cpu_ns - before
    };
    let of_a_full_ring = cost(&mut daemon, &[]);
    honest.detach();
    let hostile = Fake::attach_as(&path, &hello("hostile", "", &[]), Answer::Honest);
    hostile.wait_heard::<Go>(1);
    let rings = hostile.rings();
    let first = rings.layout.ring_word(0).unwrap();
    let stop = AtomicBool::new(false);
    let of_scribbling = std::thread::scope(|scope| {
        let (stop, rings, random) = (&stop, &rings, &mut random);
        scope.spawn(move || {
            let words = rings.map.words();
            let mut tail = 0;
            while !stop.load(Ordering::Relaxed) {
                // Laps go by at every word, and slots are taken, given back and taken again.
                tail += random.below(3 * cap);
                words[first + ring::TAIL].store(tail.min(2 * SEQ_MAX), Ordering::Relaxed);
                let place = rings
                    .layout
                    .geometry()
                    .place(tail.saturating_sub(random.below(cap)));
                let at = first + ring::SLOTS + usize::try_from(place.slot).unwrap() * SLOT_WORDS;
                let stamps = [stamp::in_flight(place.index), stamp::published(place.index)];
                words[at].store(stamps[random.index(2)], Ordering::Relaxed);
            }
        });
        let cost = cost(&mut daemon, &[hostile.id]);
        stop.store(true, Ordering::Relaxed);
        cost
    });
    assert!(
        of_scribbling < 10 * of_a_full_ring,
        "{of_scribbling} ns against {of_a_full_ring} ns"
    );
}

/// Counters as high as they may be, in as many rings as one user can have: no sum of them overflows.
#[test]
fn counters_at_their_limit_can_be_added_up() {
    let mut host = Host::with(|config| config.budgets.memory_bytes = 1 << 30);
    host.start(host_run(1)).unwrap();
    let cores: Vec<u16> = (0..256).collect();
    let path = host.daemon.producer_socket().to_owned();
    let hostile: Vec<_> = (0..40)
        .map(|_| Fake::attach_as(&path, &hello("hostile", "", &cores), Answer::Honest))
        .collect();
    for fake in &hostile {
        fake.wait_heard::<Go>(1);
        let rings = fake.rings();
        for nc in 0..256 {
            let first = rings.layout.ring_word(nc).unwrap();
            let words = &rings.map.words()[first..];
            words[ring::TAIL].store(2 * SEQ_MAX, Ordering::Relaxed);
            for drops in &words[ring::DROPPED_IN_FLIGHT..=ring::DROPPED_SEQ] {
                drops.store(u64::MAX, Ordering::Relaxed);
            }
        }
        fake.names.words()[strings::FULL].store(u64::MAX, Ordering::Relaxed);
        rings.map.words()[segment::NO_RING].store(u64::MAX, Ordering::Relaxed);
        rings.map.words()[segment::NC_OUT_OF_RANGE].store(u64::MAX, Ordering::Relaxed);
    }
    let told = |accounts: &[v1::RingAccount]| {
        for account in accounts {
            let dropped = account.dropped_in_flight + account.dropped_lapped + account.dropped_seq;
            assert!(dropped <= 3 * account.claimed, "{account:?}");
        }
        accounts.len()
    };
    let status = host.status();
    assert_eq!(told(&status.runs[0].accounts), 40 * 256);
    let ids: Vec<u32> = hostile.iter().map(|fake| fake.id).collect();
    let one = v1::FetchRequest {
        nc: vec![3],
        ..fetch()
    };
    let fetched = host.fetch_with(one, &ids).unwrap();
    assert_eq!(fetched.end().left, u64::MAX, "more than can be counted");
    for account in fetched.producer_accounts.values() {
        assert_eq!(
            (account.no_ring, account.nc_out_of_range),
            (SEQ_MAX, SEQ_MAX)
        );
        assert_eq!(account.strings_full, SEQ_MAX);
    }
    let stopped = host.stop("", false).unwrap();
    assert_eq!(told(&stopped.accounts), 40 * 256);
    assert_eq!(host.status().quarantined, 0, "high, and not impossible");
}
