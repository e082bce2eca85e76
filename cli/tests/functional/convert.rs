//! Traces from one format into another.

use std::fs;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::Stdio;

use nrt_trace_export::NativeWriter;
use nrt_trace_proto::v1::trace_part::Part;
use nrt_trace_proto::v1::{
    FetchBegin, FetchEnd, Producer, Records, RingAccount, Run, StringEntry, Strings, TracePart,
};
use serde_json::Value;

use crate::tool::{Ended, finish, in_own_mounts, run, tool};

/// When capturing began.
pub(crate) const T: u64 = 1_796_000_000_000_000_000;

/// `nrt_execute`, `kbl_exec_pre`, `nc_exec_running`, `timestamp_sync_point`, `numerical_err`.
const EXECUTE: u64 = 3;
const PRE: u64 = 17;
const RUNNING: u64 = 7;
const SYNC: u64 = 25;
const ERROR: u64 = 13;
const MODEL: u64 = 566_264_322_956_826;

/// An event at `T + at` as the words of its record.
fn words(
    kind: u64,
    phase: u64,
    nc: u64,
    seq: u64,
    tracking_id: u64,
    at: u64,
    data: [u64; 5],
) -> [u64; 14] {
    let [a, b, c, d, e] = data;
    let id = seq | nc << 50;
    [
        kind,
        7,
        id,
        seq,
        tracking_id,
        T + at,
        a,
        b,
        c,
        d,
        e,
        phase | nc << 32,
        0,
        0,
    ]
}

/// An execution: on the host from 100 to 900, on the device from 200 to 700 by its own clock, which began at 0 at `T`. `n` for the
/// n-th of the NC, each a microsecond after the one before.
fn execution(nc: u64, n: u64) -> Vec<[u64; 14]> {
    let (at, seq, exec) = (1000 * n, 8 * n, n + 1);
    let event = |k, kind, phase, tracking_id, time, data| {
        words(
            kind,
            phase,
            nc,
            seq + k,
            100 * exec + tracking_id,
            at + time,
            data,
        )
    };
    vec![
        event(1, EXECUTE, 0, 1, 100, [MODEL, 0, 0, 0, 0]),
        event(2, PRE, 0, 2, 110, [exec, MODEL, 0, 0, 0]),
        event(3, PRE, 1, 2, 120, [exec, MODEL, 0, 0, 0]),
        event(4, SYNC, 2, 3, 130, [exec, at, T + at, 0, 0]),
        // The device's events were seen later than they happened.
        event(
            5,
            RUNNING,
            0,
            4,
            750,
            [exec << 32 | nc, at + 200, T + at + 200, 0, 0],
        ),
        event(6, RUNNING, 1, 4, 760, [at + 700, T + at + 700, 0, 0, 0]),
        event(
            7,
            ERROR,
            2,
            5,
            770,
            [exec << 32 | nc, at + 300, T + at + 300, 0, 0],
        ),
        event(8, EXECUTE, 1, 1, 900, [MODEL, 0, 0, 0, 0]),
    ]
}

/// Two processes with two NeuronCores each, and `executions` on each of those.
pub(crate) fn trace(executions: u64) -> Vec<u8> {
    let mut writer = NativeWriter::new(Vec::new()).unwrap();
    let mut give = |part| writer.part(&TracePart { part: Some(part) }).unwrap();
    give(Part::Begin(FetchBegin {
        format_version: 1,
        fetch_id: 1,
        producers: 2,
        run: Some(Run {
            started_ns: T,
            ..Run::default()
        }),
        ..FetchBegin::default()
    }));
    give(Part::Strings(Strings {
        first: 0,
        entries: vec![StringEntry {
            id: MODEL,
            text: "model.neff".to_owned(),
        }],
    }));
    for producer_id in [1, 2] {
        give(Part::Producer(Producer {
            producer_id,
            pid: Some(40 + i32::try_from(producer_id).unwrap()),
            name: format!("worker {producer_id}"),
            worker_gid: -1,
            visible_cores: vec![2 * producer_id, 2 * producer_id + 1],
            ..Producer::default()
        }));
        for nc_idx in [0, 1] {
            let all = (0..executions).flat_map(|n| execution(u64::from(nc_idx), n));
            let packed: Vec<u8> = all.flatten().flat_map(u64::to_le_bytes).collect();
            give(Part::Records(Records {
                producer_id,
                nc_idx,
                packed: packed.into(),
            }));
            give(Part::Account(RingAccount {
                producer_id,
                nc_idx,
                claimed: 8 * executions + 5,
                delivered: 8 * executions,
                lost: 5,
                overwritten: 5,
                exact: true,
                ..RingAccount::default()
            }));
        }
    }
    give(Part::End(FetchEnd {
        fetch_id: 1,
        run_ended: true,
        ..FetchEnd::default()
    }));
    writer.finish().unwrap()
}

