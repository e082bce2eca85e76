//! A run's segment, as this process maps it.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use nrt_trace_abi::layout::{SegmentLayout, segment};
use nrt_trace_ring::Producer;
use nrt_trace_shm::rings::Rings;
use nrt_trace_shm::{ShmError, WriteMapping, memfd};

/// The rings of a run.
#[derive(Debug)]
pub(crate) struct Segment {
    rings: Rings,
    layout: SegmentLayout,
    /// The low 16 bits of the run's generation, as gates carry them.
    pub(crate) gate_generation: u64,
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
    pub(crate) fn map(fd: &OwnedFd, bytes: u64, generation: u64) -> Result<Self, BadSegment> {
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
