//! Single-threaded histories: what a cursor gets and counts, checked against plain lists.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::VecDeque;

use crossbeam_queue::ArrayQueue;
use nrt_trace_abi::record::Draft;
use proptest::prelude::*;

use super::*;
use crate::producer::{DropCause, Outcome, Producer};
use crate::sync::AtomicU64;

struct Ring {
    words: Vec<AtomicU64>,
    geometry: Geometry,
}

impl Ring {
    fn new(cap: u64) -> Self {
        let geometry = Geometry::new(cap).unwrap();
        Self {
            words: (0..ring::words(cap)).map(|_| AtomicU64::new(0)).collect(),
            geometry,
        }
    }

    fn push(&self, tag: u64) -> Outcome {
        let draft = Draft {
            timestamp_ns: tag,
            data: [tag, !tag, 0, 0, 0],
            ..Draft::default()
        };
        Producer::new(&self.words, self.geometry)
            .unwrap()
            .push(|seq| draft.finish(seq))
    }

    fn reader(&self) -> Reader<'_, AtomicU64> {
        Reader::new(&self.words, self.geometry).unwrap()
    }

    /// One whole visit: the tags delivered.
    fn visit(&self, cursor: &mut Cursor) -> Vec<u64> {
        self.visit_at_most(cursor, usize::MAX)
    }

    fn visit_at_most(&self, cursor: &mut Cursor, max: usize) -> Vec<u64> {
        let mut got = Vec::new();
        let until = self.reader().begin(cursor).unwrap();
        let _progress = self
            .reader()
            .read(cursor, until, max, &mut |record| {
                assert_eq!(record.data()[1], !record.data()[0], "torn");
                got.push(record.data()[0]);
            })
            .unwrap();
        self.check_account(cursor);
        got
    }

    fn check_account(&self, cursor: &Cursor) -> Account {
        let a = self.reader().account(cursor).unwrap();
        assert_eq!(
            a.claimed,
            a.delivered + a.lost + a.pending + a.unread,
            "I4: {a:?}"
        );
        a
    }

    /// A producer that claims a number, takes the slot, and is never heard of again.
    fn die_in_flight(&self) -> u64 {
        let n = self.words[ring::TAIL].fetch_add(1, Ordering::Relaxed);
        let place = self.geometry.place(n);
        self.stamp(place.slot)
            .store(stamp::in_flight(place.index), Ordering::Relaxed);
        n
    }

    /// A producer that claims a number and dies before it touches the slot.
    fn die_claimed(&self) -> u64 {
        self.words[ring::TAIL].fetch_add(1, Ordering::Relaxed)
    }

    fn stamp(&self, slot_number: u64) -> &AtomicU64 {
        &self.words[ring::SLOTS + usize::try_from(slot_number).unwrap() * SLOT_WORDS]
    }

    fn publish(&self, n: u64) {
        let place = self.geometry.place(n);
        self.stamp(place.slot)
            .store(stamp::published(place.index), Ordering::Release);
    }
}

/// Case R07: capacities at the edges are exact; a lapped reader gets exactly the last `cap` events.
#[test]
fn r07_every_capacity_holds_exactly_its_number() {
    for cap in [1, 2, 3, 7, 8, 9, 1023, 1024, 1025] {
        let ring = Ring::new(cap);
        for tag in 0..=3 * cap {
            assert!(matches!(ring.push(tag), Outcome::Stored { seq, .. } if seq == tag + 1));
        }
        let mut cursor = Cursor::default();
        assert_eq!(
            ring.visit(&mut cursor),
            (2 * cap + 1..=3 * cap).collect::<Vec<_>>(),
            "cap {cap}"
        );
        let a = ring.check_account(&cursor);
        assert_eq!(
            (a.delivered, a.lost, a.overwritten(), a.pending),
            (cap, 2 * cap + 1, 2 * cap + 1, 0)
        );
    }
}

#[test]
fn nothing_is_delivered_twice() {
    let ring = Ring::new(4);
    let mut cursor = Cursor::default();
    ring.push(1);
    ring.push(2);
    assert_eq!(ring.visit(&mut cursor), [1, 2]);
    assert_eq!(ring.visit(&mut cursor), [0; 0]);
    ring.push(3);
    assert_eq!(ring.visit(&mut cursor), [3]);
}

