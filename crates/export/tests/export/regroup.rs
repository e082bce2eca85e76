//! A recording of many fetches becomes one ordered fetch.

use std::collections::BTreeMap;
use std::io::Cursor;

use nrt_trace_abi::record::Record;
use nrt_trace_export::{NativeError, NativeWriter, PftraceOptions, PftraceWriter, Spool};
use nrt_trace_proto::v1::{
    ClockAnchor, FetchBegin, FetchEnd, ProducerAccount, TracePart, trace_part::Part,
};
use proptest::prelude::*;

use crate::parts::{account, begin, end, events, json, names, part, plain, producer, records};

fn spool(parts: &[TracePart]) -> Spool<Cursor<Vec<u8>>> {
    let mut writer = NativeWriter::new(Vec::new()).unwrap();
    for part in parts {
        writer.part(part).unwrap();
    }
    Spool::open(Cursor::new(writer.finish().unwrap())).unwrap()
}

fn regrouped<R: std::io::Read + std::io::Seek>(spool: &mut Spool<R>) -> Vec<TracePart> {
    let mut parts = Vec::new();
    let done: Result<(), NativeError> = spool.regroup(|part| {
        parts.push(part);
        Ok(())
    });
    done.unwrap();
    parts
}

fn ring(producer: u32, nc: u32, seqs: &[u64]) -> TracePart {
    let all: Vec<_> = seqs.iter().map(|s| plain(nc, *s)).collect();
    records(producer, nc, &all)
}

/// Seqs of all records, ring by ring in the order in which they come.
fn seqs(parts: &[TracePart]) -> Vec<((u32, u32), Vec<u64>)> {
    let mut rings: Vec<((u32, u32), Vec<u64>)> = Vec::new();
    for part in parts {
        let Some(Part::Records(records)) = &part.part else {
            continue;
        };
        let key = (records.producer_id, records.nc_idx);
        if rings.last().is_none_or(|r| r.0 != key) {
            rings.push((key, Vec::new()));
        }
        let all = records
            .packed
            .as_chunks()
            .0
            .iter()
            .map(|b| Record::from_bytes(b).seq());
        rings.last_mut().unwrap().1.extend(all);
    }
    rings
}

#[test]
fn interleaved_fetches_become_one_ring_by_ring() {
    let acc = |producer, nc, claimed| part(Part::Account(account(producer, nc, claimed)));
    let lost = |no_ring| {
        part(Part::ProducerAccount(ProducerAccount {
            producer_id: 2,
            no_ring,
            ..Default::default()
        }))
    };
    let mut spool = spool(&[
        begin(11, 1),
        producer(2, 20),
        names(0, &[(1, "a")]),
        ring(2, 0, &[1, 2]),
        acc(2, 0, 2),
        ring(2, 4, &[1]),
        acc(2, 4, 1),
        lost(1),
        end(11, 3),
        begin(12, 2),
        producer(2, 20),
        names(1, &[(2, "b"), (1, "a again")]),
        ring(2, 0, &[3]),
        acc(2, 0, 3),
        lost(5),
        producer(9, 90),
        ring(9, 1, &[1]),
        acc(9, 1, 1),
        end(12, 2),
        begin(13, 2),
        producer(2, 20),
        ring(2, 4, &[2, 3]),
        acc(2, 4, 3),
        acc(2, 0, 3),
        end(13, 2),
    ]);
    assert_eq!((spool.fetches(), spool.events()), (3, 7));
    let expected = [
        begin(13, 2),
        names(0, &[(1, "a"), (2, "b")]),
        producer(2, 20),
        ring(2, 0, &[1, 2]),
        ring(2, 0, &[3]),
        acc(2, 0, 3),
        ring(2, 4, &[1]),
        ring(2, 4, &[2, 3]),
        acc(2, 4, 3),
        lost(5),
        producer(9, 90),
        ring(9, 1, &[1]),
        acc(9, 1, 1),
        end(13, 7),
    ];
    assert_eq!(regrouped(&mut spool), expected);
    assert_eq!(regrouped(&mut spool), expected, "it can be read again");
    let ids: Vec<_> = events(&json(&expected))
        .iter()
        .map(|e| e["process_id"].as_i64().unwrap())
        .collect();
    assert_eq!(ids, [20, 20, 20, 20, 20, 20, 90]);
}

