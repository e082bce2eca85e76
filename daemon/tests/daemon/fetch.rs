//! Fetch in two steps, filters, losses, names, correlations, and words that can't be.

use std::sync::atomic::Ordering;

use nrt_trace_abi::layout::ring;
use nrt_trace_abi::record::{Draft, Record};
use nrt_trace_proto::v1;
use nrt_trace_proto::v1::ProducerState;
use nrt_trace_proto::v1::trace_part::Part;
use nrt_trace_ring::Producer;
use tonic::Code;

use crate::support::{
    Answer, Client, Fake, Fetched, Host, fetch, hello, host_run, refused, wait_for,
};

#[test]
fn what_was_not_committed_comes_again_and_what_was_does_not() {
    let mut host = Host::new();
    let fake = Fake::captured(&mut host, 64);
    fake.emit_many(0, 5);
    let first = host.fetch(fetch()).unwrap();
    let second = host.fetch(fetch()).unwrap();
    assert_eq!(first.records, second.records);
    assert_eq!(first.seqs(fake.id, 0), [1, 2, 3, 4, 5]);
    refused(host.commit(first.id()), Code::NotFound, "last fetch");
    host.commit(second.id()).unwrap();
    refused(
        host.commit(second.id()),
        Code::NotFound,
        "committed already",
    );
    fake.emit_many(0, 2);
    let third = host.consume();
    assert_eq!(third.seqs(fake.id, 0), [6, 7]);
    assert_eq!(third.accounts[&(fake.id, 0)].delivered, 7);
    assert!(!third.end().run_ended);
    assert!(host.consume().records.is_empty());
}

#[test]
fn auto_commit_consumes_by_itself() {
    let mut host = Host::new();
    let fake = Fake::captured(&mut host, 64);
    fake.emit_many(0, 5);
    let request = v1::FetchRequest {
        auto_commit: true,
        ..fetch()
    };
    assert_eq!(host.fetch(request.clone()).unwrap().end().events, 5);
    let again = host.fetch(request).unwrap();
    assert_eq!(
        (again.end().events, again.accounts[&(fake.id, 0)].delivered),
        (0, 5)
    );
}

/// A ring of cap events returns exactly its last cap, and says how many were overwritten.
#[test]
fn a_wrapped_ring_gives_its_last_lap_and_the_exact_loss() {
    let mut host = Host::new();
    let fake = Fake::captured(&mut host, 8);
    fake.emit_many(0, 29);
    let fetched = host.consume();
    assert_eq!(fetched.seqs(fake.id, 0), (22..=29).collect::<Vec<_>>());
    let account = fetched.accounts[&(fake.id, 0)];
    assert_eq!(
        (
            account.claimed,
            account.delivered,
            account.lost,
            account.overwritten
        ),
        (29, 8, 21, 21)
    );
}

#[test]
fn discard_gives_up_and_tells() {
    let mut host = Host::new();
    let fake = Fake::captured(&mut host, 8);
    fake.emit_many(0, 13);
    let fetched = host
        .fetch(v1::FetchRequest {
            discard: true,
            ..fetch()
        })
        .unwrap();
    let account = fetched.accounts[&(fake.id, 0)];
    assert!(fetched.records.is_empty());
    assert_eq!(
        (
            account.lost,
            account.abandoned,
            account.overwritten,
            account.unread
        ),
        (13, 8, 5, 0)
    );
    fake.emit_many(0, 1);
    assert_eq!(host.consume().seqs(fake.id, 0), [14]);
}

#[test]
fn filters_and_limits_leave_the_rest_for_later() {
    let mut host = Host::new();
    let path = host.daemon.producer_socket().to_owned();
    let fake = Fake::attach_as(&path, &hello("x", "", &[30, 31]), Answer::Honest);
    host.start(host_run(64)).unwrap();
    fake.emit_many(0, 4);
    fake.emit_many(1, 6);
    let of_core = |nc: u32| v1::FetchRequest {
        nc: vec![nc],
        auto_commit: true,
        ..fetch()
    };
    let fetched = host.fetch(of_core(31)).unwrap();
    assert_eq!(fetched.seqs(fake.id, 1).len(), 6);
    assert_eq!((fetched.records.len(), fetched.end().left), (1, 4));
    let limited = v1::FetchRequest {
        max_events_per_nc: 3,
        auto_commit: true,
        ..fetch()
    };
    let fetched = host.fetch(limited.clone()).unwrap();
    assert_eq!(
        (fetched.seqs(fake.id, 0), fetched.end().left),
        (vec![1, 2, 3], 1)
    );
    fake.emit_many(0, 3);
    host.stop("", false).unwrap();
    let fetched = host.fetch(limited.clone()).unwrap();
    assert_eq!(
        (fetched.seqs(fake.id, 0), fetched.end().left),
        (vec![4, 5, 6], 1)
    );
    assert!(!fetched.end().run_ended, "there is one more");
    let fetched = host.fetch(limited).unwrap();
    assert_eq!((fetched.seqs(fake.id, 0), fetched.end().left), (vec![7], 0));
    assert!(fetched.end().run_ended);

    let pid = i32::try_from(std::process::id()).unwrap();
    let of_process = |pid| v1::FetchRequest {
        process: vec![pid],
        ..fetch()
    };
    assert_eq!(host.fetch(of_process(pid)).unwrap().producers.len(), 1);
    refused(
        host.fetch(of_process(1_999_999_999)),
        Code::InvalidArgument,
        &pid.to_string(),
    );
    refused(host.fetch(of_process(0)), Code::InvalidArgument, "no pid");
    refused(host.fetch(of_core(7)), Code::InvalidArgument, "30, 31");
}

