//! The claim counters of rings whose other memory is given back.

use std::collections::BTreeMap;

use nrt_trace_abi::SEQ_MAX;
use nrt_trace_abi::layout::{SegmentLayout, ring};
use nrt_trace_shm::ReadMapping;

/// Keeps the first page of each ring of a segment readable, for as long as a thread may still take a number there.
#[derive(Debug)]
pub(crate) struct Heads {
    layout: SegmentLayout,
    map: ReadMapping,
    /// By NC, the number of the last claim that is accounted for.
    known: BTreeMap<usize, u64>,
}

impl Heads {
    /// Of the rings in `map`, of which all claims up to `known` are accounted for.
    pub(super) fn new(
        layout: SegmentLayout,
        map: ReadMapping,
        known: BTreeMap<usize, u64>,
    ) -> Self {
        Self { layout, map, known }
    }

    /// By NC, the claims that came since the last look.
    pub(crate) fn late(&mut self) -> Vec<(usize, u64)> {
        let mut late = Vec::new();
        for (nc, known) in &mut self.known {
            let tail = self.layout.ring_word(*nc).map(|word| word + ring::TAIL);
            let Some(word) = tail.and_then(|tail| self.map.words().get(tail)) else {
                continue;
            };
            // Relaxed, as every look at a tail: it orders nothing. No process counts as far as `SEQ_MAX` in earnest.
            let now = word.get();
            if now > *known && now <= SEQ_MAX {
                late.push((*nc, now - *known));
                *known = now;
            }
        }
        late
    }
}
