//! Trace parts into a format.

use std::io::{self, Write};

use nrt_trace_export::{Format, JsonOptions, JsonWriter, NativeWriter};
use nrt_trace_proto::v1::TracePart;

/// A trace that is being written. Both writers gather large pieces themselves.
#[derive(Debug)]
pub(crate) enum Document<W: Write> {
    Json(Box<JsonWriter<W>>),
    Native(NativeWriter<W>),
}

impl<W: Write> Document<W> {
    /// Begins a document.
    pub(crate) fn new(format: Format, out: W) -> io::Result<Self> {
        match format {
            Format::Json => Ok(Self::Json(Box::new(JsonWriter::new(
                out,
                JsonOptions::default(),
            )))),
            Format::Native => NativeWriter::new(out).map(Self::Native),
            other => {
                let text = format!("this program does not write .{}", other.extension());
                Err(io::Error::new(io::ErrorKind::Unsupported, text))
            }
        }
    }

    /// Appends a part.
    pub(crate) fn part(&mut self, part: &TracePart) -> io::Result<()> {
        match self {
            Self::Json(json) => json.part(part),
            Self::Native(native) => native.part(part),
        }
    }

    /// Completes the document and gives back what it was written to.
    pub(crate) fn finish(self) -> io::Result<W> {
        match self {
            Self::Json(json) => json.finish(),
            Self::Native(native) => native.finish(),
        }
    }
}
