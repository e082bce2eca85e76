//! `record`: a command's trace, whole, whatever the command does.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use nrt_trace_tests::payload::numbers;
use nrt_trace_tests::{Document, Host, Running, artifacts, until};
use rustix::process::Signal;

use crate::checks::assert_no_hole;
use crate::restart::sum;

fn probe() -> &'static str {
    artifacts().probe.to_str().unwrap()
}

fn numbers_of_file(host: &Host, name: &str) -> Vec<u64> {
    let document = Document::read(&host.path(name));
    assert_no_hole(&document, 1);
    numbers(&document.events).remove(&0).unwrap_or_default()
}

#[test]
fn a_program_that_emits_1000_events_at_once_and_ends_leaves_all_of_them() {
    for (end, status) in [
        ("return", 7),
        ("exit", 8),
        ("abort", 128 + 6),
        ("kill", 128 + 9),
    ] {
        let host = Host::new();
        let program = [
            probe(),
            "-n",
            "1000",
            "--end",
            end,
            "--status",
            &status.to_string(),
        ];
        let ended = host
            .tracectl(&[&["record", "-o", "t.json", "--"], &program[..]].concat())
            .with_code(status);
        assert_eq!(
            numbers_of_file(&host, "t.json"),
            (1..=1000).collect::<Vec<_>>(),
            "{end}: {ended}"
        );
        assert!(!host.path("t.json.part").exists());
    }
}

#[test]
fn a_running_daemon_is_used_and_its_other_run_is_left_alone() {
    let host = Host::with_daemon();
    host.tracectl(&["start"]).ok();
    let mut other = host.interactive_probe(&["-n", "10"]);
    other.ask("go");
    host.tracectl(&["record", "-o", "t.json", "--", probe(), "-n", "1000"])
        .ok();
    assert_eq!(
        numbers_of_file(&host, "t.json"),
        (1..=1000).collect::<Vec<_>>()
    );
    other.ask("go");
    assert_eq!(
        numbers(&host.fetch().events)[&0],
        (1..=20).collect::<Vec<_>>()
    );
    assert_eq!(
        host.status()["runs"].as_array().unwrap().len(),
        1,
        "the recording's run is gone"
    );
}

#[test]
fn descendants_are_recorded_too() {
    let host = Host::new();
    let script = format!("{0} -n 100 & {0} -n 200; wait; (({0} -n 300))", probe());
    host.tracectl(&["record", "-o", "t.json", "--", "sh", "-c", &script])
        .ok();
    let document = Document::read(&host.path("t.json"));
    let by_process = document.by_process();
    let mut lengths: Vec<_> = by_process.values().map(Vec::len).collect();
    lengths.sort_unstable();
    assert_eq!(lengths, [100, 200, 300]);
}

/// Names which of its processes goes on; while all of them end with the command, nothing is said.
#[test]
fn what_outlives_the_command_is_told() {
    let host = Host::new();
    let (input, output) = (host.path("input"), host.path("output"));
    for fifo in [&input, &output] {
        let mut make = Command::new("mkfifo");
        assert!(make.arg(fifo).status().unwrap().success());
    }
    // Open for both, so that neither end waits for the other; the probe ends when this is closed.
    let hold = fs::File::options().read(true).write(true).open(&input);
    let probe = probe();
    let lingers = format!(
        "{probe} -n 100 --linger <input >output 2>/dev/null & echo $! >pid; read line <output"
    );
    let mut told = Vec::new();
    for (name, script) in [
        ("ends.json", format!("{probe} -n 10 & wait")),
        ("goes_on.json", lingers),
    ] {
        let ended = host
            .tracectl(&["record", "-o", name, "--", "sh", "-c", &script])
            .ok();
        told.push(ended.stderr);
    }
    drop(hold);
    assert!(!told[0].contains("after the command ended"), "{}", told[0]);
    let before = numbers_of_file(&host, "goes_on.json");
    assert_eq!(before.len(), 100, "what it did before is in the trace");
    let pid = fs::read_to_string(host.path("pid")).unwrap();
    let words = format!(
        "Warning: 1 process of this recording goes on after the command ended: pid {} (probe). What it does from here on \
         is not in the trace",
        pid.trim()
    );
    assert!(told[1].contains(&words), "{}", told[1]);
}

/// Ten times round the rings, at a pace at which there is never more unread than they hold.
#[test]
fn a_run_longer_than_its_rings_loses_nothing() {
    const BATCH: u64 = 2000;
    let host = Host::with_daemon();
    let batch = BATCH.to_string();
    let record = ["record", "-o", "t.json", "--max-events-per-nc", "4096"];
    let program = ["--", probe(), "--interactive", "-n", &batch];
    let mut recording = Running::start(host.tracectl_command(&[&record[..], &program].concat()));
    assert_eq!(recording.read_line(), "ready\n");
    for batches in 1..=20 {
        assert!(recording.ask("go").contains("\"recorded\":2000"));
        until("the batch to be fetched", || {
            (sum(&host, "delivered") == batches * BATCH).then_some(())
        });
    }
    let ended = recording.wait().ok();
    assert_eq!(
        numbers_of_file(&host, "t.json"),
        (1..=20 * BATCH).collect::<Vec<_>>(),
        "{ended}"
    );
}

