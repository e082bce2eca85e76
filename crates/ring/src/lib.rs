//! The overwrite ring: claim, publish, passive read, exact loss account.
//!
//! Producers and a reader that may all be stopped or killed at any instruction share a ring of stamped slots
//! ([`nrt_trace_abi::layout`] draws it). Everything here works on plain slices of atomic words: over a mapping that
//! another process writes, over a heap array in a test, and over loom's atomics under a model checker.
//!
//! # Why not a known queue
//!
//! Index and stamps are those of crossbeam's `ArrayQueue`. What can't be taken over is that an actor which moved head
//! or tail and then dies leaves a slot on which every later visitor spins for ever. Two changes mend it:
//!
//! 1. **The slot says that it is being written** (the stamp's in-flight bit), so a producer that meets such a slot
//!    gives up at once and counts a drop: no step of anybody waits for anybody ([`producer`]).
//! 2. **The reader is passive.** It never writes shared memory. It keeps a [`Cursor`] of its own, copies a slot between
//!    two equal looks at its stamp, and computes losses from claim numbers ([`reader`]).
//!
//! # Orderings
//!
//! | pair | release side | acquire side | without it |
//! |---|---|---|---|
//! | SYNC(publish) | producer: store of the published stamp | reader: first load of the stamp | a reader copies words that are not written yet |
//! | SYNC(overwrite) | producer: fence after the in-flight CAS | reader: fence before the second look | a reader takes words of the next event and sees the old stamp |
//! | SYNC(reuse) | producer: store of the published stamp | next producer: load of the stamp | the new payload may end up below the old one |
//! | SYNC(drop) | producer: increment of a drop counter | reader: load, before the tail | a drop is counted before the claim that it belongs to is seen |
//! | SYNC(string) | interner: store of the entry's id | reader: load of the id | a reader takes bytes that are not written yet |
//!
//! `tail` is Relaxed on both sides: it hands out numbers and orders nothing.

#![forbid(unsafe_code)]

mod account;
mod cursor;
pub mod producer;
pub mod reader;
pub mod step;
pub mod strings;
mod sync;

pub use account::Account;
pub use cursor::{Cursor, MAX_PENDING};
pub use producer::{DropCause, Outcome, Producer};
pub use reader::{Impossible, Progress, Reader};
pub use sync::{AtomicU64, LoadWord, Ordering};
