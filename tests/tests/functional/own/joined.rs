//! A process's own capture while another run has its rings.

use nrt_trace_tests::payload::numbers;
use nrt_trace_tests::{Host, until};
use serde_json::Value;

use super::{FAILURE, Own, SUCCESS};

/// Rings of a process in the runs that are shown.
fn rings(host: &Host, pid: u32) -> Vec<Value> {
    let answer = host.tracectl(&["producers", "--format", "json"]).ok();
    let answer: Value = serde_json::from_slice(&answer.stdout).unwrap();
    let id = answer["producers"]
        .as_array()
        .unwrap()
        .iter()
        .find(|p| p["pid"] == pid)
        .map(|p| p["producer_id"].clone())
        .unwrap();
    let status = host.status();
    let runs = status["runs"].as_array().unwrap().iter();
    let rings = runs.flat_map(|run| run["accounts"].as_array().unwrap().iter());
    rings
        .filter(|ring| ring["producer_id"] == id)
        .cloned()
        .collect()
}

/// The run has `delivered` events of the process and lost none; `skipped` were not asked for.
pub(super) fn assert_account(host: &Host, pid: u32, delivered: u64, skipped: u64) {
    let rings = rings(host, pid);
    let sum = |key: &str| {
        rings
            .iter()
            .map(|ring| ring[key].as_u64().unwrap())
            .sum::<u64>()
    };
    let account = [
        "claimed",
        "delivered",
        "skipped",
        "lost",
        "pending",
        "unread",
    ]
    .map(sum);
    assert_eq!(account, [delivered, delivered, skipped, 0, 0, 0]);
}

fn captured(host: &Host, own: &Own) {
    until("the host's run to have the process", || {
        let answer = host.tracectl(&["producers"]).ok().text();
        let line = answer
            .lines()
            .find(|line| line.contains(&own.0.pid().to_string()));
        line.is_some_and(|line| line.contains("capturing"))
            .then_some(())
    });
}

/// The two want different things of one ring: each gets what it asked for, and counts nothing else.
#[test]
fn each_reader_drops_what_it_did_not_ask_for() {
    let host = Host::with_daemon();
    host.tracectl(&[
        "start",
        "--max-events-per-nc",
        "5000",
        "--events",
        "nrt_tensor_read",
    ])
    .ok();
    let mut command = Own::command(&host);
    command.env("NRT_TRACE_LOG", "debug");
    let mut own = Own::start(command);
    captured(&host, &own);
    own.does(&[
        ("types nrt_dma_mem_alloc", "1"),
        ("emit 3", "0"),
        ("other 2", "2"),
    ]);
    own.does(&[
        ("start 1024", SUCCESS),
        ("size", "5000"),
        ("emit 10", "10"),
        ("other 20", "20"),
    ]);
    own.does(&[("emit 5", "5"), ("start 1024", FAILURE)]);
    // The oldest three of its own types, whatever lies between them.
    let three = numbers(own.fetch("fetch 3").events).remove(&0).unwrap();
    assert_eq!(three, [4, 5, 6]);
    let document = own.fetch("fetch");
    assert!(
        document
            .events
            .iter()
            .all(|e| e.event_type == "nrt_dma_mem_alloc")
    );
    assert_eq!(document.events.len(), 12);
    let pid = own.0.pid();
    let document = host.fetch();
    assert!(
        document
            .events
            .iter()
            .all(|e| e.event_type == "nrt_tensor_read")
    );
    assert_eq!(document.events.len(), 22);
    assert_account(&host, pid, 22, 15);
    // Its stop ends its own alone.
    own.does(&[("stop", SUCCESS), ("emit 1", "0"), ("other 1", "1")]);
    assert_eq!(host.fetch().events.len(), 1);
    assert_account(&host, pid, 23, 15);
    let said = own.end().stderr;
    assert!(
        said.contains(
            "the capture of this process joins: a run is on, whose rings of 5000 events stay"
        ),
        "{said}"
    );
    let log = host.log_with("its own capture joins");
    let lines: Vec<_> = log
        .lines()
        .filter(|line| line.contains("its own capture joins"))
        .collect();
    assert_eq!(lines.len(), 1, "{lines:?}");
}

