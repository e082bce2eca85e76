//! What a trace holds, in a screenful: events, durations of pairs, what was lost and why, what to look at.
//!
//! A start and a stop are a pair if process, event type, NeuronCore and tracking id are the same. Times are those of
//! the JSON document: hardware events are moved by their sync points first, by the same code.
//!
//! Memory, whatever the trace holds: for each ring the last 65,536 executions, at most 65,536 starts whose stop has not
//! come (an older one is given up and counts as unmatched) and at most 65,536 events that wait for a sync point; for
//! each event type, and each of the first 256 names of spans, a histogram of durations with three significant digits, and
//! for each ring one with two; the names of the trace.
//!
//! A span of type `generic` whose first word is a string's id is shown under that string.

mod account;
mod activity;
mod report;
mod text;
mod warnings;

use std::collections::BTreeMap;
use std::convert::Infallible;

use hashbrown::HashMap;
use hdrhistogram::Histogram;
use nrt_trace_abi::record::{PHASE_INSTANT, PHASE_START, PHASE_STOP, RECORD_BYTES, Record};
use nrt_trace_model::EventType;
use nrt_trace_proto::v1::{
    Producer, ProducerAccount, Records, RingAccount, TracePart, trace_part::Part,
};

pub use self::account::Totals;
use self::activity::{Activity, Load, Slow, Slowest};
pub use self::report::{
    DurationStats, HostReport, IdleReport, ProcessReport, Report, RingReport, SlowReport,
    TypeReport,
};
use crate::recent::Recent;
use crate::resolve::{Item, Resolved, Resolver};

/// Starts that wait for their stop, for each ring.
const OPEN_MAX: usize = 65_536;

/// Names of spans that have figures of their own; spans of later names count as plain `generic`.
const NAMED_MAX: usize = 256;

/// Significant digits of durations.
const DIGITS: u8 = 3;

/// Counts events, pairs and losses of the parts it is given, in any order that keeps each ring's.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// By type's value; the last row is for types that this version does not know.
    types: Types,
    /// Texts by id.
    names: Names,
    rings: HashMap<(u32, u32), Ring>,
    producers: BTreeMap<u32, Process>,
    accounts: BTreeMap<(u32, u32), RingAccount>,
    /// The trace is no run's, but made of a document: nothing in it tells of losses.
    unaccounted: bool,
    load: Load,
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
    open: Open,
    events: u64,
    activity: Activity,
}

/// Starts without their stop, by event type and tracking id.
type Open = Recent<(u32, u64), Begun>;

/// Texts by id.
type Names = HashMap<u64, Box<str>>;

/// What a start says.
#[derive(Clone, Copy, Debug, Default)]
struct Begun {
    timestamp_ns: u64,
    name: u64,
}

/// What matching needs of an event.
#[derive(Clone, Copy, Debug)]
struct Brief {
    trace_type: u32,
    phase: u32,
    tracking_id: u64,
    /// Id of a `generic` span's name, else 0.
    name: u64,
}

impl Item for Brief {
    #[inline]
    fn of(record: &Record) -> Self {
        let generic = record.trace_type() == EventType::Generic.value();
        Self {
            name: if generic { record.data()[0] } else { 0 },
            trace_type: record.trace_type(),
            phase: record.phase(),
            tracking_id: record.tracking_id(),
        }
    }
}

#[derive(Clone, Debug)]
struct Types {
    rows: Vec<TypeStats>,
    /// `generic` spans by the id of their name.
    named: HashMap<u64, TypeStats>,
    slowest: Slowest,
}

