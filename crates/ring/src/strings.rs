//! The string table: a bounded, append-only list of names that its producer writes and the daemon reads.
//!
//! An entry is claimed with a counter, filled in, and published by storing its id last. A writer that dies in between
//! leaves an entry that is never published: readers pass it by and look again later.

use nrt_trace_abi::layout::strings::{self, entry};
use nrt_trace_abi::layout::{StringTableLayout, WORD_BYTES};

use crate::step;
use crate::sync::{AtomicU64, LoadWord, Ordering};

/// The table has no room for the string; it was counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// Appends `bytes` under `id` (never 0), with the NC index that it came with. Takes a bounded number of steps.
///
/// # Errors
/// [`Full`] when entries or bytes are used up, or the string is longer than
/// [`strings::MAX_STRING_BYTES`]. The byte counter does not go back, so once a string did not fit, none does.
pub fn append(
    table: &[AtomicU64],
    layout: &StringTableLayout,
    id: u64,
    bytes: &[u8],
    nc: u32,
) -> Result<(), Full> {
    let room = (bytes.len() as u64).next_multiple_of(WORD_BYTES);
    if bytes.len() > strings::MAX_STRING_BYTES {
        return full(table);
    }
    // Relaxed: counters hand out room; the id's Release store publishes what is put there.
    let offset = table[strings::BYTES].fetch_add(room, Ordering::Relaxed);
    step::at("name:bytes");
    if offset
        .checked_add(room)
        .is_none_or(|end| end > layout.bytes)
    {
        return full(table);
    }
    let number = table[strings::ENTRIES].fetch_add(1, Ordering::Relaxed);
    step::at("name:entry");
    if number >= layout.entries {
        return full(table);
    }
    let first = layout.bytes_word + word_index(offset / WORD_BYTES);
    for (word, chunk) in table[first..].iter().zip(bytes.chunks(8)) {
        let mut padded = [0; 8];
        padded[..chunk.len()].copy_from_slice(chunk);
        word.store(u64::from_le_bytes(padded), Ordering::Relaxed);
    }
    step::at("name:half");
    let at = strings::TABLE + word_index(number) * strings::ENTRY_WORDS;
    table[at + entry::SPAN].store(offset << 32 | bytes.len() as u64, Ordering::Relaxed);
    table[at + entry::NC].store(u64::from(nc), Ordering::Relaxed);
    step::at("name:written");
    // SYNC(string): publishes the three above.
    table[at + entry::ID].store(id, Ordering::Release);
    step::at("name:published");
    Ok(())
}

fn full(table: &[AtomicU64]) -> Result<(), Full> {
    table[strings::FULL].fetch_add(1, Ordering::Relaxed);
    Err(Full)
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "a word number of a table is below the length of a slice"
)]
const fn word_index(n: u64) -> usize {
    n as usize
}

/// A reader's position in a string table. It trusts no word of it.
#[derive(Clone, Debug)]
pub struct StringCursor {
    layout: StringTableLayout,
    /// Entries looked at.
    seen: u64,
    /// Entries below `seen` that were not published.
    open: Vec<u64>,
    refused: u64,
    scratch: Vec<u8>,
}

impl StringCursor {
    /// A cursor at the beginning of a table.
    #[must_use]
    pub fn new(layout: StringTableLayout) -> Self {
        Self {
            layout,
            seen: 0,
            open: Vec::new(),
            refused: 0,
            scratch: Vec::new(),
        }
    }

    /// Entries whose span lies outside the table.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Gives each entry that was published since the last call to `sink`, as (id, bytes, NC index), once.
    pub fn poll<W: LoadWord>(&mut self, table: &[W], mut sink: impl FnMut(u64, &[u8], u64)) {
        // Relaxed: entries are published one by one. I7: bounded by our own number of entries.
        let claimed = table[strings::ENTRIES]
            .load(Ordering::Relaxed)
            .min(self.layout.entries);
        let new = self.seen..claimed;
        self.seen = claimed.max(self.seen);
        let mut open = std::mem::take(&mut self.open);
        open.extend(new);
        open.retain(|&number| !self.take(table, number, &mut sink));
        self.open = open;
    }

