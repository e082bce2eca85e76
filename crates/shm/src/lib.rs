//! Memory, descriptors and threads for the ring: the core's only unsafe code, behind safe types.
//!
//! | module | what | used by |
//! |---|---|---|
//! | [`memfd`] | sealed anonymous files | daemon makes, producer checks |
//! | [`mapping`] | such a file as a slice of atomic words, nothing else | both |
//! | [`rings`] | a segment's rings, ready to be written | producer |
//! | [`socket`] | packets with descriptors, peer credentials, pidfds | both |
//! | [`clock`] | the three clocks, the time stamp counter and its calibration | both |
//! | [`control`] | writing a control page | daemon |
//! | [`strings`] | reading a string table | daemon |
//! | [`page`] | a page of the program's own that the kernel wipes on fork, or that a file is mapped over | producer |
//! | [`per_process`] | a value that a process makes once, and a forked child anew | producer |
//! | [`threads`] | one word per thread that says "inside an emit" | producer |
//! | [`publish`] | a pointer that is freed when no thread is inside any more | producer |
//! | [`inherited`] | mappings that a forked child must not write | producer |
//! | [`distant`] | descriptors out of the program's way | producer |
//! | [`process`] | signal masks, fork handlers | producer |
//! | [`schedule`] | a thread that has to be punctual | daemon |
//! | [`manager`] | what the service manager handed over, and is told | daemon |
//! | [`adopt`] | sockets among it, checked | daemon |
//!
//! A mapping is a slice of 64-bit atomic words and nothing else: no byte slices, no references to structs, no mixed
//! sizes. What an untrusted process writes there is then always a defined value, and the protocol code needs no
//! unsafe at all.

#![expect(
    unsafe_code,
    reason = "the one crate of the core that maps memory and talks to the kernel"
)]

pub mod adopt;
#[cfg(test)]
mod child;
pub mod clock;
pub mod control;
pub mod distant;
mod error;
pub mod inherited;
pub mod manager;
pub mod mapping;
pub mod memfd;
pub mod page;
pub mod per_process;
pub mod process;
pub mod publish;
pub mod rings;
pub mod schedule;
pub mod socket;
pub mod strings;
pub mod threads;

pub use error::ShmError;
pub use mapping::{PrivateMapping, ReadMapping, ReadWord, WriteMapping};