#[test]
fn a_limit_leaves_the_rest_for_the_next_visit() {
    let ring = Ring::new(8);
    (0..6).for_each(|tag| {
        ring.push(tag);
    });
    let mut cursor = Cursor::default();
    assert_eq!(ring.visit_at_most(&mut cursor, 4), [0, 1, 2, 3]);
    assert_eq!(ring.check_account(&cursor).unread, 2);
    assert_eq!(ring.visit(&mut cursor), [4, 5]);
}

#[test]
fn a_late_event_is_delivered_by_the_next_visit_and_not_by_this_one() {
    let ring = Ring::new(8);
    let late = ring.die_in_flight();
    ring.push(1);
    let mut cursor = Cursor::default();
    assert_eq!(ring.visit(&mut cursor), [1]);
    assert_eq!(cursor.pending().collect::<Vec<_>>(), [late]);
    ring.publish(late);
    // Its words are zero: tag 0, and the check word does not hold; write them as the producer would have.
    let first = ring::SLOTS + slot::RECORD + nrt_trace_abi::record::DATA_WORD;
    ring.words[first + 1].store(!0, Ordering::Relaxed);
    assert_eq!(ring.visit(&mut cursor), [0]);
    assert_eq!(ring.check_account(&cursor).pending, 0);
}

/// Found by the fuzz target `reader`: a visit that its limit ends among the open claims leaves them in order, or the next
/// one delivers a later event first.
#[test]
fn a_limit_among_open_claims_keeps_their_order() {
    let ring = Ring::new(8);
    let late: Vec<u64> = (0..3).map(|_| ring.die_in_flight()).collect();
    let mut cursor = Cursor::default();
    assert_eq!(ring.visit(&mut cursor), [0; 0]);
    let publish = |n: u64| {
        let at = ring::SLOTS + usize::try_from(n).unwrap() * SLOT_WORDS;
        let first = at + slot::RECORD + nrt_trace_abi::record::DATA_WORD;
        ring.words[first].store(n, Ordering::Relaxed);
        ring.words[first + 1].store(!n, Ordering::Relaxed);
        ring.publish(n);
    };
    publish(late[1]);
    assert_eq!(ring.visit_at_most(&mut cursor, 1), [late[1]]);
    assert_eq!(cursor.pending().collect::<Vec<_>>(), [late[0], late[2]]);
    publish(late[0]);
    publish(late[2]);
    assert_eq!(ring.visit(&mut cursor), [late[0], late[2]]);
}

/// Case R01: a producer that dies inside an emit costs its own event, once a lap one more, and nobody waits.
#[test]
fn r01_a_slot_whose_owner_died_costs_one_event_a_lap() {
    let ring = Ring::new(4);
    let mut cursor = Cursor::default();
    let dead = ring.die_in_flight();
    let mut delivered = Vec::new();
    let mut dropped = 0;
    for tag in 0..40 {
        if ring.push(tag) == Outcome::Dropped(DropCause::InFlight) {
            dropped += 1;
        }
        delivered.extend(ring.visit(&mut cursor));
    }
    assert_eq!(dropped, 10);
    assert_eq!(delivered.len(), 30);
    assert!(cursor.pending().any(|n| n == dead), "it may still come");
    // It comes back to life: its slot is of use again.
    ring.publish(dead);
    let first = ring::SLOTS + slot::RECORD + nrt_trace_abi::record::DATA_WORD;
    ring.words[first + 1].store(!0, Ordering::Relaxed);
    assert_eq!(ring.visit(&mut cursor), [0]);
    (100..104).for_each(|tag| {
        assert!(matches!(ring.push(tag), Outcome::Stored { .. }));
    });
    assert_eq!(ring.visit(&mut cursor), [100, 101, 102, 103]);
    let a = ring.check_account(&cursor);
    assert_eq!(
        (a.dropped_in_flight, a.lost + a.pending, a.overwritten()),
        (10, 10, 0)
    );
}

