//! The JSON document beyond its payloads.

use std::cell::Cell;
use std::io::{self, Write};

use nrt_trace_abi::record::Draft;
use nrt_trace_export::{JsonOptions, JsonWriter, Memory, ProcessIdMode};
use nrt_trace_model::payload::{
    DeviceExecStart, DeviceExecStop, ExecPre, ModelLoadStop, NumErrInstant, TimestampSync,
};
use nrt_trace_proto::v1::{Correlation, FetchBegin, Records, TracePart, trace_part::Part};

use crate::parts::{
    account, begin, correlations, end, event, events, json, json_with, names, part, plain, process,
    producer, records,
};

fn model_load(seq: u64, model_id: u64) -> nrt_trace_abi::record::Record {
    event(1, 1, 0, seq, 0, ModelLoadStop { model_id }.to_data())
}

#[test]
fn no_event_is_a_document_too() {
    let empty = r#"{"events":[],"data_version":2}"#;
    assert_eq!(json(&[]), empty);
    assert_eq!(
        json(&[
            begin(1, 1),
            producer(1, 10),
            part(Part::Account(account(1, 0, 0))),
            end(1, 0)
        ]),
        empty
    );
}

#[test]
fn our_keys_follow_neurons_eleven() {
    let mut process = process(1, 10);
    process.visible_cores = vec![32, 33];
    process.worker_gid = 3;
    let draft = Draft {
        nc_idx: 1,
        phase: 2,
        nrta_seq_id: Some(0),
        ..Draft::default()
    };
    let parts = [
        begin(1, 2),
        part(Part::Producer(process)),
        records(1, 1, &[draft.finish(9)]),
    ];
    let expected = r#"{"events":[{"event_type":"generic","phase":"instant","id":1125899906842633,"nc_idx":1,"nc_local_id":9,"tracking_id":1125899906842633,"thread_id":0,"worker_gid":3,"data":{},"timestamp_ns":0,"nrta_seq_id":0,"process_id":10,"host_nc_idx":33}],"data_version":2}"#;
    assert_eq!(json(&parts), expected);
    let never = JsonOptions {
        process_id: ProcessIdMode::Never,
        ..JsonOptions::default()
    };
    let neurons = expected.replace(",\"process_id\":10,\"host_nc_idx\":33", "");
    assert_eq!(
        json_with(&parts, never),
        neurons,
        "not one of them on request"
    );
}

#[test]
fn process_id_comes_when_there_are_several_or_on_request() {
    let of = |producers, mode| {
        let parts = [
            begin(1, producers),
            producer(7, 4242),
            records(7, 0, &[plain(0, 1)]),
        ];
        let document = json_with(
            &parts,
            JsonOptions {
                process_id: mode,
                ..JsonOptions::default()
            },
        );
        events(&document)[0]
            .get("process_id")
            .and_then(serde_json::Value::as_i64)
    };
    assert_eq!(of(1, ProcessIdMode::WhenSeveral), None);
    assert_eq!(of(2, ProcessIdMode::WhenSeveral), Some(4242));
    assert_eq!(of(1, ProcessIdMode::Always), Some(4242));
    assert_eq!(of(2, ProcessIdMode::Never), None);
}

#[test]
fn a_process_that_the_host_cannot_see_has_its_negative_number() {
    let mut hidden = process(7, 0);
    hidden.pid = None;
    let parts = [
        begin(1, 2),
        part(Part::Producer(hidden)),
        records(7, 0, &[plain(0, 1)]),
        records(8, 0, &[plain(0, 1)]),
    ];
    let events = events(&json(&parts));
    assert_eq!(
        (&events[0]["process_id"], &events[1]["process_id"]),
        (&(-7).into(), &(-8).into())
    );
    assert_eq!(
        events[1]["worker_gid"], -1,
        "a producer that was not announced"
    );
}

#[test]
fn an_nc_that_is_not_visible_has_no_host_core() {
    let mut process = process(1, 10);
    process.visible_cores = vec![4];
    let parts = [
        part(Part::Producer(process)),
        records(1, 0, &[plain(0, 1)]),
        records(1, 1, &[plain(1, 1)]),
    ];
    let events = events(&json(&parts));
    assert_eq!(
        (&events[0]["host_nc_idx"], events[1].get("host_nc_idx")),
        (&4.into(), None)
    );
}

