//! Traces made by hand, one thing each.

use nrt_trace_export::{GroupKey, Grouping, PftraceOptions};
use nrt_trace_model::{EventType, strings};
use nrt_trace_proto::v1::{
    FetchEnd, HostCpu, HostInfo, HostMemory, HostSample, Producer, ProducerState, Run, TracePart,
    trace_part::Part,
};

use crate::engine::{ask, whole};
use crate::make::{Ring, T, anchor, begin, of_one};
use crate::parts::{account, names, part, process};
use crate::{pftrace, pftrace_with};

const SLICES: &str = "select s.name, s.ts, s.dur, s.depth, t.name, s.category from slice s \
    join track t on s.track_id = t.id order by s.ts, s.id";

/// Slices as name, begin after [`T`], duration, depth, track.
fn slices(answer: &crate::engine::Answer, query: usize) -> Vec<(String, i128, i128, i128, String)> {
    let row = |row: &Vec<serde_json::Value>| {
        (
            row[0].as_str().unwrap().to_owned(),
            whole(&row[1]) - i128::from(T),
            whole(&row[2]),
            whole(&row[3]),
            row[4].as_str().unwrap_or("NULL").to_owned(),
        )
    };
    answer.rows(query).iter().map(row).collect()
}

fn slice(
    name: &str,
    begin: i128,
    dur: i128,
    depth: i128,
    track: &str,
) -> (String, i128, i128, i128, String) {
    (name.to_owned(), begin, dur, depth, track.to_owned())
}

#[test]
fn x03_overlapping_spans_have_their_own_lengths() {
    let kind = EventType::CcExec;
    let ring = Ring::new(0)
        .event(kind, 0, 1, 0)
        .event(kind, 0, 2, 50_000)
        .event(kind, 0, 3, 60_000)
        .event(kind, 1, 3, 70_000)
        .event(kind, 1, 1, 100_000)
        .event(kind, 1, 2, 150_000);
    let answer = ask(
        &pftrace(&of_one(&ring)),
        &[SLICES, "select count(distinct track_id) from slice"],
        &[],
    );
    let lane = "NC 0 (neuron_hw)";
    let expected = [
        slice("cc_running", 0, 100_000, 0, lane),
        slice("cc_running", 50_000, 100_000, 0, lane),
        slice("cc_running", 60_000, 10_000, 1, lane),
    ];
    assert_eq!(slices(&answer, 0), expected);
    assert_eq!(answer.number(1), 2, "two lanes");
}

#[test]
fn times_names_and_tracks_are_those_of_the_trace() {
    let span = strings::get_id(b"train \"step\"\n");
    let nothing = strings::get_id(b"");
    let ring = Ring::new(0)
        .event(EventType::ExecuteApi, 0, 1, 100)
        .span(EventType::TensorRead, 2, 150, 151)
        .event(EventType::ExecuteApi, 1, 1, 1_000_000_007)
        .event(EventType::NumErr, 2, 9, 42)
        .data([span, 0, 0, 0, 0])
        .span(EventType::Generic, 3, 2_000_000_000, 2_000_000_000)
        .data([nothing, 0, 0, 0, 0])
        .event(EventType::Generic, 2, 4, 2_000_000_001);
    let mut parts = of_one(&ring);
    parts.insert(1, names(0, &[(span, "train \"step\"\n"), (nothing, "")]));
    let queries = [
        SLICES,
        "select pid, name from process where pid > 0",
        "select tid, pid from thread join process using (upid) where tid > 0",
        "select clock_id, min(clock_value), max(clock_value) from clock_snapshot group by clock_id order by clock_id",
        "select count(*) from slice where category is null",
    ];
    let answer = ask(&pftrace(&parts), &queries, &[]);
    let (rt, hw) = ("NC 0 (neuron_rt)", "NC 0 (neuron_hw)");
    let expected = [
        slice("numerical_err", 42, 0, 0, hw),
        slice("nrt_execute", 100, 999_999_907, 0, rt),
        slice("nrt_tensor_read", 150, 1, 1, rt),
        slice("train \"step\"\n", 2_000_000_000, 0, 0, rt),
        slice("(empty)", 2_000_000_001, 0, 0, rt),
    ];
    assert_eq!(slices(&answer, 0), expected);
    assert_eq!(
        answer.rows(1),
        [[4711.into(), serde_json::Value::from("worker 1")]]
    );
    assert_eq!(answer.rows(2), [[4711, 4711].map(serde_json::Value::from)]);
    let clocks: Vec<i128> = answer.rows(3).iter().map(|row| whole(&row[0])).collect();
    assert_eq!(clocks, [1, 3, 6], "REALTIME, MONOTONIC, BOOTTIME");
    assert_eq!(answer.number(4), 0);
}

