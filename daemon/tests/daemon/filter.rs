//! Filters that change while a run goes on.

use nrt_trace_abi::gate;
use nrt_trace_abi::message::{Arm, Disarm, Go};
use nrt_trace_model::EventType;
use nrt_trace_proto::v1;
use tonic::{Code, Status};

use crate::support::{Answer, Fake, Host, fetch, hello, host_run, refused, token_run};

fn set_filter(
    host: &mut Host,
    nc: Option<&[u32]>,
    events: Option<&[&str]>,
) -> Result<v1::SetFilterResponse, Status> {
    set_filter_of(host, "", nc, events)
}

fn set_filter_of(
    host: &mut Host,
    token: &str,
    nc: Option<&[u32]>,
    events: Option<&[&str]>,
) -> Result<v1::SetFilterResponse, Status> {
    let names = |list: &[&str]| list.iter().map(|&name| name.to_owned()).collect();
    let request = v1::SetFilterRequest {
        token: token.to_owned(),
        nc: nc.map(|nc| v1::NcFilter { nc: nc.to_vec() }),
        events: events.map(|list| v1::TypeFilter {
            events: names(list),
        }),
        arm_timeout_ms: Some(10_000),
    };
    let client = &mut host.client;
    let answer = client.runtime.block_on(client.rpc.set_filter(request));
    answer.map(tonic::Response::into_inner)
}

fn bit(event: &str) -> u64 {
    1 << value(event)
}

fn value(event: &str) -> u32 {
    EventType::ALL
        .into_iter()
        .find(|t| t.name() == event)
        .unwrap()
        .value()
}

fn types(fake: &Fake, nc: u32) -> u64 {
    fake.gate(nc) & gate::ALL_TYPES
}

#[test]
fn types_change_for_every_process_before_the_answer_and_nothing_is_armed_again() {
    let mut host = Host::new();
    let fakes = ["a", "b"].map(|name| Fake::attach(&host, name));
    let other = Fake::attach_with_token(&host, "t");
    host.start(token_run("t", 64)).unwrap();
    host.start(host_run(64)).unwrap();
    fakes.iter().for_each(|fake| fake.emit_many(0, 3));
    let answer = set_filter(&mut host, None, Some(&["cc_running"])).unwrap();
    assert_eq!((answer.producers, answer.warnings.len()), (2, 0));
    let cc = value("cc_running");
    for fake in &fakes {
        assert_eq!(types(fake, 0), bit("cc_running"));
        assert!(!fake.emit(0, 0, [0; 5]) && fake.emit(0, cc, [0; 5]));
        assert_eq!((fake.heard::<Arm>(), fake.heard::<Disarm>()), (1, 0));
    }
    assert_eq!(types(&other, 0), gate::ALL_TYPES, "a run of its own");
    // One that attaches later has the new filter.
    let late = Fake::attach(&host, "late");
    late.wait_heard::<Go>(1);
    assert_eq!(types(&late, 1), bit("cc_running"));
    set_filter(&mut host, None, Some(&[])).unwrap();
    assert!(fakes[0].emit(0, 0, [0; 5]), "all types again");
    host.stop("", false).unwrap();
    let fetched = host.consume();
    assert_eq!(fetched.seqs(fakes[0].id, 0), [1, 2, 3, 4, 5]);
    let account = fetched.accounts[&(fakes[0].id, 0)];
    assert!(account.exact && account.skipped == 0, "{account:?}");
    let run = fetched.begin.unwrap().run.unwrap();
    assert_eq!((run.filter_changes, run.events.len()), (2, 0));
    let past: Vec<_> = run.past_filters.iter().map(|past| &past.events).collect();
    assert_eq!(past, [&vec![], &vec!["cc_running".to_owned()]]);
    assert!(run.past_filters[0].until_ns <= run.past_filters[1].until_ns);
}

