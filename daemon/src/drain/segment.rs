//! A segment as the daemon holds it: it made the file, and only ever reads it.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use nrt_trace_abi::SEQ_MAX;
use nrt_trace_abi::layout::{PAGE_BYTES, SegmentLayout, WORD_BYTES, ring, segment};
use nrt_trace_ring::Reader;
use nrt_trace_shm::control::ControlPage;
use nrt_trace_shm::{ReadMapping, ReadWord, ShmError, memfd};

use super::heads::Heads;
use crate::state::FileId;

/// Memory that a ring gets when it is made: all of the smallest ring, 1,024 events of a larger one.
const FIRST_BYTES: u64 = 128 << 10;
/// Memory that a ring in use has ahead of its tail.
const AHEAD_BYTES: u64 = 4 << 20;
/// Memory is taken in steps of this size: a call for each page would cost more than the memory.
pub(crate) const STEP_BYTES: u64 = AHEAD_BYTES / 4;

/// Why memory that was handed back is not taken.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotAdopted {
    /// It has not the size or the seals of what was given.
    #[error(transparent)]
    Memory(#[from] ShmError),
    /// Its header is another one.
    #[error("its header is not the one that was given")]
    Header,
}

/// The rings of one producer in one run.
#[derive(Debug)]
pub(crate) struct Segment {
    /// The daemon's own copy of every size and offset (I7).
    layout: SegmentLayout,
    map: ReadMapping,
    fd: OwnedFd,
    /// The number that the gates carry while it is in use.
    generation: u64,
    /// Random: says that no other memory is taken for this.
    nonce: u64,
    /// Device and inode of the file; none if the kernel did not say.
    identity: Option<(u64, u64)>,
    /// For each ring, in the layout's order, the number of its first event.
    firsts: Vec<u64>,
    /// For each ring, in the layout's order, the bytes that have memory already.
    allocated: Vec<AtomicU64>,
    /// Set when all of it has memory, or it is known why it can't.
    whole: OnceLock<Result<(), String>>,
    /// Set when the first page of each ring is to stay where the rest is given back.
    heads_stay: AtomicBool,
    /// Set when the memory goes.
    ends: Arc<OnceLock<Ends>>,
}

/// What the counters of a segment's rings said when its memory was given back: readers that had let go of it learn from
/// it what they missed.
#[derive(Debug)]
pub(crate) struct Ends(BTreeMap<usize, Counters>);

/// The counters of a ring: claims, and drops by cause in the order of the layout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    /// Numbers claimed.
    pub claimed: u64,
    /// Of these, dropped: in flight, lapped, without number.
    pub dropped: [u64; 3],
}

impl Ends {
    /// The counters of the ring of `nc`.
    pub(crate) fn of(&self, nc: usize) -> Counters {
        self.0.get(&nc).copied().unwrap_or_default()
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        self.note_ends();
    }
}

impl Segment {
    /// Makes the file, writes its header, takes the first memory of each ring, seals it.
    #[cfg(test)]
    pub(crate) fn create(
        layout: SegmentLayout,
        run_id: [u64; 2],
        generation: u64,
        producer_id: u32,
    ) -> Result<Self, ShmError> {
        Self::create_after(layout, run_id, generation, producer_id, &BTreeMap::new())
    }

    /// Makes the file, writes its header, takes the first memory of each ring, seals it. The events of an NC that `next`
    /// has are numbered from there on, or a little later.
    pub(crate) fn create_after(
        layout: SegmentLayout,
        run_id: [u64; 2],
        generation: u64,
        producer_id: u32,
        next: &BTreeMap<usize, u64>,
    ) -> Result<Self, ShmError> {
        let fd = memfd::create("nrt-trace-segment", layout.bytes())?;
        memfd::write_words(&fd, &layout.header(run_id, generation, producer_id))?;
        let cap = layout.geometry().cap();
        // At a lap's beginning, so that the ring fills from its first slot on, as memory is taken.
        let first = |nc| next.get(&nc).map_or(0, |next| next.next_multiple_of(cap));
        let firsts: Vec<u64> = layout.ncs().map(first).collect();
        for (nc, first) in layout.ncs().zip(&firsts) {
            if let Some(word) = layout.ring_word(nc).filter(|_| *first > 0) {
                memfd::write_words_at(&fd, word + ring::TAIL, &[*first])?;
            }
        }
        let map = ReadMapping::map(&fd, layout.bytes())?;
        memfd::seal_size(&fd)?;
        let allocated = layout.ncs().map(|_| AtomicU64::new(0)).collect();
        let segment = Self {
            layout,
            map,
            identity: memfd::identity(&fd).ok(),
            fd,
            generation,
            nonce: run_id[1],
            firsts,
            allocated,
            whole: OnceLock::new(),
            heads_stay: AtomicBool::new(false),
            ends: Arc::default(),
        };
        for (ring, nc) in segment.layout.ncs().enumerate() {
            segment.extend(ring, nc, FIRST_BYTES, u64::MAX)?;
        }
        Ok(segment)
    }

