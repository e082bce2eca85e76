//! Metrics: each is there, described, and moved by what it is about.

use std::collections::BTreeMap;

use nrt_trace_abi::layout::{ring, segment};
use nrt_trace_abi::message::Go;
use nrt_trace_proto::v1;
use std::sync::atomic::Ordering;

use crate::support::{
    Client, Fake, Host, Live, fetch, hello, host_run, send, subscription, token_run, wait_for,
};

/// Samples by name and labels.
pub(crate) type Samples = BTreeMap<String, f64>;

/// The metrics, put together again.
pub(crate) fn text(client: &mut Client) -> String {
    let Client { rpc, runtime } = client;
    runtime.block_on(async {
        let stream = rpc.get_metrics(v1::GetMetricsRequest {}).await.unwrap();
        let (mut stream, mut text) = (stream.into_inner(), String::new());
        while let Some(piece) = stream.message().await.unwrap() {
            assert!(piece.text.len() <= 1 << 20);
            text += &piece.text;
        }
        text
    })
}

pub(crate) fn samples(text: &str) -> Samples {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let sample = |line: &str| {
        let (name, value) = line.rsplit_once(' ').unwrap();
        (name.to_owned(), value.parse().unwrap())
    };
    lines.map(sample).collect()
}

/// Names of the metrics that the text describes.
fn families(text: &str) -> Vec<String> {
    let names = text.lines().filter_map(|line| line.strip_prefix("# HELP "));
    names
        .map(|line| line.split_once(' ').unwrap().0.to_owned())
        .collect()
}

/// The values of a metric, by its labels.
fn of<'a>(samples: &'a Samples, family: &str) -> BTreeMap<&'a str, f64> {
    let mine = |name: &&String| {
        let rest = name.strip_prefix(family);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['_', '{']))
    };
    let keys = samples.keys().filter(mine);
    keys.map(|name| (name.as_str(), samples[name])).collect()
}

