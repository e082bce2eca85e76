//! Fetching: the file is there whole before anything is consumed, and nothing is consumed that did not arrive.

use std::ffi::OsString;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::Stdio;

use nrt_trace_proto::v1;
use nrt_trace_proto::v1::trace_part::Part;
use serde_json::Value;
use tonic::Status;

use crate::fake::{Fake, Script};
use crate::tool::{Ended, finish, run, tool};

const PRODUCER: u32 = 5;

fn producer() -> v1::Producer {
    v1::Producer {
        producer_id: PRODUCER,
        pid: Some(42),
        name: "trainer".to_owned(),
        rings: vec![0, 1],
        armed_from_ns: Some(1),
        ..v1::Producer::default()
    }
}

/// `events` records of NC 0 as 112-byte words: type 0, instant, seq from 1.
fn records(events: u64) -> Part {
    let mut packed = Vec::new();
    for seq in 1..=events {
        let words = [0, 7, seq, seq, seq, 1_000 + seq, 0, 0, 0, 0, 0, 2, 0, 0_u64];
        packed.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    }
    Part::Records(v1::Records {
        producer_id: PRODUCER,
        nc_idx: 0,
        packed: packed.into(),
    })
}

fn account(claimed: u64, delivered: u64) -> Part {
    let lost = claimed - delivered;
    Part::Account(v1::RingAccount {
        producer_id: PRODUCER,
        claimed,
        delivered,
        lost,
        overwritten: lost,
        exact: true,
        ..v1::RingAccount::default()
    })
}

/// A fetch number 31 of `events` events.
pub(crate) fn parts(events: u64, claimed: u64) -> Vec<Part> {
    let begin = v1::FetchBegin {
        format_version: 1,
        fetch_id: 31,
        producers: 1,
        ..v1::FetchBegin::default()
    };
    let end = v1::FetchEnd {
        fetch_id: 31,
        events,
        ..v1::FetchEnd::default()
    };
    vec![
        Part::Begin(begin),
        Part::Producer(producer()),
        records(events),
        account(claimed, events),
        Part::End(end),
    ]
}

fn fetch(fake: &Fake, more: &[&str]) -> Ended {
    of("fetch", fake, more)
}

fn of(verb: &str, fake: &Fake, more: &[&str]) -> Ended {
    let mut arguments: Vec<OsString> = vec!["--socket".into(), fake.socket().into(), verb.into()];
    arguments.extend(more.iter().map(OsString::from));
    run(arguments)
}

pub(crate) fn commits(fake: &Fake) -> Vec<String> {
    fake.asked()
        .into_iter()
        .filter(|line| line.starts_with("commit"))
        .collect()
}

fn left_in(folder: &Path) -> Vec<OsString> {
    let mut names: Vec<OsString> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    names.retain(|name| name != "control.sock");
    names
}

#[test]
fn the_file_is_there_before_its_events_are_consumed() {
    let fake = Fake::start(|script| script.parts = parts(3, 3));
    let file = fake.folder().join("trace.json");
    let ended = fetch(&fake, &["-o", file.to_str().unwrap()]);
    assert_eq!(
        (ended.status, ended.stdout.as_str()),
        (Some(0), ""),
        "{ended:?}"
    );
    assert!(
        ended.stderr.contains("3 events of 1 process in"),
        "{ended:?}"
    );
    assert!(
        ended
            .stderr
            .contains("42 trainer: 3 events (nc 0: 3, nc 1: 0)"),
        "{ended:?}"
    );
    let document: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    assert_eq!(document["events"].as_array().unwrap().len(), 3);
    assert_eq!(commits(&fake), ["commit 31 there=true"]);
    assert_eq!(left_in(fake.folder()), ["trace.json"]);
}

