//! Subscriptions: a run's events as they come, to its end, whoever else reads them.

use nrt_trace_abi::message::Go;
use nrt_trace_proto::v1;
use nrt_trace_proto::v1::{ProducerState, SubscribeFrom};
use tonic::Code;

use crate::support::{Client, Fake, Host, Live, fetch, host_run, refused, subscription, wait_for};

#[test]
fn from_now_on_to_the_end_and_no_fetch_misses_anything() {
    let mut host = Host::new();
    let now = subscription(SubscribeFrom::Now);
    refused(
        Live::new(&host, now.clone()).map(drop),
        Code::NotFound,
        "no run",
    );
    let fake = Fake::captured(&mut host, 64);
    fake.emit_many(0, 5);
    let mut live = Live::of(&host, now, 1);
    fake.emit_many(0, 3);
    fake.emit_many(1, 2);
    live.until(&host, |live| {
        live.seqs(fake.id, 1).len() == 2 && live.accounts.len() == 2
    });
    assert_eq!(live.seqs(fake.id, 0), [6, 7, 8]);
    assert_eq!(host.consume().seqs(fake.id, 0), (1..=8).collect::<Vec<_>>());
    fake.emit_many(0, 1);
    host.stop("", false).unwrap();
    live.finish(&host);
    assert_eq!(live.seqs(fake.id, 0), [6, 7, 8, 9]);
    let account = live.accounts[&(fake.id, 0)];
    assert_eq!((account.claimed, account.lost), (4, 0));
    assert!(live.end.unwrap().run_ended);
    assert!(
        live.begins
            .last()
            .unwrap()
            .run
            .as_ref()
            .unwrap()
            .stopped_ns
            .is_some()
    );
    refused(
        host.commit(live.begins[0].fetch_id),
        Code::NotFound,
        "last fetch",
    );
    assert_eq!(host.consume().seqs(fake.id, 0), [9]);
}

#[test]
fn from_the_oldest_and_from_the_unread() {
    let mut host = Host::new();
    let fake = Fake::captured(&mut host, 8);
    fake.emit_many(0, 10);
    host.consume();
    fake.emit_many(0, 4);
    let mut oldest = Live::of(&host, subscription(SubscribeFrom::Oldest), 1);
    let mut unread = Live::of(&host, subscription(SubscribeFrom::Unread), 1);
    let mut now = Live::of(&host, subscription(SubscribeFrom::Unspecified), 1);
    host.stop("", false).unwrap();
    for live in [&mut oldest, &mut unread, &mut now] {
        live.finish(&host);
    }
    assert_eq!(oldest.seqs(fake.id, 0), (7..=14).collect::<Vec<_>>());
    assert_eq!(unread.seqs(fake.id, 0), (11..=14).collect::<Vec<_>>());
    assert_eq!(now.seqs(fake.id, 0), [0; 0]);
    for (live, claimed) in [(&oldest, 8), (&unread, 4), (&now, 0)] {
        let account = live.accounts[&(fake.id, 0)];
        assert_eq!((account.claimed, account.lost), (claimed, 0));
    }
    assert_eq!(
        host.consume().seqs(fake.id, 0),
        (11..=14).collect::<Vec<_>>()
    );
}

/// Case G10 for the beginning: a number that is none of its names is refused, and not taken for the first of them.
#[test]
fn g10_a_beginning_that_does_not_exist_is_refused() {
    let mut host = Host::new();
    host.start(host_run(64)).unwrap();
    let bad = v1::SubscribeRequest {
        from: 99,
        ..v1::SubscribeRequest::default()
    };
    refused(
        Live::new(&host, bad).map(drop),
        Code::InvalidArgument,
        "from is 99",
    );
    let bad = v1::SubscribeRequest {
        events: vec!["nrt_exceute".to_owned()],
        ..v1::SubscribeRequest::default()
    };
    refused(
        Live::new(&host, bad).map(drop),
        Code::InvalidArgument,
        "nrt_exceute",
    );
}

