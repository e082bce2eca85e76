//! The native trace file, `.nrtt`: every part of a trace, lossless.
//!
//! ```text
//!  ┌────────┬───────┬──────────────┬───────┬──────────────┬─   ─┬───────┐
//!  │ header │ label │ zstd frame   │ label │ zstd frame   │  …  │ end   │
//!  └────────┴───────┴──────────────┴───────┴──────────────┴─   ─┴───────┘
//!   a block = label + frame:
//!     frame  length-delimited TraceParts of one kind, at most about 1 MiB of them, with zstd's checksum
//!     label  what is in the frame: see below
//! ```
//!
//! Header, labels and end mark are zstd *skippable frames*, so the whole file is a valid zstd stream: `zstd -dc` gives
//! the length-delimited messages of `nrt/trace/v1/trace.proto` and nothing else, for anybody's protobuf reader.
//!
//! All numbers are little-endian:
//!
//! ```text
//!  skippable frame   u32 0x184D2A57   u32 bytes that follow
//!  header            u32 0            u32 version (1)      8 bytes "NRTTRACE"
//!  label             u32 1 (general)  u32 frame bytes      u32 bytes of parts   u32 check
//!  label             u32 2 (ring)     u32 frame bytes      u32 bytes of parts   u32 producer_id   u32 nc_idx
//!                    u32 records      u64 lowest seq       u64 highest seq      u32 1 if seqs ascend, else 0
//!                    u32 check
//!  end               u32 3
//! ```
//!
//! `check` is FNV-1a over the label's words before it, from the kind on. A *ring* block holds the records and correlations of one ring, a *general* block everything else. That is what
//! makes a long recording cheap to put in order ([`Spool`]): reading the general blocks and the labels of the others
//! is enough to know where each ring's events are and whether any came late.
//!
//! A block is written in one go when it is full, when the kind changes, or on [`NativeWriter::flush_frame`]. A file that
//! was cut anywhere reads up to the last whole block; then [`NativeError::Cut`] says so, also if the cut fell between
//! two blocks, because the end mark is missing. Frames of a later kind and parts of a later protocol are skipped.

mod ahead;
mod block;
mod reader;
mod regroup;
mod spool;
mod writer;

use std::io;

pub use self::reader::NativeReader;
pub use self::spool::Spool;
pub use self::writer::NativeWriter;

/// What keeps a native file from being read on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NativeError {
    /// Not a native trace file.
    #[error("this is not a native trace file (.nrtt)")]
    Foreign,
    /// Written by a later version.
    #[error(
        "the file has format version {found}; this program reads version {}",
        block::VERSION
    )]
    Version {
        /// Its version.
        found: u32,
    },
    /// The file ends in the middle: whoever wrote it did not get to its end. What stands before is sound.
    #[error("the file is cut after byte {offset}: what was recorded later is missing")]
    Cut {
        /// Where the last whole block ends.
        offset: u64,
    },
    /// Bytes that no writer wrote.
    #[error("the file is damaged at byte {offset}: {what}")]
    Damaged {
        /// Where the block begins.
        offset: u64,
        /// What is wrong with it.
        what: String,
    },
    /// The file could not be read.
    #[error("the file cannot be read")]
    Read(#[from] io::Error),
}

impl From<NativeError> for io::Error {
    fn from(error: NativeError) -> Self {
        match error {
            NativeError::Read(error) => error,
            NativeError::Cut { .. } => Self::new(io::ErrorKind::UnexpectedEof, error),
            _ => Self::new(io::ErrorKind::InvalidData, error),
        }
    }
}

#[cfg(test)]
mod tests;