#[test]
fn j07_what_has_no_partner_is_shown_as_such() {
    let kind = EventType::RuntimeExecute;
    let mut ring = Ring::new(0)
        .event(kind, 1, 7, 10)
        .event(kind, 0, 1, 20)
        .event(kind, 0, 2, 30)
        .event(kind, 1, 2, 40)
        .event(kind, 1, 2, 50)
        .event(kind, 1, 2, 60)
        .event(kind, 0, 2, 70)
        // Begun again before it ended.
        .event(kind, 0, 2, 80)
        .event(kind, 1, 2, 75);
    for tracking_id in 100..400 {
        ring = ring.event(kind, 0, tracking_id, 1000 + tracking_id);
    }
    let queries = [
        "select s.dur, extract_arg(s.arg_set_id, 'debug.unmatched') as what, count(*) from slice s group by 1, 2 order by 1, 2",
        "select count(*) from slice where dur < 0 and extract_arg(arg_set_id, 'debug.unmatched') != 'start'",
        "select extract_arg(arg_set_id, 'debug.duration_ns') from slice \
            where extract_arg(arg_set_id, 'debug.unmatched') = 'stop before start'",
        "select distinct t.name from slice s join track t on s.track_id = t.id \
            where extract_arg(s.arg_set_id, 'debug.unmatched') is not null",
    ];
    let answer = ask(&pftrace(&of_one(&ring)), &queries, &[]);
    let rows: Vec<(i128, String, i128)> = answer
        .rows(0)
        .iter()
        .map(|row| {
            (
                whole(&row[0]),
                row[1].as_str().unwrap_or("-").to_owned(),
                whole(&row[2]),
            )
        })
        .collect();
    let expected = [
        (-1, "start", 256),
        (0, "start", 1 + 45),
        (0, "stop", 3),
        (0, "stop before start", 1),
        (10, "-", 1),
    ];
    let expected = expected.map(|(dur, what, n)| (dur, what.to_owned(), n));
    assert_eq!(rows, expected);
    assert_eq!(answer.number(1), 0);
    assert_eq!(answer.number(2), -5);
    assert_eq!(answer.texts(3), ["NC 0 (neuron_rt) unmatched"]);
}

#[test]
fn losses_are_markers_with_their_counts() {
    let kind = EventType::ExecuteApi;
    let mut ring = Ring::new(3).span(kind, 1, 0, 10);
    ring.skip(7);
    ring = ring.span(kind, 2, 100, 110);
    ring.skip(1);
    ring = ring.event(EventType::PostRequest, 2, 9, 200);
    let mut parts = vec![begin(), part(Part::Producer(process(1, 4711)))];
    parts.push(ring.records_of(1));
    let mut lossy = account(1, 3, 1000);
    (lossy.lost, lossy.overwritten, lossy.delivered) = (995, 995, 5);
    parts.push(part(Part::Account(lossy)));
    let queries = [
        "select s.name, s.ts, s.dur, s.depth, t.name from slice s join track t on s.track_id = t.id \
            where category = 'nrt_trace' order by s.ts, s.dur desc, s.id",
        "select extract_arg(arg_set_id, 'debug.claimed'), extract_arg(arg_set_id, 'debug.lost'), \
            extract_arg(arg_set_id, 'debug.overwritten') from slice where name glob '995 of*'",
        "select sum(extract_arg(arg_set_id, 'debug.lost')) from slice where name glob '*missing' or name glob '*before or after'",
    ];
    let answer = ask(&pftrace(&parts), &queries, &[]);
    let track = "NC 3 losses";
    let expected = [
        slice("987 events lost before or after", 0, 0, 0, track),
        slice("7 events missing", 10, 90, 0, track),
        slice("1 event missing", 110, 90, 0, track),
        slice("995 of 1000 events lost", 200, 0, 0, track),
    ];
    assert_eq!(slices(&answer, 0), expected);
    let row: Vec<i128> = answer.rows(1)[0].iter().map(whole).collect();
    assert_eq!(row, [1000, 995, 995]);
    assert_eq!(
        answer.number(2),
        995,
        "what is missing adds up to what is lost"
    );
}