#[test]
fn filters_by_nc_and_type_and_process() {
    let mut host = Host::new();
    let fake = Fake::captured(&mut host, 64);
    let name = nrt_trace_model::EventType::ALL[3].name().to_owned();
    let request = v1::SubscribeRequest {
        nc: vec![1],
        events: vec![name],
        ..subscription(SubscribeFrom::Oldest)
    };
    for _ in 0..3 {
        fake.emit(0, 3, [0; 5]);
        fake.emit(1, 3, [0; 5]);
        fake.emit(1, 4, [0; 5]);
    }
    let mut live = Live::of(&host, request, 1);
    // A process that is not there may come later: no mistake.
    let absent = v1::SubscribeRequest {
        process: vec![1_999_999_999],
        ..subscription(SubscribeFrom::Oldest)
    };
    let mut nobody = Live::new(&host, absent).unwrap();
    fake.emit(1, 4, [0; 5]);
    fake.emit(1, 3, [0; 5]);
    host.stop("", false).unwrap();
    live.finish(&host);
    nobody.finish(&host);
    assert_eq!(live.records.keys().collect::<Vec<_>>(), [&(fake.id, 1)]);
    assert_eq!(live.seqs(fake.id, 1), [1, 3, 5, 8]);
    assert_eq!(live.accounts.len(), 1);
    let account = live.accounts[&(fake.id, 1)];
    assert_eq!((account.claimed, account.skipped), (4, 4));
    assert!(nobody.producers.is_empty() && nobody.accounts.is_empty());
}

/// Who keeps up gets all of a process that came, ended, and was fetched and freed.
#[test]
fn processes_come_and_go() {
    let mut host = Host::new();
    host.start(host_run(64)).unwrap();
    let mut live = Live::new(&host, subscription(SubscribeFrom::Now)).unwrap();
    let first = Fake::attach(&host, "first");
    first.wait_heard::<Go>(1);
    let id = first.id;
    live.until(&host, |live| live.producer_accounts.contains_key(&id));
    let name = first.intern("model.neff");
    first.emit(0, 3, [name, 0, 0, 0, 0]);
    first.emit_many(1, 4);
    first.detach();
    host.wait_state(id, ProducerState::Detached);
    host.consume();
    let second = Fake::attach(&host, "second");
    second.wait_heard::<Go>(1);
    second.emit_many(0, 2);
    live.until(&host, |live| live.seqs(second.id, 0).len() == 2);
    assert!(live.names.contains(&"model.neff".to_owned()));
    host.stop("", false).unwrap();
    live.finish(&host);
    for (ring, events) in [((id, 0), 1), ((id, 1), 4), ((second.id, 0), 2)] {
        let account = live.accounts[&ring];
        assert_eq!((account.claimed, account.delivered), (events, events));
    }
    assert_eq!(live.producers.len(), 2);
}

/// Processes that come, end, and are fetched and freed by somebody else as fast as that goes, most of them between two looks of
/// the subscriber: all of each is seen.
#[test]
fn what_comes_and_goes_between_two_looks_is_seen() {
    let mut host = Host::new();
    host.start(host_run(64)).unwrap();
    let mut live = Live::new(&host, subscription(SubscribeFrom::Now)).unwrap();
    let pass = |host: &mut Host| {
        let fake = Fake::attach(host, "brief");
        fake.wait_heard::<Go>(1);
        fake.emit_many(0, 3);
        let id = fake.id;
        fake.detach();
        host.wait_state(id, ProducerState::Detached);
        assert_eq!(host.consume().seqs(id, 0), [1, 2, 3]);
        id
    };
    let mut ids: Vec<u32> = (0..10).map(|_| pass(&mut host)).collect();
    live.until(&host, |live| {
        ids.iter().all(|id| live.accounts.contains_key(&(*id, 0)))
    });
    // One that a new start takes away.
    ids.push(pass(&mut host));
    host.stop("", false).unwrap();
    host.start(host_run(64)).unwrap();
    live.finish(&host);
    for id in ids {
        assert_eq!(live.seqs(id, 0), [1, 2, 3]);
        let account = live.accounts[&(id, 0)];
        assert_eq!((account.claimed, account.delivered), (3, 3));
    }
}

