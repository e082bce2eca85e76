//! Reading a native file from front to back.

use std::io::{self, BufReader, Read};

use nrt_trace_proto::v1::TracePart;
use prost::Message as _;
use prost::bytes::{Buf as _, Bytes};
use zstd::bulk::Decompressor;

use super::NativeError;
use super::block::{self, HEADER_BYTES, Label, Next};

/// The parts of a native file, in the order in which they were written. After an error nothing more comes.
pub struct NativeReader<R: Read> {
    input: BufReader<R>,
    frames: Frames,
    /// Parts of the current block.
    parts: Bytes,
    /// Where the current block begins.
    block: u64,
    /// Where the next one does.
    offset: u64,
    done: bool,
}

impl<R: Read> std::fmt::Debug for NativeReader<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NativeReader")
            .field("offset", &self.offset)
            .field("done", &self.done)
            .finish_non_exhaustive()
    }
}

impl<R: Read> NativeReader<R> {
    /// Reads the header.
    ///
    /// # Errors
    /// [`NativeError::Foreign`], [`NativeError::Version`], or of the reader.
    pub fn new(input: R) -> Result<Self, NativeError> {
        let mut input = BufReader::new(input);
        block::read_header(&mut input)?;
        Ok(Self {
            input,
            frames: Frames::new()?,
            parts: Bytes::new(),
            block: HEADER_BYTES,
            offset: HEADER_BYTES,
            done: false,
        })
    }

    fn next_part(&mut self) -> Result<Option<TracePart>, NativeError> {
        loop {
            while self.parts.has_remaining() {
                if let Some(part) = next_of(&mut self.parts, self.block)? {
                    return Ok(Some(part));
                }
            }
            let (next, taken) = block::read_next(&mut self.input, self.offset)?;
            match next {
                Next::End => return Ok(None),
                Next::Unknown => self.offset += taken,
                Next::Block(label) => {
                    self.parts = self.frames.read(&mut self.input, &label, self.offset)?;
                    self.block = self.offset;
                    self.offset += taken + u64::from(label.frame);
                }
            }
        }
    }
}

impl<R: Read> Iterator for NativeReader<R> {
    type Item = Result<TracePart, NativeError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let item = self
            .next_part()
            .map_err(|e| cut_at(self.offset, e))
            .transpose();
        self.done = !matches!(item, Some(Ok(_)));
        item
    }
}

/// End of file in the middle means that the file was cut after the last whole block, at `offset`.
pub(crate) fn cut_at(offset: u64, error: NativeError) -> NativeError {
    match error {
        NativeError::Read(e) if e.kind() == io::ErrorKind::UnexpectedEof => {
            NativeError::Cut { offset }
        }
        other => other,
    }
}

/// The next part; `None` for one of a later protocol.
pub(crate) fn next_of(parts: &mut Bytes, offset: u64) -> Result<Option<TracePart>, NativeError> {
    // Taking the part as its own `Bytes` lets records share the block's memory instead of being copied.
    let damaged = |e: &dyn std::fmt::Display| NativeError::Damaged {
        offset,
        what: format!("a part does not decode: {e}"),
    };
    let size = prost::decode_length_delimiter(&mut *parts).map_err(|e| damaged(&e))?;
    if size > parts.len() {
        return Err(damaged(&"it is longer than its block"));
    }
    let part = TracePart::decode(parts.split_to(size)).map_err(|e| damaged(&e))?;
    Ok(part.part.is_some().then_some(part))
}

/// Decompresses frames.
pub(crate) struct Frames {
    decompressor: Decompressor<'static>,
    frame: Vec<u8>,
}

impl Frames {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            decompressor: Decompressor::new()?,
            frame: Vec::new(),
        })
    }

    /// The parts of the frame that follows its label in `input`.
    pub(crate) fn read(
        &mut self,
        input: &mut impl Read,
        label: &Label,
        offset: u64,
    ) -> Result<Bytes, NativeError> {
        let raw = usize::try_from(label.raw).map_err(io::Error::other)?;
        self.frame.clear();
        // `take` and not a buffer of the label's size: a damaged label costs no more memory than the file has bytes.
        input
            .take(label.frame.into())
            .read_to_end(&mut self.frame)?;
        if self.frame.len() as u64 != u64::from(label.frame) {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        let damaged = |what: String| NativeError::Damaged { offset, what };
        let parts = self
            .decompressor
            .decompress(&self.frame, raw)
            .map_err(|e| damaged(e.to_string()))?;
        if parts.len() != raw {
            return Err(damaged(format!(
                "a frame holds {} bytes where its label says {raw}",
                parts.len()
            )));
        }
        Ok(parts.into())
    }
}

impl std::fmt::Debug for Frames {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Frames").finish_non_exhaustive()
    }
}