/// A folder with a trace, `t.nrtt`.
pub(crate) struct Folder(tempfile::TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("t.nrtt"), trace(20)).unwrap();
        Self(folder)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Converts, which has to go well.
    pub(crate) fn convert(&self, from: &str, to: &str, more: &[&str]) -> Vec<u8> {
        let ended = self.run(from, to, more);
        assert_eq!(ended.status, Some(0), "{ended:?}");
        fs::read(self.path(to)).unwrap()
    }

    fn run(&self, from: &str, to: &str, more: &[&str]) -> Ended {
        let mut command = tool();
        command.arg("convert").arg(self.path(from)).arg("-o");
        finish(command.arg(self.path(to)).args(more))
    }

    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

fn events(json: &[u8]) -> Vec<Value> {
    let document: Value = serde_json::from_slice(json).unwrap();
    document["events"].as_array().unwrap().clone()
}

fn lines(csv: &[u8]) -> Vec<String> {
    let text = String::from_utf8(csv.to_vec()).unwrap();
    text.lines().skip(1).map(str::to_owned).collect()
}

#[test]
fn json_becomes_native_and_json_again_word_for_word() {
    let folder = Folder::new();
    let json = folder.convert("t.nrtt", "a.json", &[]);
    assert_eq!(events(&json).len(), 4 * 20 * 8);
    folder.convert("a.json", "b.nrtt", &[]);
    assert!(
        folder.convert("b.nrtt", "b.json", &[]) == json,
        "through the native format"
    );
    assert!(folder.convert("a.json", "c.json", &[]) == json, "at once");
    // What the trace itself says reaches Perfetto the same way from both.
    let direct = lines(&folder.convert("t.nrtt", "d.csv", &[]));
    assert_eq!(lines(&folder.convert("a.json", "e.csv", &[])), direct);
    let of = |kind: &str| direct.iter().filter(|line| line.contains(kind)).count();
    assert_eq!((of(",span,"), of(",instant,")), (4 * 20 * 3, 4 * 20 * 2));
    assert_eq!(direct.len(), 4 * 20 * 5, "every event, and nothing else");
    assert!(
        direct[0].contains(",nrt_execute,") || direct[0].contains(",kbl_exec_pre,"),
        "{}",
        direct[0]
    );
}

#[test]
fn chrome_events_are_strict_json_with_every_span() {
    let folder = Folder::new();
    let chrome: Value =
        serde_json::from_slice(&folder.convert("t.nrtt", "t.chrome.json", &[])).unwrap();
    let all = chrome["traceEvents"].as_array().unwrap();
    let of = |phase: &str| all.iter().filter(|event| event["ph"] == phase).count();
    assert_eq!((of("X"), of("i")), (4 * 20 * 3, 4 * 20 * 2));
    let running = all
        .iter()
        .find(|event| event["name"] == "nc_exec_running")
        .unwrap();
    assert_eq!(running["dur"], 0.5);
    assert_eq!(running["args"]["model_name"], "model.neff");
    // Not one event is valid JSON, too.
    fs::write(folder.path("none.nrtt"), trace(0)).unwrap();
    let none: Value =
        serde_json::from_slice(&folder.convert("none.nrtt", "none.chrome.json", &[])).unwrap();
    assert!(
        none["traceEvents"]
            .as_array()
            .unwrap()
            .iter()
            .all(|event| event["ph"] == "M")
    );
}