#[test]
fn x01_each_slice_has_process_thread_and_name_also_after_many_laps_and_in_any_part_of_the_file() {
    let kind = EventType::TensorRead;
    let mut ring = Ring::new(0);
    for lap in 0..30_000 {
        ring = ring.span(kind, 0, 10 * lap, 10 * lap + 5);
    }
    let whole_file = pftrace(&of_one(&ring));
    let queries = [
        "select count(*), count(name), count(distinct name), sum(dur) from slice",
        "select count(*) from slice s join track t on t.id = s.track_id where t.name = 'NC 0 (neuron_rt)'",
        "select count(*) from process where name = 'worker 1'",
        "select min(ts) from slice",
    ];
    let counts = |answer: &crate::engine::Answer| -> Vec<i128> {
        answer.rows(0)[0].iter().map(whole).collect()
    };
    let answer = ask(&whole_file, &queries, &[]);
    assert_eq!(counts(&answer), [30_000, 30_000, 1, 150_000]);

    // Cut behind, in the middle of a packet: the engine says so, and reads what is before.
    let half = crate::packets(&whole_file);
    let behind = &whole_file[..half[half.len() / 2].start];
    let answer = ask(behind, &queries, &[]);
    let before = counts(&answer);
    assert!(before[0] > 10_000 && before[0] == before[1], "{before:?}");
    // Cut in front: packets that need what is gone are passed over, until everything is told again.
    let front = &whole_file[half[half.len() / 2].start..];
    let answer = ask(front, &queries, &["seq_needs_incremental_state_invalid"]);
    let after = counts(&answer);
    assert!(after[0] > 5_000 && after[0] == after[1], "{after:?}");
    assert_eq!(answer.number(1), after[0], "on its track");
    assert_eq!(answer.number(2), 1);
    assert!(answer.number(3) > i128::from(T), "on the same clock");
}

#[test]
fn processes_of_one_pid_stay_apart() {
    let one = |producer: u32, pid: Option<i32>, ns_pid: i32| {
        let ring = Ring::new(0).span(EventType::ExecuteApi, 1, u64::from(producer), 10);
        let mut parts = vec![part(Part::Producer(Producer {
            producer_id: producer,
            pid,
            ns_pid: Some(ns_pid),
            name: format!("p{producer}"),
            worker_gid: -1,
            ..Producer::default()
        }))];
        parts.extend(ring.parts(producer));
        parts
    };
    let mut parts = vec![begin()];
    // Two containers: the same pid inside, different ones outside.
    parts.extend(one(1, Some(4000), 1));
    parts.extend(one(2, Some(5000), 1));
    // A pid that was used again, and two that the host cannot see.
    parts.extend(one(3, Some(4000), 4000));
    parts.extend(one(4, None, 1));
    parts.extend(one(5, None, 1));
    let queries = [
        "select name, pid, upid from process where name glob 'p?' order by upid",
        "select count(distinct track_id) from slice",
        "select name from track where name glob 'producer *' order by name",
        "select a.string_value from process p join args a using (arg_set_id) where p.name = 'p1' order by 1",
    ];
    let answer = ask(&pftrace(&parts), &queries, &[]);
    let pids: Vec<i128> = answer.rows(0).iter().map(|row| whole(&row[1])).collect();
    assert_eq!(answer.texts(0), ["p1", "p2", "p3"]);
    assert_eq!(pids, [4000, 5000, 4000]);
    assert_eq!(answer.number(1), 5);
    assert_eq!(answer.texts(2), ["producer 4 p4", "producer 5 p5"]);
    assert_eq!(answer.texts(3), ["i-7", "pid 1 in its namespace"]);
}

#[test]
fn t02_a_clock_that_was_set_back_moves_no_event() {
    let ring = Ring::new(0)
        .span(EventType::ExecuteApi, 1, 5_000_000_000, 6_000_000_000)
        // Set back by four seconds.
        .span(EventType::ExecuteApi, 2, 3_000_000_000, 4_000_000_000);
    let mut parts = of_one(&ring);
    let tick = |seq, at: u64, boottime_ns| {
        let clocks = anchor(T + at, boottime_ns);
        part(Part::HostSample(HostSample {
            seq,
            timestamp_ns: clocks.realtime_ns,
            monotonic_ns: clocks.monotonic_ns,
            boottime_ns: clocks.boottime_ns,
            cpus: vec![
                HostCpu {
                    cpu_id: 0,
                    util: Some(25.0 * (seq as f32)),
                    ..HostCpu::default()
                },
                HostCpu {
                    cpu_id: 1,
                    ..HostCpu::default()
                },
            ],
            memory: Some(HostMemory {
                used_bytes: Some(1 << (30 + seq)),
                ..HostMemory::default()
            }),
            ..HostSample::default()
        }))
    };
    parts.insert(1, tick(1, 6_500_000_000, 11_500_000_000));
    parts.insert(2, tick(2, 3_500_000_000, 12_500_000_000));
    parts.insert(1, part(Part::HostInfo(HostInfo::default())));
    parts.push(part(Part::End(FetchEnd {
        clock: Some(anchor(T + 5_500_000_000, 14_500_000_000)),
        ..FetchEnd::default()
    })));
    let queries = [
        SLICES,
        "select c.name, count(*), cast(sum(value) as int) from counter join counter_track c on counter.track_id = c.id group by 1",
        "select count(distinct clock_id) from clock_snapshot",
    ];
    let answer = ask(&pftrace(&parts), &queries, &[]);
    let times: Vec<(String, i128, i128)> = slices(&answer, 0)
        .into_iter()
        .map(|(name, ts, dur, _, _)| (name, ts, dur))
        .collect();
    let expected = [
        ("nrt_execute", 3_000_000_000, 1_000_000_000),
        ("clock set back by 4000000000 ns", 3_500_000_000, 0),
        ("nrt_execute", 5_000_000_000, 1_000_000_000),
    ];
    let expected = expected.map(|(name, ts, dur)| (name.to_owned(), ts, dur));
    assert_eq!(times, expected);
    let counters = answer.by_name(1);
    assert_eq!(counters["CPU 0 busy"], (2, 75));
    assert_eq!(counters["memory used"], (2, (1 << 31) + (1 << 32)));
    assert_eq!(
        counters.len(),
        2,
        "what is not known is no counter: {counters:?}"
    );
    assert_eq!(answer.number(2), 3);
}

