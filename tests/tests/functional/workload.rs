//! A recording of the real workload, held to what the workload says and to what Neuron's readers expect.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::OnceLock;

use nrt_trace_model::event::{Category, EventType};
use nrt_trace_tests::document::Span;
use nrt_trace_tests::{Document, Ended, Event, Host, artifacts};
use nrt_trace_workload::Report;

use crate::checks::{assert_no_hole, assert_whole, counts};

const THREADS: u32 = 2;
const STEPS: usize = 40;

struct Recording {
    text: String,
    document: Document,
    report: Report,
    ended: Ended,
}

/// `record` of the workload, without a daemon; made once for all tests of this file.
fn recording() -> &'static Recording {
    static RECORDING: OnceLock<Recording> = OnceLock::new();
    RECORDING.get_or_init(|| {
        let host = Host::new();
        let workload = artifacts().workload.to_str().unwrap();
        let steps = STEPS.to_string();
        let size = [
            "--steps",
            &steps,
            "--size",
            "16",
            "--rows",
            "8",
            "--report",
            "report.json",
        ];
        let ended = host
            .tracectl(&[&["record", "-o", "t.json", "--", workload], &size[..]].concat())
            .ok();
        let text = fs::read_to_string(host.path("t.json")).unwrap();
        let document = Document::parse(text.as_bytes());
        let report = Report::read(&host.path("report.json")).unwrap();
        assert!(report.check.ok, "{:?}", report.check);
        Recording {
            text,
            document,
            report,
            ended,
        }
    })
}

#[test]
fn every_start_has_exactly_one_stop_and_every_duration_is_positive() {
    assert_whole(&recording().document.pair());
}

#[test]
fn counts_equal_the_workloads_own_by_process_and_type() {
    let Recording {
        document, report, ..
    } = recording();
    assert!(report.recorded() > 20_000, "{}", report.recorded());
    for worker in &report.workers {
        for (name, n) in &worker.events {
            assert_eq!(
                n.emitted, n.recorded,
                "{} {name}: the recording was on before its first event",
                worker.name
            );
        }
    }
    assert_eq!(counts(document), report.recorded_by_process());
}

#[test]
fn no_event_is_missing_twice_or_out_of_order() {
    let document = &recording().document;
    assert_no_hole(document, 1);
    let place = |e: &Event| (e.process_id, e.nc_idx);
    let mut places: Vec<_> = document.events.iter().map(place).collect();
    places.dedup();
    let distinct: BTreeSet<_> = places.iter().collect();
    assert_eq!(places.len(), distinct.len(), "rings are mixed: {places:?}");
    assert!(
        places
            .chunks_exact(2)
            .all(|of_process| of_process[0].0 == of_process[1].0 && of_process[0].1 == 0)
    );
    let ids: BTreeSet<_> = document
        .events
        .iter()
        .map(|e| (e.process_id, e.id))
        .collect();
    assert_eq!(ids.len(), document.events.len());
    for event in &document.events {
        assert_eq!(
            event.id,
            event.nc_local_id | u64::from(event.nc_idx) << 50,
            "{event:?}"
        );
    }
}