#[test]
fn a_filter_that_fits_nothing_is_told_with_what_there_is() {
    let folder = Folder::new();
    let fits_none: [(&[&str], &str); 5] = [
        (
            &["--events", "nrt_load"],
            "--events fits none of them; they are of the types nrt_execute, ",
        ),
        (
            &["--nc", "200"],
            "--nc fits none of them; they are on nc 2-5",
        ),
        (
            &["--process", "999999999"],
            "--process fits none of them; they are of the processes ",
        ),
        (
            &["--after", "+1h", "--nc", "2"],
            "--after and --before fit none of those that --nc leaves; they are from +",
        ),
        (
            &["--nc", "2", "--events", "nrt_load"],
            "--events fits none of those that --nc leaves; they are of the types nrt_execute, ",
        ),
    ];
    for (filter, words) in fits_none {
        let ended = folder.run("t.nrtt", "none.json", filter);
        assert_eq!(ended.status, Some(0), "{ended:?}");
        let words = format!("Warning: 0 of 640 events fit the filter: {words}");
        assert!(ended.stderr.contains(&words), "{ended:?}");
    }
    for filter in [["--events", "all"], ["--nc", "all"], ["--after", "+0s"]] {
        let ended = folder.run("t.nrtt", "all.json", &filter);
        assert!(!ended.stderr.contains("fit the filter"), "{ended:?}");
        let all = fs::read(folder.path("all.json")).unwrap();
        assert_eq!(events(&all).len(), 640, "{filter:?}");
    }
}

/// It is said before anything is read: there is no such input.
#[test]
fn a_time_that_ends_before_it_begins_is_a_wrong_argument() {
    let folder = Folder::new();
    for (after, before) in [("+5s", "+1s"), ("+1s", "+1s"), ("7", "6")] {
        let ended = folder.run(
            "no-such.nrtt",
            "none.json",
            &["--after", after, "--before", before],
        );
        ended.one_line(2, &["the time of --after is to be before that of --before"]);
    }
}

#[test]
fn filters_leave_out_events_and_change_no_other() {
    let folder = Folder::new();
    let all = events(&folder.convert("t.nrtt", "all.json", &[]));
    let kept = |name: &str, more: &[&str]| events(&folder.convert("t.nrtt", name, more));
    let expect = |keep: &dyn Fn(&Value) -> bool| -> Vec<Value> {
        all.iter().filter(|event| keep(event)).cloned().collect()
    };
    // Models and host times of the device's events come from events that are left out.
    let hardware = kept("hardware.json", &["--events", "nc_exec_running"]);
    assert_eq!(
        hardware,
        expect(&|event| event["event_type"] == "nc_exec_running")
    );
    assert_eq!(hardware[0]["data"]["model_name"], "model.neff");
    // Host cores: 2 and 3 are the first process's, 4 and 5 the other's.
    let cores = kept("cores.json", &["--nc", "3-4"]);
    assert_eq!(
        cores,
        expect(&|event| event["host_nc_idx"] == 3 || event["host_nc_idx"] == 4)
    );
    let process = kept("process.json", &["--process", "42"]);
    let mut expected = expect(&|event| event["process_id"] == 42);
    for event in &mut expected {
        // One process needs no number.
        event.as_object_mut().unwrap().remove("process_id");
    }
    let mut process = process;
    for event in &mut process {
        event.as_object_mut().unwrap().remove("process_id");
    }
    assert_eq!(process, expected);
    let absolute = (T + 5_000).to_string();
    let late = kept("late.json", &["--after", &absolute]);
    assert_eq!(late.len(), 4 * 15 * 8);
    let folder_of = ["--after", "+0.000005s", "--before", "+0.000007s"];
    assert_eq!(kept("part.json", &folder_of).len(), 4 * 2 * 8);
    let bad = run(["convert", "t", "-o", "x.json", "--after", "yesterday"]);
    bad.one_line(2, &["--after", "ns since 1970"]);
}