#[test]
fn the_second_of_two_fetches_is_told_of_the_first() {
    let mut host = Host::new();
    let fake = Fake::attach(&host, "x");
    host.start(host_run(100_000)).unwrap();
    fake.emit_many(0, 100_000); // more than fits between the daemon and a client that does not read
    let mut other = host.rpc.clone();
    let stream = host
        .runtime
        .block_on(other.fetch(fetch()))
        .unwrap()
        .into_inner();
    refused(host.fetch(fetch()), Code::Aborted, "another fetch");
    let id = u64::MAX;
    refused(host.commit(id), Code::NotFound, "last fetch");
    drop(stream);
    wait_for("the first to be over", || {
        host.fetch(fetch())
            .is_ok_and(|fetched| fetched.end().events == 100_000)
    });
}

/// Case F01: a client that goes away half-way loses nothing.
#[test]
fn f01_a_broken_fetch_consumes_nothing() {
    let mut host = Host::new();
    let fake = Fake::attach(&host, "x");
    host.start(host_run(100_000)).unwrap();
    fake.emit_many(0, 100_000);
    for parts in [1, 3, 5] {
        let mut other = host.rpc.clone();
        let request = v1::FetchRequest {
            auto_commit: true,
            ..fetch()
        };
        host.runtime.block_on(async {
            let mut stream = other.fetch(request).await.unwrap().into_inner();
            for _ in 0..parts {
                stream.message().await.unwrap().unwrap();
            }
        });
        let mut again = None;
        wait_for("the broken one to be over", || {
            again = host.fetch(fetch()).ok();
            again.is_some()
        });
        let again = again.unwrap();
        assert_eq!(again.end().events, 100_000);
        assert_eq!(again.accounts[&(fake.id, 0)].delivered, 100_000);
    }
}

#[test]
fn a_new_start_ends_a_fetch_that_nobody_reads() {
    let mut host = Host::new();
    let fake = Fake::attach(&host, "x");
    host.start(host_run(100_000)).unwrap();
    fake.emit_many(0, 100_000);
    let mut other = host.rpc.clone();
    let mut stream = host
        .runtime
        .block_on(other.fetch(fetch()))
        .unwrap()
        .into_inner();
    host.stop("", false).unwrap();
    host.start(host_run(64)).unwrap();
    let ended = host.runtime.block_on(async {
        loop {
            match stream.message().await {
                Ok(Some(_)) => {}
                other => return other.map(drop),
            }
        }
    });
    refused(ended, Code::Aborted, "new start");
}

#[test]
fn names_come_before_the_records_and_only_once_to_who_has_them() {
    let mut host = Host::new();
    let fake = Fake::captured(&mut host, 64);
    let (model, tensor) = (fake.intern("model.neff"), fake.intern("input0"));
    fake.emit(0, 3, [model, 0, 0, 0, 0]);
    let texts = |fetched: &Fetched| {
        fetched
            .names
            .iter()
            .map(|name| (name.id, name.text.clone()))
            .collect::<Vec<_>>()
    };
    let fetched = host.consume();
    assert_eq!(
        texts(&fetched),
        [
            (model, "model.neff".to_owned()),
            (tensor, "input0".to_owned())
        ]
    );
    let more = fake.intern("日本語");
    let fetched = host
        .fetch(v1::FetchRequest {
            strings_from: 2,
            ..fetch()
        })
        .unwrap();
    assert_eq!(texts(&fetched), [(more, "日本語".to_owned())]);
    assert_eq!(fetched.first_name, Some(2));
    let nonsense = host
        .fetch(v1::FetchRequest {
            strings_from: 99,
            ..fetch()
        })
        .unwrap();
    assert_eq!(nonsense.names.len(), 3, "a count of another daemon's table");
}

