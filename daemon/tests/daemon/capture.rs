//! Start, arm, emit, stop: with producers that answer, late, wrongly, or never.

use nrt_trace_abi::gate;
use nrt_trace_abi::message::{Arm, Armed, Disarm, Disarmed, Go, Message, Refuse};
use nrt_trace_proto::v1;
use nrt_trace_proto::v1::ProducerState;
use tonic::Code;

use crate::support::{Answer, Fake, Host, fetch, hello, host_run, refused, wait_for};

#[test]
fn a_start_opens_the_gates_of_those_attached_and_of_those_who_come() {
    let mut host = Host::new();
    let before = Fake::attach(&host, "before");
    assert!(!before.emit(0, 0, [0; 5]), "closed before the start");
    let answer = host.start(host_run(64)).unwrap();
    assert_eq!(answer.producers.len(), 1);
    let armed = &answer.producers[0];
    assert!(armed.armed && armed.segment_bytes > 0 && armed.name == "before");
    assert!(before.emit(1, 45, [0; 5]));
    before.wait_heard::<Go>(1);

    let later = Fake::attach(&host, "later");
    assert_eq!(later.welcome.run_follows, 1);
    later.wait_heard::<Go>(1);
    assert!(later.emit(0, 0, [0; 5]));
    let run = answer.run.unwrap();
    for producer in host.producers() {
        assert_eq!(producer.state(), ProducerState::Capturing);
        assert_eq!(
            (producer.run_id, producer.rings.as_slice()),
            (run.run_id, &[0, 1][..])
        );
        assert!(producer.armed_from_ns.unwrap() >= run.started_ns);
    }
    assert!(run.run_id != 0 && run.stopped_ns.is_none() && run.max_events_per_nc == 64);
}

#[test]
fn filters_become_gates_by_host_core_and_type() {
    let mut host = Host::new();
    let path = host.daemon.producer_socket().to_owned();
    let fake = Fake::attach_as(&path, &hello("a", "", &[8, 9]), Answer::Honest);
    let blind = Fake::attach_as(&path, &hello("b", "", &[]), Answer::Honest);
    let elsewhere = Fake::attach_as(&path, &hello("c", "", &[100]), Answer::Honest);
    let request = v1::StartRequest {
        nc: vec![9, 1],
        events: vec!["nrt_execute".into()],
        ..host_run(64)
    };
    let answer = host.start(request).unwrap();
    let run = answer.run.clone().unwrap();
    assert_eq!(
        (run.nc, run.events),
        (vec![1, 9], vec!["nrt_execute".to_owned()])
    );
    let refused: Vec<&str> = (answer.producers.iter())
        .filter(|producer| !producer.refused.is_empty())
        .map(|producer| producer.name.as_str())
        .collect();
    assert_eq!(refused, ["c"], "{answer:?}");

    assert_eq!(fake.gate(0), 0, "host core 8 is filtered out");
    assert_eq!(
        gate::generation(fake.gate(1)),
        fake.rings().generation & 0xFFFF
    );
    assert!(fake.emit(1, 3, [0; 5]) && !fake.emit(1, 4, [0; 5]) && !fake.emit(0, 3, [0; 5]));
    assert_eq!(fake.rings().layout.ncs().collect::<Vec<_>>(), [1]);
    assert!(blind.emit(1, 3, [0; 5]) && !blind.emit(0, 3, [0; 5]));
    assert!((0..256).all(|nc| elsewhere.gate(nc) == 0) && elsewhere.heard::<Arm>() == 0);

    // An NC that passes the filter but has no ring counts its events.
    assert!(!blind.emit(9, 3, [0; 5]));
    let fetched = host.consume();
    assert_eq!(fetched.producer_accounts[&blind.id].no_ring, 1);
    assert_eq!(fetched.producers.len(), 2);
    assert_eq!(fetched.seqs(fake.id, 1), [1]);
}

#[test]
fn requests_that_make_no_sense_are_refused_with_what_is_allowed() {
    let mut host = Host::new();
    let bad = |request| v1::StartRequest { ..request };
    refused(
        host.start(bad(host_run(0))),
        Code::InvalidArgument,
        "1024 to 4294967296",
    );
    let unknown = v1::StartRequest {
        events: vec!["nrt_exceute".into()],
        ..host_run(64)
    };
    refused(host.start(unknown), Code::InvalidArgument, "nrt_execute");
    let no_core = v1::StartRequest {
        nc: vec![256],
        ..host_run(64)
    };
    refused(host.start(no_core), Code::InvalidArgument, "0 to 255");
    refused(
        host.stop("", false),
        Code::FailedPrecondition,
        "not being captured",
    );
    refused(host.fetch(fetch()), Code::NotFound, "no run");
    host.start(host_run(64)).unwrap();
    refused(
        host.start(host_run(64)),
        Code::FailedPrecondition,
        "already",
    );
    let absent = v1::StartRequest {
        max_events_per_nc: None,
        ..host_run(64)
    };
    host.stop("", false).unwrap();
    assert_eq!(
        host.start(absent).unwrap().run.unwrap().max_events_per_nc,
        0x10_0000
    );
}