#[test]
fn pipes_are_read_and_written() {
    let folder = Folder::new();
    let expected = folder.convert("t.nrtt", "t.json", &[]);
    for input in ["t.nrtt", "t.json"] {
        let mut command = tool();
        let bytes = fs::read(folder.path(input)).unwrap();
        command
            .args(["convert", "-", "-o", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        std::thread::spawn(move || stdin.write_all(&bytes).unwrap());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        assert!(output.stdout == expected, "{input}");
        assert_eq!(
            output.stderr, b"",
            "nothing is told beside a trace in a pipe"
        );
    }
}

#[test]
fn l01_a_reader_that_goes_away_is_no_failure() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.nrtt");
    fs::write(&file, trace(3000)).unwrap();
    for format in ["json", "pftrace", "csv", "chrome", "nrtt"] {
        let mut command = tool();
        command
            .arg("convert")
            .arg(&file)
            .args(["-o", "-", "--to", format]);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut first = [0; 10];
        let mut stdout = child.stdout.take().unwrap();
        stdout.read_exact(&mut first).unwrap();
        drop(stdout);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{format}");
        assert_eq!(output.stderr, b"", "{format}");
    }
}

#[test]
fn l03_a_full_disk_is_told_and_leaves_nothing() {
    let folder = Folder::new();
    for format in ["json", "pftrace", "csv", "chrome", "nrtt"] {
        let mut full = tool();
        full.arg("convert")
            .arg(folder.path("t.nrtt"))
            .args(["-o", "/dev/full", "--to", format]);
        finish(&mut full).one_line(1, &["cannot write /dev/full: No space left on device"]);
        // A limit on the size of files, with a good file in the place already.
        let place = folder.path(&format!(
            "t.{}",
            if format == "chrome" {
                "chrome.json"
            } else {
                format
            }
        ));
        if format != "nrtt" {
            fs::write(&place, "old").unwrap();
        }
        let before = fs::read(&place).unwrap();
        let mut limited = std::process::Command::new("bash");
        limited.args([
            "-c",
            "ulimit -f 4; exec \"$0\" convert \"$1\" -o \"$2\" --to \"$3\"",
        ]);
        limited
            .arg(env!("CARGO_BIN_EXE_nrt-tracectl"))
            .arg(folder.path("t.nrtt"))
            .arg(&place)
            .arg(format);
        let ended = finish(&mut limited);
        if format == "nrtt" && ended.status == Some(0) {
            // It is so small that it fits.
            continue;
        }
        ended.one_line(1, &["cannot write", "File too large"]);
        assert_eq!(fs::read(&place).unwrap(), before, "{format}");
    }
    let mut folder_itself = tool();
    folder_itself.arg("convert").arg(folder.path("t.nrtt"));
    folder_itself.arg("-o").arg(folder.path(""));
    finish(&mut folder_itself).one_line(1, &["it is a directory; name a file in it"]);
    let left: Vec<String> = folder
        .names()
        .into_iter()
        .filter(|name| name.contains("tmp"))
        .collect();
    assert_eq!(left, Vec::<String>::new());
}

/// A file system of 64 KiB, which a mount namespace of its own makes possible for anybody.
#[test]
fn l03_a_small_file_system_is_told_and_left_empty() {
    let folder = Folder::new();
    fs::write(folder.path("large.nrtt"), trace(300)).unwrap();
    let small = folder.path("small");
    fs::create_dir(&small).unwrap();
    let script = "mount -t tmpfs -o size=64k tmpfs \"$1\" || exit 99; \
        \"$0\" convert \"$2\" -o \"$1/t.$3\" --to \"$3\"; status=$?; ls -A \"$1\"; exit $status";
    for format in ["json", "pftrace", "csv", "chrome"] {
        let large = folder.path("large.nrtt");
        let arguments = [small.as_os_str(), large.as_os_str(), format.as_ref()];
        let Some(ended) = in_own_mounts(script, &arguments) else {
            return;
        };
        ended.one_line(1, &["cannot write", "small/t.", "No space left on device"]);
    }
}

/// A document is held in a temporary file while it is read: that there is no room for it is not the document's fault.
#[test]
fn l03_no_room_for_a_temporary_file_is_told_with_its_folder() {
    let folder = Folder::new();
    let document = folder.path("large.json");
    fs::write(folder.path("large.nrtt"), trace(300)).unwrap();
    let mut made = tool();
    made.arg("convert").arg(folder.path("large.nrtt"));
    finish(made.arg("-o").arg(&document));
    let mut limited = std::process::Command::new("bash");
    limited.args([
        "-c",
        "ulimit -f 4; exec \"$0\" convert \"$1\" -o - --to csv",
    ]);
    limited
        .arg(env!("CARGO_BIN_EXE_nrt-tracectl"))
        .arg(&document)
        .env("TMPDIR", folder.path(""));
    let wanted = format!(
        "cannot write a temporary file in {}",
        folder.path("").display()
    );
    finish(&mut limited).one_line(1, &[&wanted, "File too large"]);
}

#[test]
fn what_is_no_trace_is_told_by_name_and_leaves_nothing() {
    let folder = Folder::new();
    let whole = fs::read(folder.path("t.nrtt")).unwrap();
    let mut damaged = whole.clone();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 0xFF;
    let cases: [(&str, &[u8], &str); 5] = [
        ("empty", b"", "neither a native trace"),
        ("text", b"hello", "neither a native trace"),
        ("other.json", b"{\"traceEvents\":[]}", "no `events`"),
        (
            "newer.json",
            b"{\"events\":[],\"data_version\":3}",
            "data_version 3",
        ),
        ("damaged.nrtt", &damaged, "damaged"),
    ];
    let there = folder.names().len();
    for (place, (name, bytes, word)) in cases.into_iter().enumerate() {
        fs::write(folder.path(name), bytes).unwrap();
        for verb in ["convert", "summary"] {
            let mut command = tool();
            command.arg(verb).arg(folder.path(name));
            if verb == "convert" {
                command.arg("-o").arg(folder.path("out.json"));
            }
            finish(&mut command).one_line(1, &["cannot read", name, word]);
        }
        assert_eq!(
            folder.names().len(),
            there + place + 1,
            "{:?}",
            folder.names()
        );
    }
    run(["summary", "/no/such/trace"]).one_line(1, &["cannot read /no/such/trace: No such file"]);
    run(["summary", "/"]).one_line(1, &["cannot read /: "]);
}

#[test]
fn of_a_cut_trace_what_stands_before_the_cut_is_used() {
    let folder = Folder::new();
    let json = folder.convert("t.nrtt", "t.json", &[]);
    let native = fs::read(folder.path("t.nrtt")).unwrap();
    fs::write(folder.path("cut.json"), &json[..json.len() / 2]).unwrap();
    fs::write(folder.path("cut.nrtt"), &native[..native.len() - 20]).unwrap();
    for name in ["cut.json", "cut.nrtt"] {
        let out = folder.path("out.json");
        let mut command = tool();
        command
            .arg("convert")
            .arg(folder.path(name))
            .arg("-o")
            .arg(&out);
        let ended = finish(&mut command);
        assert_eq!(ended.status, Some(1), "{ended:?}");
        assert!(ended.stderr.contains("is cut after byte"), "{ended:?}");
        // Where one process is left, its number is too.
        let bare = |json: &[u8]| -> Vec<Value> {
            let mut all = events(json);
            for event in &mut all {
                event.as_object_mut().unwrap().remove("process_id");
            }
            all
        };
        let kept = bare(&fs::read(&out).unwrap());
        assert!(kept.len() > 250, "{name}: {}", kept.len());
        assert_eq!(kept[..], bare(&json)[..kept.len()], "{name}");
    }
}
