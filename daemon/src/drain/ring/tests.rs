use std::sync::atomic::AtomicU64;

use nrt_trace_abi::geometry::Geometry;
use nrt_trace_abi::layout::ring;
use nrt_trace_abi::record::Draft;
use nrt_trace_ring::{Ordering, Producer};

use super::*;

struct Ring {
    words: Vec<AtomicU64>,
    geometry: Geometry,
}

impl Ring {
    fn new(cap: u64) -> Self {
        let words = (0..ring::words(cap)).map(|_| AtomicU64::new(0)).collect();
        Self {
            words,
            geometry: Geometry::new(cap).unwrap(),
        }
    }

    fn emit(&self, trace_type: u32, data: [u64; 5]) {
        let draft = Draft {
            trace_type,
            data,
            ..Draft::default()
        };
        let _ = Producer::new(&self.words, self.geometry)
            .unwrap()
            .push(|seq| draft.finish(seq));
    }

    fn emit_many(&self, events: u64) {
        (0..events).for_each(|_| self.emit(0, [0; 5]));
    }

    fn read(&self, cursor: &Cursor, known: &Learned, max: u64) -> (Turn, Vec<Chunk>) {
        let reader = Reader::new(&self.words, self.geometry).unwrap();
        let mut chunks = Vec::new();
        let turn = read(&reader, 9, cursor, known, &Asked::default(), max, |chunk| {
            chunks.push(chunk);
            Ok::<_, ()>(())
        });
        (turn.unwrap(), chunks)
    }
}

fn seqs(chunk: &Chunk) -> Vec<u64> {
    records(chunk).map(|record| record.seq()).collect()
}

fn records(chunk: &Chunk) -> impl Iterator<Item = Record> + '_ {
    chunk
        .records
        .as_chunks::<RECORD_BYTES>()
        .0
        .iter()
        .map(Record::from_bytes)
}

#[test]
fn chunks_are_full_ordered_and_carry_the_producers_number() {
    let ring = Ring::new(30_000);
    ring.emit_many(20_000);
    let (turn, chunks) = ring.read(&Cursor::default(), &Learned::default(), u64::MAX);
    assert_eq!(
        (turn.delivered, turn.left, turn.impossible),
        (20_000, 0, None)
    );
    let sizes: Vec<_> = chunks.iter().map(|chunk| chunk.records.len()).collect();
    let full = CHUNK_RECORDS * RECORD_BYTES;
    let (last, others) = sizes.split_last().unwrap();
    assert!(full <= 1 << 20 && *last <= full);
    assert!(others.iter().all(|size| *size == full), "{sizes:?}");
    assert_eq!(chunks.len(), 20_000usize.div_ceil(CHUNK_RECORDS));
    assert_eq!(
        chunks.iter().flat_map(seqs).collect::<Vec<_>>(),
        (1..=20_000).collect::<Vec<_>>()
    );
    assert!(
        chunks
            .iter()
            .flat_map(records)
            .all(|record| record.producer_id() == 9)
    );
}

#[test]
fn a_limit_takes_the_oldest_and_leaves_the_rest() {
    let ring = Ring::new(30_000);
    ring.emit_many(20_000);
    let (turn, chunks) = ring.read(&Cursor::default(), &Learned::default(), 10_000);
    assert_eq!(
        (turn.delivered, turn.left, turn.cursor.next()),
        (10_000, 10_000, 10_000)
    );
    assert_eq!(
        chunks.iter().map(|chunk| seqs(chunk).len()).sum::<usize>(),
        10_000
    );
    let (turn, chunks) = ring.read(&turn.cursor, &Learned::default(), u64::MAX);
    assert_eq!((turn.delivered, turn.left), (10_000, 0));
    assert_eq!(seqs(&chunks[0])[0], 10_001);
}

#[test]
fn a_wrapped_ring_gives_its_last_lap() {
    let ring = Ring::new(4);
    ring.emit_many(13);
    let (turn, chunks) = ring.read(&Cursor::default(), &Learned::default(), u64::MAX);
    assert_eq!(seqs(&chunks[0]), [10, 11, 12, 13]);
    assert_eq!((turn.delivered, turn.cursor.lost()), (4, 9));
}

#[test]
fn nothing_new_is_no_chunk() {
    let ring = Ring::new(8);
    let (turn, chunks) = ring.read(&Cursor::default(), &Learned::default(), u64::MAX);
    assert_eq!((turn.delivered, chunks.len()), (0, 0));
}

#[test]
fn a_sink_that_breaks_off_ends_the_turn() {
    let ring = Ring::new(8);
    ring.emit_many(3);
    let reader = Reader::new(&ring.words, ring.geometry).unwrap();
    let turn = read(
        &reader,
        1,
        &Cursor::default(),
        &Learned::default(),
        &Asked::default(),
        9,
        |_| Err("gone"),
    );
    assert_eq!(turn.unwrap_err(), "gone");
}

