//! `host`: what the daemon is asked, and how its answers look.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use nrt_trace_proto::v1;

use crate::fake::{Fake, Script};
use crate::tool::{Ended, run};

fn ask(fake: &Fake, more: &[&str]) -> Ended {
    let mut arguments: Vec<OsString> = vec!["--socket".into(), fake.socket().into(), "host".into()];
    arguments.extend(more.iter().map(OsString::from));
    run(arguments)
}

fn tick(seq: u64, saturated: bool) -> v1::WatchHostStatsResponse {
    let cpu = |cpu_id, util| v1::HostCpu {
        cpu_id,
        util,
        user: util,
        idle: util.map(|util| 100.0 - util),
        ..v1::HostCpu::default()
    };
    let producer = |producer_id, name: &str, ended| v1::HostProducer {
        producer_id,
        pid: Some(4711),
        name: name.to_owned(),
        ended,
        ..v1::HostProducer::default()
    };
    let trainer = v1::HostProducer {
        rss_bytes: Some(3 << 20),
        cpu_percent: Some(199.95),
        cpu_ns: Some(61_000_000_000),
        threads: Some(8),
        cgroup: Some(v1::HostCgroup {
            path: "/job".to_owned(),
            memory_bytes: Some(5 << 20),
            ..v1::HostCgroup::default()
        }),
        ..producer(1, "train\x1b[2Jer", false)
    };
    v1::WatchHostStatsResponse {
        info: Some(v1::HostInfo {
            cpus: 2,
            cpu_name: "EPYC".to_owned(),
            mem_capacity_bytes: Some(8 << 30),
            page_bytes: 4096,
            instance_id: "i-0".to_owned(),
        }),
        sample: Some(v1::HostSample {
            seq,
            timestamp_ns: 1_796_005_265_123_456_789,
            interval_ns: 1_000_000_000,
            cpus: vec![cpu(0, Some(75.0)), cpu(2, None)],
            memory: Some(v1::HostMemory {
                total_bytes: Some(8 << 30),
                used_bytes: Some(2 << 30),
                ..v1::HostMemory::default()
            }),
            load: Some(v1::HostLoad {
                one: 0.5,
                five: 0.25,
                fifteen: 0.125,
                running: 2,
                tasks: 300,
            }),
            producers: vec![trainer, producer(2, "gone", true)],
            ..v1::HostSample::default()
        }),
        saturated,
    }
}

fn running(script: &mut Script) {
    script.ticks = vec![tick(1, false), tick(2, true)];
    script.host = v1::HostState {
        running: true,
        armed: true,
        period_ms: 1000,
        max_samples: 10_000,
        num_samples: 2,
        retention: v1::HostRetention::Saturate.into(),
        ..v1::HostState::default()
    };
}

#[test]
fn a_tick_as_a_table_is_the_golden_one() {
    let ended = ask(&Fake::start(running), &[]);
    assert_eq!((ended.status, ended.stderr.as_str()), (Some(0), ""));
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/functional/golden/host.txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&golden, &ended.stdout).unwrap();
    }
    assert_eq!(ended.stdout, fs::read_to_string(golden).unwrap());
}

#[test]
fn one_that_is_off_is_started_for_a_tick() {
    let fake = Fake::start(|script| script.ticks = vec![tick(1, false)]);
    let ended = ask(&fake, &["--period", "500ms", "--format", "json"]);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    assert_eq!(
        fake.asked(),
        ["watch_host WatchHostStatsRequest { start: true, period_ms: Some(500) }"]
    );
    let document: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(document["sample"]["cpus"][0]["util"], 75.0);
    assert_eq!(
        (&document["cpu_count"], &document["cpu_name"]),
        (&2.into(), &"EPYC".into())
    );
}

#[test]
fn following_gives_a_line_for_each_tick_and_says_why_it_ends() {
    let fake = Fake::start(running);
    let ended = ask(&fake, &["--follow", "--format", "json"]);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    let lines: Vec<serde_json::Value> = ended
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 2);
    let keys: Vec<&String> = lines[0].as_object().unwrap().keys().collect();
    assert_eq!(
        keys,
        [
            "cpu_util",
            "mem_usage",
            "producers",
            "saturated",
            "timestamp"
        ]
    );
    assert!(ended.stdout.starts_with("{\"timestamp\":1796005265123456789,\"cpu_util\":[{\"cpu_id\":\"0\",\"util\":75.0},{\"cpu_id\":\"2\"}]"));
    assert_eq!(
        (&lines[0]["saturated"], &lines[1]["saturated"]),
        (&false.into(), &true.into())
    );
    assert!(ended.stderr.contains("is full"), "{ended:?}");

    let fake = Fake::start(|script| script.ticks = vec![tick(1, false)]);
    let ended = ask(&fake, &["-f"]);
    assert_eq!(ended.stdout.lines().count(), 2, "{ended:?}");
    assert!(
        ended.stdout.contains("75.0") && ended.stderr.contains("was stopped"),
        "{ended:?}"
    );
}

#[test]
fn start_and_stop_reach_the_daemon() {
    let fake = Fake::start(running);
    let ended = ask(
        &fake,
        &[
            "start",
            "--period",
            "2s",
            "--max-samples",
            "7",
            "--retention",
            "ring",
        ],
    );
    assert_eq!(ended.status, Some(0), "{ended:?}");
    assert!(ended.stderr.contains("running already"), "{ended:?}");
    assert!(
        ended
            .stdout
            .contains("on; every 1000 ms, 2 of 10,000 ticks kept (saturate)"),
        "{ended:?}"
    );
    let ended = ask(&fake, &["stop"]);
    assert_eq!(
        (ended.status, ended.stderr.lines().count()),
        (Some(0), 1),
        "{ended:?}"
    );
    assert_eq!(
        fake.asked(),
        [
            "start_host StartHostRequest { period_ms: Some(2000), max_samples: Some(7), retention: Ring }",
            "stop_host"
        ]
    );
}

#[test]
fn wrong_arguments_are_told_in_a_line() {
    let fake = Fake::start(running);
    ask(&fake, &["--period", "50ms"]).one_line(2, &["100ms to 60s"]);
    ask(&fake, &["start", "--period", "1s", "--retention", "all"]).one_line(2, &["saturate, ring"]);
    ask(&fake, &["start", "--max-samples", "0"]).one_line(2, &["at least 1"]);
    run(["record", "--host", "-o", "-", "--", "true"]).one_line(2, &["--host-stats FILE"]);
}
