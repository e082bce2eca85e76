//! Captures that a process asks for itself: what it gets, what it can't get, and what it leaves to others.

use std::sync::atomic::Ordering;

use nrt_trace_abi::gate;
use nrt_trace_abi::layout::ring;
use nrt_trace_abi::message::{Arm, Disarm, Go};
use nrt_trace_proto::v1::{self, ProducerState};

use crate::support::{Answer, Apart, Fake, Host, fetch, hello, host_run, token_run, wait_for};

const SUCCESS: u32 = 0;
const FAILURE: u32 = 1;
const INVALID: u32 = 2;
const RESOURCE: u32 = 4;

const ALL: u64 = gate::ALL_TYPES;

/// A run of the host for some types.
fn types_run(cap: u64, events: &[&str]) -> v1::StartRequest {
    v1::StartRequest {
        events: events.iter().map(|&name| name.to_owned()).collect(),
        ..host_run(cap)
    }
}

fn open_types(fake: &Fake, nc: u32) -> u64 {
    fake.gate(nc) & ALL
}

#[test]
fn a_process_gets_what_it_asked_for_and_nobody_else_anything() {
    let mut host = Host::new();
    let other = Fake::attach(&host, "other");
    // By its own indices, whatever host cores they are.
    let cores = hello("own", "", &[8, 9, 10, 11]);
    let own = Fake::attach_as(host.daemon.producer_socket(), &cores, Answer::Honest);
    own.start_own(1, 16, 0b101, 0b1010);
    assert_eq!(own.own_answer(1), (SUCCESS, false));
    assert!(own.is_open(), "answered when the gates are open");
    let open: Vec<_> = (0..256)
        .filter(|&nc| open_types(&own, nc) == 0b101)
        .collect();
    assert_eq!(open, [1, 3]);
    assert_eq!(own.rings().layout.ncs().collect::<Vec<_>>(), [1, 3]);
    assert_eq!(own.rings().layout.geometry().cap(), 16);
    assert!(!other.is_open() && other.heard::<Arm>() == 0);
    own.start_own(2, 16, ALL, ALL);
    assert_eq!(own.own_answer(2), (FAILURE, false), "one at a time");
    assert_eq!(own.heard::<Arm>(), 1);
    // It is no run of the host's: nobody can see, stop or fetch it, and the host can be captured beside it.
    assert_eq!(host.status().runs.len(), 0);
    host.stop("", false).unwrap_err();
    host.fetch(fetch()).unwrap_err();
    host.start(host_run(64)).unwrap();
    assert!(other.is_open() && own.heard::<Arm>() == 1);
    own.stop_own(3);
    assert_eq!(own.own_answer(3), (SUCCESS, false));
    assert_eq!(own.heard::<Disarm>(), 1, "before the answer");
    // Now the host's run covers it.
    own.wait_heard::<Arm>(2);
    own.wait_heard::<Go>(2);
    own.emit_many(0, 4);
    assert_eq!(host.fetch(fetch()).unwrap().seqs(own.id, 0), [1, 2, 3, 4]);
    own.stop_own(4);
    assert_eq!(own.own_answer(4), (FAILURE, false));
}

#[test]
fn what_cannot_be_is_refused_and_the_connection_stays() {
    let mut host = Host::with(|config| config.budgets.segment_bytes = 1 << 20);
    let own = Fake::attach(&host, "own");
    for (request, cap, status) in [
        (1, 0, INVALID),
        (2, (1 << 32) + 1, INVALID),
        (3, u64::MAX, INVALID),
        (4, 1 << 32, RESOURCE), // more than max_segment_bytes
    ] {
        own.start_own(request, cap, ALL, u64::MAX);
        assert_eq!(own.own_answer(request), (status, false), "{cap}");
    }
    own.answer(Answer::CannotMap);
    own.start_own(5, 16, ALL, 1);
    assert_eq!(own.own_answer(5), (RESOURCE, false));
    own.answer(Answer::Honest);
    // Types that are none, and no NeuronCore at all: a capture of nothing.
    own.start_own(6, 16, !ALL, u64::MAX);
    assert_eq!(own.own_answer(6), (SUCCESS, false));
    assert!((0..256).all(|nc| own.gate(nc) == 0));
    own.stop_own(7);
    own.start_own(8, 16, ALL, 0);
    assert_eq!(own.own_answer(8), (SUCCESS, false));
    assert!((0..256).all(|nc| own.gate(nc) == 0));
    own.stop_own(9);
    assert_eq!(own.own_answer(9), (SUCCESS, false));
    own.start_own(10, 16, ALL, 1);
    assert_eq!(own.own_answer(10), (SUCCESS, false));
    assert_eq!(host.producers().len(), 1);
}