#[test]
fn the_file_grows_while_the_program_runs() {
    let host = Host::new();
    let record = [
        "record",
        "-o",
        "t.json",
        "--",
        probe(),
        "-n",
        "20000",
        "--linger",
    ];
    let recording = Running::start(host.tracectl_command(&record));
    let part = host.path("t.json.part");
    until("events in the unfinished file", || {
        (fs::metadata(&part).ok()?.len() > 100_000).then_some(())
    });
    assert!(!host.path("t.json").exists());
    recording.wait().ok();
    assert_eq!(numbers_of_file(&host, "t.json").len(), 20_000);
    assert!(!part.exists());
}

#[test]
fn an_interrupt_ends_it_with_the_file_written() {
    for (signal, status) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let host = Host::new();
        let record = [
            "record",
            "-o",
            "t.json",
            "--",
            probe(),
            "-n",
            "0",
            "-r",
            "1000",
        ];
        let recording = Running::start(host.tracectl_command(&record));
        let part = host.path("t.json.part");
        until("events in the unfinished file", || {
            (fs::metadata(&part).ok()?.len() > 1000).then_some(())
        });
        recording.signal(signal);
        let ended = recording.wait().with_code(status);
        let numbers = numbers_of_file(&host, "t.json");
        assert!(!numbers.is_empty(), "{ended}");
        assert!(!part.exists());
    }
}

#[test]
fn after_its_duration_the_file_is_there_while_the_program_goes_on() {
    let host = Host::new();
    let record = [
        "record",
        "-o",
        "t.json",
        "--duration",
        "300ms",
        "--",
        probe(),
        "-n",
        "50",
        "--linger",
    ];
    let recording = Running::start(host.tracectl_command(&record));
    until("the file", || host.path("t.json").exists().then_some(()));
    // As many as a busy machine let it emit until then.
    let numbers = numbers_of_file(&host, "t.json");
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    recording.wait().ok(); // closes the program's standard input, which ends it
}

#[test]
fn without_a_command_the_host_is_recorded() {
    let host = Host::with_daemon();
    let mut probe = host.interactive_probe(&["-n", "500"]);
    let recording = Running::start(host.tracectl_command(&["record", "-o", "t.json"]));
    host.until_state(probe.pid(), "capturing");
    probe.ask("go");
    recording.signal(Signal::INT);
    let _said = recording.wait();
    assert_eq!(
        numbers_of_file(&host, "t.json"),
        (1..=500).collect::<Vec<_>>()
    );
}

#[test]
fn the_document_on_standard_output_is_not_mixed_with_what_the_command_writes() {
    let host = Host::new();
    let ended = host
        .tracectl(&["record", "-o", "-", "--", probe(), "-n", "10"])
        .ok();
    assert_eq!(
        numbers(&Document::parse(&ended.stdout).events)[&0].len(),
        10
    );
    assert!(ended.stderr.contains(r#""recorded":10"#), "{ended}");
}

#[test]
fn native_and_json_of_the_same_kind_of_run_hold_as_many_events() {
    let host = Host::new();
    host.tracectl(&[
        "record",
        "-o",
        "t.nrtt",
        "--",
        probe(),
        "-n",
        "5000",
        "-t",
        "3",
        "--nc",
        "0-2",
    ])
    .ok();
    let file = fs::File::open(host.path("t.nrtt")).unwrap();
    let records = nrt_trace_export::NativeReader::new(file)
        .unwrap()
        .map(|part| match part.unwrap().part {
            Some(nrt_trace_proto::v1::trace_part::Part::Records(chunk)) => chunk.packed.len() / 112,
            _ => 0,
        });
    assert_eq!(records.sum::<usize>(), 15_000);
}

#[test]
fn commands_that_cannot_be_run_are_told_as_a_shell_tells_them() {
    let host = Host::new();
    let missing = host
        .tracectl(&["record", "-o", "t.json", "--", "./no-such-program"])
        .with_code(127);
    assert!(
        missing
            .stderr
            .lines()
            .last()
            .unwrap()
            .contains("./no-such-program"),
        "{missing}"
    );
    fs::write(host.path("text"), "no program").unwrap();
    fs::set_permissions(host.path("text"), fs::Permissions::from_mode(0o644)).unwrap();
    let text = host
        .tracectl(&["record", "-o", "t.json", "--", "./text"])
        .with_code(126);
    assert!(
        text.stderr.lines().last().unwrap().contains("./text"),
        "{text}"
    );
    assert!(!host.path("t.json").exists());
}

#[test]
fn the_environment_says_how_to_attach_and_wait() {
    let host = Host::new();
    let ended = host
        .tracectl(&[
            "record",
            "-o",
            "t.json",
            "--",
            "sh",
            "-c",
            "env | grep NRT_ | sort",
        ])
        .ok();
    let text = format!("{ended}");
    for name in [
        "NRT_TRACE_PRODUCER_SOCKET=",
        "NRT_TRACE_SOCKET=",
        "NRT_TRACE_TOKEN=",
        "NRT_TRACE_WAIT_MS=",
    ] {
        assert!(text.contains(name), "{name} in {text}");
    }
}
