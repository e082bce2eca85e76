//! What must hold for any bytes that a hostile producer can write or send, as functions of those bytes.
//!
//! The fuzz targets in `fuzz/` call them with what the fuzzer makes up, and the tests of this crate with random bytes and
//! with the fuzzer's committed corpus, so that `cargo test` alone repeats what fuzzing found.

#![forbid(unsafe_code)]

use std::collections::BTreeSet;

use nrt_trace_abi::geometry::Geometry;
use nrt_trace_abi::layout::{StringTableLayout, ring, strings};
use nrt_trace_abi::message::{self, Arm, Armed, Disarm, Disarmed, Go, Hello, Refuse, Welcome};
use nrt_trace_ring::strings::StringCursor;
use nrt_trace_ring::{AtomicU64, Cursor, MAX_PENDING, Ordering, Reader};

/// Splits bytes into little-endian words; what is left over is dropped.
fn words(bytes: &[u8]) -> impl Iterator<Item = u64> + '_ {
    bytes
        .as_chunks::<8>()
        .0
        .iter()
        .map(|chunk| u64::from_le_bytes(*chunk))
}

/// A reader over a ring of any words, changed between visits: it reads within bounds, delivers at most what it was
/// allowed to, keeps the account (I4) and a bounded, sorted list of open claims, and delivers nothing below its cursor
/// that it had passed.
///
/// The first byte chooses the capacity (1 to 8) and how many events a call may deliver; the rest are the words of the
/// ring, visit by visit.
///
/// # Panics
///
/// If something of that does not hold.
pub fn reader_survives(bytes: &[u8]) {
    let Some((choice, rest)) = bytes.split_first() else {
        return;
    };
    let cap = u64::from(choice & 7) + 1;
    let max = usize::from(choice >> 3) + 1;
    let Some(geometry) = Geometry::new(cap) else {
        return;
    };
    let ring_words: Vec<AtomicU64> = (0..ring::words(cap)).map(|_| AtomicU64::new(0)).collect();
    let reader = Reader::new(&ring_words, geometry).expect("as many words as the geometry wants");
    let mut cursor = Cursor::default();
    let mut values = words(rest).peekable();
    while values.peek().is_some() {
        for word in &ring_words {
            let Some(value) = values.next() else { break };
            word.store(value, Ordering::Relaxed);
        }
        let Ok(until) = reader.begin(&mut cursor) else {
            continue;
        };
        let before = cursor.delivered();
        let mut delivered = 0;
        let _progress = reader.read(&mut cursor, until, max, &mut |_| delivered += 1);
        assert!(delivered <= max, "{delivered} of {max}");
        assert_eq!(cursor.delivered() - before, delivered as u64);
        let open: Vec<u64> = cursor.pending().collect();
        assert!(
            open.len() <= MAX_PENDING
                && open.is_sorted()
                && open.iter().all(|n| *n < cursor.next())
        );
        if let Ok(a) = reader.account(&cursor) {
            assert_eq!(
                a.claimed,
                a.delivered + a.lost + a.pending + a.unread,
                "I4: {a:?}"
            );
        }
    }
}

/// A reader of a string table of any words: each entry is given or refused once, within bounds.
///
/// # Panics
///
/// If something of that does not hold.
pub fn string_reader_survives(bytes: &[u8]) {
    let layout = StringTableLayout::new(4096).expect("a page");
    let table: Vec<AtomicU64> = (0..512).map(|_| AtomicU64::new(0)).collect();
    let mut cursor = StringCursor::new(layout);
    let mut taken = 0;
    let mut values = words(bytes).peekable();
    while values.peek().is_some() {
        // The interesting words first: the counters, then the entries, then the text.
        for at in (strings::ENTRIES..512).chain(0..strings::ENTRIES) {
            let Some(value) = values.next() else { break };
            table[at].store(value, Ordering::Relaxed);
        }
        cursor.poll(&table, |_, text, _| {
            assert!(text.len() as u64 <= layout.bytes);
            taken += 1;
        });
        assert!(
            taken + cursor.refused() <= layout.entries,
            "an entry came twice"
        );
    }
}

/// A packet of any bytes: at most one kind takes it, and what a taken one says of itself stays within its fields.
///
/// # Panics
///
/// If something of that does not hold.
pub fn packet_survives(bytes: &[u8]) {
    let mut kinds = BTreeSet::new();
    macro_rules! try_kinds {
        ($($kind:ty),*) => {$(
            if message::parse::<$kind>(bytes).is_ok() {
                kinds.insert(stringify!($kind));
            }
        )*};
    }
    try_kinds!(Hello, Welcome, Refuse, Arm, Armed, Go, Disarm, Disarmed);
    assert!(kinds.len() <= 1, "{kinds:?}");
    if let Ok(hello) = message::parse::<Hello>(bytes) {
        assert!(hello.visible().len() <= 256);
        let lengths =
            [hello.name(), hello.token(), hello.exe()].map(|text| text.map_or(0, str::len));
        assert!(lengths[0] <= 128 && lengths[1] <= 128 && lengths[2] <= 256);
    }
    if let Ok(refuse) = message::parse::<Refuse>(bytes) {
        assert!(refuse.text().map_or(0, str::len) <= 200);
    }
}