#[test]
fn small_rings_are_for_tests_only() {
    let mut host = Host::with(|config| config.test_small_rings = false);
    let answer = host.start(host_run(5)).unwrap();
    assert_eq!(answer.run.unwrap().max_events_per_nc, 1024);
    assert!(answer.warnings[0].contains("1024"), "{:?}", answer.warnings);
}

#[test]
fn a_producer_that_does_not_answer_is_told_of_and_armed_when_it_does() {
    let mut host = Host::new();
    let (fake, honest) = (Fake::attach(&host, "slow"), Fake::attach(&host, "quick"));
    fake.answer(Answer::Mute);
    let request = v1::StartRequest {
        arm_timeout_ms: Some(2000),
        ..host_run(64)
    };
    let answer = host.start(request).unwrap();
    let armed: Vec<_> = answer
        .producers
        .iter()
        .map(|p| (p.name.as_str(), p.armed))
        .collect();
    assert_eq!(armed, [("slow", false), ("quick", true)]);
    assert!(honest.emit(0, 0, [0; 5]));
    fake.wait_heard::<Arm>(1);
    assert!(!fake.is_open());
    // A fetch meanwhile finds nothing to read in rings that are on their way, and must not let them go.
    assert!(host.consume().seqs(fake.id, 0).is_empty());
    // Now it answers.
    let armed = Armed {
        header: Armed::header(),
        generation: fake.rings().generation,
        errno: 0,
        reserved: 0,
    };
    assert!(fake.send(&armed));
    fake.wait_heard::<Go>(1);
    assert!(fake.emit(0, 0, [0; 5]));
    assert_eq!(host.consume().seqs(fake.id, 0), [1]);
}

#[test]
fn an_answer_to_another_arm_opens_nothing() {
    let mut host = Host::new();
    let fake = Fake::attach(&host, "confused");
    fake.answer(Answer::Mute);
    let request = v1::StartRequest {
        arm_timeout_ms: Some(0),
        ..host_run(64)
    };
    host.start(request).unwrap();
    fake.wait_heard::<Arm>(1);
    let wrong = Armed {
        header: Armed::header(),
        generation: fake.rings().generation + 1,
        errno: 0,
        reserved: 0,
    };
    while fake.send(&wrong) {}
    host.wait_state(fake.id, ProducerState::Detached);
    assert!(fake.heard::<Go>() == 0 && !fake.is_open());
}

#[test]
fn a_producer_that_cannot_map_is_left_out_and_nobody_waits_for_it() {
    let mut host = Host::new();
    let fake = Fake::attach(&host, "tight");
    fake.answer(Answer::CannotMap);
    let answer = host.start(host_run(64)).unwrap();
    assert!(!answer.producers[0].armed);
    assert!(!fake.is_open());
    assert_eq!(host.status().reserved_bytes, 0, "its rings are freed");
    host.stop("", false).unwrap();
    fake.answer(Answer::Honest);
    assert!(
        host.start(host_run(64)).unwrap().producers[0].armed,
        "the next run tries again"
    );
}

#[test]
fn a_stop_closes_the_gates_and_keeps_what_is_unread() {
    let mut host = Host::new();
    let fake = Fake::attach(&host, "x");
    host.start(host_run(64)).unwrap();
    fake.emit_many(0, 10);
    let answer = host.stop("", false).unwrap();
    assert!(answer.not_quiescent.is_empty());
    assert!(answer.run.unwrap().stopped_ns.is_some());
    let account = answer
        .accounts
        .iter()
        .find(|account| account.nc_idx == 0)
        .unwrap();
    assert_eq!(
        (account.claimed, account.unread, account.exact),
        (10, 10, true)
    );
    assert!(!fake.emit(0, 0, [0; 5]), "closed");
    assert_eq!(fake.heard::<Disarm>(), 1);
    let fetched = host.consume();
    assert_eq!(fetched.seqs(fake.id, 0), (1..=10).collect::<Vec<_>>());
    assert!(fetched.end().run_ended);
    assert_eq!(host.status().runs, [], "nothing is left of it");
    assert_eq!(host.status().reserved_bytes, 0);
    let again = host.consume();
    assert!(again.records.is_empty() && again.end().run_ended);
    assert_eq!(
        again.accounts[&(fake.id, 0)].delivered,
        10,
        "the account stays"
    );
}