#[test]
fn a_name_that_came_during_the_fetch_still_comes_before_the_record_that_needs_it() {
    let mut host = Host::new();
    let fake = Fake::attach(&host, "x");
    host.start(host_run(200_000)).unwrap();
    fake.emit_many(0, 200_000); // more than fits between the daemon and a client that does not read
    let mut other = host.rpc.clone();
    let mut stream = host
        .runtime
        .block_on(other.fetch(fetch()))
        .unwrap()
        .into_inner();
    let first = host.runtime.block_on(stream.message()).unwrap().unwrap();
    let name = fake.intern("late");
    fake.emit(1, 3, [name, 0, 0, 0, 0]);
    let mut fetched = Fetched::default();
    fetched.take(first);
    host.runtime.block_on(async {
        while let Some(part) = stream.message().await.unwrap() {
            let needs_it =
                matches!(&part.part, Some(Part::Records(records)) if records.nc_idx == 1);
            assert!(
                !needs_it || fetched.names.iter().any(|entry| entry.id == name),
                "the name first"
            );
            fetched.take(part);
        }
    });
    fetched.check();
    assert_eq!(fetched.seqs(fake.id, 1), [1], "its ring's turn came later");
}

#[test]
fn lies_about_names_are_refused_and_counted() {
    let mut host = Host::new();
    let fake = Fake::captured(&mut host, 64);
    fake.intern_as(12345, b"not my id");
    fake.intern_as(nrt_trace_model::strings::get_id(b"\xFF\xFE"), b"\xFF\xFE");
    fake.intern("good");
    let fetched = host.consume();
    assert_eq!(fetched.names.len(), 1);
    assert_eq!(fetched.producer_accounts[&fake.id].strings_refused, 2);
}

#[test]
fn names_outlive_their_producer_and_serve_others() {
    let mut host = Host::new();
    let first = Fake::captured(&mut host, 64);
    let (id, name) = (first.id, first.intern("left behind"));
    first.emit(0, 3, [name, 0, 0, 0, 0]);
    first.detach();
    host.wait_state(id, ProducerState::Detached);
    let fetched = host.consume();
    assert_eq!(fetched.names[0].id, name);
    let second = Fake::attach(&host, "y");
    second.wait_heard::<nrt_trace_abi::message::Go>(1);
    second.intern("left behind");
    assert_eq!(host.consume().names.len(), 1);
}

#[test]
fn names_of_a_producer_that_was_never_captured_are_kept_too() {
    let mut host = Host::new();
    let fake = Fake::attach(&host, "early");
    let (id, name) = (fake.id, fake.intern("told early"));
    fake.detach();
    host.wait_state(id, ProducerState::Detached);
    host.start(host_run(64)).unwrap();
    let fetched = host.consume();
    assert_eq!(
        fetched
            .names
            .iter()
            .map(|entry| entry.id)
            .collect::<Vec<_>>(),
        [name]
    );
}

#[test]
fn executions_of_earlier_fetches_are_explained_to_later_ones() {
    let mut host = Host::new();
    let fake = Fake::captured(&mut host, 64);
    fake.emit(0, 17, [5, 500, 0, 0, 0]); // kbl_exec_pre: execution 5 runs model 500
    fake.emit(0, 25, [5, 1_000, 2_000, 0, 0]); // timestamp_sync_point
    let refer = |fake: &Fake| assert!(fake.emit(0, 7, [5 << 32, 1_100, 0, 0, 0])); // nc_exec_running
    refer(&fake);
    assert_eq!(
        host.fetch(fetch()).unwrap().correlations,
        [],
        "the records explain themselves"
    );
    let first = host.consume();
    assert_eq!(first.correlations, []);
    refer(&fake);
    let second = host.fetch(fetch()).unwrap();
    let sync = Some(v1::SyncPoint {
        nc_timestamp_ns: 1_000,
        cpu_timestamp_ns: 2_000,
    });
    let entries = vec![v1::Correlation {
        exec_id: 5,
        model_id: Some(500),
        sync,
    }];
    let expected = v1::Correlations {
        producer_id: fake.id,
        nc_idx: 0,
        entries,
    };
    assert_eq!(second.correlations, std::slice::from_ref(&expected));
    let again = host.consume();
    assert_eq!(
        again.correlations,
        [expected],
        "a fetch that was not committed changes nothing"
    );
}

