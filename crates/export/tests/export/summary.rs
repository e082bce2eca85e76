//! The summary's figures, worked out by hand.

use nrt_trace_abi::record::Record;
use nrt_trace_export::{DurationStats, Report, Summary, TypeReport};
use nrt_trace_model::payload::{DeviceExecStart, DeviceExecStop, TimestampSync};
use nrt_trace_proto::v1::{
    Correlation, ProducerAccount, ProducerState, RingAccount, SyncPoint, TracePart,
    trace_part::Part,
};

use crate::parts::{
    account, begin, correlations, end, event, part, plain, process, producer, records,
};

fn summary(parts: &[TracePart]) -> Summary {
    let mut summary = Summary::new();
    for part in parts {
        summary.part(part);
    }
    summary
}

fn report(parts: &[TracePart]) -> Report {
    summary(parts).report()
}

fn of_type<'a>(report: &'a Report, name: &str) -> &'a TypeReport {
    report.types.iter().find(|t| t.event_type == name).unwrap()
}

/// `nrt_execute` at a time.
fn execute(phase: u32, seq: u64, tracking_id: u64, timestamp_ns: u64) -> Record {
    let mut record = event(3, phase, 0, seq, tracking_id, [0; 5]);
    record.words[5] = timestamp_ns;
    record
}

#[test]
fn pairs_are_matched_by_process_type_nc_and_tracking_id() {
    let both = [execute(0, 1, 9, 100), execute(1, 2, 9, 150)];
    let start = [execute(0, 1, 9, 0)];
    let stop = [execute(1, 1, 9, 1_000)];
    let other_type = [event(4, 1, 0, 3, 9, [0; 5])];
    let parts = [
        records(1, 0, &start),
        records(1, 1, &both), // the same id on another NC
        records(2, 0, &both), // and in another process
        records(1, 0, &other_type),
        records(1, 0, &stop), // the first one's, in a later part
        records(3, 0, &stop), // nobody's
        records(3, 1, &start),
    ];
    let report = report(&parts);
    assert_eq!(report.events, 9);
    let t = of_type(&report, "nrt_execute");
    assert_eq!(
        (t.events, t.starts, t.stops, t.instants, t.pairs),
        (8, 4, 4, 0, 3)
    );
    assert_eq!((t.unmatched_starts, t.unmatched_stops), (1, 1));
    assert_eq!(
        t.durations,
        Some(DurationStats {
            total_ns: 1_100,
            mean_ns: 366,
            p50_ns: 50,
            p90_ns: 1_000,
            p99_ns: 1_000,
            max_ns: 1_000
        })
    );
    assert_eq!(of_type(&report, "kmgr_exec").unmatched_stops, 1);
}

/// Any program can emit one. It happened, at one time, as an instant does.
#[test]
fn a_phase_that_does_not_exist_counts_as_an_instant() {
    let odd = [
        execute(2, 1, 1, 0),
        execute(3, 2, 2, 0),
        execute(77, 3, 3, 0),
    ];
    let report = report(&[records(1, 0, &odd)]);
    let t = of_type(&report, "nrt_execute");
    assert_eq!((t.events, t.starts, t.stops, t.instants), (3, 0, 0, 3));
}

#[test]
fn quantiles_are_those_of_the_pairs() {
    // Durations 1, 2, … 100 ns, and one that the histogram rounds.
    let pair = |i: u64, ns| {
        [
            execute(0, 2 * i - 1, i, 1_000),
            execute(1, 2 * i, i, 1_000 + ns),
        ]
    };
    let hundred: Vec<_> = (1..=100).flat_map(|i| pair(i, i)).collect();
    let durations = |all: &[Record]| {
        of_type(&report(&[records(1, 0, all)]), "nrt_execute")
            .durations
            .unwrap()
    };
    assert_eq!(
        durations(&hundred),
        DurationStats {
            total_ns: 5050,
            mean_ns: 50,
            p50_ns: 50,
            p90_ns: 90,
            p99_ns: 99,
            max_ns: 100
        }
    );
    let odd = durations(&pair(1, 123_456_789));
    assert_eq!(
        odd,
        DurationStats {
            total_ns: 123_456_789,
            mean_ns: 123_456_789,
            p50_ns: 123_456_789,
            p90_ns: 123_456_789,
            p99_ns: 123_456_789,
            max_ns: 123_456_789
        }
    );
}

