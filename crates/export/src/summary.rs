//! What a trace holds, in a screenful: events, durations of pairs, what was lost and why, what to look at.
//!
//! A start and a stop are a pair if process, event type, NeuronCore and tracking id are the same. Times are those of
//! the JSON document: hardware events are moved by their sync points first, by the same code.
//!
//! Memory, whatever the trace holds: for each ring the last 65,536 executions, at most 65,536 starts whose stop has not
//! come (an older one is given up and counts as unmatched) and at most 65,536 events that wait for a sync point; for
//! each event type a histogram of durations with three significant digits.

mod report;
mod text;

use std::collections::BTreeMap;
use std::convert::Infallible;

use hashbrown::HashMap;
use hdrhistogram::Histogram;
use nrt_trace_abi::record::{PHASE_INSTANT, PHASE_START, PHASE_STOP, RECORD_BYTES, Record};
use nrt_trace_model::EventType;
use nrt_trace_proto::v1::{
    Producer, ProducerAccount, Records, RingAccount, TracePart, trace_part::Part,
};

pub use self::report::{DurationStats, ProcessReport, Report, RingReport, Totals, TypeReport};
use crate::recent::Recent;
use crate::resolve::{Item, Resolved, Resolver};

/// Starts that wait for their stop, for each ring.
const OPEN_MAX: usize = 65_536;

/// Significant digits of durations.
const DIGITS: u8 = 3;

/// Counts events, pairs and losses of the parts it is given, in any order that keeps each ring's.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// By type's value; the last row is for types that this version does not know.
    types: Types,
    rings: HashMap<(u32, u32), Ring>,
    producers: BTreeMap<u32, Process>,
    accounts: BTreeMap<(u32, u32), RingAccount>,
}

#[derive(Clone, Debug, Default)]
struct Process {
    producer: Option<Producer>,
    account: Option<ProducerAccount>,
    events: u64,
}

#[derive(Clone, Debug)]
struct Ring {
    resolver: Resolver<Brief>,
    /// Start times by event type and tracking id.
    open: Recent<(u32, u64), u64>,
    events: u64,
}

/// What matching needs of an event.
#[derive(Clone, Copy, Debug)]
struct Brief {
    trace_type: u32,
    phase: u32,
    tracking_id: u64,
}

impl Item for Brief {
    #[inline]
    fn of(record: &Record) -> Self {
        Self {
            trace_type: record.trace_type(),
            phase: record.phase(),
            tracking_id: record.tracking_id(),
        }
    }
}

#[derive(Clone, Debug)]
struct Types {
    rows: Vec<TypeStats>,
}

impl Default for Types {
    fn default() -> Self {
        Self {
            rows: vec![TypeStats::default(); EventType::ALL.len() + 1],
        }
    }
}

#[derive(Clone, Debug, Default)]
struct TypeStats {
    events: u64,
    starts: u64,
    stops: u64,
    instants: u64,
    pairs: u64,
    /// Pairs whose stop is not after its start.
    not_positive: u64,
    durations: Option<Histogram<u64>>,
    /// The longest, which the histogram has to three digits only.
    longest_ns: u64,
}

impl Summary {
    /// Nothing counted yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next part.
    pub fn part(&mut self, part: &TracePart) {
        match &part.part {
            Some(Part::Producer(producer)) => {
                self.producers
                    .entry(producer.producer_id)
                    .or_default()
                    .producer = Some(producer.clone());
            }
            Some(Part::Correlations(correlations)) => {
                let key = (correlations.producer_id, correlations.nc_idx);
                self.rings
                    .entry(key)
                    .or_default()
                    .resolver
                    .correlations(correlations);
            }
            Some(Part::Records(records)) => self.records(records),
            Some(Part::Account(account)) => {
                self.accounts
                    .insert((account.producer_id, account.nc_idx), *account);
            }
            Some(Part::ProducerAccount(account)) => {
                self.producers
                    .entry(account.producer_id)
                    .or_default()
                    .account = Some(*account);
            }
            Some(
                Part::Begin(_)
                | Part::Strings(_)
                | Part::End(_)
                | Part::HostInfo(_)
                | Part::HostSample(_),
            )
            | None => {}
        }
    }

    /// Events counted so far.
    pub fn events(&self) -> u64 {
        self.producers.values().map(|p| p.events).sum()
    }

    /// The figures. Events that wait for a sync point count with the times they have; counting can go on afterwards.
    #[must_use]
    pub fn report(&self) -> Report {
        if self.rings.values().all(|r| r.resolver.held() == 0) {
            return report::of(self);
        }
        let mut ended = self.clone();
        let Self { types, rings, .. } = &mut ended;
        for Ring { resolver, open, .. } in rings.values_mut() {
            let mut sink = |brief: &Brief, resolved| types.count(brief, resolved, open);
            let Ok(()) = resolver.flush(&mut sink);
        }
        report::of(&ended)
    }

    /// [`Summary::report`] as aligned text.
    #[must_use]
    pub fn to_text(&self) -> String {
        self.report().to_text()
    }

    /// [`Summary::report`] as JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        self.report().to_json()
    }

    fn records(&mut self, records: &Records) {
        let Self {
            types,
            rings,
            producers,
            ..
        } = self;
        let Ring {
            resolver,
            open,
            events,
        } = rings
            .entry((records.producer_id, records.nc_idx))
            .or_default();
        let packed = records.packed.as_chunks::<RECORD_BYTES>().0;
        *events += packed.len() as u64;
        producers.entry(records.producer_id).or_default().events += packed.len() as u64;
        for bytes in packed {
            let mut sink = |brief: &Brief, resolved| types.count(brief, resolved, open);
            let Ok(()) = resolver.record(&Record::from_bytes(bytes), &mut sink);
        }
    }
}

impl Default for Ring {
    fn default() -> Self {
        Self {
            resolver: Resolver::new(false),
            open: Recent::new(OPEN_MAX),
            events: 0,
        }
    }
}

impl Types {
    #[inline]
    fn count(
        &mut self,
        event: &Brief,
        resolved: Resolved,
        open: &mut Recent<(u32, u64), u64>,
    ) -> Result<(), Infallible> {
        let unknown = EventType::ALL.len();
        let row = usize::try_from(event.trace_type).map_or(unknown, |t| t.min(unknown));
        let stats = &mut self.rows[row];
        let key = (event.trace_type, event.tracking_id);
        stats.events += 1;
        match event.phase {
            PHASE_START => {
                stats.starts += 1;
                *open.get_or_insert(key) = resolved.timestamp_ns;
            }
            PHASE_STOP => {
                stats.stops += 1;
                if let Some(start) = open.remove(&key) {
                    stats.pair(resolved.timestamp_ns.checked_sub(start).filter(|d| *d > 0));
                }
            }
            PHASE_INSTANT => stats.instants += 1,
            _ => {}
        }
        Ok(())
    }
}

impl TypeStats {
    fn pair(&mut self, duration_ns: Option<u64>) {
        self.pairs += 1;
        match duration_ns {
            None => self.not_positive += 1,
            Some(duration_ns) => {
                self.longest_ns = self.longest_ns.max(duration_ns);
                let new = || Histogram::new(DIGITS).expect("the number of digits is one it takes");
                let recorded = self.durations.get_or_insert_with(new).record(duration_ns);
                recorded.expect("it grows to any 64-bit value");
            }
        }
    }
}
