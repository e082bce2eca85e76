//! Fetch: what it takes and leaves, and that a fetch which does not end well takes nothing.

use std::fs;
use std::io::Cursor;

use nrt_trace_export::NativeReader;
use nrt_trace_proto::v1::trace_part::Part;
use nrt_trace_tests::payload::numbers;
use nrt_trace_tests::{Document, Host, Running};
use rustix::process::Signal;

fn host_with_events(probe: &[&str]) -> Host {
    let host = Host::with_daemon();
    host.tracectl(&["start"]).ok();
    host.probe(probe).ok();
    host
}

fn fetch(host: &Host, arguments: &[&str]) -> Document {
    Document::parse(
        &host
            .tracectl(&[&["fetch", "-o", "-"], arguments].concat())
            .ok()
            .stdout,
    )
}

#[test]
fn a_limit_takes_the_oldest_and_leaves_the_rest() {
    let host = host_with_events(&["-n", "100", "-t", "2", "--nc", "0,5"]);
    let first = numbers(&fetch(&host, &["--max-events-per-nc", "30"]).events);
    assert!(
        first.values().all(|n| *n == (1..=30).collect::<Vec<_>>()),
        "{first:?}"
    );
    let rest = numbers(&host.fetch().events);
    assert_eq!(rest.len(), 2);
    assert!(
        rest.values().all(|n| *n == (31..=100).collect::<Vec<_>>()),
        "{rest:?}"
    );
}

#[test]
fn one_core_or_one_process_can_be_fetched_alone() {
    let host = host_with_events(&["-n", "10", "-t", "3", "--nc", "0-2"]);
    let mut other = host.interactive_probe(&["-n", "20", "-t", "3", "--nc", "0-2"]);
    other.ask("go");
    let pid = other.pid();

    let of_core = fetch(&host, &["--nc", "1"]);
    assert!(of_core.events.iter().all(|e| e.nc_idx == 1));
    assert_eq!(of_core.events.len(), 30);
    let of_process = fetch(&host, &["--process", &pid.to_string()]);
    assert_eq!(of_process.events.len(), 40);
    assert!(
        of_process
            .events
            .iter()
            .all(|e| e.nc_idx != 1 && e.process_id.is_none_or(|p| p == pid))
    );
    assert_eq!(host.fetch().events.len(), 20);
}

#[test]
fn discard_gives_events_up() {
    let host = host_with_events(&["-n", "100"]);
    let said = host.tracectl(&["fetch", "--discard"]).ok();
    assert!(format!("{said}").contains("100"), "{said}");
    assert_eq!(host.fetch().events.len(), 0);
}

#[test]
fn a_native_file_holds_every_word_of_every_record() {
    let host = host_with_events(&["-n", "3000", "-t", "2", "--nc", "0,1", "--model", "m.neff"]);
    host.tracectl(&["fetch", "-o", "t.nrtt"]).ok();
    let bytes = fs::read(host.path("t.nrtt")).unwrap();
    let (mut records, mut names, mut claimed) = (0, Vec::new(), 0);
    let mut bad = 0;
    for part in NativeReader::new(Cursor::new(bytes)).unwrap() {
        match part.unwrap().part {
            Some(Part::Records(chunk)) => {
                for packed in chunk.packed.chunks(112) {
                    let word =
                        |n: usize| u64::from_le_bytes(packed[n * 8..n * 8 + 8].try_into().unwrap());
                    if word(0) & 0xFFFF_FFFF == 34 {
                        let data: [u64; 5] = std::array::from_fn(|n| word(6 + n));
                        bad += usize::from(
                            data != nrt_trace_tests::payload::numbered(data[2], data[0]),
                        );
                        records += 1;
                    }
                }
            }
            Some(Part::Strings(strings)) => {
                names.extend(strings.entries.into_iter().map(|e| e.text));
            }
            Some(Part::Account(account)) => claimed += account.claimed,
            _ => {}
        }
    }
    assert_eq!((records, bad, claimed), (6000, 0, 6002));
    assert_eq!(names, ["m.neff"]);
}

/// A fetch that has begun and can't go on, because nobody reads what it writes.
fn stuck_fetch(host: &Host) -> Running {
    let mut fetch = Running::start(host.tracectl_command(&["fetch", "-o", "-"]));
    assert_eq!(fetch.read_byte(), b'{');
    fetch
}

#[test]
fn a_second_fetch_at_once_is_told_that_another_is_running() {
    // Far more than pipes and flow control take up.
    let host = host_with_events(&["-n", "100000"]);
    let first = stuck_fetch(&host);
    let second = host.tracectl(&["fetch", "-o", "second.json"]).with_code(1);
    assert!(second.stderr.contains("another fetch"), "{second}");
    assert_eq!(second.stderr.lines().count(), 1, "{second}");
    assert!(!host.path("second.json").exists());

    let mut whole = vec![b'{'];
    whole.extend(first.wait().ok().stdout);
    let numbers = numbers(&Document::parse(&whole).events);
    assert_eq!(
        numbers[&0],
        (1..=100_000).collect::<Vec<_>>(),
        "the first is not disturbed"
    );
    assert_eq!(host.fetch().events.len(), 0);
}

#[test]
fn a_fetch_that_is_killed_half_way_takes_nothing() {
    let host = host_with_events(&["-n", "100000"]);
    let fetch = stuck_fetch(&host);
    fetch.signal(Signal::KILL);
    assert_eq!(fetch.wait().signal(), Some(9));
    let numbers = nrt_trace_tests::until("the daemon to see it", || {
        let again = host.tracectl(&["fetch", "-o", "again.json"]);
        (again.code() == Some(0)).then(|| numbers(&Document::read(&host.path("again.json")).events))
    });
    assert_eq!(numbers[&0], (1..=100_000).collect::<Vec<_>>());
}