#[test]
fn cores_are_closed_and_opened_again_where_they_have_rings() {
    let mut host = Host::new();
    let cores = hello("cores", "", &[8, 9]);
    let fake = Fake::attach_as(host.daemon.producer_socket(), &cores, Answer::Honest);
    host.start(host_run(64)).unwrap();
    fake.emit_many(1, 2);
    set_filter(&mut host, Some(&[8]), None).unwrap();
    assert!(!fake.emit(1, 0, [0; 5]) && fake.emit(0, 0, [0; 5]));
    // Both filters at once, and each stays when only the other is given.
    set_filter(&mut host, Some(&[9]), Some(&["cc_running"])).unwrap();
    assert_eq!((types(&fake, 0), types(&fake, 1)), (0, bit("cc_running")));
    set_filter(&mut host, Some(&[]), None).unwrap();
    assert_eq!(
        (types(&fake, 0), types(&fake, 1)),
        (bit("cc_running"), bit("cc_running"))
    );
    set_filter(&mut host, None, Some(&[])).unwrap();
    fake.emit_many(1, 1);
    let fetched = host.consume();
    assert_eq!(
        (
            fetched.seqs(fake.id, 0).len(),
            fetched.seqs(fake.id, 1).len()
        ),
        (1, 3)
    );
}

#[test]
fn a_filter_that_cannot_be_changes_nothing() {
    let mut host = Host::new();
    let fake = Fake::attach(&host, "fake");
    let nothing = set_filter(&mut host, Some(&[]), None);
    refused(nothing, Code::NotFound, "the host is not being captured");
    host.start(host_run(64)).unwrap();
    for (nc, events, words) in [
        (None, None, "give the one that is to change"),
        (Some(&[256][..]), None, "0 to 255"),
        (Some(&[0]), Some(&["nrt_exceute"][..]), "nrt_execute"),
        (None, Some(&["hardware", "^hardware"]), "selects nothing"),
    ] {
        refused(
            set_filter(&mut host, nc, events),
            Code::InvalidArgument,
            words,
        );
        assert_eq!(types(&fake, 1), gate::ALL_TYPES);
    }
    let of_token = set_filter_of(&mut host, "t", Some(&[]), None);
    refused(of_token, Code::NotFound, "token \"t\"");
    host.stop("", false).unwrap();
    refused(
        set_filter(&mut host, Some(&[]), None),
        Code::NotFound,
        "start it first",
    );
    assert_eq!(host.consume().begin.unwrap().run.unwrap().filter_changes, 0);
}

/// Gates are the union of both; each reader has what it asked for at the time, and the account counts nothing else.
#[test]
fn a_capture_that_joined_keeps_what_it_asked_for() {
    let mut host = Host::new();
    let own = Fake::attach(&host, "own");
    host.start(host_run(64)).unwrap();
    own.start_own(1, 16, 0b1, 0b1);
    assert_eq!(own.own_answer(1), (0, true));
    let cc = value("cc_running");
    own.emit_many(0, 2); // of both
    set_filter(&mut host, None, Some(&["cc_running"])).unwrap();
    assert_eq!(
        (types(&own, 0), types(&own, 1)),
        (bit("cc_running") | 1, bit("cc_running"))
    );
    own.emit_many(0, 3); // its own only
    assert!(own.emit(0, cc, [0; 5]));
    set_filter(&mut host, Some(&[1]), None).unwrap();
    assert_eq!((types(&own, 0), types(&own, 1)), (1, bit("cc_running")));
    own.emit_many(0, 4); // its own only: the core is not the host's any more
    set_filter(&mut host, Some(&[]), Some(&[])).unwrap();
    own.emit_many(0, 1); // of both
    own.stop_own(2);
    assert_eq!(own.own_answer(2), (0, false));
    own.emit_many(0, 1); // the host's
    host.stop("", false).unwrap();
    let fetched = host.consume();
    assert_eq!(fetched.seqs(own.id, 0), [1, 2, 6, 11, 12]);
    let account = fetched.accounts[&(own.id, 0)];
    assert_eq!(
        (account.claimed, account.delivered, account.skipped),
        (5, 5, 7)
    );
    assert!(account.exact && account.lost == 0, "{account:?}");
}

/// A process that saw none of the cores is armed as soon as the filter has one of its.
#[test]
fn a_process_without_rings_gets_them_when_the_filter_has_its_cores() {
    let mut host = Host::new();
    let path = host.daemon.producer_socket().to_owned();
    let fake = Fake::attach_as(&path, &hello("far", "", &[40, 41]), Answer::Honest);
    host.start(v1::StartRequest {
        nc: vec![0],
        ..host_run(64)
    })
    .unwrap();
    assert_eq!(fake.heard::<Arm>(), 0);
    set_filter(&mut host, Some(&[0, 41]), None).unwrap();
    fake.wait_heard::<Go>(1);
    fake.emit_many(1, 2);
    assert_eq!(host.fetch(fetch()).unwrap().seqs(fake.id, 1), [1, 2]);
}

