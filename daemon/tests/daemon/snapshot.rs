//! Snapshots: all that the rings hold, whoever fetched it, and nothing is consumed.

use nrt_trace_abi::message::Go;
use nrt_trace_proto::v1;
use nrt_trace_proto::v1::ProducerState;
use tonic::Code;

use crate::support::{Fake, Host, fetch, host_run, refused};

fn snapshot() -> v1::SnapshotRequest {
    v1::SnapshotRequest::default()
}

#[test]
fn it_has_what_was_fetched_before_and_takes_nothing() {
    let mut host = Host::new();
    refused(host.snapshot(snapshot()), Code::NotFound, "no run");
    let fake = Fake::captured(&mut host, 64);
    fake.emit_many(0, 5);
    host.consume();
    fake.emit_many(0, 3);
    for _ in 0..2 {
        let all = host.snapshot(snapshot()).unwrap();
        assert_eq!(all.seqs(fake.id, 0), (1..=8).collect::<Vec<_>>());
        let account = all.accounts[&(fake.id, 0)];
        assert_eq!(
            (account.claimed, account.delivered, account.lost),
            (8, 8, 0)
        );
        refused(host.commit(all.id()), Code::NotFound, "last fetch");
    }
    assert_eq!(host.consume().seqs(fake.id, 0), [6, 7, 8]);
    host.stop("", false).unwrap();
}

#[test]
fn of_a_ring_that_wrapped_it_has_the_last_lap_and_counts_the_rest() {
    let mut host = Host::new();
    let fake = Fake::captured(&mut host, 8);
    fake.emit_many(0, 4);
    host.consume();
    fake.emit_many(0, 25);
    let all = host.snapshot(snapshot()).unwrap();
    assert_eq!(all.seqs(fake.id, 0), (22..=29).collect::<Vec<_>>());
    let account = all.accounts[&(fake.id, 0)];
    assert_eq!((account.delivered, account.lost), (8, 21));
    // The fetch has its own account: its cursor had four of them.
    let account = host.consume().accounts[&(fake.id, 0)];
    assert_eq!((account.delivered, account.lost), (12, 17));
}

#[test]
fn fetches_and_snapshots_at_once_do_not_know_of_each_other() {
    let mut host = Host::new();
    let fake = Fake::attach(&host, "x");
    host.start(host_run(100_000)).unwrap();
    fake.emit_many(0, 100_000); // more than fits between the daemon and a client that does not read
    let mut other = host.rpc.clone();
    let fetching = host.runtime.block_on(other.fetch(fetch())).unwrap();
    let snapping = host.runtime.block_on(other.snapshot(snapshot())).unwrap();
    let all = host.snapshot(snapshot()).unwrap();
    assert_eq!(all.end().events, 100_000);
    refused(host.fetch(fetch()), Code::Aborted, "another fetch");
    // A new start breaks a fetch off; a snapshot goes on with what it holds.
    host.stop("", false).unwrap();
    host.start(host_run(64)).unwrap();
    let (ended, events) = host.runtime.block_on(async {
        let mut fetching = fetching.into_inner();
        let ended = loop {
            match fetching.message().await {
                Ok(Some(_)) => {}
                other => break other.map(drop),
            }
        };
        let (mut snapping, mut end) = (snapping.into_inner(), None);
        while let Some(part) = snapping.message().await.unwrap() {
            if let Some(v1::trace_part::Part::End(last)) = part.part {
                end = Some(last.events);
            }
        }
        (ended, end)
    });
    refused(ended, Code::Aborted, "new start");
    assert_eq!(events, Some(100_000));
}

#[test]
fn it_has_filters_and_the_names_and_events_of_who_ended() {
    let mut host = Host::new();
    let gone = Fake::captured(&mut host, 64);
    let name = gone.intern("model.neff");
    gone.emit(0, 3, [name, 0, 0, 0, 0]);
    gone.emit_many(1, 2);
    let id = gone.id;
    gone.detach();
    host.wait_state(id, ProducerState::Detached);
    let other = Fake::attach(&host, "y");
    other.wait_heard::<Go>(1);
    other.emit_many(0, 4);
    let all = host.snapshot(snapshot()).unwrap();
    assert_eq!(all.producers.len(), 2);
    assert!(all.names.iter().any(|entry| entry.id == name));
    let core = v1::SnapshotRequest {
        nc: vec![1],
        ..snapshot()
    };
    let some = host.snapshot(core).unwrap();
    assert_eq!((some.end().events, some.seqs(id, 1).len()), (2, 2));
    let nobody = v1::SnapshotRequest {
        process: vec![1_999_999_999],
        ..snapshot()
    };
    refused(host.snapshot(nobody), Code::InvalidArgument, "no process");
    // What was consumed of a process that ended is gone, and its account stays.
    host.consume();
    let all = host.snapshot(snapshot()).unwrap();
    assert_eq!(all.seqs(other.id, 0).len(), 4);
    assert_eq!(all.seqs(id, 1), [0; 0]);
}