#[test]
fn impossible_words_end_the_turn_and_are_told() {
    let ring = Ring::new(8);
    ring.emit_many(3);
    let (turn, _) = ring.read(&Cursor::default(), &Learned::default(), u64::MAX);
    ring.words[ring::TAIL].store(1, Ordering::Relaxed);
    let (turn, chunks) = ring.read(&turn.cursor, &Learned::default(), u64::MAX);
    assert!(turn.impossible.is_some() && chunks.is_empty());
}

/// `kbl_exec_pre` tells the model of an execution, `nc_exec_running` refers to it.
const TELLS: u32 = 17;
const REFERS: u32 = 7;

fn refer(exec: u64) -> [u64; 5] {
    [exec << 32, 0, 0, 0, 0]
}

#[test]
fn what_earlier_chunks_and_fetches_told_comes_before_the_records_that_need_it() {
    let ring = Ring::new(30_000);
    let known = Learned::default();
    ring.emit(TELLS, [1, 100, 0, 0, 0]);
    ring.emit(TELLS, [2, 200, 0, 0, 0]);
    ring.emit(REFERS, refer(1));
    ring.emit_many(CHUNK_RECORDS as u64);
    ring.emit(REFERS, refer(2));
    ring.emit(REFERS, refer(3));
    let (turn, chunks) = ring.read(&Cursor::default(), &known, u64::MAX);
    let told = |chunk: &Chunk| {
        chunk
            .correlations
            .iter()
            .map(|c| (c.exec_id, c.model_id))
            .collect::<Vec<_>>()
    };
    assert_eq!(told(&chunks[0]), [], "the chunk itself tells");
    assert_eq!(
        told(&chunks[1]),
        [(2, Some(200))],
        "an earlier chunk told; nobody told of 3"
    );

    // Not committed: the next fetch reads the same again, and needs nothing that it did not read.
    let (again, chunks) = ring.read(&Cursor::default(), &known, 3);
    assert_eq!(told(&chunks[0]), []);
    assert_eq!(again.delivered, 3);

    known.add(turn.learned);
    ring.emit(REFERS, refer(1));
    ring.emit(REFERS, refer(2));
    ring.emit(REFERS, refer(1));
    let (_, chunks) = ring.read(&turn.cursor, &known, u64::MAX);
    assert_eq!(
        told(&chunks[0]),
        [(1, Some(100)), (2, Some(200))],
        "an earlier fetch told"
    );
}

/// Another capture of the same process asked for type 3; a number that is no type is delivered all the same.
#[test]
fn types_that_the_run_did_not_ask_for_are_passed_by_and_take_no_place() {
    let ring = Ring::new(64);
    for trace_type in [0, 3, 0, 3, 3, 46, u32::MAX, 0] {
        ring.emit(trace_type, [0; 5]);
    }
    let reader = Reader::new(&ring.words, ring.geometry).unwrap();
    let mut asked = Asked::default();
    asked.change(0, TypeSet::from_bits(!(1 << 3)));
    let known = Learned::default();
    let turn_of = |cursor: &Cursor, max| {
        let mut chunks = Vec::new();
        let turn = read(&reader, 9, cursor, &known, &asked, max, |chunk| {
            chunks.push(chunk);
            Ok::<_, ()>(())
        });
        (
            turn.unwrap(),
            chunks.iter().flat_map(seqs).collect::<Vec<_>>(),
        )
    };
    let (first, got) = turn_of(&Cursor::default(), 2);
    assert_eq!((got, first.delivered, first.skipped), (vec![1, 3], 2, 1));
    let (rest, got) = turn_of(&first.cursor, u64::MAX);
    assert_eq!((got, rest.delivered, rest.skipped), (vec![6, 7, 8], 3, 2));
    assert_eq!(rest.cursor.delivered(), 8, "the cursor has seen them all");
}

/// The run's filter changed between the third and the fourth event: each is judged by the one of its time.
#[test]
fn a_filter_that_changed_holds_from_its_claim_on() {
    let ring = Ring::new(64);
    for trace_type in [0, 3, 0, 3, 0, 3] {
        ring.emit(trace_type, [0; 5]);
    }
    let mut asked = Asked::default();
    asked.change(1, TypeSet::from_bits(1 << 0));
    asked.change(3, TypeSet::from_bits(1 << 3));
    let reader = Reader::new(&ring.words, ring.geometry).unwrap();
    let mut got = Vec::new();
    let known = Learned::default();
    let turn = read(&reader, 9, &Cursor::default(), &known, &asked, 9, |chunk| {
        got.extend(seqs(&chunk));
        Ok::<_, ()>(())
    });
    assert_eq!((got, turn.unwrap().skipped), (vec![1, 3, 4, 6], 2));
}
