//! Trace parts into a format.

use std::io;

use nrt_trace_export::{ChromeWriter, CsvWriter, Format, JsonWriter, NativeWriter, PftraceWriter};
use nrt_trace_proto::v1::TracePart;

use super::split::Split;
use super::target::{Opened, Sink, Target};

/// A trace that is being written. The writers gather large pieces themselves.
#[derive(Debug)]
pub(crate) enum Document {
    Json(Box<JsonWriter<Sink>>),
    Native(Box<NativeWriter<Sink>>),
    Split(Box<Split>),
    Pftrace(Box<PftraceWriter<Sink>>),
    Chrome(Box<ChromeWriter<Sink>>),
    Csv(Box<CsvWriter<Sink>>),
}

impl Document {
    /// Begins a document at what was opened of `target`.
    pub(crate) fn new(target: &Target, opened: Opened) -> io::Result<Self> {
        match (target.format(), opened) {
            (Format::Json, Opened::One(sink)) => {
                let writer = JsonWriter::new(sink, target.json_options());
                Ok(Self::Json(Box::new(writer)))
            }
            (Format::Json, Opened::Each(place)) => {
                let split = Split::new(place, target.json_options());
                Ok(Self::Split(Box::new(split)))
            }
            (Format::Native, Opened::One(sink)) => {
                Ok(Self::Native(Box::new(NativeWriter::new(sink)?)))
            }
            (Format::Pftrace, Opened::One(sink)) => {
                let writer = PftraceWriter::new(sink, target.pftrace_options())?;
                Ok(Self::Pftrace(Box::new(writer)))
            }
            (Format::Chrome, Opened::One(sink)) => {
                Ok(Self::Chrome(Box::new(ChromeWriter::new(sink))))
            }
            (Format::Csv, Opened::One(sink)) => Ok(Self::Csv(Box::new(CsvWriter::new(sink)))),
            (other, _) => {
                let text = format!("this program does not write .{} so", other.extension());
                Err(io::Error::new(io::ErrorKind::Unsupported, text))
            }
        }
    }

    /// Appends a part.
    pub(crate) fn part(&mut self, part: &TracePart) -> io::Result<()> {
        match self {
            Self::Json(json) => json.part(part),
            Self::Native(native) => native.part(part),
            Self::Split(split) => split.part(part),
            Self::Pftrace(pftrace) => pftrace.part(part),
            Self::Chrome(chrome) => chrome.part(part),
            Self::Csv(csv) => csv.part(part),
        }
    }

    /// Completes the document, to be put in its place by [`Complete::finish`].
    pub(crate) fn complete(self) -> io::Result<Complete> {
        Ok(Complete(match self {
            Self::Json(json) => vec![json.finish()?],
            Self::Native(native) => vec![native.finish()?],
            Self::Split(split) => split.finish()?,
            Self::Pftrace(pftrace) => vec![pftrace.finish()?],
            Self::Chrome(chrome) => vec![chrome.finish()?],
            Self::Csv(csv) => vec![csv.finish()?],
        }))
    }
}

/// Whole files that have no names yet.
#[derive(Debug)]
pub(crate) struct Complete(Vec<Sink>);

impl Complete {
    /// Puts everything where it belongs, see [`Sink::finish`].
    pub(crate) fn finish(self) -> io::Result<()> {
        self.0.into_iter().try_for_each(Sink::finish)
    }
}
