//! Fetching consumes, exactly once, and says what was overwritten.

use nrt_trace_tests::payload::numbers;
use nrt_trace_tests::{Document, Host};
use serde_json::Value;

use crate::checks::assert_no_hole;

fn range(first: u64, last: u64) -> Vec<u64> {
    (first..=last).collect()
}

/// Sums a field over the rings of the host's run.
fn rings(host: &Host, field: &str) -> u64 {
    let status = host.status();
    let rings = status["runs"][0]["accounts"]
        .as_array()
        .expect("a run with rings")
        .iter();
    rings.map(|ring| ring[field].as_u64().unwrap()).sum()
}

#[test]
fn two_fetches_give_every_event_once() {
    let host = Host::with_daemon();
    let mut probe = host.interactive_probe(&["-n", "700", "-t", "3", "--nc", "0,1"]);
    let started = host.tracectl(&["start"]).ok();
    assert!(
        started
            .text()
            .contains(&format!("armed    {}", probe.pid())),
        "{started}"
    );

    probe.ask("go");
    let first = host.fetch();
    assert_no_hole(&first, 1);
    probe.ask("go");
    let second = host.fetch();
    for (document, expected) in [(&first, range(1, 700)), (&second, range(701, 1400))] {
        let numbers = numbers(&document.events);
        assert_eq!(numbers.len(), 3);
        assert!(numbers.values().all(|n| *n == expected), "{numbers:?}");
    }
    // Threads 0 and 2 share NC 0.
    let first_of = |document: &Document, nc| {
        document
            .events
            .iter()
            .find(|e| e.nc_idx == nc)
            .map(|e| e.nc_local_id)
    };
    assert_eq!(
        (first_of(&second, 0), first_of(&second, 1)),
        (Some(1401), Some(701))
    );

    assert_eq!(host.fetch().events.len(), 0);
    assert_eq!(
        (
            rings(&host, "claimed"),
            rings(&host, "delivered"),
            rings(&host, "lost")
        ),
        (4200, 4200, 0)
    );
}

#[test]
fn a_wrapped_ring_gives_exactly_the_last_cap_events_and_says_how_many_were_overwritten() {
    for cap in [1024, 1025, 1500, 2048] {
        let host = Host::with_daemon();
        host.tracectl(&["start", "--max-events-per-nc", &cap.to_string()])
            .ok();
        let emitted = 3 * cap + 1;
        let mut probe = host.interactive_probe(&["-n", &emitted.to_string()]);
        assert_eq!(
            probe.ask("go"),
            format!("{{\"recorded\":{emitted},\"refused\":0}}\n")
        );

        let fetched = host.tracectl(&["fetch", "-o", "-"]).ok();
        let document = Document::parse(&fetched.stdout);
        assert_eq!(
            numbers(&document.events)[&0],
            range(emitted - cap + 1, emitted),
            "cap {cap}"
        );
        assert_no_hole(&document, emitted - cap + 1);
        let overwritten = emitted - cap;
        assert!(
            fetched
                .stderr
                .replace(',', "")
                .contains(&overwritten.to_string()),
            "{overwritten} overwritten in: {fetched}"
        );
        let account = [
            "claimed",
            "delivered",
            "lost",
            "overwritten",
            "unread",
            "pending",
        ];
        let account = account.map(|field| rings(&host, field));
        assert_eq!(
            account,
            [emitted, cap, overwritten, overwritten, 0, 0],
            "cap {cap}"
        );
    }
}

#[test]
fn a_ring_below_the_least_size_is_raised_with_a_warning() {
    let host = Host::with_daemon();
    let started = host.tracectl(&["start", "--max-events-per-nc", "10"]).ok();
    assert!(
        started.stderr.contains("1024") || started.stderr.contains("1,024"),
        "{started}"
    );
    host.probe(&["-n", "2000"]).ok();
    assert_eq!(numbers(&host.fetch().events)[&0], range(977, 2000));
}

#[test]
fn events_stay_after_stop_until_they_are_fetched() {
    let host = Host::with_daemon();
    host.tracectl(&["start"]).ok();
    let mut probe = host.interactive_probe(&["-n", "100"]);
    probe.ask("go");
    host.tracectl(&["stop"]).ok();
    let after: Value = serde_json::from_str(&probe.ask("go")).unwrap();
    assert_eq!(after["recorded"], 0, "capturing has ended");
    assert_eq!(numbers(&host.fetch().events)[&0], range(1, 100));
    assert_eq!(host.fetch().events.len(), 0);
}

#[test]
fn the_next_start_gives_unread_events_up_and_says_how_many_unless_told_to_keep() {
    let host = Host::with_daemon();
    host.tracectl(&["start"]).ok();
    let mut probe = host.interactive_probe(&["-n", "100"]);
    probe.ask("go");
    host.tracectl(&["stop"]).ok();
    let kept = host.tracectl(&["start", "--keep"]).with_code(1);
    assert_eq!(kept.stderr.lines().count(), 1, "{kept}");
    let started = host.tracectl(&["start"]).ok();
    assert!(started.text().contains("100"), "{started}");
    probe.ask("go");
    assert_eq!(numbers(&host.fetch().events)[&0], range(101, 200));
}

#[test]
fn a_process_that_has_ended_leaves_its_events_and_names() {
    let host = Host::with_daemon();
    host.tracectl(&["start"]).ok();
    host.probe(&["-n", "50", "--model", "gone.neff"]).ok();
    let killed = host.probe(&["-n", "60", "--model", "gone too.neff", "--end", "kill"]);
    assert_eq!(killed.signal(), Some(9));
    let document = host.fetch();
    let by_process = document.by_process();
    assert_eq!(by_process.len(), 2);
    let names = |events: &[&nrt_trace_tests::Event]| {
        let names = events
            .iter()
            .filter_map(|e| Some(e.data.get("model_name")?.as_str()?.to_owned()));
        names.collect::<Vec<_>>()
    };
    let mut seen: Vec<_> = by_process
        .values()
        .map(|events| (numbers(events.iter().copied())[&0].len(), names(events)))
        .collect();
    seen.sort();
    let twice = |name: &str| vec![name.to_owned(); 2];
    assert_eq!(
        seen,
        [(50, twice("gone.neff")), (60, twice("gone too.neff"))]
    );
}

/// What has been fetched is still in a snapshot, which takes nothing away from a later fetch.
#[test]
fn a_snapshot_has_all_that_the_rings_hold_and_consumes_nothing() {
    let host = Host::with_daemon();
    host.tracectl(&["start", "--max-events-per-nc", "2000"])
        .ok();
    let mut probe = host.interactive_probe(&["-n", "1500"]);
    probe.ask("go");
    assert_eq!(numbers(&host.fetch().events)[&0], range(1, 1500));
    probe.ask("go");
    let said = host.tracectl(&["snapshot", "-o", "now.json"]).ok();
    let document = Document::read(&host.path("now.json"));
    assert_eq!(numbers(&document.events)[&0], range(1001, 3000));
    assert!(said.stderr.contains("2,000 events"), "{said}");
    assert_eq!(numbers(&host.fetch().events)[&0], range(1501, 3000));
    let none = host.tracectl(&["snapshot", "-o", "now.json", "--process", "1"]);
    let none = none.with_code(2);
    assert!(none.stderr.contains("the run has no process 1"), "{none}");
}
