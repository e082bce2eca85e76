//! Reading documents back: our own without loss, others' with patience, broken ones with a place.

use std::io::{self, Read};

use nrt_trace_export::json::{EventName, JsonError, JsonEvent, read_json};
use nrt_trace_export::{JsonOptions, ProcessIdMode};
use nrt_trace_model::payload::{self, FieldValue, Rendering};
use nrt_trace_model::{EventType, Phase, names};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::json_any::any_record;
use crate::parts::{begin, json_with, names, part, process, records};

fn read(document: &str) -> Result<Vec<JsonEvent>, (Vec<JsonEvent>, JsonError)> {
    let mut events = Vec::new();
    match read_json(document.as_bytes(), |event| {
        events.push(event);
        Ok(())
    }) {
        Ok(count) => {
            assert_eq!(count, events.len() as u64);
            Ok(events)
        }
        Err(error) => Err((events, error)),
    }
}

fn refused(document: &str) -> String {
    read(document).unwrap_err().1.to_string()
}

fn written(events: &[JsonEvent]) -> String {
    let mut text = b"{\"events\":[".to_vec();
    for (i, event) in events.iter().enumerate() {
        text.extend_from_slice(if i == 0 { b"" } else { b"," });
        event.write(&mut text).unwrap();
    }
    text.extend_from_slice(b"],\"data_version\":2}");
    String::from_utf8(text).unwrap()
}

/// An event with the keys that it must have, and `more`.
fn event_with(more: &str) -> String {
    format!(
        r#"{{"event_type":"nrt_execute","phase":"start","nc_idx":1,"tracking_id":5,"timestamp_ns":9{more}}}"#
    )
}

