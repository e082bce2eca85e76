//! What readers of JSON stumble over.

use std::collections::BTreeSet;
use std::fs;

use nrt_trace_tests::{Document, Host, Link, Running, compile, until};
use rustix::process::Signal;

use crate::strict::{has, jq, node, python};

/// Numbers around the largest that JavaScript keeps whole, and the largest of all.
const NUMBERS: [&str; 5] = [
    "9007199254740991",
    "9007199254740992",
    "9007199254740993",
    "18446744073709551615",
    "1",
];

fn record(host: &Host, more: &[&str], arguments: &[&str]) -> String {
    let program = compile(host, "tests/c/values.c", Link::Linked);
    let program = program.to_str().unwrap();
    let record = [
        &["record", "-o", "t.json"],
        more,
        &["--", program],
        arguments,
    ]
    .concat();
    let text = host.tracectl(&record).ok().text();
    // The program's own lines come before the summary.
    text
}

/// Case J01: no reader loses a digit. Neuron's documents have numbers, which Python keeps; on request large ones are
/// strings, which everybody keeps.
#[test]
fn j01_large_numbers_keep_their_digits() {
    let host = Host::new();
    let expected = NUMBERS.join(" ");
    record(&host, &[], &[&["numbers"], &NUMBERS[..]].concat());
    let file = host.path("t.json");
    let ids = "' '.join(str(e['data']['tensor_id']) for e in events)";
    assert_eq!(
        python(&file, ids),
        expected,
        "numbers as Neuron writes them"
    );
    assert_eq!(
        python(&file, "all(type(e['data']['size']) is int for e in events)"),
        "True"
    );

    record(
        &host,
        &["--large-as-strings"],
        &[&["numbers"], &NUMBERS[..]].concat(),
    );
    assert_eq!(python(&file, ids), expected);
    assert_eq!(
        python(&file, "[type(e['data']['size']).__name__ for e in events]"),
        "['int', 'str', 'str', 'str', 'int']",
        "only what would be rounded"
    );
    if has("node") {
        let read = node(
            &file,
            "d.events.map(e => String(e.data.tensor_id)).join(' ')",
        );
        assert_eq!(read, expected);
    }
    if has("jq") {
        let read = jq(&file, "[.events[].data.tensor_id | tostring] | join(\" \")");
        assert_eq!(read, expected);
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The names that a program registers, and what became of each: `None` where it has no name in the document.
fn names_of(host: &Host, names: &[&[u8]]) -> Vec<Option<String>> {
    let lines: Vec<String> = names.iter().map(|name| hex(name)).collect();
    fs::write(host.path("names"), lines.join("\n") + "\n").unwrap();
    record(host, &[], &["names", "names"]);
    let document = Document::read(&host.path("t.json"));
    assert_eq!(document.events.len(), names.len());
    let name = |event: &nrt_trace_tests::Event| {
        let name = event.data.get("model_name")?.as_str().unwrap();
        Some(name.to_owned())
    };
    document.events.iter().map(name).collect()
}

/// Case J02: control bytes, quotes, separators, nothing at all, and 64 KiB.
#[test]
fn j02_any_text_is_a_name() {
    let host = Host::new();
    let controls: Vec<u8> = (1..0x20).collect();
    let longest = "é".repeat((64 << 10) / 2);
    let too_long = "x".repeat((64 << 10) + 1);
    let texts = [
        std::str::from_utf8(&controls).unwrap(),
        "\"\\/",
        "\u{2028}\u{2029}\u{7f}",
        "😀 naïve",
        "",
        &longest,
    ];
    let mut names: Vec<&[u8]> = texts.iter().map(|text| text.as_bytes()).collect();
    names.push(too_long.as_bytes());
    let mut expected: Vec<_> = texts.iter().map(|text| Some((*text).to_owned())).collect();
    expected.push(None);
    assert_eq!(
        names_of(&host, &names),
        expected,
        "what has no room has no name"
    );
    let file = host.path("t.json");
    assert_eq!(python(&file, "len(events)"), "7");
    let codes = "[ord(c) for c in events[0]['data']['model_name']] == list(range(1, 32))";
    assert_eq!(python(&file, codes), "True");
    if has("jq") {
        assert_eq!(jq(&file, ".events | length"), "7");
    }
    let listed = host.tracectl(&["strings", "--of", "\"\\/"]).ok().text();
    let document = Document::read(&file);
    assert_eq!(
        listed.trim(),
        document.events[1].number("model_id").to_string()
    );
}

/// Case J03: bytes that are no UTF-8 are no name: the id is 0, the document stays readable, and nothing is lost.
#[test]
fn j03_bytes_that_are_no_text_spoil_nothing() {
    let host = Host::new();
    let names: [&[u8]; 5] = [
        b"\xff\xfea",
        b"\xed\xa0\x80",
        b"cut \xf0\x9f\x98",
        b"\xc0\xaf",
        "good".as_bytes(),
    ];
    let read = names_of(&host, &names);
    assert_eq!(read, [None, None, None, None, Some("good".to_owned())]);
    let ids = python(
        &host.path("t.json"),
        "[e['data']['model_id'] for e in events][:4]",
    );
    assert_eq!(ids, "[0, 0, 0, 0]");
}

/// Case J04: strict JSON for no event, one, many, and whatever happens in the middle of an export.
#[test]
fn j04_a_document_is_whole_or_absent() {
    let host = Host::with_daemon();
    let file = host.path("t.json");
    for events in ["0", "1", "2", "100000"] {
        host.tracectl(&["start"]).ok();
        if events != "0" {
            host.probe(&["-n", events]).ok();
        }
        host.tracectl(&["stop"]).ok();
        host.tracectl(&["fetch", "-o", "t.json"]).ok();
        assert_eq!(python(&file, "len(events)"), events);
        assert_eq!(python(&file, "any(not e for e in events)"), "False");
        if has("jq") {
            assert_eq!(jq(&file, ".events | length"), events);
        }
    }
    let old = fs::read(&file).unwrap();
    host.tracectl(&["start"]).ok();
    host.probe(&["-n", "100000"]).ok();
    let fetch = Running::start(host.tracectl_command(&["fetch", "-o", "t.json"]));
    let io = format!("/proc/{}/io", fetch.pid());
    until("the export to write", || {
        let text = fs::read_to_string(&io).unwrap_or_default();
        let line = text.lines().find(|line| line.starts_with("wchar:"))?;
        let written: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
        (written > 300_000).then_some(())
    });
    fetch.signal(Signal::KILL);
    assert_eq!(fetch.wait().signal(), Some(9));
    assert!(fs::read(&file).unwrap() == old, "the old document, whole");
    let names: BTreeSet<_> = fs::read_dir(host.path(""))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert!(
        names
            .iter()
            .all(|name| !name.to_string_lossy().contains("tmp")),
        "nothing is left behind: {names:?}"
    );
}

/// Case J06: thread ids are the kernel's, and cores are told apart, core 0 too.
#[test]
fn j06_threads_have_the_kernels_numbers_and_cores_their_own() {
    let host = Host::new();
    let text = record(&host, &[], &["threads", "8"]);
    let said: BTreeSet<(u32, u64)> = text
        .lines()
        .filter_map(|line| {
            let (nc, tid) = line.split_once(' ')?;
            Some((nc.parse().ok()?, tid.parse().ok()?))
        })
        .collect();
    assert_eq!(said.len(), 8, "{text}");
    let document = Document::read(&host.path("t.json"));
    let read: BTreeSet<(u32, u64)> = document
        .events
        .iter()
        .map(|event| (event.nc_idx, event.thread_id))
        .collect();
    assert_eq!(read, said);
    let cores: BTreeSet<u32> = read.iter().map(|(nc, _)| *nc).collect();
    let threads: BTreeSet<u64> = read.iter().map(|(_, tid)| *tid).collect();
    assert!(cores.into_iter().eq(0..8));
    assert_eq!(threads.len(), 8);
    assert!(threads.iter().all(|tid| (1..1 << 31).contains(tid)));
}

/// Every type in every phase, with all bits set and with none, from a C program to a document.
#[test]
fn every_type_and_phase_gets_from_c_into_the_document() {
    let host = Host::new();
    record(&host, &[], &["payloads"]);
    let file = host.path("t.json");
    let document = Document::read(&file);
    assert_eq!(document.events.len(), 2 * 46 * 3);
    for (event, number) in document.events.iter().zip(0..) {
        let kind = nrt_trace_model::EventType::ALL[number / 3 % 46];
        let phase = nrt_trace_model::Phase::ALL[number % 3];
        assert_eq!(
            (event.event_type.as_str(), event.phase.as_str()),
            (kind.name(), phase.name())
        );
        let layout = nrt_trace_model::payload::layout(kind, phase);
        for key in layout.iter().flat_map(|layout| layout.json_keys) {
            let own = key.field.is_some();
            assert!(!own || event.data.contains_key(key.name), "{event:?}");
        }
        if layout.is_none() {
            assert!(event.data.is_empty(), "{event:?}");
        }
    }
    assert_eq!(python(&file, "len(events)"), "276");
}