/// A NeuronCore that the other run has no ring for is not captured, and counts nowhere in that run.
#[test]
fn a_neuron_core_without_a_ring_in_the_other_run_is_said_and_left_out() {
    let host = Host::with_daemon();
    host.tracectl(&["start", "--max-events-per-nc", "1024", "--nc", "0-1"])
        .ok();
    let mut command = Own::command(&host);
    command.env("NRT_TRACE_LOG", "debug");
    let mut own = Own::start(command);
    captured(&host, &own);
    own.does(&[
        ("start 1024", SUCCESS),
        ("on 3", "ok"),
        ("emit 2", "0"),
        ("on 1", "ok"),
        ("emit 2", "2"),
    ]);
    assert_eq!(own.numbers(), [3, 4]);
    let fetched = host.tracectl(&["fetch", "-o", "t.json"]).ok();
    assert!(
        !fetched.stderr.contains("NEURON_RT_VISIBLE_CORES"),
        "{fetched}"
    );
    let said = own.end().stderr;
    assert!(said.contains("6 NeuronCores have no ring in it"), "{said}");
}

/// The host's run ends under a capture that had joined it: the capture goes on in rings of its own, with what it had not
/// read yet, and no number comes twice. The host's events stay to be fetched.
#[test]
fn a_capture_goes_on_when_the_run_that_it_joined_is_stopped() {
    let host = Host::with_daemon();
    host.tracectl(&["start", "--max-events-per-nc", "2000"])
        .ok();
    let mut own = Own::new(&host);
    captured(&host, &own);
    own.does(&[("emit 5", "5"), ("start 1024", SUCCESS), ("emit 10", "10")]);
    host.tracectl(&["stop"]).ok();
    until("rings of its own", || {
        (own.ask("size") == "1024").then_some(())
    });
    until("gates of its own", || {
        (own.ask("emit 1") == "1").then_some(())
    });
    own.does(&[("emit 10", "10")]);
    let document = own.fetch("fetch");
    let seqs: Vec<u64> = document.events.iter().map(|e| e.nc_local_id).collect();
    assert!(seqs.is_sorted_by(|a, b| a < b), "{seqs:?}");
    assert!(
        document
            .events
            .iter()
            .all(|e| e.id == e.nc_local_id && e.nc_idx == 0)
    );
    let numbers = numbers(document.events).remove(&0).unwrap();
    assert_eq!(numbers[..10], (6..=15).collect::<Vec<_>>());
    assert_eq!(numbers.len(), 21);
    assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
    let of_host: Vec<u64> = nrt_trace_tests::payload::numbers(&host.fetch().events)
        .remove(&0)
        .unwrap();
    assert_eq!(of_host, (1..=15).collect::<Vec<_>>());
    own.does(&[("stop", SUCCESS), ("emit 1", "0")]);
    assert_eq!(own.end().stderr, "");
}

/// DESIGN: the host covers every producer that is in no narrower run. One that captures itself comes to it when it stops.
#[test]
fn a_run_of_the_host_covers_the_process_as_soon_as_its_own_capture_ends() {
    let host = Host::with_daemon();
    let mut own = Own::new(&host);
    own.does(&[("start 1024", SUCCESS), ("emit 5", "5")]);
    host.tracectl(&["start", "--max-events-per-nc", "2000"])
        .ok();
    own.does(&[("emit 5", "5"), ("size", "1024")]);
    assert_eq!(host.fetch().events.len(), 0, "it is in its own run");
    assert_eq!(own.numbers(), (1..=10).collect::<Vec<_>>());
    own.does(&[("stop", SUCCESS)]);
    captured(&host, &own);
    own.does(&[("emit 5", "5"), ("fetch", FAILURE)]);
    let document = host.fetch();
    assert_eq!(
        numbers(&document.events).remove(&0).unwrap(),
        (11..=15).collect::<Vec<_>>()
    );
    assert_account(&host, own.0.pid(), 5, 0);
}

/// Started over and over while the host's run comes and goes: each answer is as documented, and the daemon is well.
#[test]
fn starts_and_stops_of_both_in_any_order_leave_nothing_behind() {
    let host = Host::with_daemon();
    let mut own = Own::new(&host);
    for round in 0..6 {
        if round % 2 == 0 {
            own.does(&[("start 1024", SUCCESS), ("emit 1", "1")]);
            host.tracectl(&["start", "--max-events-per-nc", "1024"])
                .ok();
        } else {
            host.tracectl(&["start", "--max-events-per-nc", "1024"])
                .ok();
            own.does(&[("start 1024", SUCCESS), ("emit 1", "1")]);
        }
        if round % 3 == 0 {
            host.tracectl(&["stop", "--discard"]).ok();
            own.does(&[("stop", SUCCESS)]);
        } else {
            own.does(&[("stop", SUCCESS)]);
            host.tracectl(&["stop", "--discard"]).ok();
        }
        own.does(&[("stop", FAILURE), ("size", "0"), ("emit 1", "0")]);
    }
    own.end();
    until("the memory to be freed", || {
        (host.status()["reserved_bytes"] == 0).then_some(())
    });
}
