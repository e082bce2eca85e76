//! Perfetto's trace format, to be opened at ui.perfetto.dev or with Trace Processor.
//!
//! | of the trace | in the file |
//! |---|---|
//! | a start and its stop | a slice, both packets written when the stop has come, with all annotations at its begin |
//! | spans that overlap | lanes: tracks of one name, on each of which slices are disjoint or nested |
//! | an instant | an instant |
//! | a start without a stop | at the end of its ring: a slice without an end (the newest 256); else an instant. On a track of its own, annotated `unmatched` |
//! | a stop without a start, or before it | an instant there, annotated the same |
//! | a payload | debug annotations under the JSON document's keys; what the stop says differently as `stop_KEY` |
//! | an execution | a flow from the `nrt_execute` around it to its hardware events |
//! | copies to and from a NeuronCore's memory | two counters, bytes per second |
//! | missing sequence numbers | a slice from the event before to the event after, with their count |
//! | a ring's account, if anything was lost | an instant at its end |
//! | the host monitor | counters of a group of their own |
//! | the clocks | snapshots at start, end and steps; the trace's clock is REALTIME, so that times are the document's |
//!
//! There is one packet sequence for each ring, and one for everything else. Each tells its texts and tracks anew every
//! 16,384 packets: a file that was cut in front reads from there on, and one that was cut behind reads up to there.
//!
//! Memory: that of the timeline, the tracks, and of one ring 65,536 changes of the rate of copies, whatever the trace holds.

mod field;
mod group;
mod host;
mod output;
mod rates;
mod ring;
mod stage;
mod tracks;
mod wire;

use std::fmt;
use std::io::{self, Write};

use nrt_trace_proto::v1::TracePart;

pub use self::group::{GroupKey, Grouping};
use self::output::{Output, Sink};
use self::stage::Perfetto;
use crate::timeline::Timeline;

/// What the caller may choose.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PftraceOptions {
    /// How tracks are grouped.
    pub grouping: Grouping,
    /// Compress the file with zstd. Perfetto opens such files since v56; others after `zstd -d`.
    pub zstd: bool,
    /// Events were left out on purpose: numbers that are missing in a row say nothing then.
    pub filtered: bool,
}

/// Level of the compression: records shrink to a fifth at any, and this one keeps up with the writer.
const ZSTD_LEVEL: i32 = 1;

/// Writes the parts of one fetch, or of a regrouped recording, as a Perfetto trace.
pub struct PftraceWriter<W: Write> {
    timeline: Timeline<Perfetto<W>>,
}

impl<W: Write> fmt::Debug for PftraceWriter<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PftraceWriter")
            .field("events", &self.timeline.events())
            .finish_non_exhaustive()
    }
}

impl<W: Write> PftraceWriter<W> {
    /// A trace that goes to `writer` in large pieces; no buffer around it is needed.
    ///
    /// # Errors
    /// If the compressor cannot be made.
    pub fn new(writer: W, options: PftraceOptions) -> io::Result<Self> {
        let sink = if options.zstd {
            let mut encoder = zstd::stream::write::Encoder::new(writer, ZSTD_LEVEL)?;
            encoder.include_checksum(true)?;
            Sink::Zstd(Box::new(encoder))
        } else {
            Sink::Plain(writer)
        };
        let stage = Perfetto::new(Output::new(sink), options);
        Ok(Self {
            timeline: Timeline::new(stage),
        })
    }

    /// Takes the next part.
    ///
    /// # Errors
    /// Of the writer; [`io::ErrorKind::InvalidData`] for a stream of another format version and for a part that is
    /// not whole records.
    pub fn part(&mut self, part: &TracePart) -> io::Result<()> {
        self.timeline.part(part)
    }

    /// Events taken so far.
    pub fn events(&self) -> u64 {
        self.timeline.events()
    }

    /// Completes the trace and gives the writer back, flushed.
    ///
    /// # Errors
    /// Of the writer.
    pub fn finish(mut self) -> io::Result<W> {
        self.timeline.finish()?;
        self.timeline.stage.finish()
    }
}