fn document(events: &str) -> String {
    format!(r#"{{"events":[{events}],"data_version":2}}"#)
}

fn one(event: &str) -> JsonEvent {
    read(&document(event)).unwrap().remove(0)
}

/// The value that a key of the payload shows, from the table and not from the writer.
fn shown(key: &payload::JsonKey, value: FieldValue) -> Value {
    match (value, key.rendering) {
        (FieldValue::Bool(b), _) => json!(b),
        (FieldValue::Signed(n), _) => json!(n),
        (FieldValue::Unsigned(n), Rendering::Hex) => json!(format!("{n:#x}")),
        (FieldValue::Unsigned(n), Rendering::Algorithm) => json!(names::algorithm(n)),
        (FieldValue::Unsigned(n), Rendering::UsageType) => json!(names::usage_type(n)),
        (FieldValue::Unsigned(n), Rendering::MemType) => json!(names::mem_type(n)),
        (FieldValue::Unsigned(n), Rendering::Plain | Rendering::ModelId) => json!(n),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(160))]
    #[test]
    fn what_the_writer_writes_reads_back_the_same(
        all in prop::collection::vec(any_record(), 0..30),
        known in prop_oneof![any::<u64>(), 1u64..4],
        name in any::<String>(),
        pid in any::<i32>(),
        gid in any::<i32>(),
        host in any::<u32>(),
        (names_shown, large_as_strings) in any::<(bool, bool)>(),
    ) {
        let mut process = process(3, pid);
        (process.worker_gid, process.visible_cores) = (gid, vec![host; 10]);
        let options = JsonOptions { process_id: ProcessIdMode::Always, names: names_shown, large_as_strings };
        let producer = part(nrt_trace_proto::v1::trace_part::Part::Producer(process));
        let text = json_with(&[begin(1, 1), producer, names(0, &[(known.max(1), &name)]), records(3, 9, &all)], options);
        let events = read(&text).unwrap();
        if !large_as_strings {
            prop_assert_eq!(&written(&events), &text);
        }
        prop_assert_eq!(events.len(), all.len());
        for (record, event) in all.iter().zip(&events) {
            let kind = EventType::from_value(record.trace_type());
            let phase = Phase::from_value(record.phase());
            let name = kind.map_or_else(
                || EventName::Other(format!("unknown_{}", record.trace_type())), EventName::Known);
            prop_assert_eq!(&event.event_type, &name);
            prop_assert_eq!(event.phase, phase);
            prop_assert_eq!(
                (event.id, event.nc_idx, event.nc_local_id, event.tracking_id, event.thread_id),
                (record.id(), 9, record.seq(), record.tracking_id(), record.thread_id()));
            prop_assert_eq!((event.worker_gid, event.nrta_seq_id), (gid, record.nrta_seq_id()));
            prop_assert_eq!((event.process_id, event.host_nc_idx), (Some(pid.into()), Some(host)));
            prop_assert!(event.more.is_empty());
            let layout = kind.zip(phase).and_then(|(kind, phase)| payload::layout(kind, phase));
            for key in layout.iter().flat_map(|layout| layout.json_keys) {
                if let Some(field) = key.field {
                    let value = shown(key, layout.unwrap().fields[field].read(&record.data()));
                    match value.as_u64().filter(|n| large_as_strings && *n >= 1 << 53) {
                        Some(large) => prop_assert_eq!(event.number(key.name), Some(large)),
                        None => prop_assert_eq!(event.value(key.name), Some(&value), "{}", key.name),
                    }
                }
            }
        }
    }

    #[test]
    fn any_bytes_are_an_answer_and_no_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut given = 0;
        let result = read_json(bytes.as_slice(), |_| { given += 1; Ok(()) });
        prop_assert!(result.is_err() && given == 0);
    }

    #[test]
    fn a_changed_byte_is_an_answer_and_no_panic(at in 0usize..400, byte in any::<u8>()) {
        let text = document(&[event_with(""), event_with(r#","data":{"model_id":7}"#)].join(","));
        let mut bytes = text.into_bytes();
        let at = at % bytes.len();
        bytes[at] = byte;
        let mut given = 0;
        if let Ok(count) = read_json(bytes.as_slice(), |_| { given += 1; Ok(()) }) {
            prop_assert_eq!(count, given);
        }
        prop_assert!(given <= 2);
    }
}

#[test]
fn both_spellings_of_a_name_are_one_type_and_unknown_names_stay() {
    let with = |name: &str| one(&event_with("").replace("nrt_execute", name)).event_type;
    for name in ["nc_exec_running", "device_exec"] {
        assert_eq!(with(name), EventName::Known(EventType::DeviceExec));
    }
    let newer = with("nrt_teleport");
    assert_eq!(
        (&newer, newer.name()),
        (&EventName::Other("nrt_teleport".to_owned()), "nrt_teleport")
    );
}

#[test]
fn keys_that_nothing_knows_are_kept_and_any_order_will_do() {
    let text = r#"{"x":{"a":[1,null]},"timestamp_ns":9,"data":{"model_id":1,"later":"ü","flag":true},"phase":"paused",
        "nc_idx":1,"tracking_id":5,"event_type":"nrt_execute"}"#;
    let event = one(text);
    assert_eq!(event.phase, None, "a phase that is none of the three");
    assert_eq!(event.more, [("x".to_owned(), json!({"a": [1, null]}))]);
    let keys: Vec<_> = event.data.iter().map(|(key, _)| key.as_ref()).collect();
    assert_eq!(keys, ["model_id", "later", "flag"]);
    assert_eq!(
        (event.number("model_id"), event.value("later")),
        (Some(1), Some(&json!("ü")))
    );
    assert_eq!(
        (
            event.id,
            event.nc_local_id,
            event.thread_id,
            event.worker_gid
        ),
        (0, 0, 0, -1),
        "keys that may be absent"
    );
    let around =
        format!(r#" {{ "meta" : {{"events":[3]}}, "data_version" : 2 , "events" : [ {text} ] }} "#);
    assert_eq!(read(&around).unwrap(), [event]);
}

#[test]
fn ids_above_2_to_the_53_are_whole_as_numbers_and_as_digits() {
    for id in [(1u64 << 53) + 1, u64::MAX - 1, u64::MAX] {
        for written in [id.to_string(), format!("\"{id}\"")] {
            let event = one(&event_with(&format!(
                r#","id":{written},"nrta_seq_id":{written},"data":{{"model_id":{written}}}"#
            )));
            assert_eq!(
                (event.id, event.nrta_seq_id, event.number("model_id")),
                (id, Some(id), Some(id)),
                "{written}"
            );
        }
    }
    let below = one(&event_with(r#","process_id":-9223372036854775808"#));
    assert_eq!(below.process_id, Some(i64::MIN));
}

#[test]
fn a_document_that_is_cut_anywhere_says_so_and_gives_what_was_whole() {
    let events: Vec<String> = ["", r#","data":{"model_id":7,"model_name":"é\n"}"#, ""]
        .iter()
        .map(|more| event_with(more))
        .collect();
    let text = document(&events.join(","));
    let ends: Vec<usize> = (1..=3)
        .map(|n| r#"{"events":["#.len() + events[..n].join(",").len())
        .collect();
    let all = read(&text).unwrap();
    for cut in 0..text.len() {
        let bytes = &text.as_bytes()[..cut];
        let mut given = Vec::new();
        let error = read_json(bytes, |event| {
            given.push(event);
            Ok(())
        })
        .unwrap_err();
        let whole = ends.iter().filter(|end| **end <= cut).count();
        assert_eq!(given, all[..whole], "cut at {cut}");
        let JsonError::Cut { events, offset } = error else {
            panic!("cut at {cut}: {error}")
        };
        assert_eq!((events, offset), (whole as u64, cut as u64));
    }
    assert_eq!(
        refused(&text[..ends[1] + 5]),
        format!(
            "the document is cut after byte {}: 2 events were read, what came later is missing",
            ends[1] + 5
        )
    );
}

#[test]
fn what_is_no_event_is_named_with_its_place() {
    let cases = [
        (
            "[]",
            "byte 1, before the first event ended: invalid type: sequence, expected a trace document",
        ),
        (
            "{}",
            "byte 2, before the first event ended: the document has no `events`",
        ),
        (r#"{"events":{}}"#, "expected an array of events"),
        (
            r#"{"events":[],"events":[]}"#,
            "`events` stands there twice",
        ),
        (
            r#"{"events":[],"data_version":3}"#,
            "the document has data_version 3; this program reads 2",
        ),
        (
            r#"{"data_version":1,"events":[5]}"#,
            "the document has data_version 1; this program reads 2",
        ),
        (
            r#"{"events":[]} x"#,
            "byte 15, before the first event ended: trailing characters",
        ),
        (r#"{"events":[{}]}"#, "missing field `event_type`"),
        (
            r#"{"events":[3]}"#,
            "invalid type: integer `3`, expected an event",
        ),
    ];
    for (text, expected) in cases {
        let error = refused(text);
        assert!(error.contains(expected), "{text}: {error}");
        assert!(!error.contains(" line "), "one place is enough: {error}");
    }
    for (more, expected) in [
        (r#","phase":"start""#, "duplicate field `phase`"),
        (
            r#","id":-1"#,
            "invalid value: integer `-1`, expected a whole number of at most 64 bits, or its digits",
        ),
        (r#","id":1.5"#, "invalid type: floating point `1.5`"),
        (r#","id":"12x""#, "invalid value: string \"12x\""),
        (r#","id":"+1""#, "invalid value: string \"+1\""),
        (r#","host_nc_idx":4294967296"#, "at most 32 bits"),
        (r#","data":[]"#, "expected an object with the event's data"),
        (r#","event_type":null"#, "expected an event name"),
        (",", "trailing comma"),
    ] {
        let text = document(&[event_with(""), event_with(more)].join(","));
        let (given, error) = read(&text).unwrap_err();
        assert_eq!(given.len(), 1, "the event before stays");
        let error = error.to_string();
        assert!(
            error.contains(expected) && error.contains("after 1 events"),
            "{more}: {error}"
        );
    }
    let mut bytes = document(&event_with(r#","x":"?""#)).into_bytes();
    let at = bytes.iter().position(|b| *b == b'?').unwrap();
    bytes[at] = 0xFF;
    let error = read_json(bytes.as_slice(), |_| Ok(())).unwrap_err();
    assert!(matches!(error, JsonError::Malformed { .. }), "{error}");
}

#[test]
fn errors_of_both_ends_come_back() {
    struct Broken(bool);
    impl Read for Broken {
        fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
            if std::mem::replace(&mut self.0, true) {
                return Err(io::Error::other("the disk is gone"));
            }
            bytes[0] = b'{';
            Ok(1)
        }
    }
    let error = read_json(Broken(false), |_| Ok(())).unwrap_err();
    assert!(
        matches!(&error, JsonError::Read(source) if source.to_string().contains("the disk is gone"))
    );
    let two = document(&[event_with(""), event_with("")].join(","));
    let mut taken = 0;
    let error = read_json(two.as_bytes(), |_| {
        taken += 1;
        Err(io::ErrorKind::StorageFull.into())
    })
    .unwrap_err();
    assert_eq!(taken, 1, "nothing more is given to one that failed");
    assert!(
        matches!(error, JsonError::Sink(source) if source.kind() == io::ErrorKind::StorageFull)
    );
}
