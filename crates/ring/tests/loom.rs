//! Model checks of the ring: every schedule, and every value that the orderings allow a load to give, up to the bound.
//!
//! Run with `RUSTFLAGS="--cfg loom" cargo test --release -p nrt-trace-ring --test loom`.
//!
//! A model that passes may have explored nothing, so each one keeps a census: the exact set of outcomes that its
//! executions had, and that there was more than one execution. `.ci/mutants` weakens each ordering, turns each
//! comparison and removes each re-check, and expects some model or test to fail.

#![cfg(loom)]
#![expect(clippy::unwrap_used, reason = "helpers of tests")]
#![expect(
    unsafe_code,
    reason = "loom's race detector works on cells, which are not Sync by themselves"
)]

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering as StdOrdering};
use std::sync::{Arc as StdArc, Mutex};

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
use nrt_trace_abi::geometry::Geometry;
use nrt_trace_abi::layout::{SLOT_WORDS, StringTableLayout, ring, strings};
use nrt_trace_abi::record::Draft;
use nrt_trace_abi::stamp;
use nrt_trace_ring::strings::{StringCursor, append};
use nrt_trace_ring::{AtomicU64, Cursor, Ordering, Outcome, Producer, Reader};

/// Runs `body` under the checker and returns the outcomes that its executions reported.
fn census(
    preemptions: usize,
    body: impl Fn() -> String + Send + Sync + 'static,
) -> BTreeSet<String> {
    let outcomes = StdArc::new(Mutex::new(BTreeSet::new()));
    let executions = StdArc::new(AtomicUsize::new(0));
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    let (seen, count) = (StdArc::clone(&outcomes), StdArc::clone(&executions));
    builder.check(move || {
        let outcome = body();
        count.fetch_add(1, StdOrdering::Relaxed);
        seen.lock().unwrap().insert(outcome);
    });
    let executions = executions.load(StdOrdering::Relaxed);
    assert!(executions > 1, "one schedule only");
    println!("{executions} executions");
    let outcomes = outcomes.lock().unwrap();
    outcomes.clone()
}

fn expect(outcomes: &BTreeSet<String>, want: &[&str]) {
    let want: BTreeSet<String> = want.iter().map(|&outcome| outcome.to_owned()).collect();
    assert_eq!(*outcomes, want);
}

struct Ring {
    words: Vec<AtomicU64>,
    geometry: Geometry,
    /// Written whenever the payload of the slot is, under loom's race detector.
    cells: Vec<UnsafeCell<()>>,
}

// SAFETY: the cells hold nothing, and nobody follows the pointers that they give out.
unsafe impl Sync for Ring {}

impl Ring {
    /// A ring of `cap` slots after `laps` quiet laps, so that old payload lies in every slot.
    fn new(cap: u64, laps: u64) -> Arc<Self> {
        let geometry = Geometry::new(cap).unwrap();
        let words = (0..ring::words(cap)).map(|_| AtomicU64::new(0)).collect();
        let cells = (0..cap).map(|_| UnsafeCell::new(())).collect();
        let ring = Self {
            words,
            geometry,
            cells,
        };
        for _ in 0..cap * laps {
            ring.push(0);
        }
        Arc::new(ring)
    }

    /// Pushes an event with payload `tag`, and tells what became of it: `+3` (its number) or `-`.
    fn push(&self, tag: u64) -> String {
        let producer = Producer::new(&self.words, self.geometry)
            .unwrap()
            .watched(&self.cells);
        let draft = Draft {
            data: [tag, 0, 0, 0, 0],
            ..Draft::default()
        };
        match producer.push(|seq| draft.finish(seq)) {
            Outcome::Stored { seq, .. } => format!("+{seq}"),
            Outcome::Dropped(_) => "-".to_owned(),
        }
    }

    fn reader(&self) -> Reader<'_, AtomicU64> {
        Reader::new(&self.words, self.geometry).unwrap()
    }

    /// One visit: `number:tag` of what was delivered. Asserts order, no double delivery, and the account.
    fn visit(&self, cursor: &mut Cursor, got: &mut Vec<(u64, u64)>) {
        let until = self.reader().begin(cursor).unwrap();
        let before = got.clone();
        let _progress = self
            .reader()
            .read(cursor, until, usize::MAX, &mut |record| {
                let event = (record.seq(), record.data()[0]);
                assert!(!before.contains(&event), "delivered twice (I3)");
                got.push(event);
            })
            .unwrap();
        assert!(got[before.len()..].is_sorted(), "out of order: {got:?}");
        let a = self.reader().account(cursor).unwrap();
        assert_eq!(a.claimed, a.delivered + a.lost + a.pending + a.unread, "I4");
        assert_eq!(a.delivered, got.len() as u64);
    }
}

fn list(events: &[(u64, u64)]) -> String {
    events
        .iter()
        .map(|(seq, tag)| format!("{seq}:{tag}"))
        .collect::<Vec<_>>()
        .join(",")
}