/// Words that can't be: one producer is out, once, and nobody else notices.
#[test]
fn impossible_words_quarantine_their_producer_alone() {
    let mut host = Host::new();
    let (bad, good) = (Fake::attach(&host, "bad"), Fake::attach(&host, "good"));
    host.start(host_run(64)).unwrap();
    bad.emit_many(0, 5);
    good.emit_many(0, 5);
    host.consume();
    let rings = bad.rings();
    let tail = &rings.map.words()[rings.layout.ring_word(0).unwrap() + ring::TAIL];
    tail.store(2, Ordering::Relaxed);
    assert_eq!(host.fetch(fetch()).unwrap().end().events, 0);
    host.wait_state(bad.id, ProducerState::Quarantined);
    tail.store(5, Ordering::Relaxed);
    let ring = &rings.map.words()[rings.layout.ring_word(0).unwrap()..];
    let ring = Producer::new(ring, *rings.layout.geometry()).unwrap();
    let _ = ring.push(|seq| Draft::default().finish(seq));
    let fetched = host.fetch(fetch()).unwrap();
    assert_eq!(
        fetched.end().events,
        0,
        "words that became possible again are not believed"
    );
    good.emit_many(0, 1);
    let fetched = host.consume();
    assert_eq!(fetched.seqs(good.id, 0), [6]);
    assert!(!fetched.accounts[&(bad.id, 0)].exact);
    host.wait_state(bad.id, ProducerState::Quarantined);
    assert_eq!(host.status().quarantined, 1);
    assert!(!bad.is_open());

    tail.store(u64::MAX, Ordering::Relaxed);
    assert!(host.consume().seqs(bad.id, 0).is_empty());
    assert_eq!(host.status().quarantined, 1, "once");
    host.stop("", false).unwrap();
    host.start(host_run(64)).unwrap();
    assert!(
        good.is_open() && !bad.is_open(),
        "it is in no later run either"
    );
    good.emit_many(0, 1);
    assert_eq!(host.consume().end().events, 1);
}

/// Case G10: an event of a type that is newer than the daemon is delivered as the number that it is, among the others.
#[test]
fn g10_an_event_of_a_type_that_is_not_known_keeps_its_number() {
    let mut host = Host::new();
    let fake = Fake::captured(&mut host, 64);
    fake.emit_many(0, 2);
    let rings = fake.rings();
    let ring = &rings.map.words()[rings.layout.ring_word(0).unwrap()..];
    let ring = Producer::new(ring, *rings.layout.geometry()).unwrap();
    let newer = Draft {
        trace_type: 250,
        ..Draft::default()
    };
    let _ = ring.push(|seq| newer.finish(seq));
    fake.emit_many(0, 2);
    let fetched = host.consume();
    let types: Vec<u32> = (fetched.records[&(fake.id, 0)].iter())
        .map(Record::trace_type)
        .collect();
    assert_eq!(types, [0, 0, 250, 0, 0]);
    let account = fetched.accounts[&(fake.id, 0)];
    assert_eq!((account.delivered, account.lost), (5, 0));
    assert_eq!(host.status().quarantined, 0);
}

/// Any words at all in a segment: the daemon answers, and its account adds up (checked by every fetch).
#[test]
fn a_scribbled_segment_costs_only_its_producer() {
    let mut host = Host::new();
    let mut random = 0x9E37_79B9_7F4A_7C15u64;
    for round in 0..20 {
        let fake = Fake::attach(&host, "scribbler");
        if round == 0 {
            host.start(host_run(16)).unwrap();
        }
        fake.wait_heard::<nrt_trace_abi::message::Go>(1);
        let rings = fake.rings();
        for word in rings.map.words() {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            word.store(random >> (random % 64), Ordering::Relaxed);
        }
        host.consume();
        let id = fake.id;
        fake.detach();
        wait_for("its end", || {
            host.producers().iter().any(|p| {
                p.producer_id == id
                    && matches!(
                        p.state(),
                        ProducerState::Detached | ProducerState::Quarantined
                    )
            })
        });
    }
    host.consume();
    assert_eq!(host.status().producers, 0);
}

#[test]
fn event_types_and_status_are_told() {
    let mut host = Host::new();
    let fake = Fake::captured(&mut host, 64);
    fake.emit_many(0, 3);
    let Client { rpc, runtime } = &mut *host;
    let types = runtime
        .block_on(rpc.list_event_types(v1::ListEventTypesRequest {}))
        .unwrap();
    let types = types.into_inner().types;
    assert_eq!(types.len(), 46);
    assert_eq!((types[3].value, types[3].name.as_str()), (3, "nrt_execute"));
    assert_eq!(types[7].category(), v1::EventCategory::Hardware);
    let status = host.status();
    assert_eq!(
        (status.abi_version, status.producers, status.embedded),
        (nrt_trace_abi::ABI_VERSION.into(), 1, true)
    );
    assert!(status.resident_bytes > 0 && status.reserved_bytes >= status.resident_bytes);
    assert!(status.cpu_ns > 0 && status.rss_bytes > 0 && status.pid > 0 && status.started_ns > 0);
    let [run] = <[_; 1]>::try_from(status.runs).unwrap();
    assert!(run.capturing && run.producers == 1);
    assert_eq!(
        run.accounts
            .iter()
            .map(|account| account.unread)
            .sum::<u64>(),
        3
    );
}
