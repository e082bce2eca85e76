//! Writing a native file.

use std::io::{self, Write};

use nrt_trace_abi::record::{RECORD_BYTES, Record};
use nrt_trace_proto::v1::{TracePart, trace_part::Part};
use prost::Message as _;
use zstd::bulk::Compressor;
use zstd::zstd_safe::CParameter;

use super::block::{self, BLOCK_BYTES, BLOCK_BYTES_MAX, Content, Label, RingLabel};

/// On records, levels 3 to -2 take the same time (300 ns an event) and space (12 bytes an event); below that it grows.
const LEVEL: i32 = 1;

/// Writes parts as a native file ([format](super)).
pub struct NativeWriter<W: Write> {
    writer: W,
    compressor: Compressor<'static>,
    /// Parts of the block that is being filled.
    parts: Vec<u8>,
    content: Content,
    frame: Vec<u8>,
    written: u64,
}

impl<W: Write> std::fmt::Debug for NativeWriter<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NativeWriter")
            .field("written", &self.written)
            .field("content", &self.content)
            .finish()
    }
}

impl<W: Write> NativeWriter<W> {
    /// Begins a file: writes the header.
    ///
    /// # Errors
    /// Of the writer.
    pub fn new(mut writer: W) -> io::Result<Self> {
        let header = block::header();
        writer.write_all(&header)?;
        let mut compressor = Compressor::new(LEVEL)?;
        compressor.set_parameter(CParameter::ChecksumFlag(true))?;
        let (parts, frame) = (Vec::with_capacity(BLOCK_BYTES), Vec::new());
        Ok(Self {
            writer,
            compressor,
            parts,
            content: Content::General,
            frame,
            written: header.len() as u64,
        })
    }

    /// Takes the next part. It reaches the file when its block is full or flushed.
    ///
    /// # Errors
    /// Of the writer; [`io::ErrorKind::InvalidInput`] for a part larger than 64 MiB.
    pub fn part(&mut self, part: &TracePart) -> io::Result<()> {
        let size = part.encoded_len();
        if size > BLOCK_BYTES_MAX {
            let message = format!("a trace part of {size} bytes is larger than {BLOCK_BYTES_MAX}");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let ring = match &part.part {
            Some(Part::Records(records)) => Some((records.producer_id, records.nc_idx)),
            Some(Part::Correlations(correlations)) => {
                Some((correlations.producer_id, correlations.nc_idx))
            }
            _ => None,
        };
        let same = match (self.content, ring) {
            (Content::General, None) => true,
            (Content::Ring(label), Some(key)) => label.key == key,
            _ => false,
        };
        if !same || self.parts.len() + size > BLOCK_BYTES {
            self.flush_frame()?;
            self.content = ring.map_or(Content::General, |key| Content::Ring(RingLabel::new(key)));
        }
        if let (Content::Ring(label), Some(Part::Records(records))) =
            (&mut self.content, &part.part)
        {
            for bytes in records.packed.as_chunks::<RECORD_BYTES>().0 {
                label.add(Record::from_bytes(bytes).seq());
            }
        }
        part.encode_length_delimited(&mut self.parts)
            .map_err(io::Error::other)
    }

    /// Writes the block that has been begun, if any: a file that is cut later reads up to here.
    ///
    /// # Errors
    /// Of the writer.
    pub fn flush_frame(&mut self) -> io::Result<()> {
        if self.parts.is_empty() {
            return Ok(());
        }
        self.frame.clear();
        self.frame
            .reserve(zstd::zstd_safe::compress_bound(self.parts.len()));
        self.compressor
            .compress_to_buffer(&self.parts, &mut self.frame)?;
        let bytes = |n: usize| u32::try_from(n).map_err(io::Error::other);
        let label = Label {
            content: self.content,
            frame: bytes(self.frame.len())?,
            raw: bytes(self.parts.len())?,
        };
        let label = label.to_bytes();
        self.writer.write_all(&label)?;
        self.writer.write_all(&self.frame)?;
        self.written += (label.len() + self.frame.len()) as u64;
        self.parts.clear();
        // A ring's next block counts its own records.
        if let Content::Ring(label) = &mut self.content {
            *label = RingLabel::new(label.key);
        }
        Ok(())
    }

    /// Forgets what was written behind the first `bytes`, which is what [`Self::bytes_written`] was right after a
    /// [`Self::flush_frame`]. What is behind in the writer is to be cut off, or is overwritten.
    ///
    /// # Errors
    /// Of the writer.
    pub fn rewind_to(&mut self, bytes: u64) -> io::Result<()>
    where
        W: io::Seek,
    {
        self.parts.clear();
        self.content = Content::General;
        self.writer.seek(io::SeekFrom::Start(bytes))?;
        self.written = bytes;
        Ok(())
    }

    /// Bytes written so far, without the block that is being filled.
    pub const fn bytes_written(&self) -> u64 {
        self.written
    }

    /// The writer underneath, for a sync after [`NativeWriter::flush_frame`]. What is written to it breaks the file.
    pub const fn get_mut(&mut self) -> &mut W {
        &mut self.writer
    }

    /// Writes what is left and the end mark, and gives the writer back, flushed.
    ///
    /// # Errors
    /// Of the writer.
    pub fn finish(mut self) -> io::Result<W> {
        self.flush_frame()?;
        self.writer.write_all(&block::end())?;
        self.writer.flush()?;
        Ok(self.writer)
    }
}