/// The slot of a claim that was never written still holds the event of the lap before: it is delivered.
#[test]
fn an_event_below_an_unwritten_claim_is_rescued() {
    for laps in 0..4 {
        let ring = Ring::new(4);
        (0..4).for_each(|tag| {
            ring.push(tag);
        });
        // The claim over slot 0 is never written; the others are, for some laps.
        ring.die_claimed();
        for lap in 0..laps {
            (1..4).for_each(|s| {
                ring.push(100 * lap + s);
            });
            ring.die_claimed();
        }
        let got = ring.visit(&mut Cursor::default());
        assert_eq!(got.first(), Some(&0), "{laps} laps: {got:?}");
    }
}

#[test]
fn a_rescue_stops_at_the_limit_and_goes_on_from_there() {
    let ring = Ring::new(4);
    (0..4).for_each(|tag| {
        ring.push(tag);
    });
    for _ in 0..4 * 4 {
        ring.die_claimed();
    }
    let mut cursor = Cursor::default();
    assert_eq!(ring.visit_at_most(&mut cursor, 2), [0, 1]);
    assert_eq!(ring.visit_at_most(&mut cursor, 1), [2]);
    assert_eq!(ring.visit(&mut cursor), [3]);
    assert_eq!(ring.check_account(&cursor).delivered, 4);
}

#[test]
fn a_reader_that_is_far_behind_does_not_count_its_way() {
    let ring = Ring::new(4);
    (0..4).for_each(|tag| {
        ring.push(tag);
    });
    ring.words[ring::TAIL].store(SEQ_MAX, Ordering::Relaxed);
    let mut cursor = Cursor::default();
    assert_eq!(ring.visit_at_most(&mut cursor, 2), [0, 1]);
    // With a look at each claim in between this would take days.
    assert_eq!(ring.visit(&mut cursor), [2, 3]);
}

#[test]
fn only_so_many_events_are_rescued() {
    let most = MAX_RESCUED as u64;
    let ring = Ring::new(most + 76);
    (0..most + 76).for_each(|tag| {
        ring.push(tag);
    });
    ring.words[ring::TAIL].fetch_add(3 * (most + 76), Ordering::Relaxed);
    let mut cursor = Cursor::default();
    ring.visit(&mut cursor);
    assert_eq!(ring.check_account(&cursor).delivered, most);
}

#[test]
fn only_so_many_claims_stay_pending() {
    let ring = Ring::new(4096);
    let open = 2 * crate::MAX_PENDING as u64;
    (0..open).for_each(|_| {
        ring.die_claimed();
    });
    let mut cursor = Cursor::default();
    ring.visit(&mut cursor);
    let a = ring.check_account(&cursor);
    assert_eq!((a.pending, a.lost), (open / 2, open / 2));
    assert_eq!(
        cursor.pending().next(),
        Some(open / 2),
        "the oldest went first"
    );
}

#[test]
fn giving_up_counts_what_could_still_have_been_read() {
    let ring = Ring::new(4);
    (0..10).for_each(|tag| {
        ring.push(tag);
    });
    let mut cursor = Cursor::default();
    let until = ring.reader().begin(&mut cursor).unwrap();
    ring.reader().abandon(&mut cursor, until).unwrap();
    let a = ring.check_account(&cursor);
    assert_eq!((a.delivered, a.abandoned, a.overwritten()), (0, 4, 6));
}

#[test]
fn an_impossible_tail_is_told() {
    let ring = Ring::new(4);
    ring.push(1);
    let mut cursor = Cursor::default();
    ring.visit(&mut cursor);
    ring.words[ring::TAIL].store(0, Ordering::Relaxed);
    assert_eq!(
        ring.reader().claimed(&cursor),
        Err(Impossible::TailWentBack { tail: 0, seen: 1 })
    );
    ring.words[ring::TAIL].store(u64::MAX, Ordering::Relaxed);
    assert_eq!(
        ring.reader().claimed(&cursor),
        Err(Impossible::TailAbsurd { tail: u64::MAX })
    );
}

#[test]
fn claims_beyond_the_last_sequence_number_are_believed_up_to_twice_as_many() {
    let ring = Ring::new(4);
    for (tail, believed) in [(2 * SEQ_MAX, true), (2 * SEQ_MAX + 1, false)] {
        ring.words[ring::TAIL].store(tail, Ordering::Relaxed);
        assert_eq!(ring.reader().claimed(&Cursor::default()).is_ok(), believed);
    }
}

