//! What a trace has to hold, counted in its JSON document without any code of the exporters.

use std::collections::{BTreeMap, BTreeSet};

use nrt_trace_model::event::{Category, EventType};
use nrt_trace_tests::Document;

/// Copies to and from a NeuronCore's memory: type, counter, and where the stop says how much.
const COPIES: [(&str, &str, &str); 4] = [
    ("dmem_buf_copyin", "copy in", "size"),
    ("dmem_buf_copyout", "copy out", "size"),
    ("dmem_buf_batch_copyin", "copy in", "total_size"),
    ("dmem_buf_batch_copyout", "copy out", "total_size"),
];

/// Count and sum of durations.
pub(crate) type Counts = BTreeMap<String, (i128, i128)>;

/// Spans and instants by type.
pub(crate) fn by_type(document: &Document) -> Counts {
    let pairing = document.pair();
    assert!(pairing.open.is_empty() && pairing.strays.is_empty());
    let mut counts = Counts::new();
    for (key, span) in &pairing.spans {
        let count = counts.entry(key.event_type.clone()).or_default();
        count.0 += 1;
        count.1 += i128::from(span.duration());
    }
    for event in document.events.iter().filter(|e| e.phase == "instant") {
        counts.entry(event.event_type.clone()).or_default().0 += 1;
    }
    counts
}

/// Software spans and instants by process and thread.
pub(crate) fn by_thread(document: &Document) -> BTreeMap<(i128, i128), i128> {
    let mut counts = BTreeMap::new();
    let drawn = document.events.iter().filter(|e| e.phase != "stop");
    let software =
        |kind| EventType::from_name(kind).map(EventType::category) == Some(Category::Software);
    for event in drawn.filter(|e| software(&e.event_type)) {
        let thread = (event.process_id.unwrap().into(), event.thread_id.into());
        *counts.entry(thread).or_default() += 1;
    }
    counts
}

/// Processes of the document.
pub(crate) fn processes(document: &Document) -> BTreeSet<i128> {
    let pids = document.events.iter().map(|e| e.process_id.unwrap());
    pids.map(i128::from).collect()
}

/// For each process, NeuronCore and way: changes of the rate of copies, and what the last one leaves.
pub(crate) fn rates(document: &Document) -> BTreeMap<(i128, String), Vec<(i128, i128)>> {
    let mut changes = BTreeMap::<_, BTreeMap<i128, i128>>::new();
    for (key, span) in &document.pair().spans {
        let Some((_, way, size)) = COPIES.iter().find(|copy| copy.0 == key.event_type) else {
            continue;
        };
        let (begin, end) = (span.start.timestamp_ns, span.stop.timestamp_ns);
        let (begin, end) = (i128::from(begin), i128::from(end));
        let bytes = i128::from(span.stop.number(size));
        if bytes == 0 || begin >= end {
            continue;
        }
        let rate = bytes * 1_000_000_000 / (end - begin);
        let counter = (key.process_id.into(), format!("NC {} {way}", key.nc_idx));
        let of = changes.entry(counter).or_default();
        *of.entry(begin).or_default() += rate;
        *of.entry(end).or_default() -= rate;
    }
    let values = changes.into_iter().map(|(counter, changes)| {
        let mut rate = 0;
        let changed = changes.into_iter().filter(|(_, change)| *change != 0);
        let values = changed.map(|(time, change)| {
            rate += change;
            (time, rate)
        });
        (counter, values.collect())
    });
    values.collect()
}