/// A reader beside a producer on a fresh slot: the event whole, or not yet.
#[test]
fn publish_is_seen_whole_or_not_at_all() {
    let outcomes = census(3, || {
        let ring = Ring::new(2, 0);
        let producer = thread::spawn({
            let ring = Arc::clone(&ring);
            move || ring.push(7)
        });
        let reader = thread::spawn({
            let ring = Arc::clone(&ring);
            move || {
                let mut got = Vec::new();
                ring.visit(&mut Cursor::default(), &mut got);
                list(&got)
            }
        });
        format!("{} {}", producer.join().unwrap(), reader.join().unwrap())
    });
    expect(&outcomes, &["+1 ", "+1 1:7"]);
}

/// A reader beside a producer that overwrites what it reads: the old event, the new one, or neither, never a mixture.
#[test]
fn a_reader_that_is_overwritten_takes_no_mixture() {
    let outcomes = census(3, || {
        let ring = Ring::new(1, 1);
        let producer = thread::spawn({
            let ring = Arc::clone(&ring);
            move || ring.push(7)
        });
        let reader = thread::spawn({
            let ring = Arc::clone(&ring);
            move || {
                let (mut got, mut cursor) = (Vec::new(), Cursor::default());
                ring.visit(&mut cursor, &mut got);
                format!("{} of {}", list(&got), cursor.next())
            }
        });
        format!("{} {}", producer.join().unwrap(), reader.join().unwrap())
    });
    // "1:0 of 2": the slot still held the first, the second is pending. "1:0,2:7": the second came between two looks.
    expect(
        &outcomes,
        &[
            "+2  of 1",
            "+2 1:0 of 1",
            "+2  of 2",
            "+2 1:0 of 2",
            "+2 1:0,2:7 of 2",
            "+2 2:7 of 2",
        ],
    );
}

/// Two producers on one slot, a lap apart: numbers differ, at most one gives up, and what is left is one of the two.
#[test]
fn producers_a_lap_apart_do_not_mix() {
    let outcomes = census(3, || {
        let ring = Ring::new(1, 0);
        let pushes = [7, 8].map(|tag| {
            thread::spawn({
                let ring = Arc::clone(&ring);
                move || (tag, ring.push(tag))
            })
        });
        let results = pushes.map(|push| push.join().unwrap());
        let (mut got, mut cursor) = (Vec::new(), Cursor::default());
        ring.visit(&mut cursor, &mut got);
        // What was delivered is what one of them stored, under that one's number.
        for (seq, tag) in &got {
            assert!(
                results.contains(&(*tag, format!("+{seq}"))),
                "{got:?} of {results:?}"
            );
        }
        let a = ring.reader().account(&cursor).unwrap();
        let mut told = results.map(|(_, told)| told);
        told.sort();
        assert_eq!(
            a.dropped(),
            told.iter().filter(|told| *told == "-").count() as u64
        );
        let numbers: Vec<_> = got.iter().map(|(seq, _)| seq).collect();
        format!(
            "{} {numbers:?} lost {} pending {}",
            told.join(" "),
            a.lost,
            a.pending
        )
    });
    expect(
        &outcomes,
        &[
            "+1 +2 [2] lost 1 pending 0",
            // The first was slow by a lap.
            "+2 - [2] lost 1 pending 0",
            // The second found the first inside.
            "+1 - [1] lost 0 pending 1",
        ],
    );
}

/// A claim that nobody follows up lies between two others of the slot: whoever comes after the hole still writes after
/// whoever was before it, although the stamp is not the one that was to be expected.
#[test]
fn a_hole_does_not_lose_the_order() {
    let outcomes = census(3, || {
        let ring = Ring::new(1, 0);
        let first = thread::spawn({
            let ring = Arc::clone(&ring);
            move || ring.push(7)
        });
        let second = thread::spawn({
            let ring = Arc::clone(&ring);
            move || {
                ring.words[ring::TAIL].fetch_add(1, Ordering::Relaxed);
                ring.push(8)
            }
        });
        format!("{} {}", first.join().unwrap(), second.join().unwrap())
    });
    expect(
        &outcomes,
        &[
            "+1 +3", "+1 -", "- +3", "+2 +3", "+2 -", "+3 +2", "+3 -", "- +2",
        ],
    );
}

/// Two producers on two slots and a reader that comes twice: everything is delivered once, late events by the second
/// visit.
#[test]
fn every_event_is_delivered_once() {
    let outcomes = census(2, || {
        let ring = Ring::new(2, 0);
        let pushes = [7, 8].map(|tag| {
            thread::spawn({
                let ring = Arc::clone(&ring);
                move || ring.push(tag)
            })
        });
        let (mut got, mut cursor) = (Vec::new(), Cursor::default());
        ring.visit(&mut cursor, &mut got);
        let early = got.len();
        for push in pushes {
            push.join().unwrap();
        }
        ring.visit(&mut cursor, &mut got);
        let numbers: Vec<_> = got.iter().map(|(seq, _)| seq).collect();
        format!("{:?} then {:?}", &numbers[..early], &numbers[early..])
    });
    expect(
        &outcomes,
        &[
            "[] then [1, 2]",
            "[1] then [2]",
            "[2] then [1]",
            "[1, 2] then []",
        ],
    );
}