#[test]
fn every_metric_is_moved_by_what_it_is_about() {
    let mut host = Host::with(|config| {
        config.budgets.producers_per_uid = 4;
        config.host.period_ms = 100;
    });
    let first = text(&mut host);
    assert!(first.ends_with("# EOF\n"), "{first}");
    let before = samples(&first);

    host.start(host_run(64)).unwrap();
    let (fake, liar) = (Fake::attach(&host, "fake"), Fake::attach(&host, "liar"));
    fake.wait_heard::<Go>(1);
    liar.wait_heard::<Go>(1);
    // A subscriber that is there at the end, and was too slow once.
    let now = subscription(v1::SubscribeFrom::Now);
    let _subscriber = Live::of(&host, now, 2);
    wait_for("a loss", || {
        fake.emit_many(0, 1000);
        samples(&text(&mut host))["nrt_trace_subscribed_lost_total"] > 0.0
    });
    // Overwritten, delivered, unread; dropped by every cause; in flight for ever.
    fake.emit_many(0, 100);
    host.consume();
    fake.emit_many(0, 3);
    let rings = fake.rings();
    let word = |at: usize| &rings.map.words()[rings.layout.ring_word(1).unwrap() + at];
    fake.emit_many(1, 10);
    for at in [
        ring::DROPPED_IN_FLIGHT,
        ring::DROPPED_LAPPED,
        ring::DROPPED_SEQ,
    ] {
        word(at).store(1, Ordering::Relaxed);
    }
    word(ring::TAIL).store(11, Ordering::Relaxed);
    liar.emit_many(0, 5);
    host.consume();
    // What another capture of the process asked for, and what has no ring.
    let few = v1::StartRequest {
        events: vec!["nrt_execute".to_owned()],
        ..token_run("few", 64)
    };
    host.start(few).unwrap();
    let own = Fake::attach_with_token(&host, "few");
    own.wait_heard::<Go>(1);
    own.start_own(1, 64, u64::MAX, 1);
    own.own_answer(1);
    own.emit_many(0, 10);
    host.fetch(v1::FetchRequest {
        token: "few".to_owned(),
        auto_commit: true,
        ..fetch()
    })
    .unwrap();
    fake.intern_as(5, b"no hash of mine");
    fake.rings().map.words()[segment::NO_RING].store(1, Ordering::Relaxed);
    let of_liar = liar.rings();
    of_liar.map.words()[of_liar.layout.ring_word(0).unwrap() + ring::TAIL]
        .store(1, Ordering::Relaxed);
    drop(host.fetch(fetch()));
    wait_for("the quarantine", || host.status().quarantined == 1);
    fake.emit_many(0, 4);
    drop(host.fetch(v1::FetchRequest {
        discard: true,
        nc: vec![0],
        ..fetch()
    }));
    fake.emit_many(0, 2);
    // One too many for its user.
    let _third = Fake::attach(&host, "third");
    let visitor = crate::support::connect(&host);
    send(&visitor, &hello("fourth", "", &[]));
    wait_for("the refusal", || host.status().refused == 1);
    // A fetch that nobody reads, and its client goes.
    let big = v1::StartRequest {
        token: "big".to_owned(),
        ..host_run(64)
    };
    host.start(big).unwrap();
    let Client { rpc, runtime } = &mut *host;
    let monitor = v1::StartHostRequest::default();
    runtime.block_on(rpc.start_host(monitor)).unwrap();
    let token = "big".to_owned();
    host.stop(&token, false).unwrap();
    wait_for("a tick", || {
        let now = samples(&text(&mut host));
        *now.get("nrt_trace_host_ticks")
            .unwrap_or_else(|| panic!("{now:?}"))
            > 0.0
    });
    let last = text(&mut host);
    let after = samples(&last);

    // Numbers that only a fault moves, which has a test of its own, with a daemon of its own: `a_full_state_folder…` of
    // the spool, a pipe that nobody reads, a daemon that is stopped, a `/proc` of another kernel.
    let faults = [
        "nrt_trace_not_kept",
        "nrt_trace_log_dropped",
        "nrt_trace_host_missed_ticks",
        "nrt_trace_host_bad_values",
    ];
    // And what stays what it is while a daemon lives.
    let constant = [
        "nrt_trace_build_info",
        "nrt_trace_start_time_seconds",
        "nrt_trace_budget_allowed",
    ];
    assert_eq!(families(&first), families(&last));
    assert!(families(&last).len() >= 46);
    for family in families(&last) {
        let (then, now) = (of(&before, &family), of(&after, &family));
        if faults.contains(&family.as_str()) {
            assert_eq!(now.len(), 1, "{family}");
        } else if constant.contains(&family.as_str()) {
            assert!(!now.is_empty() && now == then, "{family}: {now:?}");
        } else {
            let before = |name: &str| then.get(name).copied().unwrap_or(0.0);
            // A sample that is new and stays 0 is no move.
            let moved = now.iter().any(|(name, value)| *value != before(name));
            assert!(moved, "{family} is moved by nothing: {now:?}");
        }
    }
    let ring_of = |family: &str, nc: u32| {
        let all = of(&after, family);
        let labels = format!("producer=\"{}\"", fake.id);
        let nc = format!("nc=\"{nc}\"");
        let mine = all
            .iter()
            .filter(|(name, _)| name.contains(&labels) && name.contains(&nc));
        mine.map(|(_, value)| *value).sum::<f64>()
    };
    let sum = ["delivered", "lost", "unread", "pending"];
    let sum: f64 = sum
        .iter()
        .map(|what| ring_of(&format!("nrt_trace_ring_{what}"), 0))
        .sum();
    assert!(
        (sum - ring_of("nrt_trace_ring_claimed", 0)).abs() < 0.5,
        "{last}"
    );
}

/// Any name may be in a label.
#[test]
fn names_are_escaped() {
    let mut host = Host::new();
    host.start(host_run(64)).unwrap();
    let fake = Fake::attach(&host, "a\"b\\c\nd");
    fake.wait_heard::<Go>(1);
    fake.emit_many(0, 1);
    let text = text(&mut host);
    let line = text
        .lines()
        .find(|line| line.starts_with("nrt_trace_ring_claimed_total{"));
    assert!(line.unwrap().contains(r#"name="a\"b\\c\nd""#), "{line:?}");
}