#[test]
fn events_published_late_are_put_in_their_place() {
    let mut spool = spool(&[
        begin(1, 1),
        ring(1, 0, &[1, 2, 4, 7]),
        ring(1, 5, &[1]),
        end(1, 5),
        begin(2, 1),
        ring(1, 0, &[3, 8, 9]),
        ring(1, 5, &[2]),
        end(2, 4),
        begin(3, 1),
        ring(1, 0, &[5, 6]),
        end(3, 2),
    ]);
    let expected = [((1, 0), (1..=9).collect()), ((1, 5), vec![1, 2])];
    assert_eq!(seqs(&regrouped(&mut spool)), expected);
    assert_eq!(
        seqs(&regrouped(&mut spool)),
        expected,
        "it can be read again"
    );
}

#[test]
fn a_fetch_that_was_broken_off_and_repeated_counts_once() {
    let acc = |claimed| part(Part::Account(account(1, 0, claimed)));
    let parts = [
        begin(1, 1),
        ring(1, 0, &[1, 2]),
        acc(2),
        end(1, 2),
        begin(2, 1),
        ring(1, 0, &[3, 4]),
        acc(4),
        begin(3, 1), // fetch 2 had no end
        ring(1, 0, &[3, 4, 5]),
        acc(5),
        end(3, 3),
        begin(4, 1),
        ring(1, 0, &[6]),
    ];
    let mut spool = spool(&parts);
    assert_eq!(
        spool.events(),
        6,
        "the last fetch has no end and no other after it: it stays"
    );
    let parts = regrouped(&mut spool);
    assert_eq!(seqs(&parts), [((1, 0), (1..=6).collect())]);
    assert!(parts.contains(&acc(5)));
}

#[test]
fn a_cut_recording_gives_what_stands_before_the_cut() {
    let mut writer = NativeWriter::new(Vec::new()).unwrap();
    for part in [
        begin(1, 1),
        producer(1, 10),
        ring(1, 0, &[1, 2]),
        end(1, 2),
        begin(2, 1),
        ring(1, 0, &[3]),
    ] {
        writer.part(&part).unwrap();
    }
    writer.flush_frame().unwrap();
    let whole = usize::try_from(writer.bytes_written()).unwrap();
    writer.part(&ring(1, 0, &[4])).unwrap();
    let file = writer.finish().unwrap();
    let mut spool = Spool::open(Cursor::new(file[..whole + 20].to_vec())).unwrap();
    assert_eq!(
        spool.cut().unwrap().to_string(),
        format!("the file is cut after byte {whole}: what was recorded later is missing")
    );
    let parts = regrouped(&mut spool);
    assert_eq!(seqs(&parts), [((1, 0), vec![1, 2, 3])]);
    assert!(
        matches!(parts.last().unwrap().part, Some(Part::End(e)) if e.events == 3 && !e.run_ended)
    );
}

#[test]
fn the_sinks_error_ends_the_pass() {
    let mut spool = spool(&[begin(1, 1), ring(1, 0, &[1]), end(1, 1)]);
    let mut calls = 0;
    let done: std::io::Result<()> = spool.regroup(|_| {
        calls += 1;
        Err(std::io::ErrorKind::StorageFull.into())
    });
    assert_eq!(
        (done.unwrap_err().kind(), calls),
        (std::io::ErrorKind::StorageFull, 1)
    );
}

#[test]
fn a_clock_that_was_set_between_fetches_is_told_with_the_looks_around_it() {
    const SECOND: u64 = 1_000_000_000;
    let look = |realtime_ns, boottime_ns| ClockAnchor {
        realtime_ns,
        monotonic_ns: boottime_ns,
        boottime_ns,
    };
    let fetch = |id, clock, clock_after, seq| {
        let begin = FetchBegin {
            format_version: 1,
            fetch_id: id,
            producers: 1,
            clock: Some(clock),
            ..FetchBegin::default()
        };
        let end = FetchEnd {
            fetch_id: id,
            clock: Some(clock_after),
            ..FetchEnd::default()
        };
        [
            part(Part::Begin(begin)),
            producer(1, 10),
            ring(1, 0, &[seq]),
            part(Part::End(end)),
        ]
    };
    let at = |s: u64| look(100 * SECOND + s * SECOND, s * SECOND);
    // Set back by 60 s between the second fetch and the third.
    let set = |s: u64| look(40 * SECOND + s * SECOND, s * SECOND);
    let parts = [
        fetch(1, at(1), at(2), 1),
        fetch(2, at(3), at(4), 2),
        fetch(3, set(5), set(6), 3),
    ];
    let parts = regrouped(&mut spool(&parts.concat()));
    let clocks: Vec<ClockAnchor> = parts
        .iter()
        .filter_map(|part| match &part.part {
            Some(Part::Begin(begin)) => begin.clock,
            _ => None,
        })
        .collect();
    assert_eq!(clocks, [at(1), at(4), set(5)]);
    assert!(
        matches!(&parts.last().unwrap().part, Some(Part::End(end)) if end.clock == Some(set(6)))
    );
    let mut writer = PftraceWriter::new(Vec::new(), PftraceOptions::default()).unwrap();
    parts.iter().for_each(|part| writer.part(part).unwrap());
    let file = writer.finish().unwrap();
    let said = b"clock set back by 60000000000 ns";
    assert!(file.windows(said.len()).any(|window| window == said));
    // What was converted keeps it.
    let clocks_again = regrouped(&mut spool(&parts));
    assert_eq!(clocks_again, parts);
}