/// A producer that stops for ever at each of its steps, another that comes a lap later, and a reader after them: nobody
/// waits, nothing is torn, and the account holds.
#[test]
fn a_producer_that_stops_anywhere_costs_its_own_event() {
    for step in 0..4 {
        let outcomes = census(3, move || {
            let ring = Ring::new(1, 0);
            let dead = thread::spawn({
                let ring = Arc::clone(&ring);
                move || stop_at(&ring, step)
            });
            let alive = thread::spawn({
                let ring = Arc::clone(&ring);
                move || ring.push(7)
            });
            dead.join().unwrap();
            let pushed = alive.join().unwrap();
            let (mut got, mut cursor) = (Vec::new(), Cursor::default());
            ring.visit(&mut cursor, &mut got);
            let a = ring.reader().account(&cursor).unwrap();
            format!(
                "{pushed} [{}] lost {} pending {}",
                list(&got),
                a.lost,
                a.pending
            )
        });
        match step {
            // Claimed only: the slot is free for either.
            0 => expect(
                &outcomes,
                &["+2 [2:7] lost 1 pending 0", "+1 [1:7] lost 0 pending 1"],
            ),
            // In flight, with and without some of the payload: the live one gives up, or was there first and is
            // overwritten by the dead one, or the dead one gave up itself.
            _ => expect(
                &outcomes,
                &[
                    "+2 [2:7] lost 1 pending 0",
                    "- [] lost 0 pending 2",
                    "+1 [] lost 1 pending 1",
                    "- [] lost 1 pending 1",
                    "+1 [1:7] lost 0 pending 1",
                ],
            ),
        }
    }
}

/// The first steps of a push, and no more.
fn stop_at(ring: &Ring, step: usize) {
    let n = ring.words[ring::TAIL].fetch_add(1, Ordering::Relaxed);
    let place = ring.geometry.place(n);
    let stamp_word = &ring.words[ring::SLOTS];
    if step == 0 {
        return;
    }
    let seen = stamp_word.load(Ordering::Acquire);
    if seen & stamp::IN_FLIGHT != 0 || seen > place.index {
        return;
    }
    let in_flight = stamp::in_flight(place.index);
    if stamp_word
        .compare_exchange(seen, in_flight, Ordering::Relaxed, Ordering::Relaxed)
        .is_err()
    {
        return;
    }
    loom::sync::atomic::fence(Ordering::Release);
    for word in 0..step - 1 {
        ring.words[ring::SLOTS + SLOT_WORDS - 1 - word].store(13, Ordering::Relaxed);
    }
}

/// A drop is never counted before its claim is: what was delivered and what was dropped are different claims, and there
/// are no more of them than were claimed.
#[test]
fn a_drop_comes_with_its_claim() {
    let outcomes = census(2, || {
        let ring = Ring::new(1, 0);
        let pushes = [7, 8].map(|tag| {
            thread::spawn({
                let ring = Arc::clone(&ring);
                move || {
                    ring.push(tag);
                }
            })
        });
        let reader = thread::spawn({
            let ring = Arc::clone(&ring);
            move || {
                let (mut got, mut cursor) = (Vec::new(), Cursor::default());
                ring.visit(&mut cursor, &mut got);
                let a = ring.reader().account(&cursor).unwrap();
                assert!(a.delivered + a.dropped() <= a.claimed, "{a:?}");
                format!("{} and {} of {}", a.delivered, a.dropped(), a.claimed)
            }
        });
        let seen = reader.join().unwrap();
        for push in pushes {
            push.join().unwrap();
        }
        seen
    });
    // "0 and 1 of 1": the first claim was dropped because a later lap had the slot, and the later claim is not seen yet.
    expect(
        &outcomes,
        &[
            "0 and 0 of 0",
            "0 and 0 of 1",
            "0 and 0 of 2",
            "0 and 1 of 1",
            "0 and 1 of 2",
            "1 and 0 of 1",
            "1 and 0 of 2",
            "1 and 1 of 2",
            "2 and 0 of 2",
        ],
    );
}

/// A name is read whole or not at all.
#[test]
fn a_name_is_seen_whole_or_not_at_all() {
    let outcomes = census(3, || {
        let layout = StringTableLayout::new(4096).unwrap();
        // Only the words that are touched: the entries and the first bytes.
        let words = (0..layout.bytes_word + 4)
            .map(|_| AtomicU64::new(0))
            .collect::<Vec<_>>();
        let table = Arc::new(words);
        let writer = thread::spawn({
            let table = Arc::clone(&table);
            move || append(&table, &layout, 9, b"name", 3).unwrap()
        });
        let reader = thread::spawn({
            let table = Arc::clone(&table);
            move || {
                let mut got = String::new();
                StringCursor::new(layout).poll(&table[..], |id, bytes, nc| {
                    got = format!("{id} {} {nc}", String::from_utf8_lossy(bytes));
                });
                got
            }
        });
        writer.join().unwrap();
        assert_eq!(table[strings::FULL].load(Ordering::Relaxed), 0);
        reader.join().unwrap()
    });
    expect(&outcomes, &["", "9 name 3"]);
}