#[test]
fn a_sequence_number_that_does_not_fit_is_dropped_under_its_own_cause() {
    let ring = Ring::new(4);
    ring.words[ring::TAIL].store(SEQ_MAX - 1, Ordering::Relaxed);
    assert!(matches!(ring.push(7), Outcome::Stored { seq: SEQ_MAX, .. }));
    assert_eq!(ring.push(8), Outcome::Dropped(DropCause::Seq));
    let mut cursor = Cursor::restore(SEQ_MAX - 1, [], 0, SEQ_MAX - 1, 0);
    assert_eq!(ring.visit(&mut cursor), [7]);
    let a = ring.check_account(&cursor);
    assert_eq!((a.dropped_seq, a.pending), (1, 0));
}

#[test]
fn a_restored_cursor_is_the_saved_one() {
    let ring = Ring::new(8);
    ring.die_in_flight();
    (1..12).for_each(|tag| {
        ring.push(tag);
    });
    let mut cursor = Cursor::default();
    ring.visit(&mut cursor);
    let saved = Cursor::restore(
        cursor.next(),
        cursor.pending(),
        cursor.delivered(),
        cursor.lost(),
        cursor.abandoned(),
    );
    assert_eq!(ring.check_account(&saved), ring.check_account(&cursor));
    assert_eq!(
        saved.pending().collect::<Vec<_>>(),
        cursor.pending().collect::<Vec<_>>()
    );
}

proptest! {
    /// Every sequential history gives what crossbeam's queue gives, and losses add up.
    #[test]
    fn histories_agree_with_crossbeam(
        cap in prop::sample::select(vec![1usize, 2, 3, 7, 8, 9, 1023, 1024, 1025]),
        steps in prop::collection::vec((0usize..3000, 0usize..1500), 1..12),
    ) {
        let ring = Ring::new(cap as u64);
        let oracle = ArrayQueue::new(cap);
        let mut cursor = Cursor::default();
        let (mut tag, mut lost) = (0, 0);
        for (pushes, reads) in steps {
            for _ in 0..pushes {
                let stored = ring.push(tag);
                prop_assert!(matches!(stored, Outcome::Stored { .. }), "{stored:?}");
                lost += u64::from(oracle.force_push(tag).is_some());
                tag += 1;
            }
            let want: Vec<u64> = (0..reads).map_while(|_| oracle.pop()).collect();
            let got = if reads == 0 { Vec::new() } else { ring.visit_at_most(&mut cursor, reads) };
            prop_assert_eq!(got, want);
        }
        let want: Vec<u64> = std::iter::from_fn(|| oracle.pop()).collect();
        prop_assert_eq!(ring.visit(&mut cursor), want);
        prop_assert_eq!(ring.check_account(&cursor).overwritten(), lost);
    }

    /// A hostile ring: any words at all, changed between visits. No panic, bounded delivery, and the account holds.
    #[test]
    fn any_words_keep_the_account(
        cap in 1u64..9,
        rounds in prop::collection::vec(prop::collection::vec(prop_oneof![0u64..200, any::<u64>()], 200), 1..6),
    ) {
        let ring = Ring::new(cap);
        let mut cursor = Cursor::default();
        let mut open: VecDeque<u64> = VecDeque::new();
        for round in rounds {
            for (word, value) in ring.words.iter().zip(round) {
                word.store(value, Ordering::Relaxed);
            }
            let Ok(until) = ring.reader().begin(&mut cursor) else { continue };
            let mut count = 0u64;
            let progress = ring.reader().read(&mut cursor, until, 1000, &mut |_| count += 1);
            prop_assert!(progress.is_ok());
            prop_assert!(count <= 1000);
            if let Ok(a) = ring.reader().account(&cursor) {
                prop_assert_eq!(a.claimed, a.delivered + a.lost + a.pending + a.unread);
            }
            open.clear();
            open.extend(cursor.pending());
            prop_assert!(open.iter().is_sorted() && open.len() <= crate::MAX_PENDING);
        }
    }
}