/// Each reader has what it asked for, and the other run's account counts nothing that it did not ask for.
#[test]
fn a_capture_joins_a_run_and_that_runs_account_stays_exact() {
    let mut host = Host::new();
    let own = Fake::attach(&host, "own");
    host.start(types_run(64, &["nrt_tensor_read"])).unwrap();
    let of_host = open_types(&own, 0);
    assert_eq!(of_host.count_ones(), 1);
    let kind = of_host.trailing_zeros();
    own.start_own(1, 16, 0b1, u64::MAX);
    assert_eq!(own.own_answer(1), (SUCCESS, true));
    assert_eq!(open_types(&own, 0), of_host | 0b1);
    assert_eq!(
        open_types(&own, 200),
        of_host,
        "no ring, so nothing of ours"
    );
    assert_eq!(
        (own.heard::<Arm>(), own.rings().layout.geometry().cap()),
        (1, 64)
    );
    for _ in 0..5 {
        own.emit_many(0, 3);
        assert!(own.emit(0, kind, [0; 5]));
    }
    let fetched = host
        .fetch(v1::FetchRequest {
            max_events_per_nc: 2,
            ..fetch()
        })
        .unwrap();
    assert_eq!(fetched.seqs(own.id, 0), [4, 8], "the oldest two of its own");
    host.commit(fetched.id()).unwrap();
    own.stop_own(2);
    assert_eq!(own.own_answer(2), (SUCCESS, false));
    assert_eq!((open_types(&own, 0), own.heard::<Disarm>()), (of_host, 0));
    assert!(!own.emit(0, 0, [0; 5]) && own.emit(0, kind, [0; 5]));
    host.stop("", false).unwrap();
    let fetched = host.consume();
    assert_eq!(fetched.seqs(own.id, 0), [12, 16, 20, 21]);
    let account = fetched.accounts[&(own.id, 0)];
    let all = (
        account.claimed,
        account.delivered,
        account.skipped,
        account.lost,
    );
    assert_eq!(all, (6, 6, 15, 0), "{account:?}");
    assert!(account.exact && account.unread == 0 && account.pending == 0);
}

/// While it lasts no other run takes the process over; afterwards the narrowest that is on does.
#[test]
fn other_runs_wait_for_the_end_of_a_capture_of_its_own() {
    let mut host = Host::new();
    let own = Fake::attach_with_token(&host, "t");
    host.start(host_run(64)).unwrap();
    own.start_own(1, 16, ALL, u64::MAX);
    assert_eq!(own.own_answer(1), (SUCCESS, true));
    host.start(token_run("t", 32)).unwrap();
    assert_eq!(own.heard::<Disarm>(), 0, "it stays where it is");
    // The run that it joined ends: it gets rings of its own, whose numbers go on.
    own.emit_many(0, 5);
    host.stop("", false).unwrap();
    own.wait_heard::<Go>(2);
    assert_eq!(own.rings().layout.geometry().cap(), 16);
    let first = own.rings().layout.ring_word(0).unwrap();
    assert_eq!(
        own.rings().map.words()[first + ring::TAIL].load(Ordering::Relaxed),
        16,
        "a lap's beginning after 5"
    );
    assert_eq!(
        host.fetch(fetch()).unwrap().seqs(own.id, 0).len(),
        5,
        "the host's stay"
    );
    own.stop_own(2);
    own.wait_heard::<Go>(3);
    assert_eq!(own.rings().layout.geometry().cap(), 32, "the token's");
    own.emit_many(0, 2);
    let of_token = v1::FetchRequest {
        token: "t".to_owned(),
        ..fetch()
    };
    assert_eq!(host.fetch(of_token).unwrap().seqs(own.id, 0), [1, 2]);
}