/// Nobody waits for a subscriber that does not read, and it learns to the event what it missed.
#[test]
fn a_slow_subscriber_costs_nobody_anything_but_itself() {
    let mut host = Host::new();
    let fake = Fake::captured(&mut host, 64);
    let mut slow = Live::of(&host, subscription(SubscribeFrom::Now), 1);
    let quick = Client::of(host.daemon.control_socket());
    let mut other = Live::of(&quick, subscription(SubscribeFrom::Now), 1);
    for round in 1..=40 {
        fake.emit_many(0, 500);
        host.consume();
        let all = round * 500;
        other.until(&quick, |live| {
            let account = live.accounts.get(&(fake.id, 0));
            account.is_some_and(|account| account.claimed == all && account.unread == 0)
        });
    }
    host.stop("", false).unwrap();
    slow.finish(&host);
    other.finish(&quick);
    for live in [&slow, &other] {
        let account = live.accounts[&(fake.id, 0)];
        assert_eq!(account.claimed, 20_000);
        assert_eq!(account.delivered + account.lost, 20_000);
        assert!(account.lost > 0 && account.overwritten == account.lost);
    }
}

/// A run that gives way to the next one at once is read to its end.
#[test]
fn it_ends_with_its_run() {
    let mut host = Host::new();
    let fake = Fake::captured(&mut host, 64);
    let mut live = Live::of(&host, subscription(SubscribeFrom::Now), 1);
    fake.emit_many(0, 7);
    host.stop("", false).unwrap();
    host.start(host_run(64)).unwrap();
    fake.emit_many(0, 1);
    live.finish(&host);
    assert_eq!(live.seqs(fake.id, 0), (1..=7).collect::<Vec<_>>());
    let account = live.accounts[&(fake.id, 0)];
    assert_eq!((account.claimed, account.delivered), (7, 7));
    // One that comes when the run is over has its rest, and its end.
    host.stop("", false).unwrap();
    let mut late = Live::new(&host, subscription(SubscribeFrom::Unread)).unwrap();
    late.finish(&host);
    assert_eq!(late.accounts[&(fake.id, 0)].delivered, 1);
}

#[test]
fn so_many_and_no_more_and_who_goes_leaves_a_place() {
    let mut host = Host::new();
    let _fake = Fake::captured(&mut host, 64);
    let one = || subscription(SubscribeFrom::Now);
    let mut all: Vec<Live> = (0..32).map(|_| Live::new(&host, one()).unwrap()).collect();
    let none = Live::new(&host, one()).map(drop);
    refused(none, Code::ResourceExhausted, "32 subscribers");
    // It goes without a word, in the middle.
    drop(all.pop());
    wait_for("a place", || Live::new(&host, one()).is_ok());
    let answers = host.fetch(fetch()).unwrap();
    assert_eq!(answers.end().events, 0);
}

/// Rings that a process gets later are followed, and its NC has one account.
#[test]
fn other_rings_after_a_change_of_the_filter() {
    let mut host = Host::new();
    let fake = Fake::attach(&host, "x");
    let mut start = host_run(64);
    start.nc = vec![0];
    host.start(start).unwrap();
    let mut live = Live::of(&host, subscription(SubscribeFrom::Now), 1);
    fake.emit_many(0, 3);
    let filter = v1::SetFilterRequest {
        nc: Some(v1::NcFilter::default()),
        arm_timeout_ms: Some(10_000),
        ..v1::SetFilterRequest::default()
    };
    let Client { rpc, runtime } = &mut *host;
    runtime.block_on(rpc.set_filter(filter)).unwrap();
    fake.emit_many(0, 2);
    fake.emit_many(1, 4);
    host.stop("", false).unwrap();
    live.finish(&host);
    let counts = |nc| {
        let account = live.accounts[&(fake.id, nc)];
        (account.claimed, account.delivered, account.lost)
    };
    assert_eq!(counts(0), (5, 5, 0));
    assert_eq!(counts(1), (4, 4, 0));
    assert!(
        live.begins
            .iter()
            .any(|begin| begin.run.as_ref().unwrap().filter_changes == 1)
    );
}