#[test]
fn a_fetch_can_be_a_perfetto_trace_and_its_events_are_consumed_all_the_same() {
    let fake = Fake::start(|script| script.parts = parts(3, 5));
    let file = fake.folder().join("trace.pftrace");
    let ended = fetch(&fake, &["-o", file.to_str().unwrap()]);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    assert!(
        ended.stderr.contains("2 trace events were dropped"),
        "{ended:?}"
    );
    // What is in such files is tested where they are written, with Perfetto's engine.
    let trace = fs::read(&file).unwrap();
    assert_eq!(trace.first(), Some(&0x0A), "a packet");
    for words in [
        "trainer",
        "NC 0 (neuron_rt)",
        "generic",
        "2 of 5 events lost",
    ] {
        let bytes = words.as_bytes();
        assert!(
            trace.windows(bytes.len()).any(|found| found == bytes),
            "no {words:?}"
        );
    }
    assert_eq!(commits(&fake).len(), 1);
    // Options that mean nothing in another format are told.
    let wrong = fetch(&fake, &["-o", "trace.json", "--zstd"]);
    wrong.one_line(2, &["--zstd", ".pftrace"]);
}

#[test]
fn filters_and_limits_reach_the_daemon() {
    let fake = Fake::start(|script| script.parts = parts(1, 1));
    let ended = fetch(
        &fake,
        &[
            "-o",
            "-",
            "--nc",
            "0-2,8",
            "--process",
            "42,43",
            "--max-events-per-nc",
            "7",
        ],
    );
    assert_eq!(ended.status, Some(0), "{ended:?}");
    let expected = "fetch nc=[0, 1, 2, 8] process=[42, 43] max=7 discard=false auto=false";
    assert_eq!(fake.asked()[0], expected);
}

#[test]
fn standard_output_gets_json_and_nothing_else() {
    let fake = Fake::start(|script| script.parts = parts(2, 2));
    let ended = fetch(&fake, &["-o", "-"]);
    let document: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(document["data_version"], 2);
    assert_eq!(commits(&fake).len(), 1);
}

#[test]
fn what_was_written_is_told_as_json() {
    let fake = Fake::start(|script| script.parts = parts(3, 5));
    let file = fake.folder().join("trace.json");
    let file = file.to_str().unwrap();
    for (verb, commits_so_far) in [("snapshot", 0), ("fetch", 1)] {
        let ended = of(verb, &fake, &["-o", file, "--format", "json"]);
        assert_eq!(ended.status, Some(0), "{ended:?}");
        let told: Value = serde_json::from_str(&ended.stdout).unwrap();
        assert_eq!(told["output"], file);
        assert_eq!(told["event_count"], 3);
        assert_eq!(told["producers"][0]["name"], "trainer");
        let rings = told["accounts"].as_array().unwrap();
        let rings = rings.iter().map(|ring| {
            ["producer_id", "nc_idx", "event_count", "claimed", "lost"]
                .map(|key| ring[key].as_u64())
        });
        let numbers = [[5, 0, 3, 5, 2], [5, 1, 0, 0, 0]];
        assert!(rings.eq(numbers.map(|ring| ring.map(Some))), "{told}");
        // Losses are told to people all the same, counts are not.
        assert!(ended.stderr.contains("2 trace events were dropped"));
        assert!(!ended.stderr.contains("3 events of"), "{ended:?}");
        assert_eq!(commits(&fake).len(), commits_so_far);
        // There is one standard output, and the trace may have it.
        let both = of(verb, &fake, &["-o", "-", "--format", "json"]);
        both.one_line(2, &["--format json", "name a file"]);
    }
    let ended = fetch(&fake, &["--discard", "--format", "json"]);
    let told: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(
        (
            &told["abandoned"],
            &told["accounts"][0]["claimed"],
            &told["producers"][0]["name"],
            &told["output"]
        ),
        (&0.into(), &5.into(), &"trainer".into(), &Value::Null)
    );
}

#[test]
fn losses_are_told_in_the_words_that_users_know() {
    let fake = Fake::start(|script| script.parts = parts(4, 10_000));
    let ended = fetch(&fake, &["-o", "-"]);
    assert_eq!(ended.status, Some(0));
    let known = "Warning: 9996 trace events were dropped during capture (stored 4 out of 10000 total events). \
                 Consider increasing buffer size, reducing trace duration, or filtering events.";
    assert!(ended.stderr.contains(known), "{ended:?}");
    assert!(
        ended.stderr.contains("42 trainer, nc 0: 9,996 overwritten"),
        "{ended:?}"
    );
}

