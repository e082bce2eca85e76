//! Where every shared word is, who writes it, and what always holds.
//!
//! ```text
//!            daemon                                     producer process
//!   ┌───────────────────────┐   producer.sock   ┌──────────────────────────────┐
//!   │ control page   write ─┼──── memfd ───────▶│ control page   read only     │   one per attach
//!   │ segment        read  ─┼──── memfd ───────▶│ segment        read, write   │   one per (producer, run)
//!   │ string table   read  ─┼──── memfd ───────▶│ string table   read, write   │   one per attach
//!   └───────────────────────┘                   └──────────────────────────────┘
//! ```
//!
//! All memory is a slice of little-endian 64-bit atomic words; offsets below are word indices. A zero-filled file
//! is a valid, empty ring and a valid, empty string table, so memory stays sparse until it is used.
//!
//! # Segment
//!
//! ```text
//!  word 0        64               320     512                 (a page-aligned block per ring)
//!  ┌─────────────┬────────────────┬───────┬──────────────────┬──────────────────┬────
//!  │ header      │ ring directory │ spare │ ring of an NC    │ ring of an NC    │ …
//!  └─────────────┴────────────────┴───────┴──────────────────┴──────────────────┴────
//!  ring:  0       16          32
//!         ┌───────┬───────────┬─────────┬─────────┬──── … ┬─────────┐
//!         │ tail  │ drops     │ slot 0  │ slot 1  │       │ cap - 1 │      16 words (128 bytes) each
//!         └───────┴───────────┴─────────┴─────────┴──── … ┴─────────┘
//!  slot:  0        1       2                        16
//!         ┌────────┬───────┬────────────────────────┐
//!         │ stamp  │ spare │ the 14 record words    │
//!         └────────┴───────┴────────────────────────┘
//! ```
//!
//! A slot is two cache lines, aligned to the pair that the prefetcher fetches together: 112 bytes of record, 8 of
//! stamp, 8 to spare. 120-byte slots measured no faster. `tail` has a pair of lines of its own because every producer
//! thread of the NC writes it; the drop counters another, because they are written when things go wrong.
//!
//! | field | written by | read by | stable | orderings |
//! |---|---|---|---|---|
//! | header, directory | daemon, before the memfd is shared | producer, once, at Arm | for ever (but a hostile producer can scribble: the daemon keeps its own copy and never reads them back) | none needed |
//! | `tail` | producers, `fetch_add` | reader | grows | Relaxed both sides: it orders nothing |
//! | drops | producers, `fetch_add` | reader | grow | SYNC(drop): Release, Acquire, before `tail` is read |
//! | stamp | producers: CAS to in-flight, store to publish | producers, reader | value grows | SYNC(publish): Release store, Acquire load |
//! | record words | the slot's in-flight owner only | reader | between publish and the next claim's CAS | Relaxed, fenced: SYNC(overwrite) |
//! | control page | daemon | producer | – | gates and how far there is memory Relaxed, latch SYNC(clock) |
//! | string entry | the thread that claimed it | daemon | once published | SYNC(string): id stored last with Release |
//!
//! # Invariants
//!
//! - **I1** Only the producer that moved a stamp to in-flight writes the slot's record words, until it publishes.
//! - **I2** A stamp's value never decreases.
//! - **I3** An event is delivered at most once by a cursor.
//! - **I4** `claimed = delivered + lost + pending + unread` for every cursor, at every moment, whoever was killed.
//! - **I5** A reader delivers only record words that stood between two equal loads of a published stamp.
//! - **I6** Emit takes a bounded number of steps, whatever any other thread or process does.
//! - **I7** The daemon bounds every loop and every offset by numbers of its own.
//! - **I8** Nobody but the daemon can write the control page; nobody can resize any of the files.
//!
//! # Compatibility
//!
//! Hello and Welcome carry [`crate::ABI_VERSION`]; both sides refuse another one by name. Any change of a word's
//! place or meaning in this crate raises it. The headers repeat magic and version so that a file in a debugger, or
//! handed back to a later daemon, says what it is.

use crate::MAX_NCS;
use crate::geometry::Geometry;

/// Bytes of a page of file layout. Rings start at multiples of it on every architecture; a larger CPU page only means
/// that two rings may share one.
pub const PAGE_BYTES: u64 = 4096;

/// Bytes of a word.
pub const WORD_BYTES: u64 = 8;

/// Words of a slot (128 bytes).
pub const SLOT_WORDS: usize = 16;

/// Word offsets inside a slot.
pub mod slot {
    /// The stamp.
    pub const STAMP: usize = 0;
    /// First of the fourteen record words.
    pub const RECORD: usize = 2;
}

/// Word offsets inside a ring.
pub mod ring {
    use super::SLOT_WORDS;

