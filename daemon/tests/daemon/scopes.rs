//! Runs of the host and of tokens side by side.

use nrt_trace_abi::message::{Disarm, Go};
use nrt_trace_proto::v1;
use nrt_trace_proto::v1::ProducerState;
use tonic::Code;

use crate::support::{Fake, Host, fetch, host_run, refused, token_run};

fn of(token: &str) -> v1::FetchRequest {
    v1::FetchRequest {
        token: token.to_owned(),
        auto_commit: true,
        ..fetch()
    }
}

#[test]
fn two_tokens_and_the_host_are_captured_at_once_each_its_own() {
    let mut host = Host::new();
    let [a, b] = ["a", "b"].map(|token| Fake::attach_with_token(&host, token));
    let plain = Fake::attach(&host, "plain");
    host.start(token_run("a", 16)).unwrap();
    host.start(token_run("b", 32)).unwrap();
    let answer = host.start(host_run(64)).unwrap();
    assert_eq!(
        answer.producers.len(),
        1,
        "those with a token are in their token's run"
    );
    refused(
        host.start(token_run("a", 16)),
        Code::FailedPrecondition,
        "token \"a\"",
    );
    a.emit_many(0, 3);
    b.emit_many(0, 4);
    plain.emit_many(0, 5);
    for (token, fake, events) in [("a", &a, 3), ("b", &b, 4), ("", &plain, 5)] {
        let fetched = host.fetch(of(token)).unwrap();
        assert_eq!(fetched.producers.len(), 1);
        assert_eq!(fetched.seqs(fake.id, 0).len(), events);
        assert_eq!(fetched.begin.unwrap().run.unwrap().token, token);
    }
    host.stop("a", false).unwrap();
    assert!(b.is_open() && plain.is_open(), "the others go on");
    refused(
        host.stop("a", false),
        Code::FailedPrecondition,
        "not being captured",
    );
    refused(
        host.stop("c", false),
        Code::FailedPrecondition,
        "not being captured",
    );
    refused(host.fetch(of("c")), Code::NotFound, "token \"c\"");
}

#[test]
fn a_tokens_run_takes_its_producers_out_of_the_hosts() {
    let mut host = Host::new();
    let fake = Fake::attach_with_token(&host, "t");
    host.start(host_run(64)).unwrap();
    fake.emit_many(0, 3);
    let answer = host.start(token_run("t", 64)).unwrap();
    assert!(answer.producers[0].armed);
    fake.wait_heard::<Go>(2);
    assert_eq!(fake.heard::<Disarm>(), 1);
    fake.emit_many(0, 2);
    assert_eq!(
        host.fetch(of("t")).unwrap().seqs(fake.id, 0),
        [1, 2],
        "rings of its own"
    );
    let fetched = host.fetch(fetch()).unwrap();
    assert_eq!(
        fetched.seqs(fake.id, 0),
        [1, 2, 3],
        "what it had emitted before is still the host's"
    );
    assert!(fetched.accounts[&(fake.id, 0)].exact);

    // Back in the host's run: other rings, whose numbers go on at a lap's beginning.
    host.stop("t", false).unwrap();
    fake.wait_heard::<Go>(3);
    fake.emit_many(0, 2);
    let fetched = host.fetch(fetch()).unwrap();
    assert_eq!(fetched.seqs(fake.id, 0), [1, 2, 3, 65, 66], "both");
    let few = v1::FetchRequest {
        max_events_per_nc: 4,
        auto_commit: true,
        ..fetch()
    };
    let fetched = host.fetch(few).unwrap();
    assert_eq!(
        fetched.seqs(fake.id, 0),
        [1, 2, 3, 65],
        "the oldest of both"
    );
    assert_eq!(fetched.end().left, 1);
    host.stop("", false).unwrap();
    let fetched = host.fetch(of("")).unwrap();
    assert_eq!(fetched.seqs(fake.id, 0), [66]);
    let account = fetched.accounts[&(fake.id, 0)];
    assert_eq!((account.claimed, account.delivered), (5, 5));
    assert!(account.exact && fetched.end().run_ended);
    host.start(host_run(64)).unwrap();
    fake.emit_many(0, 1);
    assert_eq!(host.consume().seqs(fake.id, 0), [1], "a run of its own");
}