#[test]
fn a_fetch_without_events_says_who_was_silent_and_why() {
    let fake = Fake::start(|script| {
        script.parts = parts(0, 0);
        script.parts.remove(2);
    });
    let ended = fetch(&fake, &["-o", "-"]);
    assert_eq!(ended.status, Some(0));
    assert!(
        ended
            .stderr
            .contains("42 trainer: 0 events (nc 0: 0, nc 1: 0)"),
        "{ended:?}"
    );
    assert!(
        ended
            .stderr
            .contains("42 trainer: no events: it emitted none since it was armed"),
        "{ended:?}"
    );
}

fn nothing_was_consumed(write: impl FnOnce(&mut Script), output: Option<&str>, words: &[&str]) {
    let fake = Fake::start(write);
    let file = fake.folder().join("trace.json");
    fs::write(&file, "old").unwrap();
    let output = output.unwrap_or_else(|| file.to_str().unwrap());
    let ended = fetch(&fake, &["-o", output]);
    ended.one_line(1, words);
    assert_eq!(fs::read_to_string(&file).unwrap(), "old");
    assert_eq!(
        (commits(&fake), left_in(fake.folder())),
        (vec![], vec!["trace.json".into()])
    );
}

#[test]
fn a_fetch_that_breaks_consumes_nothing_and_leaves_the_old_file() {
    let cut = |script: &mut Script| {
        script.parts = parts(3, 3);
        script.parts.pop();
    };
    nothing_was_consumed(
        cut,
        None,
        &["ended the fetch in the middle", "nothing was consumed"],
    );
    let broken = |script: &mut Script| {
        script.parts = parts(3, 3);
        script.broken = Some(Status::internal("the reader is gone"));
    };
    nothing_was_consumed(broken, None, &["the reader is gone"]);
}

#[test]
fn l03_a_full_disk_consumes_nothing() {
    let full = |script: &mut Script| script.parts = parts(3, 3);
    nothing_was_consumed(
        full,
        Some("/dev/full"),
        &["/dev/full", "No space left on device"],
    );
}

#[test]
fn l03_a_limit_on_file_size_is_an_error_and_no_signal() {
    let fake = Fake::start(|script| script.parts = parts(9_000, 9_000));
    let file = fake.folder().join("trace.json");
    let mut limited = std::process::Command::new("sh");
    limited.args([
        "-c",
        "ulimit -f 8; exec \"$@\"",
        "sh",
        env!("CARGO_BIN_EXE_nrt-tracectl"),
    ]);
    limited
        .arg("--socket")
        .arg(fake.socket())
        .arg("fetch")
        .arg("-o")
        .arg(&file);
    finish(&mut limited).one_line(1, &["trace.json", "File too large"]);
    assert_eq!((commits(&fake), left_in(fake.folder())), (vec![], vec![]));
}

/// It must not look as if it had failed, and be done again.
#[test]
fn an_answer_that_cannot_be_written_is_no_failure_of_what_was_done() {
    let fake = Fake::start(|script| script.parts = parts(3, 3));
    let file = fake.folder().join("trace.json");
    let file = file.to_str().unwrap();
    let commands: [(&[&str], &str); 8] = [
        (
            &["fetch", "-o", file, "--format", "json"],
            "is written, and its events are consumed",
        ),
        (&["fetch", "--discard"], "the events are given up"),
        (&["snapshot", "-o", file, "--format", "json"], "is written"),
        (&["start"], "the run has begun"),
        (&["set-filter", "--nc", "0"], "the filter is in force"),
        (&["stop", "--format", "json"], "the run has ended"),
        (&["host", "start"], "the host monitor runs"),
        (&["host", "stop"], "the host monitor is told to stop"),
    ];
    for (command, done) in commands {
        let mut tool = tool();
        tool.arg("--socket").arg(fake.socket()).args(command);
        tool.stdout(fs::File::options().write(true).open("/dev/full").unwrap());
        let output = tool.stderr(Stdio::piped()).spawn().unwrap();
        let output = output.wait_with_output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(3), "{command:?}: {said}");
        let last = said.lines().last().unwrap();
        let why =
            "only the answer is missing: cannot write standard output: No space left on device";
        assert!(last.contains(done) && last.contains(why), "{said}");
    }
    assert_eq!(commits(&fake).len(), 1);
}

