//! A trace as what happened: spans, instants, and what has no partner, ring by ring.
//!
//! ```text
//!  parts ──▶ Resolver (host times, models) ──▶ Pairing ──▶ Stage: Perfetto, Chrome JSON, CSV
//! ```
//!
//! A start and a stop are a pair if process, event type, NeuronCore and tracking id are the same, as in the summary. A span
//! reaches the stage when its stop comes, so spans come in the order of their stops.
//!
//! Memory: the names, and of one ring 65,536 executions, held events and open starts each, and 4,096 gaps.

use std::io;

use hashbrown::HashMap;
use nrt_trace_abi::record::{PHASE_INSTANT, PHASE_START, PHASE_STOP, RECORD_BYTES, Record};
use nrt_trace_proto::FORMAT_VERSION;
use nrt_trace_proto::v1::{Producer, Records, RingAccount, TracePart, trace_part::Part};

use crate::recent::Recent;
use crate::resolve::{Resolved, Resolver};

/// Starts that wait for their stop, for each ring.
const OPEN_MAX: usize = 65_536;

/// Gaps that are told one by one, for each ring; the rest only counts.
const GAPS_MAX: usize = 4096;

/// An event with what others told of it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Event {
    pub(crate) record: Record,
    pub(crate) resolved: Resolved,
}

impl Event {
    /// Host time, ns.
    pub(crate) const fn time(&self) -> u64 {
        self.resolved.timestamp_ns
    }
}