    /// The claim counter: number of events ever claimed.
    pub const TAIL: usize = 0;
    /// Drops because the slot was being written by another producer.
    pub const DROPPED_IN_FLIGHT: usize = SLOT_WORDS;
    /// Drops because a later lap had taken the slot.
    pub const DROPPED_LAPPED: usize = SLOT_WORDS + 1;
    /// Drops because the sequence number no longer fits 50 bits.
    pub const DROPPED_SEQ: usize = SLOT_WORDS + 2;
    /// First slot.
    pub const SLOTS: usize = 2 * SLOT_WORDS;

    /// Words of a ring of `cap` slots, without the padding to a page.
    #[must_use]
    pub const fn words(cap: u64) -> u64 {
        SLOTS as u64 + cap * SLOT_WORDS as u64
    }
}

/// Word offsets of a segment's header.
pub mod segment {
    /// [`MAGIC_VALUE`].
    pub const MAGIC: usize = 0;
    /// [`crate::ABI_VERSION`].
    pub const ABI: usize = 1;
    /// Bytes of the whole segment.
    pub const BYTES: usize = 2;
    /// Low and high word of the run's random id.
    pub const RUN_ID: usize = 3;
    /// The run's generation.
    pub const GENERATION: usize = 5;
    /// The daemon's number for the producer.
    pub const PRODUCER_ID: usize = 6;
    /// Slots of each ring.
    pub const CAP: usize = 7;
    /// Events for an NC below 256 that has no ring in this segment; a pair of lines for the counters that are the
    /// process's and not a ring's.
    pub const NO_RING: usize = 16;
    /// Events whose NC index was 256 or more (they were recorded as NC 0).
    pub const NC_OUT_OF_RANGE: usize = 17;
    /// The ring directory: for each NC the word offset of its ring, 0 for none.
    pub const DIRECTORY: usize = 64;
    /// Words of header, directory and spare: the first ring starts here.
    pub const HEADER_WORDS: usize = 512;
    /// "NRTSEG\0\1" as a little-endian number.
    pub const MAGIC_VALUE: u64 = u64::from_le_bytes(*b"NRTSEG\x00\x01");
}

/// Word offsets of the control page.
pub mod control {
    /// [`MAGIC_VALUE`].
    pub const MAGIC: usize = 0;
    /// [`crate::ABI_VERSION`].
    pub const ABI: usize = 1;
    /// Bit 0: capturing; the rest: the run's generation, shifted by one. For people and for `is_capturing`; emit looks
    /// only at the gates.
    pub const STATE: usize = 2;
    /// The daemon's number for the producer.
    pub const PRODUCER_ID: usize = 3;
    /// 0: call `clock_gettime`; 1: time stamp counter with the latch below.
    pub const CLOCK_MODE: usize = 4;
    /// The latch's selector: its low bit says which copy holds. It starts at [`first_selector`], and each refresh adds one.
    pub const CLOCK_SELECT: usize = 5;
    /// The two copies of the clock parameters: base tsc, base ns, multiplier.
    pub const CLOCK_COPY: [usize; 2] = [16, 24];
    /// First of 128 words with how far the rings have memory, two NCs to a word, the even one in the low half: in units of
    /// [`AHEAD_UNIT`] bytes from the ring's first word on. The library enters no page ahead of the tails beyond it, so
    /// that memory is taken by whom the daemon's `allocate` says.
    pub const AHEAD: usize = 64;
    /// Bytes that a step of [`AHEAD`] stands for.
    pub const AHEAD_UNIT: u64 = 64 << 10;
    /// First of the 256 gate words, see [`crate::gate`].
    pub const GATES: usize = 256;
    /// Words of the page.
    pub const WORDS: usize = 512;
    /// "NRTCTL\0\1" as a little-endian number.
    pub const MAGIC_VALUE: u64 = u64::from_le_bytes(*b"NRTCTL\x00\x01");

    /// [`CLOCK_SELECT`] of a page that is made at this time, `CLOCK_REALTIME` in ns.
    #[must_use]
    pub const fn first_selector(made_at_ns: u64) -> u64 {
        made_at_ns << 8
    }

    /// Whether `later` is the selector of another page than `earlier`: two pages of a process are made 20 ms apart, and it
    /// takes months of refreshes to add as much.
    #[must_use]
    pub const fn is_of_another_page(earlier: u64, later: u64) -> bool {
        later.wrapping_sub(earlier) >= first_selector(1 << 24)
    }

    /// [`CLOCK_MODE`]: the library calls `clock_gettime(CLOCK_REALTIME)`.
    pub const CLOCK_MODE_SYSTEM: u64 = 0;
    /// [`CLOCK_MODE`]: time stamp counter.
    pub const CLOCK_MODE_TSC: u64 = 1;
}