impl Default for Types {
    fn default() -> Self {
        Self {
            rows: vec![TypeStats::default(); EventType::ALL.len() + 1],
            named: HashMap::new(),
            slowest: Slowest::default(),
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
    total_ns: u64,
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
            Some(Part::Strings(strings)) => {
                for entry in &strings.entries {
                    // The first text of an id stays, as everywhere.
                    let name = self.names.entry(entry.id);
                    name.or_insert_with(|| entry.text.as_str().into());
                }
            }
            Some(Part::HostSample(sample)) => self.load.sample(sample),
            Some(Part::Begin(begin)) => self.unaccounted |= begin.run.is_none(),
            Some(Part::End(_) | Part::HostInfo(_)) | None => {}
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
        let Self {
            types,
            names,
            rings,
            ..
        } = &mut ended;
        for (key, ring) in rings {
            let Ring {
                resolver,
                open,
                activity,
                ..
            } = ring;
            let mut sink =
                |brief: &Brief, resolved| types.count(brief, resolved, *key, open, names, activity);
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
            names,
            rings,
            producers,
            ..
        } = self;
        let key = (records.producer_id, records.nc_idx);
        let Ring {
            resolver,
            open,
            events,
            activity,
        } = rings.entry(key).or_default();
        let packed = records.packed.as_chunks::<RECORD_BYTES>().0;
        *events += packed.len() as u64;
        producers.entry(records.producer_id).or_default().events += packed.len() as u64;
        for bytes in packed {
            let mut sink =
                |brief: &Brief, resolved| types.count(brief, resolved, key, open, names, activity);
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
            activity: Activity::default(),
        }
    }
}

impl Types {
    #[inline]
    fn count(
        &mut self,
        event: &Brief,
        resolved: Resolved,
        ring: (u32, u32),
        open: &mut Open,
        names: &Names,
        activity: &mut Activity,
    ) -> Result<(), Infallible> {
        let key = (event.trace_type, event.tracking_id);
        // Whoever puts something else into a generic event's payload has no string of that id.
        let name = if event.name != 0 && names.contains_key(&event.name) {
            event.name
        } else {
            0
        };
        match event.phase {
            PHASE_START => {
                let begun = open.get_or_insert(key);
                *begun = Begun {
                    timestamp_ns: resolved.timestamp_ns,
                    name,
                };
                self.row(event, name).starts += 1;
            }
            PHASE_STOP => {
                let begun = open.remove(&key);
                // A stop belongs to its start, whatever name it carries itself.
                let stats = self.row(event, begun.map_or(name, |begun| begun.name));
                stats.stops += 1;
                if let Some(begun) = begun {
                    let duration = resolved.timestamp_ns.checked_sub(begun.timestamp_ns);
                    let duration = duration.filter(|d| *d > 0);
                    stats.pair(duration);
                    if let Some(duration_ns) = duration {
                        activity.span(event.trace_type, begun.timestamp_ns, duration_ns);
                        self.slowest.offer(Slow {
                            duration_ns,
                            start_ns: begun.timestamp_ns,
                            key: ring,
                            trace_type: event.trace_type,
                            name: begun.name,
                            tracking_id: event.tracking_id,
                        });
                    }
                }
            }
            // A phase that does not exist happened all the same.
            PHASE_INSTANT.. => self.row(event, name).instants += 1,
        }
        Ok(())
    }

    /// The figures that an event belongs to; counts it.
    #[inline]
    fn row(&mut self, event: &Brief, name: u64) -> &mut TypeStats {
        let unknown = EventType::ALL.len();
        let row = usize::try_from(event.trace_type).map_or(unknown, |t| t.min(unknown));
        let stats = if name != 0 && (self.named.len() < NAMED_MAX || self.named.contains_key(&name))
        {
            self.named.entry(name).or_default()
        } else {
            &mut self.rows[row]
        };
        stats.events += 1;
        stats
    }
}

impl TypeStats {
    fn pair(&mut self, duration_ns: Option<u64>) {
        self.pairs += 1;
        match duration_ns {
            None => self.not_positive += 1,
            Some(duration_ns) => {
                self.longest_ns = self.longest_ns.max(duration_ns);
                self.total_ns = self.total_ns.saturating_add(duration_ns);
                let new = || Histogram::new(DIGITS).expect("the number of digits is one it takes");
                let recorded = self.durations.get_or_insert_with(new).record(duration_ns);
                recorded.expect("it grows to any 64-bit value");
            }
        }
    }
}
