//! Chrome's trace events, as JSON: for viewers that know nothing better.
//!
//! `{"traceEvents":[…],"displayTimeUnit":"ns","otherData":{…}}`, one event a line. Times are microseconds with three decimals
//! since `otherData.begin_ns`: counted from 1970 they would not fit the numbers that readers have. Spans are complete events
//! (`X`), one track for each thread and NeuronCore, and for each NeuronCore's hardware; what overlaps gets tracks of its own.
//! Made-up tracks have ids from 2^31 on, which no thread has. A start or stop without its partner is an instant, `unmatched` in
//! its `args`.

use std::io::{self, Write};

use hashbrown::HashMap;
use nrt_trace_proto::v1::trace_part::Part;
use nrt_trace_proto::v1::{Producer, TracePart};

use crate::annotate::{self, Annotations, is_hardware};
use crate::json::text;
use crate::lanes::Lanes;
use crate::timeline::{Ended, Event, Found, Names, RingOf, Stage, Timeline};

/// The sink gets pieces of about this size.
const PIECE_BYTES: usize = 128 * 1024;

/// The first id of a made-up track.
const MADE_UP: u64 = 1 << 31;

/// Writes a trace as Chrome's JSON.
#[derive(Debug)]
pub struct ChromeWriter<W: Write> {
    timeline: Timeline<Chrome<W>>,
}

