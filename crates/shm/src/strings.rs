//! The daemon's side of a producer's string table.

use std::os::fd::{AsFd, OwnedFd};

use nrt_trace_abi::layout::{StringTableLayout, strings};
use nrt_trace_abi::{ABI_VERSION, SEQ_MAX};
use nrt_trace_ring::strings::StringCursor;

use crate::{ReadMapping, ShmError, memfd};

/// Reads the names that a producer publishes, without trusting any word of its table.
#[derive(Debug)]
pub struct StringReader {
    mapping: ReadMapping,
    layout: StringTableLayout,
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
                layout,
                cursor: StringCursor::new(layout),
            },
            fd,
        ))
    }

    /// Reads a table that an earlier daemon made, from its first name on. Nothing of it is believed but its size.
    ///
    /// # Errors
    /// Another size or unsealed ([`memfd::check`]), [`ShmError::BadSize`]; out of address space.
    pub fn adopt(fd: impl AsFd, bytes: u64) -> Result<Self, ShmError> {
        let layout = StringTableLayout::new(bytes).ok_or(ShmError::BadSize { bytes })?;
        memfd::check(&fd, bytes)?;
        Ok(Self {
            mapping: ReadMapping::map(&fd, bytes)?,
            layout,
            cursor: StringCursor::new(layout),
        })
    }

    /// Calls `sink(id, bytes, nc)` for each entry published since the last call. The caller checks that the bytes are
    /// UTF-8 and that the id is their hash.
    pub fn poll(&mut self, sink: impl FnMut(u64, &[u8], u64)) {
        self.cursor.poll(self.mapping.words(), sink);
    }

    /// Calls `sink(id, bytes, nc)` for each entry that is published, whether [`StringReader::poll`] told of it or not.
    pub fn all(&self, sink: impl FnMut(u64, &[u8], u64)) {
        let mut cursor = StringCursor::new(self.layout);
        cursor.poll(self.mapping.words(), sink);
    }

    /// Entries that the producer claimed, as it says.
    #[must_use]
    pub fn entries(&self) -> u64 {
        self.mapping.words()[strings::ENTRIES].get()
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
