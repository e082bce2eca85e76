//! A run's segment, as this process maps it.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use nrt_trace_abi::layout::{SegmentLayout, segment};
use nrt_trace_ring::Producer;
use nrt_trace_shm::rings::Rings;
use nrt_trace_shm::{ShmError, WriteMapping, memfd, threads};

use crate::{log, process};

/// The rings of a run.
#[derive(Debug)]
pub(crate) struct Segment {
    rings: Rings,
    layout: SegmentLayout,
    /// The low 16 bits of the run's generation, as gates carry them.
    pub(crate) gate_generation: u64,
    /// What was said of events that have no place of their own.
    told: [AtomicBool; 2],
}

/// Says what is worth saying of the published segment. For the background thread now and then, and for whoever takes it away:
/// the daemon may take its memory at once, and the counters with it.
pub(crate) fn tell_of_misplaced() {
    if let Some(inside) = threads::enter(process::instance())
        && let Some(segment) = process::segment().get(&inside)
    {
        segment.tell();
    }
}

/// Why a segment was not taken.
#[derive(Debug)]
pub(crate) enum BadSegment {
    Shm(ShmError),
    /// Its header contradicts itself, its size, or the announced generation.
    Header,
}

impl Segment {
    /// Checks and maps a received segment. The header is read once.
    pub(crate) fn map(fd: BorrowedFd<'_>, bytes: u64, generation: u64) -> Result<Self, BadSegment> {
        memfd::check(fd, bytes).map_err(BadSegment::Shm)?;
        let mapping = WriteMapping::map(fd, bytes).map_err(BadSegment::Shm)?;
        let mapping = mapping.not_for_children();
        let header = mapping
            .words()
            .first_chunk::<{ segment::HEADER_WORDS }>()
            .ok_or(BadSegment::Header)?;
        let header = header.each_ref().map(|word| word.load(Ordering::Relaxed));
        let (layout, told) =
            SegmentLayout::from_header(&header, bytes).ok_or(BadSegment::Header)?;
        if told != generation {
            return Err(BadSegment::Header);
        }
        Ok(Self {
            rings: Rings::new(mapping, &layout).ok_or(BadSegment::Header)?,
            layout,
            gate_generation: generation & 0xFFFF,
            told: Default::default(),
        })
    }

    /// The memory with the rings in it.
    pub(crate) fn mapping(&self) -> &Arc<WriteMapping> {
        self.rings.mapping()
    }

    /// Where the rings lie.
    pub(crate) fn layout(&self) -> &SegmentLayout {
        &self.layout
    }

    /// The ring of an NC, if it has one.
    #[inline]
    pub(crate) fn ring(&self, nc: u8) -> Option<&Producer<'_>> {
        self.rings.get(nc)
    }

    /// Says what emits only counted, which never log: each thing once.
    fn tell(&self) {
        let said = [
            (
                segment::NC_OUT_OF_RANGE,
                &self.told[0],
                "events have a NeuronCore index of 256 or more: they are recorded as those of NeuronCore 0",
            ),
            (
                segment::NO_RING,
                &self.told[1],
                "events are for NeuronCores without a ring: they are not recorded; NEURON_RT_VISIBLE_CORES or \
                 NEURON_RT_NUM_CORES says which NeuronCores the process has",
            ),
        ];
        for (at, told, line) in said {
            let word = self.rings.mapping().words().get(at);
            // Relaxed: a number, and a flag of its own.
            let counted = word.is_some_and(|word| word.load(Ordering::Relaxed) > 0);
            if counted && !told.swap(true, Ordering::Relaxed) {
                log::write(log::WARN, line);
            }
        }
    }

    /// Counts an event for an NC without a ring.
    #[cold]
    pub(crate) fn count_no_ring(&self) {
        self.count(segment::NO_RING);
    }

    /// Counts an event whose NC index was 256 or more.
    #[cold]
    pub(crate) fn count_out_of_range(&self) {
        self.count(segment::NC_OUT_OF_RANGE);
    }

    fn count(&self, at: usize) {
        if let Some(word) = self.rings.mapping().words().get(at) {
            AtomicU64::fetch_add(word, 1, Ordering::Relaxed);
        }
    }
}