/// A process that asks again and again and gives no answer holds one set of rings, whatever it keeps mapped.
#[test]
fn rings_of_ended_captures_are_no_memory_of_the_daemons() {
    let mut daemon = Apart::with("");
    let path = daemon.producer_socket();
    let own = Fake::attach_as(&path, &hello("own", "", &[]), Answer::Honest);
    let mut kept = Vec::new();
    for round in 0..20 {
        own.start_own(2 * round, 1024, ALL, u64::MAX);
        assert_eq!(own.own_answer(2 * round), (SUCCESS, false));
        own.emit_many(0, 100);
        kept.push(own.rings());
        own.stop_own(2 * round + 1);
        assert_eq!(own.own_answer(2 * round + 1), (SUCCESS, false));
    }
    wait_for("the memory to be taken back", || {
        kept.iter().all(|rings| {
            let first = rings.layout.ring_word(0).unwrap();
            rings.map.words()[first + ring::TAIL].load(Ordering::Relaxed) == 0
        })
    });
    let status = daemon.status();
    assert_eq!((status.reserved_bytes, status.resident_bytes), (0, 0));
    // Without an answer to the Disarm there are no new rings.
    own.start_own(100, 1024, ALL, u64::MAX);
    assert_eq!(own.own_answer(100), (SUCCESS, false));
    let arms = own.heard::<Arm>();
    own.answer(Answer::Mute);
    own.stop_own(101);
    assert_eq!(own.own_answer(101), (SUCCESS, false));
    own.start_own(102, 1024, ALL, u64::MAX);
    own.stop_own(103);
    assert_eq!(own.own_answer(103), (SUCCESS, false));
    assert_eq!(own.heard::<Arm>(), arms);
    assert!(
        daemon.logged("").len() < 20,
        "and no log full of it: {:#?}",
        daemon.logged("")
    );
}

/// Requests without an end, beside a producer that records: nothing of it is lost.
#[test]
fn a_flood_of_requests_disturbs_nobody() {
    let mut daemon = Apart::with("");
    let path = daemon.producer_socket();
    let talker = Fake::attach_as(&path, &hello("talker", "", &[]), Answer::Honest);
    let honest = Fake::attach_as(&path, &hello("honest", "", &[]), Answer::Honest);
    daemon.start(host_run(4096)).unwrap();
    for round in 0..500 {
        talker.start_own(2 * round, 1024, ALL, 1);
        talker.stop_own(2 * round + 1);
        honest.emit_many(0, 4);
        // Each stop is answered at least. Who leaves many answers unread is cut off, and its thread is as fast as the machine.
        let answered = usize::try_from(round).unwrap();
        wait_for("answers", || talker.own_answers() + 32 >= answered);
    }
    wait_for("every stop to be answered", || talker.own_answers() >= 500);
    daemon.stop("", false).unwrap();
    let account = daemon.fetch(fetch()).unwrap().accounts[&(honest.id, 0)];
    assert_eq!(
        (account.claimed, account.delivered, account.lost),
        (2000, 2000, 0)
    );
    assert!(daemon.is_alive() && daemon.logged("").len() < 600);
    // One that does not even read the answers is cut off.
    let deaf = Fake::attach_as(&path, &hello("deaf", "", &[]), Answer::Honest);
    deaf.detach();
}

#[test]
fn a_capture_ends_with_its_process_and_with_its_quarantine() {
    let mut host = Host::new();
    let gone = Fake::attach(&host, "gone");
    gone.start_own(1, 1024, ALL, 1);
    assert_eq!(gone.own_answer(1), (SUCCESS, false));
    gone.emit_many(0, 5);
    let id = gone.id;
    gone.detach();
    host.wait_state(id, ProducerState::Detached);
    wait_for("the memory to be freed", || {
        host.status().reserved_bytes == 0
    });

    host.start(host_run(64)).unwrap();
    let liar = Fake::attach(&host, "liar");
    liar.wait_heard::<Go>(1);
    liar.start_own(1, 1024, ALL, 1);
    assert_eq!(liar.own_answer(1), (SUCCESS, true));
    liar.emit_many(0, 5);
    host.consume();
    let first = liar.rings().layout.ring_word(0).unwrap();
    liar.rings().map.words()[first + ring::TAIL].store(1, Ordering::Relaxed);
    drop(host.fetch(fetch()));
    host.wait_state(liar.id, ProducerState::Quarantined);
    wait_for("its gates to be closed", || {
        (0..256).all(|nc| liar.gate(nc) == 0)
    });
    liar.start_own(2, 1024, ALL, 1);
    assert_eq!(liar.own_answer(2), (FAILURE, false));
    liar.stop_own(3);
    assert_eq!(liar.own_answer(3), (FAILURE, false), "it ended");
}