#[test]
fn identity_comes_from_the_part_and_not_from_the_record() {
    let mut forged = plain(200, 1);
    forged.set_producer_id(99);
    let parts = [begin(1, 2), producer(1, 10), records(1, 5, &[forged])];
    let events = events(&json(&parts));
    assert_eq!(
        (&events[0]["nc_idx"], &events[0]["process_id"]),
        (&5.into(), &10.into())
    );
}

#[test]
fn any_name_reads_back_as_it_was() {
    let mut texts: Vec<String> = (0..0x20u8)
        .map(|b| format!("<{}>", char::from(b)))
        .collect();
    texts.push((0..0x80u8).map(char::from).collect());
    texts.extend(
        [
            "",
            "\"\\/",
            "\u{2028}\u{2029}",
            "😀 naïve",
            "\u{FFFD}\u{FEFF}",
        ]
        .map(String::from),
    );
    texts.push("x".repeat(1 << 20));
    let entries: Vec<(u64, &str)> = (1..).zip(texts.iter().map(String::as_str)).collect();
    let loads: Vec<_> = entries.iter().map(|(id, _)| model_load(*id, *id)).collect();
    let document = json(&[names(0, &entries), records(1, 0, &loads)]);
    assert!(!document.bytes().any(|b| b < 0x20));
    let read: Vec<_> = events(&document)
        .iter()
        .map(|e| e["data"]["model_name"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(read, texts);
}

#[test]
fn the_first_name_of_an_id_stays_and_an_unknown_id_has_none() {
    let parts = [
        names(0, &[(5, "first"), (0, "nobody's")]),
        records(1, 0, &[model_load(1, 6)]),
        names(2, &[(5, "second"), (6, "late")]),
        records(
            1,
            0,
            &[model_load(2, 6), model_load(3, 5), model_load(4, 0)],
        ),
    ];
    let read: Vec<_> = events(&json(&parts))
        .iter()
        .map(|e| e["data"].to_string())
        .collect();
    let expected = [
        r#"{"model_id":6}"#,
        r#"{"model_id":6,"model_name":"late"}"#,
        r#"{"model_id":5,"model_name":"first"}"#,
        r#"{"model_id":0}"#,
    ];
    assert_eq!(read, expected);
}

thread_local! {
    /// Warnings of this thread, and so of one test.
    static WARNINGS: Cell<u64> = const { Cell::new(0) };
}

/// Counts warnings. It is the process's only subscriber: one for a scope can be overlooked where another thread was the
/// first to pass the same line without any.
struct Warnings;

impl tracing::Subscriber for Warnings {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() == tracing::Level::WARN
    }
    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, _: &tracing::Event<'_>) {
        WARNINGS.set(WARNINGS.get() + 1);
    }
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

#[test]
fn a_phase_without_payload_has_empty_data_and_one_warning_for_each_type_and_phase() {
    tracing::subscriber::set_global_default(Warnings).unwrap();
    let odd = [
        (1, 0),
        (1, 0),
        (5, 2),
        (7, 2),
        (7, 9),
        (7, u32::MAX),
        (46, 0),
        (u32::MAX, 3),
        (0, 2),
        (0, 0),
    ];
    let odd: Vec<_> = (1..)
        .zip(odd)
        .map(|(seq, (kind, phase))| event(kind, phase, 0, seq, 0, [u64::MAX; 5]))
        .collect();
    let mut writer = JsonWriter::new(Vec::new(), JsonOptions::default());
    writer.part(&records(1, 0, &odd)).unwrap();
    writer.part(&records(1, 1, &odd)).unwrap();
    let without = writer.without_payload();
    let document = String::from_utf8(writer.finish().unwrap()).unwrap();
    let events = events(&document);
    assert!(
        events.iter().all(|e| e["data"] == serde_json::json!({})),
        "{document}"
    );
    let shown: Vec<_> = events[..10]
        .iter()
        .map(|e| {
            (
                e["event_type"].as_str().unwrap(),
                e["phase"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        shown[3..8].to_vec(),
        [
            ("nc_exec_running", "instant"),
            ("nc_exec_running", "unknown"),
            ("nc_exec_running", "unknown"),
            ("unknown_46", "start"),
            ("unknown_4294967295", "unknown"),
        ]
    );
    assert_eq!(
        without, 16,
        "generic has no payload in any phase: nothing is missing"
    );
    assert_eq!(WARNINGS.get(), 6);
}

#[test]
fn model_and_time_of_a_device_event_come_from_its_own_ring_only() {
    let start = |seq| {
        let data = DeviceExecStart {
            device_core_idx: 1,
            exec_id: 7,
            nc_timestamp_ns: 150,
            cpu_timestamp_ns: 9,
        };
        event(7, 0, 0, seq, 0, data.to_data())
    };
    let sync = TimestampSync {
        exec_id: 7,
        nc_timestamp_ns: 100,
        cpu_timestamp_ns: 5_000,
    };
    let sync = event(25, 2, 0, 1, 0, sync.to_data());
    let pre = event(
        17,
        0,
        0,
        2,
        0,
        ExecPre {
            exec_id: 7,
            model_id: 77,
        }
        .to_data(),
    );
    let parts = [
        records(1, 0, &[start(1), plain(0, 2)]), // the partners come in another part of the ring
        records(1, 0, &[sync, pre]),
        records(1, 1, &[start(1)]), // another NC: nothing is known there
        records(2, 0, &[start(1)]), // another process
    ];
    let shown: Vec<_> = events(&json(&parts))
        .iter()
        .map(|e| {
            (
                e["timestamp_ns"].as_u64().unwrap(),
                e["data"]
                    .get("model_id")
                    .and_then(serde_json::Value::as_u64),
            )
        })
        .collect();
    assert_eq!(
        shown,
        [
            (5_050, Some(77)),
            (2, None),
            (5_000, None),
            (2, Some(77)),
            (1, None),
            (1, None)
        ]
    );
}

#[test]
fn earlier_knowledge_comes_as_correlations() {
    let known = Correlation {
        exec_id: 7,
        model_id: Some(77),
        sync: None,
    };
    let data = NumErrInstant {
        exec_id: 7,
        ..NumErrInstant::default()
    }
    .to_data();
    let parts = [
        names(0, &[(77, "m")]),
        correlations(1, 0, vec![known]),
        records(1, 0, &[event(13, 2, 0, 1, 0, data)]),
    ];
    let events = events(&json(&parts));
    assert_eq!(
        events[0]["data"].to_string(),
        r#"{"device_core_idx":0,"exec_id":7,"model_id":77,"model_name":"m","nc_timestamp_ns":0}"#
    );
}

/// A reader that consumes as it goes finds in the next document what the last one's events told: model, time, and which
/// execution a span that is still open belongs to. Another ring, and a document without memory, know nothing of it.
#[test]
fn the_next_document_knows_what_the_last_one_learned() {
    let pre = ExecPre {
        exec_id: 7,
        model_id: 77,
    };
    let sync = TimestampSync {
        exec_id: 7,
        nc_timestamp_ns: 100,
        cpu_timestamp_ns: 5_000,
    };
    let start = DeviceExecStart {
        device_core_idx: 1,
        exec_id: 7,
        nc_timestamp_ns: 150,
        cpu_timestamp_ns: 9,
    };
    let stop = DeviceExecStop {
        nc_timestamp_ns: 190,
        ..DeviceExecStop::default()
    };
    let first = records(
        1,
        0,
        &[
            event(17, 0, 0, 1, 0, pre.to_data()),
            event(25, 2, 0, 2, 0, sync.to_data()),
            event(7, 0, 0, 3, 3, start.to_data()),
        ],
    );
    let of_ring = |nc| records(1, nc, &[event(7, 1, nc, 4, 3, stop.to_data())]);
    let write = |part: &TracePart, memory| {
        let mut writer = JsonWriter::remembering(Vec::new(), JsonOptions::default(), memory);
        writer.part(part).unwrap();
        let (text, memory) = writer.finish_remembering().unwrap();
        let events = events(&String::from_utf8(text).unwrap());
        let times: Vec<_> = events
            .iter()
            .map(|e| e["timestamp_ns"].as_u64().unwrap())
            .collect();
        (times, memory)
    };
    let (times, memory) = write(&first, Memory::default());
    assert_eq!(times, [1, 5_000, 5_050]);
    let (times, memory) = write(&of_ring(1), memory);
    assert_eq!(times, [4], "another ring");
    let (times, _) = write(&of_ring(0), memory);
    assert_eq!(times, [5_090], "two documents later");
    assert_eq!(write(&of_ring(0), Memory::default()).0, [4]);
}

#[test]
fn names_stand_beside_spans_and_tracking_ids_on_request() {
    let parts = [
        begin(1, 1),
        names(0, &[(5, "load \"data\""), (6, "")]),
        records(
            1,
            0,
            &[
                event(0, 0, 0, 1, 5, [5, 0, 0, 0, 0]),
                event(0, 1, 0, 2, 6, [7, 5, 0, 0, 0]),
                event(3, 1, 0, 3, 5, [6, 0, 0, 0, 0]),
            ],
        ),
    ];
    let plain: Vec<_> = events(&json(&parts));
    assert!(plain.iter().all(|e| e.get("name").is_none()));
    let named = JsonOptions {
        names: true,
        process_id: ProcessIdMode::Always,
        ..JsonOptions::default()
    };
    let document = json_with(&parts, named);
    let shown: Vec<_> = events(&document)
        .iter()
        .map(|e| (e.get("name").cloned(), e.get("tracking_name").cloned()))
        .collect();
    let text = |text: &str| Some(serde_json::json!(text));
    assert_eq!(
        shown,
        [
            (text("load \"data\""), text("load \"data\"")),
            (None, text("")),
            (None, text("load \"data\"")),
        ],
        "only a generic event's first word is a name"
    );
    assert!(document.contains(
        r#""data":{},"timestamp_ns":1,"name":"load \"data\"","tracking_name":"load \"data\"","process_id":-1}"#
    ));
}

#[test]
fn many_events_go_out_in_pieces_and_all_arrive() {
    /// Takes a little at a time, as a pipe does.
    struct Trickle(Vec<u8>, usize);
    impl Write for Trickle {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.1 = self.1.max(bytes.len());
            let n = bytes.len().min(1000);
            self.0.extend_from_slice(&bytes[..n]);
            Ok(n)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut writer = JsonWriter::new(Trickle(Vec::new(), 0), JsonOptions::default());
    for chunk in 0..10 {
        let chunk: Vec<_> = (1..=1000).map(|i| plain(0, chunk * 1000 + i)).collect();
        writer.part(&records(1, 0, &chunk)).unwrap();
    }
    assert_eq!(writer.events(), 10_000);
    let Trickle(bytes, largest) = writer.finish().unwrap();
    assert!(largest < 200_000, "the buffer stays small: {largest}");
    let seqs: Vec<_> = events(&String::from_utf8(bytes).unwrap())
        .iter()
        .map(|e| e["nc_local_id"].as_u64().unwrap())
        .collect();
    assert!(seqs.into_iter().eq(1..=10_000));
}

#[test]
fn what_is_no_stream_of_this_version_is_refused() {
    let refused = |part: &TracePart| {
        let error = JsonWriter::new(Vec::new(), JsonOptions::default())
            .part(part)
            .unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        error.to_string()
    };
    let later = FetchBegin {
        format_version: 2,
        ..FetchBegin::default()
    };
    assert_eq!(
        refused(&part(Part::Begin(later))),
        "the trace has format version 2; this program reads 1"
    );
    let torn = Records {
        packed: vec![0; 113].into(),
        ..Records::default()
    };
    assert_eq!(
        refused(&part(Part::Records(torn))),
        "a records part of 113 bytes is not whole records"
    );
}

#[test]
fn the_writers_error_comes_back() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut writer = JsonWriter::new(Full, JsonOptions::default());
    let many: Vec<_> = (1..2000).map(|i| plain(0, i)).collect();
    assert_eq!(
        writer.part(&records(1, 0, &many)).unwrap_err().kind(),
        io::ErrorKind::StorageFull
    );
    let writer = JsonWriter::new(Full, JsonOptions::default());
    assert_eq!(
        writer.finish().map(|_| ()).unwrap_err().kind(),
        io::ErrorKind::StorageFull
    );
}