#[derive(Debug)]
struct Chrome<W> {
    writer: W,
    buffer: Vec<u8>,
    annotations: Annotations,
    any: bool,
    begin_ns: Option<u64>,
    ring: Ring,
    /// Lanes of a ring's threads (none: its hardware).
    groups: HashMap<Option<u64>, Group>,
    tracks: u64,
    /// Threads that have a track under their own number.
    threads: HashMap<(i64, u64), u32>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Ring {
    pid: i64,
    nc: u32,
}

#[derive(Debug, Default)]
struct Group {
    lanes: Lanes,
    tracks: Vec<u64>,
}

impl<W: Write> ChromeWriter<W> {
    /// A document that goes to `writer` in large pieces.
    pub fn new(writer: W) -> Self {
        Self {
            timeline: Timeline::new(Chrome {
                writer,
                buffer: b"{\"traceEvents\":[".to_vec(),
                annotations: Annotations::new(),
                any: false,
                begin_ns: None,
                ring: Ring::default(),
                groups: HashMap::new(),
                tracks: MADE_UP,
                threads: HashMap::new(),
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

    /// Completes the document and gives the writer back, flushed.
    ///
    /// # Errors
    /// Of the writer.
    pub fn finish(mut self) -> io::Result<W> {
        self.timeline.finish()?;
        let mut chrome = self.timeline.stage;
        let begin = chrome.begin_ns.unwrap_or(0);
        write!(
            chrome.buffer,
            "\n],\"displayTimeUnit\":\"ns\",\"otherData\":{{\"begin_ns\":\"{begin}\"}}}}"
        )?;
        chrome.write_out()?;
        chrome.writer.flush()?;
        Ok(chrome.writer)
    }
}

impl<W: Write> Chrome<W> {
    fn write_out(&mut self) -> io::Result<()> {
        self.writer.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }

    fn next(&mut self) {
        self.buffer.push(if std::mem::replace(&mut self.any, true) {
            b','
        } else {
            b'\n'
        });
        if self.buffer.last() == Some(&b',') {
            self.buffer.push(b'\n');
        }
    }

    /// A line that says what a process or a track is called.
    fn metadata(&mut self, kind: &str, pid: i64, tid: u64, name: &str) -> io::Result<()> {
        self.next();
        let out = &mut self.buffer;
        write!(
            out,
            "{{\"name\":\"{kind}\",\"ph\":\"M\",\"pid\":{pid},\"tid\":{tid},\"args\":{{\"name\":"
        )?;
        text::string(out, name);
        out.extend_from_slice(b"}}");
        Ok(())
    }

    fn producer(&mut self, producer: &Producer) -> io::Result<()> {
        let pid = pid_of(producer.producer_id, Some(producer));
        self.metadata("process_name", pid, 0, &producer.name)
    }

    /// The track of a span.
    fn track(&mut self, event: &Event, begin: u64, end: u64) -> io::Result<u64> {
        let hardware = is_hardware(event.record.trace_type());
        let thread = (!hardware).then_some(event.record.thread_id());
        let group = self.groups.entry(thread).or_default();
        let lane = group.lanes.place(begin, end);
        if let Some(track) = group.tracks.get(lane) {
            return Ok(*track);
        }
        let Ring { pid, nc } = self.ring;
        let own = thread
            .filter(|thread| lane == 0 && (1..MADE_UP).contains(thread))
            .filter(|thread| *self.threads.entry((pid, *thread)).or_insert(nc) == nc);
        let track = own.unwrap_or_else(|| {
            self.tracks += 1;
            self.tracks
        });
        group.tracks.push(track);
        let name = match thread {
            Some(thread) => format!("NC {nc}, thread {thread}"),
            None => format!("NC {nc} (neuron_hw)"),
        };
        self.metadata("thread_name", pid, track, &name)?;
        Ok(track)
    }

    fn event(
        &mut self,
        start: &Event,
        stop: Option<&Event>,
        unmatched: Option<&str>,
        names: &Names,
    ) -> io::Result<()> {
        let time = start.time();
        let whole = stop.filter(|stop| unmatched.is_none() && stop.time() >= time);
        let end = whole.map_or(time, Event::time);
        let track = self.track(start, time, end)?;
        let base = *self.begin_ns.get_or_insert(time);
        self.next();
        let out = &mut self.buffer;
        out.extend_from_slice(b"{\"name\":");
        text::string(out, &annotate::shown_name(&start.record, names));
        let source = if is_hardware(start.record.trace_type()) {
            "neuron_hw"
        } else {
            "neuron_rt"
        };
        write!(out, ",\"cat\":\"{source}\",\"ts\":")?;
        micros(out, i128::from(time) - i128::from(base))?;
        if whole.is_some() {
            out.extend_from_slice(b",\"ph\":\"X\",\"dur\":");
            micros(out, i128::from(end - time))?;
        } else {
            out.extend_from_slice(b",\"ph\":\"i\",\"s\":\"t\"");
        }
        write!(out, ",\"pid\":{},\"tid\":{track},\"args\":", self.ring.pid)?;
        annotate::json(out, &self.annotations, start, stop, names);
        let wrong_order = stop.is_some() && whole.is_none();
        if let Some(what) = unmatched.or_else(|| wrong_order.then_some("stop before start")) {
            out.pop();
            if out.last() != Some(&b'{') {
                out.push(b',');
            }
            write!(out, "\"unmatched\":\"{what}\"}}")?;
        }
        out.push(b'}');
        if out.len() >= PIECE_BYTES {
            self.write_out()
        } else {
            Ok(())
        }
    }
}

impl<W: Write> Stage for Chrome<W> {
    fn begin(&mut self, ring: RingOf<'_>) -> io::Result<()> {
        self.ring = Ring {
            pid: pid_of(ring.producer_id, ring.process),
            nc: ring.nc_idx,
        };
        self.groups.clear();
        Ok(())
    }

    fn found(&mut self, found: Found<'_>, names: &Names) -> io::Result<()> {
        match found {
            Found::Span { start, stop } => self.event(start, Some(stop), None, names),
            Found::Instant(found) => self.event(found, None, None, names),
            Found::LostStart(start) | Found::OpenStart { start, .. } => {
                self.event(start, None, Some("start"), names)
            }
            Found::LostStop(stop) => self.event(stop, None, Some("stop"), names),
        }
    }

    fn end(&mut self, _ring: (u32, u32), _ended: &Ended) -> io::Result<()> {
        Ok(())
    }

    fn other(&mut self, part: &Part) -> io::Result<()> {
        match part {
            Part::Producer(producer) => self.producer(producer),
            _ => Ok(()),
        }
    }
}

/// The pid, or the negative producer number where there is none, as in the JSON document.
fn pid_of(producer_id: u32, process: Option<&Producer>) -> i64 {
    process
        .and_then(|p| p.pid)
        .map_or_else(|| -i64::from(producer_id), i64::from)
}

/// Nanoseconds as microseconds with three decimals.
fn micros(out: &mut Vec<u8>, ns: i128) -> io::Result<()> {
    let sign = if ns < 0 { "-" } else { "" };
    let ns = ns.unsigned_abs();
    write!(out, "{sign}{}.{:03}", ns / 1000, ns % 1000)
}