    /// Takes over memory that an earlier daemon made and its process handed back, if it is what was written down.
    pub(crate) fn adopt(
        fd: OwnedFd,
        layout: SegmentLayout,
        run: u64,
        file: &FileId,
        producer_id: u32,
        firsts: &BTreeMap<usize, u64>,
    ) -> Result<Self, NotAdopted> {
        memfd::check(&fd, layout.bytes())?;
        let map = ReadMapping::map(&fd, layout.bytes())?;
        let header = layout.header([run, file.nonce], file.generation, producer_id);
        // Its process could have changed them; then it may have changed anything. The counters are the process's own.
        let counters = [segment::NO_RING, segment::NC_OUT_OF_RANGE];
        let same = |at: usize| counters.contains(&at) || map.words()[at].get() == header[at];
        if !(0..header.len()).all(same) {
            return Err(NotAdopted::Header);
        }
        let first = |nc| firsts.get(&nc).copied().unwrap_or(0);
        Ok(Self {
            firsts: layout.ncs().map(first).collect(),
            allocated: layout.ncs().map(|_| AtomicU64::new(FIRST_BYTES)).collect(),
            generation: file.generation,
            nonce: file.nonce,
            layout,
            map,
            identity: memfd::identity(&fd).ok(),
            fd,
            whole: OnceLock::new(),
            heads_stay: AtomicBool::new(false),
            ends: Arc::default(),
        })
    }

    /// Which memory it is; `None` if the kernel does not say.
    pub(crate) fn file_id(&self) -> Option<FileId> {
        let (device, inode) = self.identity?;
        Some(FileId {
            device,
            inode,
            nonce: self.nonce,
            generation: self.generation,
        })
    }

    /// The number of the first event of the ring of `nc`, less one.
    pub(crate) fn first(&self, nc: usize) -> u64 {
        let ring = self.layout.ncs().position(|other| other == nc);
        ring.and_then(|ring| self.firsts.get(ring).copied())
            .unwrap_or(0)
    }

    /// Takes memory ahead of the tail of each ring in use, until its first lap is done, `room` bytes at most; says how
    /// many it took.
    ///
    /// Then producers neither wait for the kernel's zeroing nor pay for the pages in their own memory limit. A ring
    /// without events gets nothing: most processes use few of the rings that they have.
    pub(crate) fn allocate_ahead(&self, room: u64) -> Result<u64, ShmError> {
        let cap = self.layout.geometry().cap();
        let mut taken = 0;
        for (ring, nc) in self.layout.ncs().enumerate() {
            // The tail's page has memory since the segment was made: looking takes none.
            let tail = self
                .ring(nc)
                .map_or(0, |words| words[ring::TAIL].get())
                .saturating_sub(self.firsts.get(ring).copied().unwrap_or(0))
                .min(cap);
            if tail > 0 {
                let bytes = ring::words(tail) * WORD_BYTES + AHEAD_BYTES;
                taken += self.extend(ring, nc, bytes, room - taken)?;
            }
        }
        Ok(taken)
    }

    /// Sees to it that the first `bytes` of the ring of `nc` have memory, as far as there is room; says how much it took.
    fn extend(&self, ring: usize, nc: usize, bytes: u64, room: u64) -> Result<u64, ShmError> {
        let (Some(word), Some(allocated)) = (self.layout.ring_word(nc), self.allocated.get(ring))
        else {
            return Ok(0);
        };
        // Relaxed: one thread at a time extends; the number orders nothing.
        let done = allocated.load(Ordering::Relaxed);
        let bytes = bytes
            .min(self.layout.ring_words() as u64 * WORD_BYTES)
            .min(done.saturating_add(room));
        if bytes > done && (bytes - done >= STEP_BYTES || done == 0 || self.is_whole(bytes)) {
            memfd::allocate(&self.fd, word as u64 * WORD_BYTES + done, bytes - done)?;
            allocated.store(bytes, Ordering::Relaxed);
            return Ok(bytes - done);
        }
        Ok(0)
    }

