//! What must hold for any bytes that a hostile producer can write or send, as functions of those bytes.
//!
//! The fuzz targets in `fuzz/` call them with what the fuzzer makes up, and the tests of this crate with random bytes and
//! with the fuzzer's committed corpus, so that `cargo test` alone repeats what fuzzing found.

#![forbid(unsafe_code)]

mod shifting;

use std::collections::BTreeSet;

use nrt_trace_abi::geometry::Geometry;
use nrt_trace_abi::layout::{StringTableLayout, ring, strings};
use nrt_trace_abi::message::{
    self, Arm, Armed, Disarm, Disarmed, Go, Hello, OwnAnswer, Refuse, StartOwn, StopOwn, Welcome,
};
use nrt_trace_ring::strings::StringCursor;
use nrt_trace_ring::{Cursor, MAX_PENDING, Reader};
use zerocopy::IntoBytes;

use shifting::{Script, Word};

/// Splits bytes into little-endian words; what is left over is dropped.
fn words(bytes: &[u8]) -> impl Iterator<Item = u64> + '_ {
    bytes
        .as_chunks::<8>()
        .0
        .iter()
        .map(|chunk| u64::from_le_bytes(*chunk))
}

/// A reader over a ring of any words, changed between visits and between any two of its looks: it reads within bounds,
/// in a bounded number of looks, delivers at most what it was allowed to, keeps the account (I4) and a bounded, sorted
/// list of open claims.
///
/// The first byte chooses the capacity (1 to 8), how many events a call may deliver (1 to 16), and whether words change
/// under the reader: then the second half of the rest says how (`shifting::Script`). The other bytes are the words of the
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
    let max = usize::from(choice >> 3 & 15) + 1;
    let Some(geometry) = Geometry::new(cap) else {
        return;
    };
    let (rest, script) = Script::split(rest, choice & 0x80 != 0);
    let ring_words: Vec<Word<'_>> = (0..ring::words(cap)).map(|_| Word::new(&script)).collect();
    let reader = Reader::new(&ring_words, geometry).expect("as many words as the geometry wants");
    let mut cursor = Cursor::default();
    let mut values = words(rest).peekable();
    while values.peek().is_some() {
        for word in &ring_words {
            let Some(value) = values.next() else { break };
            word.set(value);
        }
        let looks = script.looks();
        let Ok(until) = reader.begin(&mut cursor) else {
            continue;
        };
        let before = cursor.delivered();
        let mut delivered = 0;
        let _progress = reader.read(&mut cursor, until, max, &mut |_| delivered += 1);
        assert!(delivered <= max, "{delivered} of {max}");
        // A visit looks at each open claim, at two laps of claims, and once at every slot, with two looks at a stamp and
        // one at each word: whatever the words say, no more (I7).
        let looks = script.looks() - looks;
        let claims = MAX_PENDING as u64 + 4 * cap + 2;
        assert!(looks <= claims * 16, "{looks} looks");
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

/// A reader of a string table of any words, changed between visits and between any two looks: each entry is given or
/// refused once, within bounds.
///
/// The first byte chooses whether words change under the reader, as for [`reader_survives`].
///
/// # Panics
///
/// If something of that does not hold.
pub fn string_reader_survives(bytes: &[u8]) {
    let Some((choice, rest)) = bytes.split_first() else {
        return;
    };
    let layout = StringTableLayout::new(4096).expect("a page");
    let (rest, script) = Script::split(rest, choice & 0x80 != 0);
    let table: Vec<Word<'_>> = (0..512).map(|_| Word::new(&script)).collect();
    let mut cursor = StringCursor::new(layout);
    let mut taken = 0;
    let mut values = words(rest).peekable();
    while values.peek().is_some() {
        // The interesting words first: the counters, then the entries, then the text.
        for at in (strings::ENTRIES..512).chain(0..strings::ENTRIES) {
            let Some(value) = values.next() else { break };
            table[at].set(value);
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

/// A packet of any bytes: at most one kind takes it, the one that its header names; it is taken whole, byte by byte;
/// and what a taken one says of itself stays within its fields.
///
/// # Panics
///
/// If something of that does not hold.
pub fn packet_survives(bytes: &[u8]) {
    let mut kinds = BTreeSet::new();
    macro_rules! try_kinds {
        ($($kind:ty),*) => {$(
            if let Ok(taken) = message::parse::<$kind>(bytes) {
                kinds.insert(stringify!($kind));
                assert_eq!(taken.as_bytes(), bytes);
                assert_eq!(message::kind_of(bytes), Ok(<$kind as message::Message>::KIND));
            }
        )*};
    }
    try_kinds!(Hello, Welcome, Refuse, Arm, Armed, Go, Disarm, Disarmed);
    try_kinds!(StartOwn, StopOwn, OwnAnswer);
    assert!(kinds.len() <= 1, "{kinds:?}");
    if let Ok(hello) = message::parse::<Hello>(bytes) {
        assert!(hello.visible().len() <= 256);
        let lengths =
            [hello.name(), hello.token(), hello.exe()].map(|text| text.map_or(0, str::len));
        assert!(lengths[0] <= 128 && lengths[1] <= 128 && lengths[2] <= 256);
    }
    if let Ok(start) = message::parse::<StartOwn>(bytes) {
        let wanted = (0..1 << 10).filter(|&nc| start.wants(nc)).count();
        assert!(wanted <= 256, "{wanted} NCs");
    }
    if let Ok(answer) = message::parse::<OwnAnswer>(bytes) {
        assert!(answer.text().map_or(0, str::len) <= 200);
    }
    if let Ok(refuse) = message::parse::<Refuse>(bytes) {
        assert!(refuse.text().map_or(0, str::len) <= 200);
    }
}