#[test]
fn the_end_of_a_process_is_a_mark_on_its_track() {
    let mut dead = process(1, 4711);
    dead.set_state(ProducerState::Dead);
    dead.ended_ns = Some(T + 500);
    let mut parts: Vec<TracePart> = of_one(&Ring::new(0).span(EventType::ExecuteApi, 1, 0, 10));
    parts[1] = part(Part::Producer(dead));
    if let Some(Part::Begin(begin)) = &mut parts[0].part {
        begin.run = Some(Run {
            started_ns: T,
            ..Run::default()
        });
    }
    let query = "select s.name, s.ts, s.dur, s.depth, p.name from slice s join process_track t on s.track_id = t.id \
        join process p using (upid) where s.name glob 'process*'";
    let answer = ask(&pftrace(&parts), &[query], &[]);
    assert_eq!(
        slices(&answer, 0),
        [slice("process ended", 500, 0, 0, "worker 1")]
    );
}

#[test]
fn tracks_are_grouped_as_wanted() {
    let mut parts = vec![begin()];
    for producer in [1, 2] {
        let mut process = process(producer, 4000 + i32::try_from(producer).unwrap());
        process.worker_gid = i32::try_from(producer).unwrap();
        parts.push(part(Part::Producer(process)));
        for nc in [0, 1] {
            parts.extend(
                Ring::new(nc)
                    .span(EventType::ExecuteApi, 1, 0, 10)
                    .parts(producer),
            );
        }
    }
    let tracks = "with recursive up(id, path, parent) as (select t.id, coalesce(t.name, ''), t.parent_id from track t \
        where t.id in (select track_id from slice) union all \
        select up.id, coalesce(t.name, 'thread') || ' > ' || up.path, t.parent_id from up join track t on t.id = up.parent) \
        select path, count(*) from up where parent is null group by path order by path";
    let options = PftraceOptions {
        grouping: Grouping {
            primary: vec![GroupKey::LncIdx],
            secondary: vec![GroupKey::ProcessId],
        },
        ..PftraceOptions::default()
    };
    let answer = ask(
        &pftrace_with(&parts, options),
        &[tracks, "select count(*) from slice where dur = 10"],
        &[],
    );
    let expected = [
        "NC 0 > process 4001 (neuron_rt)",
        "NC 0 > process 4002 (neuron_rt)",
        "NC 1 > process 4001 (neuron_rt)",
        "NC 1 > process 4002 (neuron_rt)",
    ];
    assert_eq!(answer.texts(0), expected);
    assert_eq!(answer.number(1), 4);
    // All on one track: every span still has its own length.
    let options = PftraceOptions {
        grouping: Grouping {
            primary: vec![GroupKey::InstanceId],
            secondary: vec![GroupKey::InstanceId],
        },
        ..PftraceOptions::default()
    };
    let answer = ask(
        &pftrace_with(&parts, options),
        &[tracks, "select count(*) from slice where dur = 10"],
        &[],
    );
    assert_eq!(answer.texts(0), ["i-7 > i-7 (neuron_rt)"]);
    assert_eq!(answer.number(1), 4);
}

#[test]
fn a_compressed_trace_is_the_same_trace() {
    let parts = of_one(&Ring::new(0).span(EventType::ExecuteApi, 1, 0, 10));
    let options = PftraceOptions {
        zstd: true,
        ..PftraceOptions::default()
    };
    let compressed = pftrace_with(&parts, options);
    assert_eq!(
        zstd::decode_all(compressed.as_slice()).unwrap(),
        pftrace(&parts)
    );
}
