//! The words that producers and the daemon share: record, segment, control page, string table, socket messages.
//!
//! This crate holds numbers and pure functions only: no IO, no memory mapping, no unsafe code. Whoever maps the
//! memory sees it as a slice of 64-bit atomic words ([`layout`] gives every offset as a word index), so that the
//! same protocol code runs over a mapping, over a heap array in a test, and under a model checker.
//!
//! | module | what |
//! |---|---|
//! | [`record`] | the 112-byte event record, as 14 words |
//! | [`layout`] | control page, segment, ring, string table: word offsets, field ownership, invariants |
//! | [`stamp`] | a slot's stamp word: index, lap, in-flight bit |
//! | [`gate`] | a NeuronCore's gate word: enabled types and run generation |
//! | [`geometry`] | capacity arithmetic: claim number to index and slot |
//! | [`clock`] | time stamp counter to nanoseconds |
//! | [`message`] | the producer socket's packets |
//! | [`host_stats`] | the host monitor's ticks on that socket |

#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]
#![expect(
    non_ascii_idents,
    reason = "zerocopy's derives name their hidden items so"
)]

pub mod clock;
pub mod gate;
pub mod geometry;
pub mod host_stats;
pub mod layout;
pub mod message;
pub mod record;
pub mod stamp;

/// Version of everything in this crate. A daemon and a library with different versions refuse each other by name.
pub const ABI_VERSION: u16 = 2;

/// NeuronCore contexts per process.
pub const MAX_NCS: usize = 256;

/// Event types, valued `0..EVENT_TYPES`.
pub const EVENT_TYPES: u32 = 46;

/// Bits of a per-NC sequence number, and of every id that is made from one.
pub const SEQ_BITS: u32 = 50;

/// The largest sequence number that an event can carry.
pub const SEQ_MAX: u64 = (1 << SEQ_BITS) - 1;
