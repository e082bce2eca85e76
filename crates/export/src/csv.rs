//! What happened as comma-separated values: a line for each start with its stop, each instant, and each start or stop without
//! its partner, ring by ring, in the order in which it was known.
//!
//! `process_id,nc_idx,worker_gid,thread_id,kind,event_type,name,tracking_id,start_ns,stop_ns,duration_ns,data`
//!
//! `kind` is `span`, `instant`, `start` or `stop`. An instant starts and stops at once; a start without its stop has neither
//! `stop_ns` nor `duration_ns`, and a stop without its start neither `start_ns` nor `duration_ns`. `name` is the name that a
//! `generic` event carries; `data` the payloads of both as one JSON object, what the stop says differently under `stop_KEY`.

use std::io::{self, Write};

use nrt_trace_model::EventType;
use nrt_trace_proto::v1::TracePart;
use nrt_trace_proto::v1::trace_part::Part;

use crate::annotate::{self, Annotations};
use crate::timeline::{Ended, Event, Found, Names, RingOf, Stage, Timeline};

/// The sink gets pieces of about this size.
const PIECE_BYTES: usize = 128 * 1024;

const HEAD: &str = "process_id,nc_idx,worker_gid,thread_id,kind,event_type,name,tracking_id,start_ns,stop_ns,duration_ns,data\n";

/// Writes what happened in a trace as a table.
#[derive(Debug)]
pub struct CsvWriter<W: Write> {
    timeline: Timeline<Lines<W>>,
}

#[derive(Debug)]
struct Lines<W> {
    writer: W,
    buffer: Vec<u8>,
    annotations: Annotations,
    /// The cells that are the same for all of a ring, process and NC and worker.
    ring: String,
    json: Vec<u8>,
}

impl<W: Write> CsvWriter<W> {
    /// A table that goes to `writer` in large pieces.
    pub fn new(writer: W) -> Self {
        Self {
            timeline: Timeline::new(Lines {
                writer,
                buffer: HEAD.as_bytes().to_vec(),
                annotations: Annotations::new(),
                ring: String::new(),
                json: Vec::new(),
            }),
        }
    }

    /// Takes the next part.
    ///
    /// # Errors
    /// Of the writer; [`io::ErrorKind::InvalidData`] for a part that makes no sense.
    pub fn part(&mut self, part: &TracePart) -> io::Result<()> {
        self.timeline.part(part)
    }

    /// Completes the table and gives the writer back, flushed.
    ///
    /// # Errors
    /// Of the writer.
    pub fn finish(mut self) -> io::Result<W> {
        self.timeline.finish()?;
        let mut lines = self.timeline.stage;
        lines.write_out()?;
        lines.writer.flush()?;
        Ok(lines.writer)
    }
}

impl<W: Write> Lines<W> {
    fn write_out(&mut self) -> io::Result<()> {
        self.writer.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }
}

impl<W: Write> Stage for Lines<W> {
    fn begin(&mut self, ring: RingOf<'_>) -> io::Result<()> {
        let process = ring
            .process
            .and_then(|p| p.pid)
            .map_or_else(String::new, |pid| pid.to_string());
        let worker = ring.process.map_or(-1, |p| p.worker_gid);
        self.ring = format!("{process},{},{worker},", ring.nc_idx);
        Ok(())
    }

    fn found(&mut self, found: Found<'_>, names: &Names) -> io::Result<()> {
        let (kind, event, stop) = match found {
            Found::Span { start, stop } => ("span", start, Some(stop)),
            Found::Instant(event) => ("instant", event, None),
            Found::LostStart(start) | Found::OpenStart { start, .. } => ("start", start, None),
            Found::LostStop(stop) => ("stop", stop, None),
        };
        let (record, out) = (&event.record, &mut self.buffer);
        out.extend_from_slice(self.ring.as_bytes());
        write!(out, "{},{kind},", record.thread_id())?;
        match EventType::from_value(record.trace_type()) {
            Some(kind) => out.extend_from_slice(kind.name().as_bytes()),
            None => write!(out, "unknown_{}", record.trace_type())?,
        }
        out.push(b',');
        if record.trace_type() == EventType::Generic.value()
            && let Some(name) = names.get(&record.data()[0])
        {
            quoted(out, name.as_bytes());
        }
        write!(out, ",{},", record.tracking_id())?;
        let at = event.time();
        match kind {
            "start" => write!(out, "{at},,,")?,
            "stop" => write!(out, ",{at},,")?,
            _ => {
                let to = stop.map_or(at, Event::time);
                let duration = i128::from(to) - i128::from(at);
                write!(out, "{at},{to},{duration},")?;
            }
        }
        self.json.clear();
        annotate::json(&mut self.json, &self.annotations, event, stop, names);
        quoted(out, &self.json);
        out.push(b'\n');
        if out.len() >= PIECE_BYTES {
            self.write_out()
        } else {
            Ok(())
        }
    }

    fn end(&mut self, _ring: (u32, u32), _ended: &Ended) -> io::Result<()> {
        Ok(())
    }

    fn other(&mut self, _part: &Part) -> io::Result<()> {
        Ok(())
    }
}

/// A cell in quotes, each quote in it doubled.
fn quoted(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'"');
    for byte in text {
        if *byte == b'"' {
            out.push(b'"');
        }
        out.push(*byte);
    }
    out.push(b'"');
}
