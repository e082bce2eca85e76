//! The host monitor's ticks in documents, and on their way through a recording.

use std::io::Cursor;

use nrt_trace_export::{HostWriter, NativeError, NativeWriter, Spool, host};
use nrt_trace_proto::v1::trace_part::Part;
use nrt_trace_proto::v1::{
    HostCgroup, HostCpu, HostInfo, HostMemory, HostPressure, HostProducer, HostResource,
    HostSample, HostStall, TracePart,
};

use crate::parts::{begin, end, json, part, plain, producer, records};

fn sample(seq: u64) -> HostSample {
    HostSample {
        seq,
        timestamp_ns: 1_796_005_265_000_000_000 + seq,
        interval_ns: 1_000_000_000,
        cpus: vec![
            HostCpu {
                cpu_id: 0,
                util: Some(12.5),
                iowait: Some(0.0),
                ..HostCpu::default()
            },
            HostCpu {
                cpu_id: 8,
                ..HostCpu::default()
            },
        ],
        memory: Some(HostMemory {
            total_bytes: Some(8000),
            used_bytes: Some(2000),
            ..HostMemory::default()
        }),
        pressure: vec![HostPressure {
            resource: HostResource::Io.into(),
            some: Some(HostStall {
                avg10: Some(0.25),
                ..HostStall::default()
            }),
            full: None,
        }],
        producers: vec![HostProducer {
            producer_id: 7,
            pid: Some(42),
            name: "trainer".to_owned(),
            rss_bytes: Some(4096),
            cgroup: Some(HostCgroup {
                path: "/x".to_owned(),
                ..HostCgroup::default()
            }),
            ..HostProducer::default()
        }],
        ..HostSample::default()
    }
}

fn info() -> HostInfo {
    HostInfo {
        instance_id: "i-1".to_owned(),
        ..HostInfo::default()
    }
}

#[test]
fn a_line_is_a_tick_and_leaves_out_what_is_not_known() {
    let mut out = Vec::new();
    host::line(&sample(1), true, &mut out).unwrap();
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "{\"timestamp\":1796005265000000001,\"cpu_util\":[{\"cpu_id\":\"0\",\"util\":12.5},{\"cpu_id\":\"8\"}],\
         \"mem_usage\":{\"usage\":2000,\"percent_usage\":25.0,\"total\":8000},\
         \"producers\":[{\"producer_id\":7,\"pid\":42,\"name\":\"trainer\",\"ended\":false,\"rss_bytes\":4096,\
         \"cgroup\":{\"path\":\"/x\"}}],\"saturated\":true}\n"
    );
    let mut out = Vec::new();
    host::line(&HostSample::default(), false, &mut out).unwrap();
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "{\"timestamp\":0,\"cpu_util\":[],\"mem_usage\":{},\"producers\":[],\"saturated\":false}\n"
    );
}

#[test]
fn an_object_has_all_that_is_known() {
    let value = host::value(&sample(1)).unwrap();
    assert_eq!(value["cpus"][0]["iowait"], 0.0);
    assert!(value["cpus"][0].get("steal").is_none() && value.get("disk").is_none());
    assert_eq!(value["pressure"][0]["resource"], "io");
    assert_eq!(value["pressure"][0]["some"]["avg10"], 0.25);
}

#[test]
fn the_document_has_neurons_objects() {
    let mut writer = HostWriter::new(Vec::new()).unwrap();
    for each in [
        Part::HostInfo(info()),
        Part::HostSample(sample(1)),
        Part::HostSample(sample(2)),
    ] {
        writer.part(&part(each)).unwrap();
    }
    writer.part(&producer(1, 42)).unwrap();
    let util = |ns: u64| {
        format!(
            "{{\"cpu_id\":\"0\",\"duration\":1000000000,\"instance_id\":\"i-1\",\"timestamp\":{ns},\"util\":12.5}}"
        )
    };
    let usage = |ns: u64| {
        format!(
            "{{\"duration\":1000000000,\"instance_id\":\"i-1\",\"percent_usage\":25.0,\"timestamp\":{ns},\"usage\":2000}}"
        )
    };
    let (a, b) = (1_796_005_265_000_000_001, 1_796_005_265_000_000_002);
    assert_eq!(
        String::from_utf8(writer.finish().unwrap()).unwrap(),
        format!(
            "{{\"cpu_util\":[{},{}],\"mem_usage\":[{},{}]}}",
            util(a),
            util(b),
            usage(a),
            usage(b)
        )
    );
    let empty = HostWriter::new(Vec::new()).unwrap().finish().unwrap();
    assert_eq!(empty, b"{\"cpu_util\":[],\"mem_usage\":[]}");
}

#[test]
fn ticks_come_through_a_recording_in_order_and_leave_the_events_alone() {
    let events = [
        begin(1, 1),
        producer(1, 42),
        records(1, 0, &[plain(0, 1)]),
        end(1, 1),
        begin(2, 1),
        records(1, 0, &[plain(0, 2)]),
        end(2, 1),
    ];
    let mut mixed = events.to_vec();
    mixed.insert(7, part(Part::HostSample(sample(4))));
    mixed.insert(5, part(Part::HostSample(sample(3))));
    mixed.insert(4, part(Part::HostSample(sample(2))));
    mixed.insert(0, part(Part::HostSample(sample(1))));
    mixed.insert(0, part(Part::HostInfo(info())));
    let mut writer = NativeWriter::new(Vec::new()).unwrap();
    mixed.iter().for_each(|part| writer.part(part).unwrap());
    let mut spool = Spool::open(Cursor::new(writer.finish().unwrap())).unwrap();
    let mut parts = Vec::new();
    for _ in 0..2 {
        parts.clear();
        let done: Result<(), NativeError> = spool.regroup(|part| {
            parts.push(part);
            Ok(())
        });
        done.unwrap();
    }
    let kinds = |part: &TracePart| match &part.part {
        Some(Part::HostInfo(info)) => Some(info.instance_id.len() as u64 + 1000),
        Some(Part::HostSample(sample)) => Some(sample.seq),
        _ => None,
    };
    let seen: Vec<u64> = parts.iter().filter_map(kinds).collect();
    assert_eq!(seen, [1003, 1, 2, 3, 4]);
    assert_eq!(spool.events(), 2);
    let plain: Vec<TracePart> = parts
        .iter()
        .filter(|part| kinds(part).is_none())
        .cloned()
        .collect();
    assert_eq!(
        json(&parts),
        json(&plain),
        "Neuron's document stays as it is"
    );
}