    /// Takes all of the memory. It may take a while: a quarter of a second for each GiB.
    pub(crate) fn allocate_whole(&self) {
        let whole = self.layout.ring_words() as u64 * WORD_BYTES;
        let mut rings = self.layout.ncs().enumerate();
        let done =
            rings.try_for_each(|(ring, nc)| self.extend(ring, nc, whole, u64::MAX).map(drop));
        // Set already: then nothing was to be done.
        let _set_before = self.whole.set(done.map_err(|error| error.to_string()));
    }

    /// Whether all of it has memory, once that is known.
    pub(crate) fn whole(&self) -> Option<&Result<(), String>> {
        self.whole.get()
    }

    /// Writes down for its process how far each ring has memory.
    pub(crate) fn tell_ahead(&self, page: &ControlPage) {
        for (nc, allocated) in self.layout.ncs().zip(&self.allocated) {
            // Relaxed: a hint.
            let bytes = allocated.load(Ordering::Relaxed);
            page.set_ahead(
                nc,
                if self.is_whole(bytes) {
                    u64::MAX
                } else {
                    bytes
                },
            );
        }
    }

    /// Lets its process take the memory itself.
    pub(crate) fn leave_to_process(&self, page: &ControlPage) {
        self.layout
            .ncs()
            .for_each(|nc| page.set_ahead(nc, u64::MAX));
    }

    fn is_whole(&self, bytes: u64) -> bool {
        bytes == self.layout.ring_words() as u64 * WORD_BYTES
    }

    /// Gives the memory back, whoever has it mapped.
    pub(crate) fn give_back(&self) {
        self.note_ends();
        // Relaxed: who set it then handed the segment over.
        let given = if self.heads_stay.load(Ordering::Relaxed) {
            let ring_bytes = self.layout.ring_words() as u64 * WORD_BYTES;
            let rest = ring_bytes.saturating_sub(PAGE_BYTES);
            let mut rings = self.layout.ncs().filter(|_| rest > 0);
            rings.try_for_each(|nc| {
                let first = self.layout.ring_word(nc).unwrap_or(0) as u64 * WORD_BYTES;
                memfd::give_back(&self.fd, first + PAGE_BYTES, rest)
            })
        } else {
            memfd::give_back(&self.fd, 0, self.layout.bytes())
        };
        // It is sealed only against resizing, so that the kernel has no reason to refuse.
        if let Err(error) = given {
            tracing::warn!("{error}");
        }
    }

    /// The claim counters, which stay readable when the memory is given back. All claims up to `known` are accounted for.
    pub(crate) fn heads(&self, known: BTreeMap<usize, u64>) -> Result<Heads, ShmError> {
        let map = ReadMapping::map(&self.fd, self.layout.bytes())?;
        self.heads_stay.store(true, Ordering::Relaxed);
        Ok(Heads::new(self.layout.clone(), map, known))
    }

    /// Where the rings' last counters are found when the memory has gone.
    pub(crate) fn ends(&self) -> Arc<OnceLock<Ends>> {
        self.ends.clone()
    }

    fn note_ends(&self) {
        let counters = |nc| (nc, self.counters(nc));
        self.ends
            .get_or_init(|| Ends(self.layout.ncs().map(counters).collect()));
    }

    /// The counters of the ring of `nc`, as they stand.
    pub(crate) fn counters(&self, nc: usize) -> Counters {
        let Some(words) = self.ring(nc) else {
            return Counters::default();
        };
        let dropped = [
            ring::DROPPED_IN_FLIGHT,
            ring::DROPPED_LAPPED,
            ring::DROPPED_SEQ,
        ];
        Counters {
            // Before the claims: whoever's drop is counted had claimed a number before.
            dropped: dropped.map(|at| words[at].get()),
            claimed: words[ring::TAIL].get(),
        }
    }

    /// Sizes and offsets.
    pub(crate) fn layout(&self) -> &SegmentLayout {
        &self.layout
    }

    /// The number that its gates carry.
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// The random number in its header.
    pub(crate) fn nonce(&self) -> u64 {
        self.nonce
    }

    /// Bytes promised.
    pub(crate) fn bytes(&self) -> u64 {
        self.layout.bytes()
    }

    /// Bytes of memory really taken.
    pub(crate) fn resident_bytes(&self) -> u64 {
        memfd::resident_bytes(&self.fd).unwrap_or(0)
    }