/// Word offsets of a string table.
pub mod strings {
    /// [`MAGIC_VALUE`].
    pub const MAGIC: usize = 0;
    /// [`crate::ABI_VERSION`].
    pub const ABI: usize = 1;
    /// Entries claimed, published or not; may run past the capacity.
    pub const ENTRIES: usize = 16;
    /// Bytes claimed; may run past the capacity.
    pub const BYTES: usize = 17;
    /// Strings that found no room.
    pub const FULL: usize = 18;
    /// First entry.
    pub const TABLE: usize = 32;
    /// Words of an entry.
    pub const ENTRY_WORDS: usize = 4;
    /// "NRTSTR\0\1" as a little-endian number.
    pub const MAGIC_VALUE: u64 = u64::from_le_bytes(*b"NRTSTR\x00\x01");
    /// Default size of a table.
    pub const DEFAULT_BYTES: u64 = 1 << 20;
    /// Longest string that can be interned.
    pub const MAX_STRING_BYTES: usize = 64 << 10;

    /// Word offsets inside an entry.
    pub mod entry {
        /// The string's id; 0 until the entry is published, stored last.
        pub const ID: usize = 0;
        /// `byte offset in the byte area << 32 | length`.
        pub const SPAN: usize = 1;
        /// The NC index given when the string was interned.
        pub const NC: usize = 2;
    }
}

/// Sizes of a string table of a given number of bytes: a quarter entries, the rest text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StringTableLayout {
    /// Entries that fit.
    pub entries: u64,
    /// First word of the byte area.
    pub bytes_word: usize,
    /// Bytes of the byte area, a multiple of 8.
    pub bytes: u64,
}

impl StringTableLayout {
    /// The layout of a table of `total` bytes; `None` if it is smaller than a page or not whole pages.
    #[must_use]
    pub const fn new(total: u64) -> Option<Self> {
        if total < PAGE_BYTES || !total.is_multiple_of(PAGE_BYTES) || total > 1 << 32 {
            return None;
        }
        let entry_bytes = strings::ENTRY_WORDS as u64 * WORD_BYTES;
        let entries = total / 4 / entry_bytes;
        let bytes_word = strings::TABLE + (entries as usize) * strings::ENTRY_WORDS;
        Some(Self {
            entries,
            bytes_word,
            bytes: total - bytes_word as u64 * WORD_BYTES,
        })
    }
}

/// Which NC's ring is where in a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentLayout {
    geometry: Geometry,
    /// Word offset of each NC's ring, 0 for none.
    offsets: [u64; MAX_NCS],
    bytes: u64,
}

impl SegmentLayout {
    /// Lays out rings of `cap` slots for each NC that `ncs` yields (indices below 256; repeats are one ring).
    ///
    /// `None` if `cap` is outside [`crate::geometry::CAPACITY_RANGE`], an index is 256 or more, or there is no NC.
    pub fn new(cap: u64, ncs: impl IntoIterator<Item = usize>) -> Option<Self> {
        let geometry = Geometry::new(cap)?;
        let page_words = PAGE_BYTES / WORD_BYTES;
        let stride = ring::words(cap).next_multiple_of(page_words);
        let mut offsets = [0; MAX_NCS];
        let mut next = segment::HEADER_WORDS as u64;
        for nc in ncs {
            let offset = offsets.get_mut(nc)?;
            if *offset == 0 {
                *offset = next;
                next += stride;
            }
        }
        (next > segment::HEADER_WORDS as u64).then_some(Self {
            geometry,
            offsets,
            bytes: next * WORD_BYTES,
        })
    }

