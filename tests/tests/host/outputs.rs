//! Recordings, saturation and C programs.

use std::fs::{self, File};

use nrt_trace_export::NativeReader;
use nrt_trace_proto::v1::trace_part::Part;
use nrt_trace_tests::{Document, Host, Link, compile, run};
use serde_json::Value;

use crate::ticks::Follow;

/// Arguments of a recording that lasts for a few ticks.
fn recorded(host: &Host, output: &str, more: &[&str]) {
    let probe = nrt_trace_tests::artifacts().probe.display().to_string();
    let mut arguments = vec!["record", "-o", output, "--host-period", "100ms"];
    arguments.extend(more);
    arguments.extend(["--", &probe, "-n", "300", "-r", "300"]);
    run(host.tracectl_command(&arguments)).ok();
}

#[test]
fn a_recording_has_the_ticks_beside_the_events() {
    let _machine = crate::among_others();
    let host = Host::new();
    recorded(&host, "t.json", &["--host"]);
    let document = Document::read(&host.path("t.json"));
    assert_eq!(document.events.len(), 300);
    let text = fs::read_to_string(host.path("t.json")).unwrap();
    assert!(
        !text.contains("cpu_util") && !text.contains("mem_usage"),
        "Neuron's document"
    );

    let beside: Value =
        serde_json::from_slice(&fs::read(host.path("t.host.json")).unwrap()).unwrap();
    let (cpus, memory) = (
        &beside["cpu_util"].as_array().unwrap(),
        &beside["mem_usage"].as_array().unwrap(),
    );
    assert!(memory.len() >= 3 && cpus.len() >= memory.len(), "{beside}");
    let keys = |object: &Value| {
        object
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect::<Vec<_>>()
    };
    assert_eq!(
        keys(&cpus[0]),
        ["cpu_id", "duration", "instance_id", "timestamp", "util"]
    );
    assert_eq!(
        keys(&memory[0]),
        [
            "duration",
            "instance_id",
            "percent_usage",
            "timestamp",
            "usage"
        ]
    );
    // The ticks' clock is the events' clock.
    let (first, last) = (
        document.events[0].timestamp_ns,
        document.events[299].timestamp_ns,
    );
    let inside = |tick: &&Value| (first..last).contains(&tick["timestamp"].as_u64().unwrap());
    assert!(memory.iter().filter(inside).count() >= 3, "{beside}");

    recorded(&host, "t.nrtt", &["--host-stats", "asked.json"]);
    assert!(host.path("asked.json").exists());
    let (mut ticks, mut events, mut seen) = (0, 0, false);
    for part in NativeReader::new(File::open(host.path("t.nrtt")).unwrap()).unwrap() {
        match part.unwrap().part {
            Some(Part::HostSample(sample)) => {
                ticks += 1;
                seen |= sample
                    .producers
                    .iter()
                    .any(|p| p.name == "probe" && p.rss_bytes > Some(0));
            }
            Some(Part::Records(records)) => events += records.packed.len() / 112,
            _ => {}
        }
    }
    assert!(
        ticks >= 3 && seen && events == 300,
        "{ticks} {seen} {events}"
    );
}

#[test]
fn a_full_monitor_says_so_everywhere() {
    let _machine = crate::among_others();
    let mut host = Host::new();
    fs::write(
        host.path("c.toml"),
        "host = true\nhost_period_ms = 100\nhost_max_samples = 3\n",
    )
    .unwrap();
    host.start_daemon(&["--config", "c.toml"]);
    let state = || -> Value {
        serde_json::from_slice(&host.tracectl(&["host", "--format", "json"]).ok().stdout).unwrap()
    };
    nrt_trace_tests::until("the third tick", || {
        (state()["saturated"] == true).then_some(())
    });
    let full = state();
    assert_eq!(
        (
            &full["sample_count"],
            &full["max_samples"],
            &full["running"]
        ),
        (&3.into(), &3.into(), &false.into())
    );
    let table = host.tracectl(&["host"]).ok().text();
    assert!(table.contains("full, samples no more"), "{table}");
    let followed = host.tracectl(&["host", "-f", "--format", "json"]).ok();
    let lines: Vec<Value> = followed
        .text()
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    assert!(
        lines.len() == 1 && lines[0]["saturated"] == true,
        "{lines:?}"
    );
    // All that it keeps, as a document of its own and with a fetch.
    host.tracectl(&["host", "-o", "kept.json"]).ok();
    let kept: Value = serde_json::from_slice(&fs::read(host.path("kept.json")).unwrap()).unwrap();
    assert_eq!(
        kept["mem_usage"].as_array().map(Vec::len),
        Some(3),
        "{kept}"
    );
    host.tracectl(&["start"]).ok();
    host.tracectl(&["fetch", "-o", "t.json", "--host-stats", "again.json"])
        .ok();
    assert_eq!(
        fs::read(host.path("again.json")).unwrap(),
        fs::read(host.path("kept.json")).unwrap()
    );
    host.tracectl(&["host", "start", "--period", "100ms"]).ok();
    assert_eq!(Follow::start(&host).next().0["saturated"], false);
}

#[test]
fn a_c_program_reads_the_struct() {
    let _machine = crate::among_others();
    let mut host = Host::new();
    host.start_daemon(&[]);
    let program = compile(&host, "client-lib/capi/tests/c/host.c", Link::Linked);
    host.tracectl(&["host", "start", "--period", "100ms", "--max-samples", "8"])
        .ok();
    let mut command = host.command(program);
    command.arg("8").env_remove("NRT_TRACE_WAIT_MS");
    let said = run(command).ok().text();
    assert!(
        said.starts_with("samples 8, of this process ") && said.ends_with("done\n"),
        "{said}"
    );
    assert!(!said.contains("of this process 0,"), "{said}");
}
