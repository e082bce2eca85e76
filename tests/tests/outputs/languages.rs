//! Spans from C++ and Python.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use nrt_trace_export::json::{JsonEvent, read_json};
use nrt_trace_model::Phase;
use nrt_trace_tests::checkout::soname;
use nrt_trace_tests::{Host, Link, artifacts, compile, run};
use serde_json::Value;

fn events(path: &Path) -> Vec<JsonEvent> {
    let mut events = Vec::new();
    read_json(std::fs::File::open(path).unwrap(), |event| {
        events.push(event);
        Ok(())
    })
    .unwrap();
    events
}

/// Whole spans by name; every start has its stop, later and under the same name.
fn spans(events: &[JsonEvent]) -> BTreeMap<String, u64> {
    let mut open = BTreeMap::new();
    let mut whole = BTreeMap::new();
    for event in events
        .iter()
        .filter(|event| event.event_type.name() == "generic")
    {
        let key = (event.nc_idx, event.tracking_id);
        match event.phase {
            Some(Phase::Start) => assert!(open.insert(key, event).is_none(), "{event:?}"),
            Some(Phase::Stop) => {
                let start: &JsonEvent = open.remove(&key).unwrap();
                assert_eq!(start.name, event.name);
                assert!(start.timestamp_ns < event.timestamp_ns);
                *whole
                    .entry(start.name.clone().unwrap_or_default())
                    .or_default() += 1;
            }
            _ => {}
        }
        assert!(
            event.data.is_empty(),
            "the data of a generic event stays empty"
        );
    }
    assert!(open.is_empty(), "{open:?}");
    whole
}

#[test]
fn spans_of_a_c_program_have_their_names() {
    let host = Host::new();
    let program = compile(&host, "tests/c/spans.c", Link::Linked);
    let program = program.to_str().unwrap();
    let record = ["record", "-o", "t.json", "--names", "--", program];
    let ended = host.tracectl(&record).ok();
    let expected = [("", 1), ("inner", 3), ("step", 3)];
    let expected = expected.map(|(name, count)| (name.to_owned(), count));
    assert_eq!(spans(&events(&host.path("t.json"))), expected.into());
    assert!(ended.text().contains("\"step\""), "{ended}");
}

#[test]
fn spans_of_a_cpp_program_have_their_names() {
    let host = Host::new();
    let program = compile(&host, "tests/c/spans.cpp", Link::Linked);
    let program = program.to_str().unwrap();
    let ended = host
        .tracectl(&["record", "-o", "t.json", "--names", "--", program])
        .ok();
    let events = events(&host.path("t.json"));
    let expected = [
        ("", 1),
        ("inner", 3),
        ("moved out", 1),
        ("step", 3),
        ("unwound", 1),
    ];
    let expected = expected.map(|(name, count)| (name.to_owned(), count));
    assert_eq!(spans(&events), expected.into());
    let ticks = events
        .iter()
        .filter(|event| event.phase == Some(Phase::Instant))
        .map(|event| event.name.as_deref());
    assert!(ticks.eq([Some("tick"); 3]));
    let reads: Vec<_> = events
        .iter()
        .filter(|event| event.event_type.name() == "nrt_tensor_read")
        .map(|event| {
            (
                event.nc_idx,
                event.number("tensor_id"),
                event.number("size"),
            )
        })
        .collect();
    assert_eq!(reads, [(2, Some(7), Some(0)), (2, Some(7), Some(99))]);
    let summary = ended.text();
    for name in ["\"step\"", "\"inner\"", "\"moved out\"", "\"tick\""] {
        assert!(summary.contains(name), "{summary}");
    }
}

#[test]
fn a_cpp_program_runs_without_a_daemon() {
    let host = Host::new();
    let mut command = host.command(compile(&host, "tests/c/spans.cpp", Link::Linked));
    command.env("NRT_TRACE_DISABLE", "1");
    let ended = run(command);
    assert_eq!(
        ended.code(),
        Some(1),
        "a moved span has no id where nothing is recorded: {ended}"
    );
}

/// The C++ header is clean in each standard, with what compilers warn of.
#[test]
fn the_cpp_header_is_clean_in_every_standard() {
    for compiler in ["c++", "clang++"] {
        if Command::new(compiler).arg("--version").output().is_err() {
            eprintln!("NOT RUN: no {compiler}");
            continue;
        }
        for standard in ["c++11", "c++14", "c++17", "c++20", "c++2b"] {
            let mut command = Command::new(compiler);
            command
                .args([
                    "-Wall",
                    "-Wextra",
                    "-Wpedantic",
                    "-Wshadow",
                    "-Werror",
                    "-fsyntax-only",
                ])
                .arg(format!("-std={standard}"))
                .arg("-I")
                .arg(&artifacts().include)
                .arg(artifacts().workspace.join("tests/c/spans.cpp"));
            run(command).ok();
        }
    }
}

