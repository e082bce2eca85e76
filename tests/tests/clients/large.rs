//! Fetches that are larger than a client's limit for one message.

use std::collections::BTreeSet;

use nrt_trace_tests::{Document, Host, Running};
use serde_json::json;

use crate::{line, proto, python};

/// A process has room for 8,192 names unless told otherwise.
const PROCESSES: u64 = 25;
const EVENTS: u64 = 24_000;
const NAMES: u64 = 8_000;
/// What Python's client takes in one message unless it is told otherwise.
const LIMIT: u64 = 4 << 20;

/// Case G02: 67 MB of records and 200,000 names of 64 bytes come in pieces that a client with default limits takes, and the
/// command line gets the same.
#[test]
fn g02_a_large_fetch_comes_in_messages_below_the_limit() {
    let host = Host::with_daemon();
    let start = ["start", "--nc", "0", "--max-events-per-nc", "32768"];
    host.tracectl(&start).ok();
    let (events, names) = (EVENTS.to_string(), NAMES.to_string());
    for _ in 0..PROCESSES {
        host.probe(&["-n", &events, "--names", &names]).ok();
    }
    let (events, names) = (PROCESSES * EVENTS, PROCESSES * NAMES);

    let stubs = host.path("stubs");
    std::fs::create_dir(&stubs).unwrap();
    let mut command = python(&host, "large.py");
    command.arg(proto()).arg(stubs);
    let mut client = Running::start(command);
    let told = line(&mut client);
    client.wait().ok();
    let largest = told["largest"].as_u64().unwrap();
    assert!(largest <= LIMIT, "{told}");
    let all = json!({"records": events, "names": names, "bytes": events * 112, "largest": largest});
    assert_eq!(told, all);

    let fetched = host.tracectl(&["fetch", "-o", "large.nrtt"]).ok();
    assert!(fetched.stderr.contains("600,000 events"), "{fetched}");
    let convert = ["convert", "large.nrtt", "--events", "nrt_execute"];
    host.tracectl(&[&convert[..], &["-o", "named.json"]].concat())
        .ok();
    let document = Document::read(&host.path("named.json"));
    let named: BTreeSet<&str> = (document.events.iter())
        .filter_map(|event| event.data.get("model_name")?.as_str())
        .collect();
    assert_eq!(named.len() as u64, names, "names in the file");
}