/// An NC whose ring was left out at the start: the process gets other rings, and every event is accounted for over both.
#[test]
fn a_core_without_a_ring_gets_one_and_the_account_goes_on() {
    let mut host = Host::new();
    let fake = Fake::attach(&host, "fake");
    host.start(v1::StartRequest {
        nc: vec![0],
        ..host_run(64)
    })
    .unwrap();
    fake.emit_many(0, 3);
    let answer = set_filter(&mut host, Some(&[0, 1]), None).unwrap();
    assert_eq!((answer.rearmed.len(), answer.warnings.len()), (1, 0));
    assert!(answer.rearmed[0].armed, "answered when it has them");
    assert_eq!((fake.heard::<Disarm>(), fake.heard::<Arm>()), (1, 2));
    fake.emit_many(0, 2);
    fake.emit_many(1, 2);
    // Back and forth: the ring stays.
    set_filter(&mut host, Some(&[1]), None).unwrap();
    let answer = set_filter(&mut host, Some(&[]), None).unwrap();
    assert_eq!((answer.rearmed.len(), fake.heard::<Arm>()), (0, 2));
    fake.emit_many(0, 1);
    host.stop("", false).unwrap();
    let fetched = host.consume();
    assert_eq!(fetched.seqs(fake.id, 0), [1, 2, 3, 65, 66, 67]);
    assert_eq!(fetched.seqs(fake.id, 1), [1, 2]);
    let account = fetched.accounts[&(fake.id, 0)];
    assert_eq!(
        (account.claimed, account.delivered, account.lost),
        (6, 6, 0)
    );
    assert!(account.exact && fetched.end().run_ended);
}

/// Where there is no room for more rings, what is there stays, and the answer says so.
#[test]
fn a_core_whose_ring_has_no_room_is_told_of() {
    let mut host = Host::with(|config| config.budgets.segment_bytes = 1 << 20);
    let fake = Fake::attach(&host, "fake");
    host.start(v1::StartRequest {
        nc: vec![0],
        ..host_run(4096)
    })
    .unwrap();
    let answer = set_filter(&mut host, Some(&[]), None).unwrap();
    assert!(
        answer.warnings[0].contains("max_segment_bytes"),
        "{answer:?}"
    );
    assert_eq!((answer.rearmed.len(), fake.heard::<Arm>()), (0, 1));
    fake.emit_many(0, 1);
    assert!(!fake.emit(1, 0, [0; 5]));
    let fetched = host.consume();
    assert_eq!(fetched.producer_accounts[&fake.id].no_ring, 1);
}

/// A process that does not answer has the filter all the same, as far as it has rings.
#[test]
fn a_silent_process_has_the_new_filter() {
    let mut host = Host::new();
    let fake = Fake::attach(&host, "fake");
    host.start(host_run(64)).unwrap();
    fake.answer(Answer::Mute);
    set_filter(&mut host, Some(&[1]), Some(&["cc_running"])).unwrap();
    assert_eq!((types(&fake, 0), types(&fake, 1)), (0, bit("cc_running")));
}

/// The capture that joined follows into the other rings.
#[test]
fn a_capture_that_joined_keeps_its_place_in_other_rings() {
    let mut host = Host::new();
    let own = Fake::attach(&host, "own");
    host.start(v1::StartRequest {
        nc: vec![0],
        ..host_run(64)
    })
    .unwrap();
    own.start_own(1, 16, 0b1, 0b11);
    assert_eq!(own.own_answer(1), (0, true));
    set_filter(&mut host, Some(&[0, 1]), Some(&["cc_running"])).unwrap();
    own.wait_heard::<Go>(2);
    assert_eq!(own.rings().layout.geometry().cap(), 64, "the host's");
    assert_eq!(types(&own, 1), bit("cc_running") | 1);
    own.emit_many(1, 3);
    assert!(own.emit(1, value("cc_running"), [0; 5]));
    own.stop_own(2);
    let fetched = host.consume();
    assert_eq!(fetched.seqs(own.id, 1), [4]);
    assert_eq!(fetched.accounts[&(own.id, 1)].skipped, 3);
}
