//! The JSON of all commands has one vocabulary: what a key is in one answer it is in every other.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use nrt_trace_proto::v1;
use nrt_trace_proto::v1::trace_part::Part;
use serde_json::Value;

use crate::fake::{Fake, Script};
use crate::tool::run;

/// Keys of an account, wherever one stands.
const ACCOUNT: [&str; 12] = [
    "abandoned",
    "claimed",
    "delivered",
    "dropped_in_flight",
    "dropped_lapped",
    "dropped_seq",
    "exact",
    "lost",
    "overwritten",
    "pending",
    "skipped",
    "unread",
];

/// Below these keys the names are others': Neuron's tools', or the figures of `docs/host-monitor.md`.
const FOREIGN: [&str; 1] = ["sample"];

fn account() -> v1::RingAccount {
    v1::RingAccount {
        producer_id: 1,
        claimed: 3,
        delivered: 2,
        unread: 1,
        ..v1::RingAccount::default()
    }
}

/// A daemon that has something to say under every key.
fn full(script: &mut Script) {
    let run = v1::Run {
        run_id: 1,
        stopped_ns: Some(5),
        nc: vec![0],
        events: vec!["nrt_execute".to_owned()],
        past_filters: vec![v1::PastFilter::default()],
        forgotten: Some(account()),
        ..v1::Run::default()
    };
    let producer = v1::Producer {
        producer_id: 1,
        run_id: 1,
        pid: Some(42),
        name: "trainer".to_owned(),
        cmdline: vec!["trainer".to_owned()],
        visible_cores: vec![0],
        rings: vec![0],
        ..v1::Producer::default()
    };
    let armed = v1::ArmedProducer {
        refused: "no room".to_owned(),
        ..v1::ArmedProducer::default()
    };
    script.started = v1::StartResponse {
        run: Some(run.clone()),
        warnings: vec!["a warning".to_owned()],
        producers: vec![armed.clone()],
        abandoned: 7,
    };
    script.filtered = v1::SetFilterResponse {
        run: Some(run.clone()),
        warnings: vec!["a warning".to_owned()],
        producers: 3,
        rearmed: vec![armed],
    };
    script.stopped = v1::StopResponse {
        run: Some(run.clone()),
        not_quiescent: vec![1],
        accounts: vec![account()],
        away: vec![2],
    };
    script.runs = vec![v1::RunStatus {
        run: Some(run.clone()),
        accounts: vec![account()],
        ..v1::RunStatus::default()
    }];
    script.producers = vec![producer.clone()];
    script.names = vec![v1::StringEntry::default()];
    let begin = v1::FetchBegin {
        format_version: 1,
        run: Some(run),
        ..v1::FetchBegin::default()
    };
    script.parts = vec![
        Part::Begin(begin),
        Part::Producer(producer),
        Part::Account(account()),
        Part::End(v1::FetchEnd::default()),
    ];
    script.ticks = vec![v1::WatchHostStatsResponse {
        info: Some(v1::HostInfo::default()),
        sample: Some(v1::HostSample {
            cpus: vec![v1::HostCpu {
                idle: Some(50.0),
                ..v1::HostCpu::default()
            }],
            load: Some(v1::HostLoad::default()),
            disk: Some(v1::HostDisk::default()),
            ..v1::HostSample::default()
        }),
        saturated: false,
    }];
    script.host.running = true;
}

/// What a value is.
fn kind(value: &Value) -> Option<&'static str> {
    match value {
        Value::Null => None,
        Value::Bool(_) => Some("yes or no"),
        Value::Number(_) => Some("a number"),
        Value::String(_) => Some("a text"),
        Value::Array(_) => Some("a list"),
        Value::Object(_) => Some("an object"),
    }
}

