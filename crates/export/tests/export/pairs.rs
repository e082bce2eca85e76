//! Case J07: starts without stops, stops without starts, and neighbours that share an instant.

use std::collections::BTreeMap;

use nrt_trace_abi::record::Record;
use nrt_trace_export::{CsvWriter, Summary};
use proptest::prelude::*;

use crate::parts::{event, events, json, records};

const START: u32 = 0;
const STOP: u32 = 1;

/// Events of one ring: phase, tracking id, time.
fn ring(all: &[(u32, u64, u64)]) -> Vec<Record> {
    let record = |(seq, (phase, tracking_id, time)): (u64, &(u32, u64, u64))| {
        let mut record = event(3, *phase, 0, seq, *tracking_id, [0; 5]);
        record.words[5] = *time;
        record
    };
    (1..).zip(all).map(record).collect()
}

/// Pairs, unmatched starts and stops, pairs without a duration, and the longest, of the summary.
fn summed(all: &[(u32, u64, u64)]) -> (u64, u64, u64, u64, u64) {
    let mut summary = Summary::new();
    summary.part(&records(1, 0, &ring(all)));
    let report = summary.report();
    let t = &report.types[0];
    assert_eq!(t.events, all.len() as u64);
    let longest = t.durations.map_or(0, |d| d.max_ns);
    (
        t.pairs,
        t.unmatched_starts,
        t.unmatched_stops,
        t.not_positive,
        longest,
    )
}

/// The same, worked out with nothing but a map.
fn modelled(all: &[(u32, u64, u64)]) -> (u64, u64, u64, u64, u64) {
    let mut open = BTreeMap::new();
    let (mut pairs, mut starts, mut strays, mut none, mut longest) = (0, 0, 0, 0, 0);
    for (phase, id, time) in all {
        if *phase == START {
            starts += 1;
            open.insert(*id, *time);
        } else if let Some(begun) = open.remove(id) {
            pairs += 1;
            match time.checked_sub(begun).filter(|d| *d > 0) {
                Some(duration) => longest = longest.max(duration),
                None => none += 1,
            }
        } else {
            strays += 1;
        }
    }
    (pairs, starts - pairs, strays, none, longest)
}

#[test]
fn j07_orphans_are_counted_and_kept_in_the_document() {
    let all = [
        (STOP, 1, 5),
        (START, 2, 10),
        (START, 3, 20),
        (STOP, 3, 30),
        (STOP, 2, 40),
        (STOP, 9, 50),
    ];
    assert_eq!(summed(&all), (2, 0, 2, 0, 30));
    let shown: Vec<_> = events(&json(&[records(1, 0, &ring(&all))]))
        .iter()
        .map(|e| {
            (
                e["phase"].as_str().unwrap().to_owned(),
                e["tracking_id"].as_u64().unwrap(),
            )
        })
        .collect();
    let expected = all.map(|(phase, id, _)| {
        let name = if phase == START { "start" } else { "stop" };
        (name.to_owned(), id)
    });
    assert_eq!(
        shown, expected,
        "as they were emitted: nothing is made up or left out"
    );
}

#[test]
fn j07_neighbours_at_one_instant_keep_their_order() {
    let all = [(START, 1, 10), (STOP, 1, 20), (START, 2, 20), (STOP, 2, 30)];
    assert_eq!(summed(&all), (2, 0, 0, 0, 10));
    let times: Vec<_> = events(&json(&[records(1, 0, &ring(&all))]))
        .iter()
        .map(|e| {
            (
                e["nc_local_id"].as_u64().unwrap(),
                e["timestamp_ns"].as_u64().unwrap(),
            )
        })
        .collect();
    assert_eq!(times, [(1, 10), (2, 20), (3, 20), (4, 30)]);
}

proptest! {
    #[test]
    fn j07_a_ring_that_wraps_inside_spans_agrees_with_a_model(
        steps in prop::collection::vec((0u32..2, 1u64..6, 0u64..3), 0..200),
        lost in 0usize..100,
    ) {
        let mut now = 1_000;
        let all: Vec<_> = steps
            .into_iter()
            .map(|(phase, id, later)| { now += later; (phase, id, now) })
            .skip(lost)
            .collect();
        prop_assume!(!all.is_empty());
        prop_assert_eq!(summed(&all), modelled(&all));
    }
}

/// A table has a row for whatever happened: times that are not known are empty.
#[test]
fn a_table_leaves_no_event_out() {
    const INSTANT: u32 = 2;
    let all = [
        (STOP, 1, 10),
        (START, 2, 20),
        (INSTANT, 3, 30),
        (STOP, 2, 45),
        (START, 4, 50),
    ];
    let mut writer = CsvWriter::new(Vec::new());
    writer.part(&records(1, 0, &ring(&all))).unwrap();
    let table = String::from_utf8(writer.finish().unwrap()).unwrap();
    let rows = table.lines().map(|row| {
        let cells: Vec<&str> = row.split(',').collect();
        [cells[4], cells[7], cells[8], cells[9], cells[10]].join(",")
    });
    assert_eq!(
        rows.collect::<Vec<_>>(),
        [
            "kind,tracking_id,start_ns,stop_ns,duration_ns",
            "stop,1,,10,",
            "instant,3,30,30,0",
            "span,2,20,45,25",
            "start,4,50,,",
        ]
    );
}