/// Something that happened.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Found<'a> {
    /// A start and its stop, which may lie before it.
    Span { start: &'a Event, stop: &'a Event },
    /// An event without duration.
    Instant(&'a Event),
    /// A start that another one of the same kind and tracking id replaced, or that waited too long.
    LostStart(&'a Event),
    /// A start whose stop has not come by the end of the ring's events; `left` more such will follow.
    OpenStart { start: &'a Event, left: usize },
    /// A stop without a start.
    LostStop(&'a Event),
}

/// Sequence numbers that are missing between two events of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gap {
    /// The first missing number.
    pub(crate) first: u64,
    /// How many are missing.
    pub(crate) missing: u64,
    /// Times of the events before and after, ns, in order.
    pub(crate) from_ns: u64,
    pub(crate) to_ns: u64,
}

/// What is known of a ring when its events come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RingOf<'a> {
    pub(crate) producer_id: u32,
    pub(crate) nc_idx: u32,
    /// Absent where the trace does not say.
    pub(crate) process: Option<&'a Producer>,
}

/// What is known of a ring when no more of its events come.
#[derive(Debug, Default)]
pub(crate) struct Ended {
    pub(crate) account: Option<RingAccount>,
    /// Gaps inside, in order.
    pub(crate) gaps: Vec<Gap>,
    /// All missing numbers inside.
    pub(crate) missing: u64,
    /// Host times of the first and the last event, ns.
    pub(crate) times: Option<(u64, u64)>,
}

/// Names by id.
pub(crate) type Names = HashMap<u64, Box<str>>;

/// Who writes what happened.
pub(crate) trait Stage {
    /// Events of this ring follow.
    fn begin(&mut self, ring: RingOf<'_>) -> io::Result<()>;
    /// One of them.
    fn found(&mut self, found: Found<'_>, names: &Names) -> io::Result<()>;
    /// No more of the ring's events follow.
    fn end(&mut self, ring: (u32, u32), ended: &Ended) -> io::Result<()>;
    /// A part that is no event, name or account of a ring.
    fn other(&mut self, part: &Part) -> io::Result<()>;
}

/// Brings parts before a stage.
#[derive(Debug)]
pub(crate) struct Timeline<S> {
    pub(crate) stage: S,
    pub(crate) names: Names,
    producers: HashMap<u32, Producer>,
    ring: Option<Ring>,
    /// What the last ring was worked out with, empty: its memory serves the next.
    spare: Option<(Resolver<Record>, Pairing)>,
    events: u64,
}

#[derive(Debug)]
struct Ring {
    key: (u32, u32),
    resolver: Resolver<Record>,
    pairing: Pairing,
}

/// Finds pairs among the events of one ring.
#[derive(Debug)]
struct Pairing {
    open: Recent<(u32, u64), Event>,
    last: Option<(u64, u64)>,
    ended: Ended,
}

impl<S: Stage> Timeline<S> {
    pub(crate) fn new(stage: S) -> Self {
        Self {
            stage,
            names: Names::new(),
            producers: HashMap::new(),
            ring: None,
            spare: None,
            events: 0,
        }
    }

    /// Events taken.
    pub(crate) const fn events(&self) -> u64 {
        self.events
    }

    /// Takes the next part.
    pub(crate) fn part(&mut self, part: &TracePart) -> io::Result<()> {
        match &part.part {
            None => Ok(()),
            Some(Part::Strings(strings)) => {
                for entry in &strings.entries {
                    // The first text of an id stays, as everywhere.
                    let name = self.names.entry(entry.id);
                    name.or_insert_with(|| entry.text.as_str().into());
                }
                Ok(())
            }
            Some(Part::Correlations(correlations)) => {
                let ring = self.ring((correlations.producer_id, correlations.nc_idx))?;
                ring.resolver.correlations(correlations);
                Ok(())
            }
            Some(Part::Records(records)) => self.records(records),
            Some(Part::Account(account)) => {
                // A ring may have an account and not one event.
                self.ring((account.producer_id, account.nc_idx))?;
                self.end_ring(Some(*account))
            }
            Some(other) => {
                self.end_ring(None)?;
                if let Part::Begin(begin) = other
                    && begin.format_version > FORMAT_VERSION
                {
                    return Err(invalid(format!(
                        "the trace has format version {}; this program reads {FORMAT_VERSION}",
                        begin.format_version
                    )));
                }
                if let Part::Producer(producer) = other {
                    self.producers
                        .insert(producer.producer_id, producer.clone());
                }
                self.stage.other(other)
            }
        }
    }

    /// Nothing more comes.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        self.end_ring(None)
    }

    fn records(&mut self, records: &Records) -> io::Result<()> {
        let (packed, rest) = records.packed.as_chunks::<RECORD_BYTES>();
        if !rest.is_empty() {
            return Err(invalid(format!(
                "a records part of {} bytes is not whole records",
                records.packed.len()
            )));
        }
        self.ring((records.producer_id, records.nc_idx))?;
        self.events += packed.len() as u64;
        let Self {
            stage,
            names,
            ring: Some(Ring {
                resolver, pairing, ..
            }),
            ..
        } = self
        else {
            return Ok(());
        };
        for bytes in packed {
            let mut sink =
                |record: &Record, resolved| pairing.event(record, resolved, names, stage);
            resolver.record(&Record::from_bytes(bytes), &mut sink)?;
        }
        Ok(())
    }

    fn ring(&mut self, key: (u32, u32)) -> io::Result<&mut Ring> {
        if self.ring.as_ref().is_some_and(|ring| ring.key != key) {
            self.end_ring(None)?;
        }
        if self.ring.is_none() {
            self.stage.begin(RingOf {
                producer_id: key.0,
                nc_idx: key.1,
                process: self.producers.get(&key.0),
            })?;
        }
        let spare = &mut self.spare;
        Ok(self.ring.get_or_insert_with(|| {
            let (resolver, pairing) = spare
                .take()
                .unwrap_or_else(|| (Resolver::new(true), Pairing::new()));
            Ring {
                key,
                resolver,
                pairing,
            }
        }))
    }

    fn end_ring(&mut self, account: Option<RingAccount>) -> io::Result<()> {
        let Some(Ring {
            key,
            mut resolver,
            mut pairing,
        }) = self.ring.take()
        else {
            return Ok(());
        };
        let (stage, names) = (&mut self.stage, &self.names);
        resolver.flush(&mut |record, resolved| pairing.event(record, resolved, names, stage))?;
        while let Some(start) = pairing.open.remove_oldest() {
            let left = pairing.open.len();
            let start = &start;
            stage.found(Found::OpenStart { start, left }, names)?;
        }
        let mut ended = std::mem::take(&mut pairing.ended);
        ended.account = account;
        stage.end(key, &ended)?;
        resolver.clear();
        pairing.clear();
        self.spare = Some((resolver, pairing));
        Ok(())
    }
}

impl Pairing {
    fn new() -> Self {
        Self {
            open: Recent::new(OPEN_MAX),
            last: None,
            ended: Ended::default(),
        }
    }

    fn clear(&mut self) {
        self.open.clear();
        self.last = None;
        self.ended = Ended::default();
    }

    #[inline]
    fn event<S: Stage>(
        &mut self,
        record: &Record,
        resolved: Resolved,
        names: &Names,
        stage: &mut S,
    ) -> io::Result<()> {
        self.place(record.seq(), resolved.timestamp_ns);
        let event = Event {
            record: *record,
            resolved,
        };
        let key = (record.trace_type(), record.tracking_id());
        match record.phase() {
            PHASE_START => match self.open.insert(key, event) {
                Some(gone) => stage.found(Found::LostStart(&gone), names),
                None => Ok(()),
            },
            PHASE_STOP => match self.open.remove(&key) {
                Some(start) => {
                    let (start, stop) = (&start, &event);
                    stage.found(Found::Span { start, stop }, names)
                }
                None => stage.found(Found::LostStop(&event), names),
            },
            // A phase that does not exist happened all the same.
            PHASE_INSTANT.. => stage.found(Found::Instant(&event), names),
        }
    }

    /// Notes where the event stands in the row, and what is missing before it.
    #[inline]
    fn place(&mut self, seq: u64, time: u64) {
        if let Some((last, before)) = self.last
            && seq > last + 1
        {
            let missing = seq - last - 1;
            self.ended.missing = self.ended.missing.saturating_add(missing);
            if self.ended.gaps.len() < GAPS_MAX {
                self.ended.gaps.push(Gap {
                    first: last + 1,
                    missing,
                    from_ns: before.min(time),
                    to_ns: before.max(time),
                });
            }
        }
        // What any process may have written as a number must not break the count.
        let highest = self.last.map_or(0, |(last, _)| last);
        self.last = Some((highest.max(seq).min(u64::MAX - 1), time));
        let times = &mut self.ended.times;
        *times = Some(times.map_or((time, time), |(from, to)| (from.min(time), to.max(time))));
    }
}

pub(crate) fn invalid(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}