/// Checks that a key of others is nothing else than ours of that name.
fn foreign(of: &str, value: &Value, known: &BTreeMap<String, &'static str>) {
    match value {
        Value::Array(all) => all.iter().for_each(|one| foreign(of, one, known)),
        Value::Object(fields) => {
            for (key, value) in fields {
                if let (Some(ours), Some(is)) = (known.get(key), kind(value)) {
                    assert_eq!(*ours, is, "{key} of {of}");
                }
                foreign(of, value, known);
            }
        }
        _ => {}
    }
}

/// Checks each key of an answer, and keeps what it is.
fn check(of: &str, value: &Value, known: &mut BTreeMap<String, &'static str>) {
    match value {
        Value::Array(all) => all.iter().for_each(|one| check(of, one, known)),
        Value::Object(fields) => {
            let keys: Vec<&str> = fields.keys().map(String::as_str).collect();
            if keys.contains(&"claimed") {
                let missing = ACCOUNT.iter().find(|key| !keys.contains(key));
                assert_eq!(missing, None, "{of}: {value}");
            }
            for (key, value) in fields {
                if let Some(is) = kind(value) {
                    let before = *known.entry(key.clone()).or_insert(is);
                    assert_eq!(before, is, "{key} of {of}");
                }
                assert!(
                    !key.ends_with("_count") || value.is_u64(),
                    "{key} of {of} is {value}"
                );
                if FOREIGN.contains(&key.as_str()) {
                    foreign(of, value, known);
                } else {
                    check(of, value, known);
                }
            }
        }
        _ => {}
    }
}

/// Every command that answers as JSON, but those whose answer is Neuron's document.
#[test]
fn a_key_is_the_same_in_every_answer_and_documented() {
    let fake = Fake::start(full);
    let place = |name: &str| fake.folder().join(name).to_str().unwrap().to_owned();
    let (file, native, json) = (place("t.json"), place("t.nrtt"), place("d.json"));
    let commands: [&[&str]; 17] = [
        &["start"],
        &["set-filter", "--nc", "0"],
        &["status"],
        &["producers"],
        &["doctor"],
        &["events"],
        &["strings"],
        &["host", "start"],
        &["host", "stop"],
        &["snapshot", "-o", &file],
        &["fetch", "-o", &native],
        &["fetch", "--discard"],
        &["stop"],
        &["stop", "--discard"],
        &["summary", &native],
        &["summary", &json],
        // Last: what stands in it is held against all others.
        &["host"],
    ];
    fs::write(&json, document()).unwrap();
    let mut known = BTreeMap::new();
    for command in commands {
        let socket = fake.socket().to_str().unwrap();
        let ended = run([&["--socket", socket], command, &["--format", "json"]].concat());
        let answer = serde_json::from_str(&ended.stdout);
        let answer: Value = answer.unwrap_or_else(|error| panic!("{error}: {ended:?}"));
        check(&command.join(" "), &answer, &mut known);
    }
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/commands.md");
    let page = fs::read_to_string(page).unwrap();
    let unsaid: Vec<&String> = (known.keys())
        .filter(|key| !page.contains(&format!("`{key}`")))
        .collect();
    assert!(unsaid.is_empty(), "not in docs/commands.md: {unsaid:?}");
    let plural = |key: &str| known.get(key).is_none_or(|is| *is == "a list");
    for list in [
        "producers",
        "accounts",
        "runs",
        "events",
        "warnings",
        "rings",
    ] {
        assert!(plural(list), "{list} is {}", known[list]);
    }
}

/// A document with a span and an execution, for every key that a summary has.
fn document() -> String {
    let event = |kind: &str, phase: &str, time: u64| {
        format!(
            r#"{{"event_type":"{kind}","phase":"{phase}","timestamp_ns":{time},"nc_idx":0,"tracking_id":1,"thread_id":1}}"#
        )
    };
    let events = [
        event("nc_exec_running", "start", 10),
        event("nc_exec_running", "stop", 20),
    ];
    format!(r#"{{"data_version":2,"events":[{}]}}"#, events.join(","))
}
