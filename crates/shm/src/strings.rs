//! The daemon's side of a producer's string table.

use std::os::fd::OwnedFd;

use nrt_trace_abi::layout::{StringTableLayout, strings};
use nrt_trace_abi::{ABI_VERSION, SEQ_MAX};
use nrt_trace_ring::strings::StringCursor;

use crate::{ReadMapping, ShmError, memfd};

/// Reads the names that a producer publishes, without trusting any word of its table.
#[derive(Debug)]
pub struct StringReader {
    mapping: ReadMapping,
    cursor: StringCursor,
}

impl StringReader {
    /// Makes an empty table of `bytes` (whole pages of 4,096), and gives the size-sealed descriptor to send to the
    /// producer.
    ///
    /// # Errors
    /// [`ShmError::BadSize`]; out of descriptors, memory or address space.
    pub fn create(bytes: u64) -> Result<(Self, OwnedFd), ShmError> {
        let layout = StringTableLayout::new(bytes).ok_or(ShmError::BadSize { bytes })?;
        let fd = memfd::create("nrt-trace-strings", bytes)?;
        let mut header = [0; strings::TABLE];
        header[strings::MAGIC] = strings::MAGIC_VALUE;
        header[strings::ABI] = u64::from(ABI_VERSION);
        memfd::write_words(&fd, &header)?;
        memfd::seal_size(&fd)?;
        let mapping = ReadMapping::map(&fd, bytes)?;
        Ok((
            Self {
                mapping,
                cursor: StringCursor::new(layout),
            },
            fd,
        ))
    }

    /// Calls `sink(id, bytes, nc)` for each entry published since the last call. The caller checks that the bytes are
    /// UTF-8 and that the id is their hash.
    pub fn poll(&mut self, sink: impl FnMut(u64, &[u8], u64)) {
        self.cursor.poll(self.mapping.words(), sink);
    }

    /// Names that found no room, as the producer counts them; no more than can be counted in earnest.
    #[must_use]
    pub fn full(&self) -> u64 {
        self.mapping.words()[strings::FULL].get().min(SEQ_MAX)
    }

    /// Entries whose span lies outside the table.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.cursor.refused()
    }
}
