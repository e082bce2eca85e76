//! Looks at documents that several tests take.

use std::collections::BTreeMap;

use nrt_trace_tests::Document;
use nrt_trace_tests::document::Pairing;

/// Event counts by process and type.
pub(crate) type Counts = BTreeMap<u32, BTreeMap<String, u64>>;

/// Every start has its one stop, and every span takes time.
pub(crate) fn assert_whole(pairing: &Pairing<'_>) {
    assert!(
        pairing.open.is_empty(),
        "starts without a stop: {:#?}",
        pairing.open
    );
    assert!(
        pairing.strays.is_empty(),
        "stops without a start, or second ones: {:#?}",
        pairing.strays
    );
    assert!(!pairing.spans.is_empty(), "no span at all");
    for (key, span) in &pairing.spans {
        assert!(
            span.duration() > 0,
            "{key:?} takes {} ns: {span:#?}",
            span.duration()
        );
    }
}

/// What the document holds, to be compared with what a program says.
pub(crate) fn counts(document: &Document) -> Counts {
    let mut out = Counts::new();
    for event in &document.events {
        let by_type = out.entry(event.process_id.unwrap_or(0)).or_default();
        *by_type.entry(event.event_type.clone()).or_default() += 1;
    }
    out
}

/// Each ring's numbers go up by one from `first`.
pub(crate) fn assert_no_hole(document: &Document, first: u64) {
    let mut last = BTreeMap::new();
    for event in &document.events {
        let ring = (event.process_id, event.nc_idx);
        let expected = last.get(&ring).map_or(first, |n| n + 1);
        assert_eq!(
            event.nc_local_id, expected,
            "a hole in ring {ring:?}: {event:?}"
        );
        last.insert(ring, event.nc_local_id);
    }
}