    /// The file, to be sent to its producer.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    fn ring(&self, nc: usize) -> Option<&[ReadWord]> {
        let first = self.layout.ring_word(nc)?;
        self.map
            .words()
            .get(first..first + self.layout.ring_words())
    }

    /// The ring of `nc`.
    pub(crate) fn reader(&self, nc: usize) -> Option<Reader<'_, ReadWord>> {
        Reader::new(self.ring(nc)?, *self.layout.geometry())
    }

    /// The oldest claim whose event the ring of `nc` can still hold.
    pub(crate) fn oldest(&self, nc: usize) -> u64 {
        let tail = self.ring(nc).map_or(0, |words| words[ring::TAIL].get());
        tail.saturating_sub(self.layout.geometry().cap())
    }

    /// Events for an NC without a ring, and with an index out of range, as the producer counts them; no more than can be
    /// counted in earnest, so that nobody's sum overflows.
    pub(crate) fn unplaced(&self) -> [u64; 2] {
        [segment::NO_RING, segment::NC_OUT_OF_RANGE]
            .map(|at| self.map.words()[at].get().min(SEQ_MAX))
    }
}

#[cfg(test)]
mod tests {
    use nrt_trace_abi::record::Draft;
    use nrt_trace_ring::Producer;
    use nrt_trace_shm::WriteMapping;

    use super::*;

    fn segment(cap: u64, ncs: &[usize]) -> Segment {
        let layout = SegmentLayout::new(cap, ncs.iter().copied()).unwrap();
        Segment::create(layout, [1, 2], 3, 4).unwrap()
    }

    fn emit(segment: &Segment, nc: usize, events: u64) {
        let map = WriteMapping::map(segment.fd(), segment.bytes()).unwrap();
        let first = segment.layout.ring_word(nc).unwrap();
        let ring = Producer::new(&map.words()[first..], *segment.layout.geometry()).unwrap();
        for _ in 0..events {
            let _ = ring.push(|seq| Draft::default().finish(seq));
        }
    }

    #[test]
    fn memory_comes_ahead_of_the_tail_and_only_to_rings_in_use() {
        let segment = segment(0x10_0000, &[0, 1]);
        let first = segment.resident_bytes();
        assert!(
            (2 * FIRST_BYTES..2 * FIRST_BYTES + 16384).contains(&first),
            "{first}"
        );
        segment.allocate_ahead(u64::MAX).unwrap();
        assert_eq!(segment.resident_bytes(), first, "nothing was emitted");
        emit(&segment, 1, 1);
        segment.allocate_ahead(u64::MAX).unwrap();
        let ahead = segment.resident_bytes();
        assert!(
            (first + AHEAD_BYTES - FIRST_BYTES..first + AHEAD_BYTES + 8192).contains(&ahead),
            "{ahead}"
        );
        segment.allocate_ahead(u64::MAX).unwrap();
        emit(&segment, 1, 1);
        segment.allocate_ahead(u64::MAX).unwrap();
        assert_eq!(
            segment.resident_bytes(),
            ahead,
            "one event does not call for more"
        );
        emit(&segment, 1, 40_000);
        segment.allocate_ahead(u64::MAX).unwrap();
        assert!(segment.resident_bytes() >= ring::words(40_000) * 8 + AHEAD_BYTES);
    }

    /// What is given back of a ring leaves its claim counter, by which claims are found that come after the last look.
    #[test]
    fn claims_are_counted_in_memory_that_was_given_back() {
        let segment = segment(1024, &[2, 7]);
        emit(&segment, 2, 1500);
        let all = segment.resident_bytes();
        let known = [(2, 1500), (7, 0)].into();
        let mut heads = segment.heads(known).unwrap();
        segment.give_back();
        assert!(segment.resident_bytes() < all / 4, "of {all} bytes");
        assert_eq!(heads.late(), []);
        emit(&segment, 2, 3);
        emit(&segment, 7, 1);
        drop(segment);
        assert_eq!(heads.late(), [(2, 3), (7, 1)]);
        assert_eq!(heads.late(), [], "each is counted once");
    }

    #[test]
    fn a_small_ring_has_all_its_memory_at_once_and_never_more() {
        let segment = segment(1024, &[5]);
        emit(&segment, 5, 10_000);
        segment.allocate_ahead(u64::MAX).unwrap();
        assert!(segment.resident_bytes() <= segment.bytes());
        let reader = segment.reader(5).unwrap();
        assert_eq!(
            reader.claimed(&nrt_trace_ring::Cursor::default()),
            Ok(10_000)
        );
        assert!(segment.reader(4).is_none());
    }
}
