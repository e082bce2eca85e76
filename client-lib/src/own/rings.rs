//! The rings of a capture, each with the cursor that says how far it was read.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use nrt_trace_abi::layout::{SegmentLayout, ring};
use nrt_trace_ring::{Cursor, Reader};
use nrt_trace_shm::WriteMapping;

use crate::segment::Segment;

/// The rings of one segment.
#[derive(Debug)]
pub(super) struct Part {
    mapping: Arc<WriteMapping>,
    layout: SegmentLayout,
    pub(super) cursors: BTreeMap<usize, Cursor>,
}

impl Part {
    /// The rings of `segment` from here on: what is in them was not asked for.
    pub(super) fn of(segment: &Segment) -> Self {
        let mut part = Self {
            mapping: segment.mapping().clone(),
            layout: segment.layout().clone(),
            cursors: BTreeMap::new(),
        };
        for nc in segment.layout().ncs() {
            // Relaxed: events that this thread's program emits from now on have later numbers.
            let words = part.words(nc);
            let tail = words.map_or(0, |words| words[ring::TAIL].load(Ordering::Relaxed));
            part.cursors.insert(nc, Cursor::restore(tail, [], 0, 0, 0));
        }
        part
    }

    fn words(&self, nc: usize) -> Option<&[AtomicU64]> {
        let first = self.layout.ring_word(nc)?;
        let words = self.mapping.words();
        words.get(first..first + self.layout.ring_words())
    }

    /// The ring of an NC.
    pub(super) fn reader(&self, nc: usize) -> Option<Reader<'_, AtomicU64>> {
        Reader::new(self.words(nc)?, *self.layout.geometry())
    }

    /// Events that are still to be had of an NC, nearly: some may be lost or not be ours.
    fn unread(&self, nc: usize, cursor: &Cursor) -> u64 {
        let account = self
            .reader(nc)
            .and_then(|reader| reader.account(cursor).ok());
        account.map_or(0, |account| {
            account.unread.min(self.layout.geometry().cap()) + account.pending
        })
    }

    fn is_empty(&self) -> bool {
        self.cursors
            .iter()
            .all(|(nc, cursor)| self.unread(*nc, cursor) == 0)
    }
}

/// All rings of a capture: those of one segment, unless the run whose rings it shared was stopped meanwhile.
#[derive(Debug, Default)]
pub(super) struct Rings {
    pub(super) parts: Vec<Part>,
}

/// Where a reader ended: for each part that it began with, the cursors.
pub(super) type Consumed = Vec<BTreeMap<usize, Cursor>>;

impl Rings {
    pub(super) fn push(&mut self, part: Part) {
        self.parts.push(part);
    }

    /// Moves the cursors; rings that nothing writes any more go when they are read to the end.
    pub(super) fn consume(&mut self, consumed: Consumed) {
        for (part, cursors) in self.parts.iter_mut().zip(consumed) {
            part.cursors = cursors;
        }
        let last = self.parts.len().saturating_sub(1);
        let mut at = 0;
        self.parts.retain(|part| {
            at += 1;
            at > last || !part.is_empty()
        });
    }

    /// Whether no event was ever seen in any of them.
    pub(super) fn are_untouched(&self) -> bool {
        let unseen = |cursor: &Cursor| {
            cursor.delivered() + cursor.lost() == 0 && cursor.pending().len() == 0
        };
        self.parts
            .iter()
            .all(|part| part.cursors.values().all(unseen))
    }

    pub(super) fn unread(&self) -> u64 {
        let of = |part: &Part| {
            let unread = part
                .cursors
                .iter()
                .map(|(nc, cursor)| part.unread(*nc, cursor));
            unread.sum::<u64>()
        };
        self.parts.iter().map(of).sum()
    }

    /// Events of a ring, NCs with one, and bytes of the newest.
    pub(super) fn newest(&self) -> Option<(u64, Vec<usize>, u64)> {
        let layout = &self.parts.last()?.layout;
        Some((
            layout.geometry().cap(),
            layout.ncs().collect(),
            layout.bytes(),
        ))
    }
}