fn python(host: &Host, before: &[&str], script: &[&str]) -> nrt_trace_tests::Ended {
    let mut command = host.tracectl_command(&[before, &["python3"], script].concat());
    command.env("NRT_TRACE_LIBRARY", &artifacts().library);
    command.env("PYTHONPATH", artifacts().workspace.join("examples/python"));
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    run(command)
}

const RECORD: [&str; 5] = ["record", "-o", "t.json", "--names", "--"];

#[test]
fn spans_of_a_python_program_have_their_names_whatever_ends_them() {
    let host = Host::new();
    let script = "import nrt_trace as t\n\
        assert t.available() and t.enabled()\n\
        @t.traced('call', nc=1)\n\
        def call(x): return x + 1\n\
        with t.span('outer') as id:\n    \
            assert id and call(1) == 2\n    \
            t.instant('tick')\n\
        try:\n    \
            with t.span('raises'): raise KeyError('on purpose')\n\
        except KeyError: pass\n\
        with t.span('日本語'): pass\n\
        with t.span('zero\\0byte'): pass\n\
        with t.span('\\ud800'): pass\n\
        assert t.intern('model.neff') == 566264322956826\n";
    python(&host, &RECORD, &["-c", script]).ok();
    let events = events(&host.path("t.json"));
    let expected = [
        ("", 2),
        ("call", 1),
        ("outer", 1),
        ("raises", 1),
        ("日本語", 1),
    ];
    let expected = expected.map(|(name, count)| (name.to_owned(), count));
    assert_eq!(spans(&events), expected.into());
}

#[test]
fn a_numpy_workload_is_recorded_as_it_counts_itself() {
    let has_numpy = Command::new("python3")
        .args(["-c", "import numpy"])
        .output();
    if !has_numpy.is_ok_and(|output| output.status.success()) {
        eprintln!("NOT RUN: python3 has no numpy");
        return;
    }
    let host = Host::new();
    let script = artifacts().workspace.join("examples/python/numpy_step.py");
    let ended = python(&host, &RECORD, &[script.to_str().unwrap(), "30"]).ok();
    let text = ended.text();
    let said = text.lines().find(|line| line.starts_with('{')).unwrap();
    let said: Value = serde_json::from_str(said).unwrap();
    assert_eq!(said["ok"], true, "{ended}");
    let expected: BTreeMap<String, u64> = serde_json::from_value(said["recorded"].clone()).unwrap();
    assert_eq!(expected["step"], 30);
    assert_eq!(spans(&events(&host.path("t.json"))), expected);
    for name in ["\"step\"", "\"load batch\"", "\"gradient\"", "\"update\""] {
        assert!(text.contains(name), "the summary has {name}: {ended}");
    }
}

/// Where the loader looks, the library may be there under its soname only, or under its plain one only.
#[test]
fn a_python_program_finds_the_library_by_either_name() {
    let library = &artifacts().library;
    let plain = library.file_name().unwrap().to_str().unwrap().to_owned();
    for name in [soname(library), plain] {
        let host = Host::new();
        std::os::unix::fs::symlink(library, host.path(&name)).unwrap();
        let mut command = host.command("python3");
        command.args(["-c", "import nrt_trace as t; print(t.available())"]);
        command.env("LD_LIBRARY_PATH", host.path(""));
        command.env("PYTHONPATH", artifacts().workspace.join("examples/python"));
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        command.env("NRT_TRACE_WAIT_MS", "0");
        assert_eq!(run(command).ok().text().trim(), "True", "{name}");
    }
}

#[test]
fn a_python_program_runs_without_daemon_and_without_library() {
    let host = Host::new();
    let script = "import nrt_trace as t\n\
        with t.span('x') as id: assert id == 0\n\
        assert not t.enabled() and not t.wait_armed(0) and t.instant('y') == 0\n\
        print(t.available())";
    for (library, there) in [
        (artifacts().library.as_path(), "True"),
        (Path::new("/no/such.so"), "False"),
    ] {
        let mut command = host.command("python3");
        command.args(["-c", script]);
        command.env("NRT_TRACE_LIBRARY", library);
        command.env("PYTHONPATH", artifacts().workspace.join("examples/python"));
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        command.env("NRT_TRACE_WAIT_MS", "0");
        let ended = run(command).ok();
        assert_eq!((ended.text().trim(), ended.stderr.as_str()), (there, ""));
    }
}