#[test]
fn a_second_fetch_is_told_that_another_is_running() {
    let text = "another fetch of this run is under way";
    let fake = Fake::start(|script| script.fetch = Some(Status::aborted(text)));
    fetch(&fake, &["-o", "-"]).one_line(1, &[text]);
}

#[test]
fn what_could_not_be_committed_is_said_to_come_again() {
    let fake = Fake::start(|script| {
        script.parts = parts(3, 3);
        script.commit = Some(Status::not_found("that fetch is not the last one"));
    });
    let file = fake.folder().join("trace.json");
    let ended = fetch(&fake, &["-o", file.to_str().unwrap()]);
    ended.one_line(1, &["is written", "will come again", "not the last one"]);
    assert!(file.exists());
}

/// More than a pipe holds.
const MUCH: u64 = 5_000;

fn cut_by_reader(events: u64, take: usize) -> Fake {
    let fake = Fake::start(|script| script.parts = parts(events, events));
    let mut command = tool();
    command
        .arg("--socket")
        .arg(fake.socket())
        .args(["fetch", "-o", "-"]);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let mut head = vec![0; take];
    stdout.read_exact(&mut head).unwrap();
    drop(stdout);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    fake
}

#[test]
fn l01_a_reader_that_stops_in_the_middle_consumes_nothing() {
    assert_eq!(commits(&cut_by_reader(MUCH, 100)), Vec::<String>::new());
}

#[test]
fn a_reader_that_leaves_the_rest_in_the_pipe_consumes_nothing() {
    assert_eq!(commits(&cut_by_reader(3, 10)), Vec::<String>::new());
}

#[test]
fn the_native_file_holds_what_came() {
    let fake = Fake::start(|script| script.parts = parts(MUCH, MUCH));
    let file = fake.folder().join("t.nrtt");
    assert_eq!(
        fetch(&fake, &["-o", file.to_str().unwrap()]).status,
        Some(0)
    );
    let reader = nrt_trace_export::NativeReader::new(fs::File::open(&file).unwrap()).unwrap();
    let read: Vec<Part> = reader.map(|part| part.unwrap().part.unwrap()).collect();
    assert_eq!(read, parts(MUCH, MUCH));
}

#[test]
fn giving_up_needs_no_output() {
    let fake = Fake::start(|script| {
        let abandoned = v1::RingAccount {
            abandoned: 12,
            lost: 12,
            claimed: 12,
            ..v1::RingAccount::default()
        };
        script.parts = vec![Part::Account(abandoned), Part::End(v1::FetchEnd::default())];
        // Some of it had been given up before.
        let before = v1::RingAccount {
            abandoned: 5,
            ..abandoned
        };
        script.runs = vec![v1::RunStatus {
            run: Some(v1::Run::default()),
            accounts: vec![before],
            ..v1::RunStatus::default()
        }];
    });
    let ended = fetch(&fake, &["--discard"]);
    assert_eq!(
        (ended.status, ended.stdout.as_str()),
        (Some(0), "7 events given up\n")
    );
    assert_eq!(
        fake.asked(),
        ["fetch nc=[] process=[] max=0 discard=true auto=false"]
    );
}

#[test]
fn a_snapshot_is_written_and_never_committed() {
    let fake = Fake::start(|script| script.parts = parts(3, 5));
    let arguments = ["--nc", "1-2", "--process", "7", "-o", "-"];
    let ended = of("snapshot", &fake, &arguments);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    assert!(ended.stderr.contains("3 events"), "{ended:?}");
    assert_eq!(fake.asked()[0], "snapshot token= nc=[1, 2] process=[7]");
    assert_eq!(commits(&fake), [""; 0]);
}
