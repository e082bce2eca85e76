//! Emit is safe wherever a program may call it from, and does nothing that a program could notice.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod anywhere;
mod fork_inside;
mod unnoticed;

use nrt_trace_tests::{Document, Ended};

/// The numbers that a program printed on its first line.
fn printed(ended: &Ended) -> Vec<u64> {
    let text = ended.text();
    let line = text.lines().next().expect("a line");
    line.split_whitespace()
        .map(|word| word.parse().unwrap_or_else(|_| panic!("{line}")))
        .collect()
}

/// The numbers of one of the probe's threads, sorted: each at most once.
fn numbers(document: &Document, thread: u64) -> Vec<u64> {
    let mut numbers = nrt_trace_tests::payload::numbers(&document.events)
        .remove(&thread)
        .unwrap_or_default();
    numbers.sort_unstable();
    let count = numbers.len();
    numbers.dedup();
    assert_eq!(numbers.len(), count, "a number came twice");
    numbers
}
