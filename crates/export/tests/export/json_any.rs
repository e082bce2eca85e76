//! Whatever words a producer wrote: the document is strict JSON with exactly the keys that belong there.

use std::fmt;

use nrt_trace_abi::record::{RECORD_WORDS, Record};
use nrt_trace_export::{JsonOptions, ProcessIdMode};
use nrt_trace_model::{EventType, Phase, payload};
use proptest::prelude::*;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::parts::{begin, json_with, names, producer, records};

/// An object's keys in the order in which they stand, with the text of their values.
struct Object(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Object;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Object(entries))
            }
        }
        deserializer.deserialize_map(Entries)
    }
}

impl Object {
    fn keys(&self) -> Vec<&str> {
        self.0.iter().map(|(k, _)| k.as_str()).collect()
    }
    fn get(&self, key: &str) -> &str {
        self.0
            .iter()
            .find(|(k, _)| k == key)
            .map(|(_, v)| v.get())
            .unwrap()
    }
}

fn events(document: &str) -> Vec<Object> {
    let document: Object = serde_json::from_str(document).unwrap();
    assert_eq!(document.keys(), ["events", "data_version"]);
    assert_eq!(document.get("data_version"), "2");
    serde_json::from_str(document.get("events")).unwrap()
}

fn check(record: &Record, event: &Object, known: u64) -> Result<(), TestCaseError> {
    let mut keys = vec![
        "event_type",
        "phase",
        "id",
        "nc_idx",
        "nc_local_id",
        "tracking_id",
        "thread_id",
        "worker_gid",
        "data",
        "timestamp_ns",
    ];
    if record.nrta_seq_id().is_some() {
        keys.push("nrta_seq_id");
    }
    keys.push("process_id");
    prop_assert_eq!(event.keys(), keys);
    prop_assert_eq!(event.get("id"), record.id().to_string());
    prop_assert_eq!(event.get("nc_local_id"), record.seq().to_string());
    prop_assert_eq!(event.get("tracking_id"), record.tracking_id().to_string());
    prop_assert_eq!(event.get("thread_id"), record.thread_id().to_string());
    let data: Object = serde_json::from_str(event.get("data")).unwrap();
    let kind_and_phase =
        EventType::from_value(record.trace_type()).zip(Phase::from_value(record.phase()));
    let layout = kind_and_phase.and_then(|(kind, phase)| payload::layout(kind, phase));
    let mut expected = Vec::new();
    for key in layout.iter().flat_map(|l| l.json_keys) {
        let model_is_of_another_event = key.field.is_none();
        if model_is_of_another_event && !data.keys().contains(&"model_id") {
            continue;
        }
        expected.push(key.name);
        if key.name == "model_id" && data.get("model_id") == known.to_string() {
            expected.push("model_name");
        }
    }
    prop_assert_eq!(data.keys(), expected);
    Ok(())
}

/// Words as a hostile producer might leave them, with types and phases that exist more often than chance gives.
pub(crate) fn any_record() -> impl Strategy<Value = Record> {
    let word = || prop_oneof![any::<u64>(), Just(0), Just(u64::MAX), 0u64..4];
    let words = prop::collection::vec(word(), RECORD_WORDS);
    let kind = prop_oneof![9 => 0u64..47, 1 => any::<u64>()];
    let phase = prop_oneof![9 => 0u64..4, 1 => any::<u64>()];
    (words, kind, phase).prop_map(|(words, kind, phase)| {
        let mut words: [u64; RECORD_WORDS] = words.try_into().unwrap();
        (words[0], words[11]) = (kind, phase);
        Record { words }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(160))]
    #[test]
    fn any_words_give_strict_json_with_the_right_keys_in_order(
        all in prop::collection::vec(any_record(), 1..40),
        known in prop_oneof![any::<u64>(), 1u64..4],
        name in any::<String>(),
    ) {
        let known = known.max(1);
        let options = JsonOptions { process_id: ProcessIdMode::Always, ..JsonOptions::default() };
        let document = json_with(&[begin(1, 1), producer(3, 33), names(0, &[(known, &name)]), records(3, 9, &all)], options);
        let events = events(&document);
        prop_assert_eq!(events.len(), all.len());
        for (record, event) in all.iter().zip(&events) {
            check(record, event, known)?;
        }
    }
}