    /// Capacity arithmetic of every ring.
    #[inline]
    #[must_use]
    pub const fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// Bytes of the segment.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Word offset of the ring of `nc`; `None` if it has none.
    #[inline]
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "64-bit targets only: a mapping's word index fits usize"
    )]
    pub const fn ring_word(&self, nc: usize) -> Option<usize> {
        if nc >= MAX_NCS || self.offsets[nc] == 0 {
            None
        } else {
            Some(self.offsets[nc] as usize)
        }
    }

    /// Words of a ring, without padding.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "64-bit targets only: a mapping's word index fits usize"
    )]
    pub const fn ring_words(&self) -> usize {
        ring::words(self.geometry.cap()) as usize
    }

    /// NCs that have a ring, ascending.
    pub fn ncs(&self) -> impl Iterator<Item = usize> + '_ {
        (0..MAX_NCS).filter(|&nc| self.offsets[nc] != 0)
    }

    /// The header's words, to be written to the file before it is shared.
    #[must_use]
    pub fn header(
        &self,
        run_id: [u64; 2],
        generation: u64,
        producer_id: u32,
    ) -> [u64; segment::HEADER_WORDS] {
        let mut words = [0; segment::HEADER_WORDS];
        words[segment::MAGIC] = segment::MAGIC_VALUE;
        words[segment::ABI] = u64::from(crate::ABI_VERSION);
        words[segment::BYTES] = self.bytes;
        words[segment::RUN_ID] = run_id[0];
        words[segment::RUN_ID + 1] = run_id[1];
        words[segment::GENERATION] = generation;
        words[segment::PRODUCER_ID] = u64::from(producer_id);
        words[segment::CAP] = self.geometry.cap();
        words[segment::DIRECTORY..segment::DIRECTORY + MAX_NCS].copy_from_slice(&self.offsets);
        words
    }

    /// Reads a header back, for the producer that received the segment: the layout, the generation and the size must
    /// agree with each other and with `bytes`, the size of the file.
    #[must_use]
    pub fn from_header(words: &[u64; segment::HEADER_WORDS], bytes: u64) -> Option<(Self, u64)> {
        if words[segment::MAGIC] != segment::MAGIC_VALUE
            || words[segment::ABI] != u64::from(crate::ABI_VERSION)
        {
            return None;
        }
        let directory = &words[segment::DIRECTORY..segment::DIRECTORY + MAX_NCS];
        // Rings are laid out in the order in which the NCs were given: rebuild from offsets, lowest first.
        let mut ncs: [usize; MAX_NCS] = core::array::from_fn(|nc| nc);
        ncs.sort_unstable_by_key(|&nc| directory[nc]);
        let layout = Self::new(
            words[segment::CAP],
            ncs.into_iter().filter(|&nc| directory[nc] != 0),
        )?;
        (layout.offsets == *directory && layout.bytes == bytes && words[segment::BYTES] == bytes)
            .then_some((layout, words[segment::GENERATION]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings_are_page_aligned_and_disjoint() {
        let layout = SegmentLayout::new(1025, [3, 0, 255, 3]).unwrap();
        let offsets: Vec<_> = [3, 0, 255]
            .iter()
            .map(|&nc| layout.ring_word(nc).unwrap())
            .collect();
        assert_eq!(layout.ncs().collect::<Vec<_>>(), [0, 3, 255]);
        assert_eq!(layout.ring_word(1), None);
        assert_eq!(layout.ring_word(256), None);
        for pair in offsets.windows(2) {
            assert!(pair[0] + layout.ring_words() <= pair[1]);
            assert_eq!(pair[1] as u64 * WORD_BYTES % PAGE_BYTES, 0);
        }
        assert!((offsets[2] + layout.ring_words()) as u64 * WORD_BYTES <= layout.bytes());
    }

    /// Promise: memory per event of capacity at most 128 bytes + 5 %.
    #[test]
    fn overhead_is_below_five_percent() {
        for cap in [1024u64, 1025, 4_000, 0x10_0000] {
            let layout = SegmentLayout::new(cap, 0..8).unwrap();
            assert!(
                layout.bytes() * 100 <= cap * 8 * 128 * 105,
                "cap {cap}: {} bytes",
                layout.bytes()
            );
        }
    }

    #[test]
    fn bad_layouts_are_refused() {
        assert_eq!(SegmentLayout::new(0, [0]), None);
        assert_eq!(SegmentLayout::new(8, [256]), None);
        assert_eq!(SegmentLayout::new(8, []), None);
    }

    #[test]
    fn a_header_reads_back_and_any_changed_word_of_it_does_not_mislead() {
        let layout = SegmentLayout::new(7, [5, 1]).unwrap();
        let words = layout.header([1, 2], 9, 4);
        assert_eq!(
            SegmentLayout::from_header(&words, layout.bytes()),
            Some((layout.clone(), 9))
        );
        assert_eq!(
            SegmentLayout::from_header(&words, layout.bytes() + 4096),
            None
        );
        for at in [segment::MAGIC, segment::ABI, segment::BYTES] {
            let mut changed = words;
            changed[at] = changed[at].wrapping_add(1);
            assert_eq!(
                SegmentLayout::from_header(&changed, layout.bytes()),
                None,
                "word {at}"
            );
        }
        // A capacity that needs more room than there is.
        let mut larger = words;
        larger[segment::CAP] = 1 << 20;
        assert_eq!(SegmentLayout::from_header(&larger, layout.bytes()), None);
        let mut moved = words;
        moved[segment::DIRECTORY + 1] += 8;
        assert_eq!(SegmentLayout::from_header(&moved, layout.bytes()), None);
    }

    #[test]
    fn a_string_table_fits_its_file() {
        let layout = StringTableLayout::new(strings::DEFAULT_BYTES).unwrap();
        assert_eq!(layout.entries, 8192);
        assert_eq!(
            layout.bytes_word as u64 * WORD_BYTES + layout.bytes,
            strings::DEFAULT_BYTES
        );
        assert_eq!(StringTableLayout::new(100), None);
        assert_eq!(StringTableLayout::new(4097), None);
    }
}