/// Parts and error of both ways to read a recording.
fn both<R: std::io::Read + std::io::Seek + Send>(
    spool: &mut Spool<R>,
) -> [(Vec<TracePart>, Option<String>); 2] {
    let (mut here, mut ahead) = (Vec::new(), Vec::new());
    let done: Result<(), NativeError> = spool.regroup(|part| {
        here.push(part);
        Ok(())
    });
    let here = (here, done.err().map(|error| error.to_string()));
    let done: Result<(), NativeError> = spool.regroup_ahead(|part| {
        ahead.push(part);
        Ok(())
    });
    [here, (ahead, done.err().map(|error| error.to_string()))]
}

#[test]
fn what_is_damaged_is_told_after_what_stands_before_it() {
    let mut writer = NativeWriter::new(Vec::new()).unwrap();
    for part in [begin(1, 1), producer(1, 10), ring(1, 0, &[1, 2])] {
        writer.part(&part).unwrap();
    }
    writer.flush_frame().unwrap();
    let whole = usize::try_from(writer.bytes_written()).unwrap();
    writer.part(&ring(1, 0, &[3])).unwrap();
    writer.part(&end(1, 3)).unwrap();
    let mut file = writer.finish().unwrap();
    // Behind the second block's label, in its frame.
    file[whole + 60..whole + 64].fill(0xFF);
    let mut spool = Spool::open(Cursor::new(file)).unwrap();
    let [here, ahead] = both(&mut spool);
    assert_eq!(seqs(&here.0), [((1, 0), vec![1, 2])]);
    let error = here.1.as_deref().unwrap();
    assert!(
        error.contains(&format!("damaged at byte {whole}")),
        "{error}"
    );
    assert_eq!(ahead, here);
}

#[test]
fn the_sinks_error_ends_reading_ahead() {
    // More batches than may wait: the reader is waiting for room when the sink gives up.
    let mut parts = vec![begin(1, 1)];
    parts.extend((1..5000).map(|seq| ring(1, 0, &[seq])));
    parts.push(end(1, 4999));
    let mut spool = spool(&parts);
    let mut calls = 0;
    let done: std::io::Result<()> = spool.regroup_ahead(|_| {
        calls += 1;
        Err(std::io::ErrorKind::StorageFull.into())
    });
    assert_eq!(
        (done.unwrap_err().kind(), calls),
        (std::io::ErrorKind::StorageFull, 1)
    );
    let [here, ahead] = both(&mut spool);
    assert_eq!(seqs(&here.0), [((1, 0), (1..5000).collect())]);
    assert_eq!(ahead, here);
}

proptest! {
    /// Rings whose events come in any order over any number of fetches.
    #[test]
    fn any_recording_comes_out_complete_and_in_order(
        fetches in prop::collection::vec(prop::collection::vec((1u32..3, 0u32..3, prop::collection::vec(1u64..40, 0..8)), 0..6), 0..8),
        frames: bool,
    ) {
        let mut writer = NativeWriter::new(Vec::new()).unwrap();
        let mut expected: BTreeMap<(u32, u32), Vec<u64>> = BTreeMap::new();
        for (id, fetch) in (1..).zip(&fetches) {
            writer.part(&begin(id, 2)).unwrap();
            for (producer, nc, seqs) in fetch {
                writer.part(&ring(*producer, *nc, seqs)).unwrap();
                expected.entry((*producer, *nc)).or_default().extend(seqs);
                if frames {
                    writer.flush_frame().unwrap();
                }
            }
            writer.part(&end(id, 0)).unwrap();
        }
        expected.retain(|_, seqs| !seqs.is_empty());
        expected.values_mut().for_each(|seqs| seqs.sort_unstable());
        let mut spool = Spool::open(Cursor::new(writer.finish().unwrap())).unwrap();
        prop_assert_eq!(spool.events(), expected.values().map(|seqs| seqs.len() as u64).sum::<u64>());
        let [here, ahead] = both(&mut spool);
        prop_assert_eq!(&ahead, &here);
        let mut found = seqs(&here.0);
        found.retain(|(_, seqs)| !seqs.is_empty());
        prop_assert_eq!(found, expected.into_iter().collect::<Vec<_>>());
    }
}