    /// Reads one entry; false if it is not published yet.
    fn take<W: LoadWord>(
        &mut self,
        table: &[W],
        number: u64,
        sink: &mut impl FnMut(u64, &[u8], u64),
    ) -> bool {
        let at = strings::TABLE + word_index(number) * strings::ENTRY_WORDS;
        // SYNC(string): the rest of the entry was written before its id.
        let id = table[at + entry::ID].load(Ordering::Acquire);
        if id == 0 {
            return false;
        }
        let span = table[at + entry::SPAN].load(Ordering::Relaxed);
        let nc = table[at + entry::NC].load(Ordering::Relaxed);
        let (offset, len) = (span >> 32, span & 0xFFFF_FFFF);
        let fits = offset % WORD_BYTES == 0
            && len <= strings::MAX_STRING_BYTES as u64
            && offset + len <= self.layout.bytes;
        if !fits {
            self.refused += 1;
            return true;
        }
        self.scratch.clear();
        let first = self.layout.bytes_word + word_index(offset / WORD_BYTES);
        let words = word_index(len.div_ceil(WORD_BYTES));
        for word in &table[first..first + words] {
            self.scratch
                .extend_from_slice(&word.load(Ordering::Relaxed).to_le_bytes());
        }
        self.scratch.truncate(word_index(len));
        sink(id, &self.scratch, nc);
        true
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn table(bytes: u64) -> (Vec<AtomicU64>, StringTableLayout) {
        (
            (0..bytes / 8).map(|_| AtomicU64::new(0)).collect(),
            StringTableLayout::new(bytes).expect("whole pages"),
        )
    }

    fn poll_all(cursor: &mut StringCursor, table: &[AtomicU64]) -> Vec<(u64, String, u64)> {
        let mut got = Vec::new();
        cursor.poll(table, |id, bytes, nc| {
            got.push((id, String::from_utf8_lossy(bytes).into_owned(), nc));
        });
        got
    }

    #[test]
    fn names_come_once_and_in_order() {
        let (words, layout) = table(1 << 16);
        let mut cursor = StringCursor::new(layout);
        append(&words, &layout, 11, b"model.neff", 3).unwrap();
        append(&words, &layout, 12, b"", 0).unwrap();
        assert_eq!(
            poll_all(&mut cursor, &words),
            [(11, "model.neff".into(), 3), (12, String::new(), 0)]
        );
        append(&words, &layout, 13, "日本語".as_bytes(), 1).unwrap();
        assert_eq!(poll_all(&mut cursor, &words), [(13, "日本語".into(), 1)]);
    }

    #[test]
    fn an_entry_whose_writer_died_is_passed_by_and_read_when_it_comes() {
        let (words, layout) = table(1 << 16);
        let mut cursor = StringCursor::new(layout);
        words[strings::ENTRIES].fetch_add(1, Ordering::Relaxed); // claimed, never filled in
        append(&words, &layout, 5, b"after", 0).unwrap();
        assert_eq!(poll_all(&mut cursor, &words), [(5, "after".into(), 0)]);
        words[strings::TABLE + entry::ID].store(4, Ordering::Release);
        assert_eq!(poll_all(&mut cursor, &words), [(4, String::new(), 0)]);
    }

    #[test]
    fn a_full_table_counts_what_it_could_not_take() {
        let (words, layout) = table(4096);
        let mut kept = 0;
        for n in 0..500 {
            kept += u64::from(append(&words, &layout, n + 1, b"0123456789", 0).is_ok());
        }
        assert_eq!(kept, layout.entries);
        assert_eq!(words[strings::FULL].load(Ordering::Relaxed), 500 - kept);
        assert_eq!(
            poll_all(&mut StringCursor::new(layout), &words).len() as u64,
            kept
        );
        let (words, layout) = table(1 << 20);
        let longest = vec![b'x'; strings::MAX_STRING_BYTES];
        append(&words, &layout, 1, &longest, 0).unwrap();
        assert_eq!(
            append(&words, &layout, 2, &[longest.as_slice(), b"x"].concat(), 0),
            Err(Full)
        );
    }

    #[test]
    fn a_name_may_be_as_long_as_allowed_and_may_fill_the_table_to_its_end() {
        let (words, layout) = table(1 << 20);
        let longest = vec![b'x'; strings::MAX_STRING_BYTES];
        append(&words, &layout, 1, &longest, 0).unwrap();
        let mut got = Vec::new();
        StringCursor::new(layout).poll(&words, |id, bytes, _| got.push((id, bytes.len())));
        assert_eq!(got, [(1, longest.len())]);

        let (words, layout) = table(4096);
        let rest = vec![b'y'; usize::try_from(layout.bytes).unwrap()];
        append(&words, &layout, 2, &rest, 0).unwrap();
        let mut got = Vec::new();
        StringCursor::new(layout).poll(&words, |id, bytes, _| got.push((id, bytes.len())));
        assert_eq!(got, [(2, rest.len())]);
        assert_eq!(append(&words, &layout, 3, b"z", 0), Err(Full));
    }

    proptest::proptest! {
        /// A hostile table: any words at all. No panic, no read outside, and no more entries than there can be.
        #[test]
        fn any_words_are_read_within_bounds(words in proptest::collection::vec(proptest::num::u64::ANY, 512)) {
            let layout = StringTableLayout::new(4096).unwrap();
            let words: Vec<_> = words.into_iter().map(AtomicU64::new).collect();
            let mut cursor = StringCursor::new(layout);
            let mut count = 0;
            cursor.poll(&words, |_, bytes, _| { count += 1; assert!(bytes.len() as u64 <= layout.bytes); });
            assert!(count + cursor.refused() <= layout.entries);
        }
    }
}