#[test]
fn a_stop_with_discard_gives_the_unread_up() {
    let mut host = Host::new();
    let fake = Fake::attach(&host, "x");
    host.start(host_run(64)).unwrap();
    fake.emit_many(1, 7);
    let answer = host.stop("", true).unwrap();
    let account = answer
        .accounts
        .iter()
        .find(|account| account.nc_idx == 1)
        .unwrap();
    assert_eq!(
        (
            account.claimed,
            account.unread,
            account.abandoned,
            account.lost
        ),
        (7, 0, 7, 7)
    );
    let fetched = host.consume();
    assert!(fetched.records.is_empty());
    assert_eq!(fetched.accounts[&(fake.id, 1)].abandoned, 7);
}

#[test]
fn a_stop_does_not_wait_for_ever_and_says_for_whom_it_did_not() {
    let mut host = Host::with(|config| config.disarm_timeout_ms = 20);
    let (mute, busy) = (Fake::attach(&host, "mute"), Fake::attach(&host, "busy"));
    host.start(host_run(64)).unwrap();
    mute.emit_many(0, 3);
    mute.answer(Answer::Mute);
    busy.answer(Answer::Busy);
    let answer = host.stop("", false).unwrap();
    assert_eq!(answer.not_quiescent, [mute.id, busy.id]);
    assert!(answer.accounts.iter().all(|account| !account.exact));
    assert!(!mute.is_open(), "the gates are closed in any case");

    // A new start finds it still silent; one answer later everything is as if it had never been away.
    let request = v1::StartRequest {
        arm_timeout_ms: Some(2000),
        ..host_run(64)
    };
    let answer = host.start(request).unwrap();
    assert_eq!(answer.abandoned, 3);
    assert_eq!(
        answer.producers.iter().map(|p| p.armed).collect::<Vec<_>>(),
        [false, true]
    );
    assert_eq!(
        mute.heard::<Arm>(),
        1,
        "nothing more is sent to one that does not answer"
    );
    mute.answer(Answer::Honest);
    let generation = mute.rings().generation;
    let header = Disarmed::header();
    assert!(mute.send(&Disarmed {
        header,
        generation,
        quiescent: 1,
        reserved: 0
    }));
    mute.wait_heard::<Go>(2);
    mute.emit_many(0, 2);
    assert_eq!(host.consume().seqs(mute.id, 0), [1, 2]);
}

#[test]
fn a_stop_while_arming_leaves_the_gates_closed() {
    let mut host = Host::new();
    let fake = Fake::attach(&host, "slow");
    fake.answer(Answer::Mute);
    host.start(v1::StartRequest {
        arm_timeout_ms: Some(0),
        ..host_run(64)
    })
    .unwrap();
    let answer = host.stop("", false).unwrap();
    assert!(answer.not_quiescent.is_empty(), "nobody ever got in");
    fake.wait_heard::<Disarm>(1);
    let generation = fake.rings().generation;
    let header = Armed::header();
    assert!(fake.send(&Armed {
        header,
        generation,
        errno: 0,
        reserved: 0
    }));
    let header = Disarmed::header();
    assert!(fake.send(&Disarmed {
        header,
        generation,
        quiescent: 1,
        reserved: 0
    }));
    fake.answer(Answer::Honest);
    host.start(host_run(64)).unwrap();
    wait_for("go", || fake.heard::<Go>() == 1);
    assert!(fake.emit(0, 0, [0; 5]));
}

#[test]
fn a_new_start_gives_up_what_is_unread_unless_told_to_keep() {
    let mut host = Host::new();
    let fake = Fake::attach(&host, "x");
    host.start(host_run(64)).unwrap();
    fake.emit_many(0, 5);
    host.stop("", false).unwrap();
    let keep = v1::StartRequest {
        keep: true,
        ..host_run(64)
    };
    refused(
        host.start(keep.clone()),
        Code::FailedPrecondition,
        "5 unread",
    );
    assert_eq!(host.fetch(fetch()).unwrap().end().events, 5, "still there");
    let answer = host.start(host_run(64)).unwrap();
    assert_eq!(answer.abandoned, 5);
    fake.emit_many(0, 2);
    assert_eq!(
        host.consume().seqs(fake.id, 0),
        [1, 2],
        "a new run counts anew"
    );
    host.stop("", false).unwrap();
    assert_eq!(
        host.start(keep).unwrap().abandoned,
        0,
        "nothing unread, nothing to keep"
    );
}

#[test]
fn a_ring_that_is_too_large_is_told_and_costs_nothing() {
    let mut host = Host::with(|config| config.budgets.segment_bytes = 1 << 20);
    let fake = Fake::attach(&host, "x");
    let answer = host.start(host_run(1 << 20)).unwrap();
    assert!(!answer.producers[0].armed, "{answer:?}");
    fake.wait_heard::<Refuse>(1);
    assert_eq!(fake.heard::<Arm>(), 0);
    assert_eq!(host.status().reserved_bytes, 0);
}