/// Taken and given back again and again while nobody reads: what is held is bounded, and what that costs is counted.
#[test]
fn a_process_that_comes_back_again_and_again_is_kept_within_bounds() {
    const ROUNDS: usize = 12;
    let mut host = Host::new();
    let fake = Fake::attach_with_token(&host, "t");
    host.start(host_run(16)).unwrap();
    for round in 0..ROUNDS {
        fake.emit_many(0, 5);
        host.start(token_run("t", 16)).unwrap();
        host.stop("t", false).unwrap();
        fake.wait_heard::<Go>(2 * round + 3);
    }
    fake.emit_many(0, 20);
    let fetched = host.consume();
    let seqs = fetched.seqs(fake.id, 0);
    assert_eq!(seqs.len(), 7 * 5 + 16);
    let account = fetched.accounts[&(fake.id, 0)];
    assert_eq!(account.claimed, ROUNDS as u64 * 5 + 20);
    assert_eq!((account.abandoned, account.overwritten), (5 * 5, 4));
    assert_eq!(account.delivered, seqs.len() as u64);
    let status = host.status();
    assert!(status.reserved_bytes < 100 << 10, "the rest is freed");
}

#[test]
fn who_leaves_a_tokens_run_joins_the_hosts() {
    let mut host = Host::new();
    let fake = Fake::attach_with_token(&host, "t");
    host.start(token_run("t", 64)).unwrap();
    host.start(host_run(64)).unwrap();
    fake.emit_many(0, 1);
    host.stop("t", false).unwrap();
    fake.wait_heard::<Go>(2);
    fake.emit_many(0, 2);
    assert_eq!(host.fetch(of("")).unwrap().seqs(fake.id, 0), [1, 2]);
    assert_eq!(host.fetch(of("t")).unwrap().seqs(fake.id, 0), [1]);
}

#[test]
fn a_tokens_producer_that_comes_later_is_armed_at_once() {
    let mut host = Host::new();
    let answer = host.start(token_run("t", 64)).unwrap();
    assert!(answer.producers.is_empty());
    let stranger = Fake::attach(&host, "stranger");
    let fake = Fake::attach_with_token(&host, "t");
    assert_eq!(
        (stranger.welcome.run_follows, fake.welcome.run_follows),
        (0, 1)
    );
    fake.wait_heard::<Go>(1);
    fake.emit_many(0, 1000);
    let id = fake.id;
    fake.detach();
    host.wait_state(id, ProducerState::Detached);
    let fetched = host.fetch(of("t")).unwrap();
    assert_eq!(fetched.accounts[&(id, 0)].claimed, 1000);
    assert_eq!(fetched.seqs(id, 0).len(), 64);
}

#[test]
fn a_forgotten_tokens_run_is_given_up_and_a_remembered_one_is_not() {
    let mut host = Host::with(|config| config.budgets.forgotten_run_s = 1);
    host.start(token_run("forgotten", 64)).unwrap();
    host.start(token_run("kept", 64)).unwrap();
    host.start(host_run(64)).unwrap();
    let fake = Fake::attach_with_token(&host, "kept");
    let tokens = |host: &mut Host| {
        let runs = host.status().runs;
        runs.into_iter()
            .map(|run| run.run.unwrap().token)
            .collect::<Vec<_>>()
    };
    crate::support::wait_for("the end of the forgotten run", || {
        tokens(&mut host) == ["kept", ""]
    });
    drop(fake);
    crate::support::wait_for("the end of the other", || tokens(&mut host) == [""]);
}