#[test]
fn the_document_is_neurons_key_by_key() {
    let text = &recording().text;
    assert!(
        text.starts_with(r#"{"events":[{"event_type":""#),
        "{}",
        &text[..100]
    );
    assert!(
        text.trim_end().ends_with(r#"}],"data_version":2}"#),
        "{}",
        &text[text.len() - 100..]
    );
    const KEYS: [&str; 10] = [
        "event_type",
        "phase",
        "id",
        "nc_idx",
        "nc_local_id",
        "tracking_id",
        "thread_id",
        "worker_gid",
        "data",
        "timestamp_ns",
    ];
    const MORE: [&str; 3] = ["nrta_seq_id", "process_id", "host_nc_idx"];
    for event in text.split(r#"{"event_type""#).skip(1).take(5000) {
        let event = format!(r#"{{"event_type"{event}"#);
        assert!(
            !event.contains(": ") && !event.contains(", "),
            "whitespace: {event}"
        );
        // Keys of `data` are after data's own: the outer ones are looked for from both ends.
        let at = |key: &str| event.find(&format!(r#""{key}":"#));
        let outer: Vec<_> = KEYS[..9].iter().map(|key| at(key).expect(key)).collect();
        assert!(outer.is_sorted(), "{event}");
        let (_, tail) = event
            .rsplit_once(r#"},"timestamp_ns":"#)
            .expect("the time follows the data");
        let places: Vec<_> = MORE
            .iter()
            .filter_map(|key| tail.find(&format!(r#""{key}":"#)))
            .collect();
        assert!(places.is_sorted() && places.len() >= 2, "{event}");
    }
}

#[test]
fn the_phases_and_types_are_those_of_the_table() {
    for event in &recording().document.events {
        assert!(
            EventType::ALL.iter().any(|t| t.name() == event.event_type),
            "{event:?}"
        );
        let instant = ["timestamp_sync_point", "hw_notify"].contains(&event.event_type.as_str());
        assert_eq!(event.phase == "instant", instant, "{event:?}");
    }
    let types: BTreeSet<_> = recording()
        .document
        .events
        .iter()
        .map(|e| &e.event_type)
        .collect();
    assert!(types.len() >= 40, "{types:?}");
}

#[test]
fn model_names_are_resolved_also_where_another_event_has_the_id() {
    let document = &recording().document;
    let mut named = 0;
    for event in document
        .events
        .iter()
        .filter(|e| e.data.contains_key("model_id"))
    {
        assert_eq!(
            event.data.get("model_name").and_then(|n| n.as_str()),
            Some("mlp_train_step.neff"),
            "{event:?}"
        );
        named += 1;
    }
    assert!(named > 5000, "{named}");
    for event in document
        .events
        .iter()
        .filter(|e| e.event_type == "nc_exec_running" && e.phase == "start")
    {
        assert!(event.data.contains_key("model_id"), "{event:?}");
    }
    for event in document
        .events
        .iter()
        .filter(|e| e.event_type == "nrt_load")
    {
        assert_eq!(
            event.data.contains_key("model_name"),
            event.phase == "stop",
            "{event:?}"
        );
    }
}

/// Spans of `nrt_execute` of a process and NC, in order: the n-th is execution n.
fn executions(document: &Document) -> BTreeMap<(u32, u32), Vec<(u64, u64)>> {
    let mut out = BTreeMap::<_, Vec<_>>::new();
    for (key, Span { start, stop }) in document.pair().spans {
        if key.event_type == "nrt_execute" {
            let times = (start.timestamp_ns, stop.timestamp_ns);
            out.entry((key.process_id, key.nc_idx))
                .or_default()
                .push(times);
        }
    }
    out.values_mut().for_each(|spans| spans.sort_unstable());
    out
}

#[test]
fn hardware_events_lie_inside_their_nrt_execute() {
    let document = &recording().document;
    let executions = executions(document);
    let is_hardware =
        |name: &str| EventType::from_name(name).is_some_and(|t| t.category() == Category::Hardware);
    let starts: BTreeMap<_, _> = document
        .events
        .iter()
        .filter(|e| e.phase == "start")
        .map(|e| (e.span_key(), e))
        .collect();
    let mut seen = BTreeMap::<&str, usize>::new();
    for event in document
        .events
        .iter()
        .filter(|e| is_hardware(&e.event_type))
    {
        // Stops and barriers don't say which execution they belong to; then any may be theirs.
        let told = event
            .data
            .get("exec_id")
            .or_else(|| starts.get(&event.span_key())?.data.get("exec_id"));
        let spans = &executions[&(event.process_id.unwrap(), event.nc_idx)];
        let inside =
            |&(start, stop): &(u64, u64)| start <= event.timestamp_ns && event.timestamp_ns <= stop;
        match told.and_then(serde_json::Value::as_u64) {
            Some(exec_id) => {
                let span = spans[usize::try_from(exec_id).unwrap() - 1];
                assert!(inside(&span), "{event:?} is not inside {span:?}");
            }
            None => assert!(spans.iter().any(inside), "{event:?} is in no nrt_execute"),
        }
        *seen.entry(&event.event_type).or_default() += 1;
    }
    let types: Vec<_> = seen.keys().copied().collect();
    assert_eq!(
        types,
        [
            "cc_exec_barrier",
            "cc_running",
            "hw_notify",
            "nc_exec_running",
            "nc_model_switch",
            "timestamp_sync_point"
        ]
    );
    assert_eq!(seen["nc_exec_running"], STEPS * 2 * 8);
}

#[test]
fn device_times_are_moved_by_the_executions_sync_point_exactly() {
    let document = &recording().document;
    let place = |e: &Event| (e.process_id, e.nc_idx);
    let syncs: BTreeMap<_, _> = document
        .events
        .iter()
        .filter(|e| e.event_type == "timestamp_sync_point")
        .map(|e| {
            (
                (place(e), e.number("exec_id")),
                (e.number("nc_timestamp_ns"), e.number("cpu_timestamp_ns")),
            )
        })
        .collect();
    let mut moved = 0;
    for (key, Span { start, stop }) in document.pair().spans {
        if !["nc_exec_running", "cc_running", "nc_model_switch"].contains(&key.event_type.as_str())
        {
            continue;
        }
        let (sync_nc, sync_cpu) = syncs[&(place(start), start.number("exec_id"))];
        for event in [start, stop] {
            let raw = event.number("nc_timestamp_ns");
            assert_eq!(event.timestamp_ns, sync_cpu + (raw - sync_nc), "{event:?}");
            moved += 1;
        }
    }
    assert_eq!(moved, 8 * (STEPS * 2 * 4 + 2));
}

#[test]
fn processes_carry_their_pid_worker_number_and_host_cores() {
    let Recording {
        document, report, ..
    } = recording();
    let mut threads = BTreeMap::<_, BTreeSet<u64>>::new();
    for event in &document.events {
        let pid = event
            .process_id
            .expect("several processes are in the document");
        let worker = report
            .workers
            .iter()
            .find(|w| w.pid == pid)
            .expect("a worker's pid");
        let rank = u32::try_from(worker.rank).unwrap();
        assert_eq!(event.worker_gid, rank.cast_signed(), "{event:?}");
        assert!(event.nc_idx < THREADS);
        assert_eq!(
            event.host_nc_idx,
            Some(rank * THREADS + event.nc_idx),
            "{event:?}"
        );
        threads
            .entry((pid, event.nc_idx))
            .or_default()
            .insert(event.thread_id);
    }
    assert_eq!(threads.len(), 8);
    assert!(
        threads.values().all(|ids| ids.len() == 1),
        "one thread drives a core: {threads:?}"
    );
    let distinct: BTreeSet<_> = threads.values().flatten().collect();
    assert_eq!(distinct.len(), 8, "{threads:?}");
}

#[test]
fn asynchronous_requests_carry_their_number_and_nothing_else_does() {
    for event in &recording().document.events {
        let expected =
            (event.event_type == "async_post_request").then(|| event.number("request_id"));
        assert_eq!(event.nrta_seq_id, expected, "{event:?}");
    }
}

#[test]
fn the_summary_counts_each_type_and_says_that_nothing_was_lost() {
    let Recording {
        document, ended, ..
    } = recording();
    let text = ended.text();
    let total = counts(document).into_values().flatten().fold(
        BTreeMap::<String, u64>::new(),
        |mut all, (name, n)| {
            *all.entry(name).or_default() += n;
            all
        },
    );
    let digits = |line: &str| line.replace(',', "");
    // The workload's own table comes before it, and the slowest spans after it.
    let mut table = text.lines().skip_while(|l| !l.ends_with("unmatched"));
    assert!(table.next().is_some(), "the table's head: {text}");
    let table: Vec<_> = table.take_while(|l| !l.is_empty()).collect();
    for (name, n) in total {
        let of_type = |l: &&&str| l.split_whitespace().next() == Some(&name);
        let line = table.iter().find(of_type);
        let line = digits(line.unwrap_or_else(|| panic!("no line on {name}: {text}")));
        assert!(
            line.split_whitespace().any(|word| word == n.to_string()),
            "{n} of {name}: {line}"
        );
    }
    assert!(text.contains("lost"), "the loss account: {text}");
}