/// A `generic` event that carries a name's id, at a time.
fn named(phase: u32, seq: u64, tracking_id: u64, name: u64) -> Record {
    event(0, phase, 0, seq, tracking_id, [name, 0, 0, 0, 0])
}

#[test]
fn spans_are_shown_under_their_names() {
    let all = [
        named(0, 10, 1, 5),
        named(0, 20, 2, 6),
        named(1, 30, 2, 6),
        named(1, 60, 1, 7), // its own name does not count: it ends what carries 5
        named(2, 70, 0, 0),
        named(2, 80, 0, 8),
    ];
    let parts = [
        crate::parts::names(0, &[(5, "step"), (6, "load\x1b"), (5, "other")]),
        records(1, 0, &all),
    ];
    let summary = summary(&parts);
    let report = summary.report();
    let shown: Vec<_> = report
        .types
        .iter()
        .map(|t| {
            (
                t.name.as_deref(),
                t.events,
                t.pairs,
                t.durations.map(|d| d.max_ns),
            )
        })
        .collect();
    assert_eq!(
        shown,
        [
            (Some("load\x1b"), 2, 1, Some(10)),
            (Some("step"), 2, 1, Some(50)),
            (None, 2, 0, None),
        ]
    );
    let text = summary.to_text();
    let first = text.lines().nth(1).unwrap();
    assert!(first.starts_with(r#""load\u{1b}"  "#), "{text}");
}

#[test]
fn spans_of_too_many_names_count_as_plain_ones() {
    let all: Vec<_> = (1..=300).map(|n| named(2, n, 0, n)).collect();
    let texts: Vec<_> = (1..=300).map(|n| (n, n.to_string())).collect();
    let texts: Vec<_> = texts.iter().map(|(n, text)| (*n, text.as_str())).collect();
    let report = report(&[crate::parts::names(0, &texts), records(1, 0, &all)]);
    assert_eq!(report.types.len(), 257);
    let plain = report.types.iter().find(|t| t.name.is_none()).unwrap();
    assert_eq!((plain.event_type, plain.events), ("generic", 44));
}

#[test]
fn pairs_without_a_positive_duration_are_counted_apart() {
    let all = [
        execute(0, 1, 1, 100),
        execute(1, 2, 1, 100),
        execute(0, 3, 2, 100),
        execute(1, 4, 2, 99),
    ];
    let report = report(&[records(1, 0, &all)]);
    let t = of_type(&report, "nrt_execute");
    assert_eq!((t.pairs, t.not_positive, t.durations), (2, 2, None));
}

#[test]
fn a_start_that_is_started_again_is_unmatched() {
    let all = [
        execute(0, 1, 1, 100),
        execute(0, 2, 1, 200),
        execute(1, 3, 1, 230),
    ];
    let report = report(&[records(1, 0, &all)]);
    let t = of_type(&report, "nrt_execute");
    assert_eq!(
        (t.pairs, t.unmatched_starts, t.durations.unwrap().max_ns),
        (1, 1, 30)
    );
}

#[test]
fn open_starts_are_bounded_and_the_oldest_gives_way() {
    let bound = 65_536;
    let mut all = vec![execute(0, 1, u64::MAX, 5)];
    all.extend((1..=bound).map(|i| execute(0, 1 + i, i, 10)));
    all.push(execute(1, bound + 2, u64::MAX, 20));
    all.push(execute(1, bound + 3, 1, 20));
    let report = report(&[records(1, 0, &all)]);
    let t = of_type(&report, "nrt_execute");
    assert_eq!(
        (t.pairs, t.unmatched_starts, t.unmatched_stops),
        (1, bound, 1)
    );
    assert_eq!(t.durations.unwrap().max_ns, 10);
}

#[test]
fn device_spans_have_the_times_of_the_json_document() {
    let start = |seq| {
        event(
            7,
            0,
            0,
            seq,
            5,
            DeviceExecStart {
                exec_id: 7,
                nc_timestamp_ns: 100,
                ..Default::default()
            }
            .to_data(),
        )
    };
    let stop = |seq| {
        event(
            7,
            1,
            0,
            seq,
            5,
            DeviceExecStop {
                nc_timestamp_ns: 130,
                ..Default::default()
            }
            .to_data(),
        )
    };
    let sync = event(
        25,
        2,
        0,
        3,
        0,
        TimestampSync {
            exec_id: 7,
            nc_timestamp_ns: 0,
            cpu_timestamp_ns: 1_000,
        }
        .to_data(),
    );
    let duration = |s: &Summary| {
        of_type(&s.report(), "nc_exec_running")
            .durations
            .map(|d| d.max_ns)
    };
    let mut s = summary(&[records(1, 0, &[start(1), stop(2)])]);
    assert_eq!(
        duration(&s),
        Some(1),
        "without a sync point the host's times stay"
    );
    assert_eq!(s.report().events, 2);
    s.part(&records(1, 0, &[sync]));
    assert_eq!(
        duration(&s),
        Some(30),
        "the sync point may come later, in another fetch"
    );
}

#[test]
fn earlier_sync_points_come_as_correlations() {
    let sync = SyncPoint {
        nc_timestamp_ns: 0,
        cpu_timestamp_ns: 1_000,
    };
    let known = Correlation {
        exec_id: 7,
        model_id: None,
        sync: Some(sync),
    };
    let start = DeviceExecStart {
        exec_id: 7,
        nc_timestamp_ns: 100,
        ..Default::default()
    };
    let stop = DeviceExecStop {
        nc_timestamp_ns: 130,
        ..Default::default()
    };
    let all = [
        event(7, 0, 0, 1, 5, start.to_data()),
        event(7, 1, 0, 2, 5, stop.to_data()),
    ];
    let report = report(&[correlations(1, 0, vec![known]), records(1, 0, &all)]);
    assert_eq!(
        of_type(&report, "nc_exec_running")
            .durations
            .map(|d| d.max_ns),
        Some(30)
    );
}

fn wrapped(producer_id: u32, nc_idx: u32) -> RingAccount {
    RingAccount {
        producer_id,
        nc_idx,
        claimed: 10_000,
        delivered: 1_024,
        lost: 8_970,
        pending: 6,
        dropped_in_flight: 3,
        dropped_lapped: 2,
        overwritten: 8_960,
        abandoned: 5,
        exact: true,
        ..RingAccount::default()
    }
}

#[test]
fn losses_add_up_over_rings_and_the_last_account_counts() {
    let mut earlier = wrapped(1, 0);
    earlier.lost = 1;
    let no_ring = ProducerAccount {
        producer_id: 1,
        no_ring: 7,
        ..ProducerAccount::default()
    };
    let report = report(&[
        begin(1, 1),
        producer(1, 10),
        part(Part::Account(earlier)),
        part(Part::Account(wrapped(1, 0))),
        part(Part::Account(account(1, 1, 50))),
        part(Part::ProducerAccount(no_ring)),
        end(1, 0),
    ]);
    let t = report.totals.unwrap();
    assert_eq!(
        (t.claimed, t.delivered, t.lost, t.pending, t.unread),
        (10_050, 1_074, 8_970, 6, 0)
    );
    assert_eq!(
        (
            t.overwritten,
            t.dropped_in_flight,
            t.dropped_lapped,
            t.dropped_seq,
            t.abandoned
        ),
        (8_960, 3, 2, 0, 5)
    );
    assert_eq!((report.processes[0].no_ring, t.exact), (7, true));
    assert_eq!(report.rings.len(), 2);
    let of_process = report.processes[0].account.unwrap();
    assert_eq!((of_process.claimed, of_process.lost), (10_050, 8_970));
    // 8,965 of the lost were not given up on request; 7 had no ring.
    assert_eq!(
        report.warnings,
        [
            "Warning: 8972 trace events were dropped during capture (stored 1074 out of 10057 total events). \
             Consider increasing buffer size, reducing trace duration, or filtering events.",
            "Warning: 7 events of process 10 (worker 1) were for NeuronCores that have no ring: \
             set NEURON_RT_VISIBLE_CORES or NEURON_RT_NUM_CORES",
        ]
    );
}

#[test]
fn what_producers_dropped_counts_before_the_reader_passed_it_by() {
    let ring = RingAccount {
        claimed: 10,
        delivered: 8,
        pending: 2,
        dropped_in_flight: 2,
        ..account(1, 0, 10)
    };
    let report = report(&[producer(1, 10), part(Part::Account(ring))]);
    assert!(
        report.warnings[0]
            .starts_with("Warning: 2 trace events were dropped during capture (stored 8 out of 10")
    );
}

#[test]
fn events_given_up_on_request_are_no_reason_to_warn() {
    let ring = RingAccount {
        claimed: 10,
        delivered: 4,
        lost: 6,
        abandoned: 6,
        ..account(1, 0, 10)
    };
    assert_eq!(
        report(&[producer(1, 10), part(Part::Account(ring))]).warnings,
        [""; 0]
    );
}

#[test]
fn a_process_that_emitted_nothing_is_named() {
    let mut hidden = process(3, 0);
    hidden.pid = None;
    hidden.name = String::new();
    let mut bad = process(4, 40);
    bad.set_state(ProducerState::Quarantined);
    let parts = [
        begin(1, 4),
        producer(1, 10),
        producer(2, 20),
        part(Part::Account(account(2, 0, 0))),
        part(Part::Producer(hidden)),
        part(Part::Producer(bad)),
        records(1, 0, &[plain(0, 1)]),
    ];
    assert_eq!(
        report(&parts).warnings,
        [
            "Warning: process 20 (worker 2) was attached, but no event of it was recorded",
            "Warning: producer 3 was attached, but no event of it was recorded",
            "Warning: process 40 (worker 4) wrote impossible words into its rings: nothing more was read from it",
        ]
    );
}

#[test]
fn text_and_json_show_the_figures() {
    let mut dead = process(1, 10);
    dead.set_state(ProducerState::Dead);
    dead.worker_gid = 4;
    let mut parts = vec![begin(1, 2), part(Part::Producer(dead)), producer(2, 20_000)];
    let mut all = Vec::new();
    for i in 1..=10 {
        all.extend([
            execute(0, 2 * i - 1, i, 1_000),
            execute(1, 2 * i, i, 1_000 + i * 1_000_000),
        ]);
    }
    all.extend([plain(0, 21), event(99, 2, 0, 22, 0, [0; 5])]);
    parts.push(records(1, 0, &all));
    parts.push(part(Part::Account(wrapped(1, 0))));
    let mut unclear = wrapped(2, 0);
    unclear.exact = false;
    parts.push(part(Part::Account(unclear)));
    parts.push(part(Part::Account(account(2, 1, 5))));
    let summary = summary(&parts);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/");
        std::fs::write(format!("{folder}summary.txt"), summary.to_text()).unwrap();
        std::fs::write(format!("{folder}summary.json"), summary.to_json()).unwrap();
    }
    assert_eq!(summary.to_text(), include_str!("../golden/summary.txt"));
    let golden: serde_json::Value =
        serde_json::from_str(include_str!("../golden/summary.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&summary.to_json()).unwrap();
    assert_eq!(json, golden, "{}", summary.to_json());
}

/// A ring of which no account came may have lost anything, and so may all of a trace that is no run's.
#[test]
fn losses_that_a_trace_does_not_tell_are_unknown() {
    let document = begin(1, 0); // of no run
    let cut = [begin(1, 2), producer(1, 10), records(1, 0, &[plain(0, 1)])];
    let known = part(Part::Account(account(1, 0, 1)));
    for (parts, unknown) in [
        (vec![document], true),
        (cut.to_vec(), true),
        ([&cut[..], &[known]].concat(), false),
    ] {
        let summary = summary(&parts);
        let text = summary.to_text();
        assert_eq!(text.contains("lost: unknown, since"), unknown, "{text}");
        assert_eq!(text.contains("lost 0"), !unknown, "{text}");
        let json: serde_json::Value = serde_json::from_str(&summary.to_json()).unwrap();
        assert_eq!(json["totals"].is_null(), unknown, "{json}");
        for list in ["accounts", "producers"] {
            for one in json[list].as_array().unwrap() {
                let lost = one.get("lost").expect("a key");
                assert_eq!(lost.is_null(), unknown, "{json}");
            }
        }
    }
}

#[test]
fn nothing_at_all_is_a_summary_too() {
    let nothing = summary(&[]);
    assert_eq!(nothing.report().events, 0);
    assert!(
        nothing
            .to_text()
            .contains("claimed 0 = delivered 0 + lost 0 + pending 0 + unread 0")
    );
}
