//! The figures of a summary, as data.

use hdrhistogram::Histogram;
use nrt_trace_model::{Category, EventType};
use nrt_trace_proto::v1::ProducerState;
use serde::Serialize;

use super::account::{Totals, each_key};
use super::activity::{Activity, Load, Slow};
use super::warnings::warnings;
use super::{Process, Summary, TypeStats};

/// The figures of a trace. As JSON its keys are those of the command line's other answers: a number of things is `…_count`, a
/// plural a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Records in the trace.
    #[serde(rename = "event_count")]
    pub events: u64,
    /// Event types that occur, by value.
    pub types: Vec<TypeReport>,
    /// Processes, in attach order.
    #[serde(rename = "producers")]
    pub processes: Vec<ProcessReport>,
    /// What became of all events; absent where the trace does not say so of all of them, as a JSON document never does.
    pub totals: Option<Totals>,
    /// What became of each ring's events, and how long its spans took.
    #[serde(rename = "accounts")]
    pub rings: Vec<RingReport>,
    /// The longest spans, at most ten, the longest first.
    pub slowest: Vec<SlowReport>,
    /// What the machine used, if the trace holds the host monitor's ticks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<HostReport>,
    /// What the user should know, a sentence or two each, beginning with `Warning: `.
    pub warnings: Vec<String>,
}

/// An event type's figures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TypeReport {
    /// Display name; `unknown` for all types that this version does not know.
    pub event_type: &'static str,
    /// Name of spans of type `generic` that carry one; they have figures of their own for each name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// `hardware`, `software` or `unknown`.
    pub category: &'static str,
    /// Records.
    #[serde(rename = "event_count")]
    pub events: u64,
    /// Of them starts.
    #[serde(rename = "start_count")]
    pub starts: u64,
    /// Of them stops.
    #[serde(rename = "stop_count")]
    pub stops: u64,
    /// Of them instants.
    #[serde(rename = "instant_count")]
    pub instants: u64,
    /// Starts with their stop.
    #[serde(rename = "pair_count")]
    pub pairs: u64,
    /// Starts without.
    #[serde(rename = "unmatched_start_count")]
    pub unmatched_starts: u64,
    /// Stops without a start.
    #[serde(rename = "unmatched_stop_count")]
    pub unmatched_stops: u64,
    /// Pairs whose stop is not after its start; they are not in the durations.
    #[serde(rename = "not_positive_count")]
    pub not_positive: u64,
    /// Durations of the other pairs.
    pub durations: Option<DurationStats>,
}

/// Durations of pairs, ns; the quantiles to three significant digits (two for a ring), rounded up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct DurationStats {
    /// All of them together.
    pub total_ns: u64,
    /// The mean.
    pub mean_ns: u64,
    /// Half of the pairs took at most this.
    pub p50_ns: u64,
    /// 90 % of the pairs took at most this.
    pub p90_ns: u64,
    /// 99 % of the pairs took at most this.
    pub p99_ns: u64,
    /// The longest, exactly.
    pub max_ns: u64,
}

/// A span, with where to find it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SlowReport {
    /// Display name of its type.
    pub event_type: &'static str,
    /// Name that a `generic` span carries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// How long it took, ns.
    pub duration_ns: u64,
    /// When it began, ns since 1970.
    pub start_ns: u64,
    /// The process's pid on the host.
    #[serde(rename = "pid")]
    pub process_id: Option<i32>,
    /// NeuronCore as the process sees it.
    pub nc_idx: u32,
    /// Ties its start to its stop.
    pub tracking_id: u64,
}

/// How busy a NeuronCore was between its first execution and its last (`nc_exec_running`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct IdleReport {
    /// Executions.
    #[serde(rename = "execution_count")]
    pub executions: u64,
    /// Time in which one ran, ns.
    pub busy_ns: u64,
    /// Gaps between them.
    #[serde(rename = "gap_count")]
    pub gaps: u64,
    /// Time in the gaps, ns.
    pub idle_ns: u64,
    /// The longest gap, ns.
    pub longest_gap_ns: u64,
    /// When it began, ns since 1970.
    pub longest_gap_at_ns: u64,
}

/// What the machine used, over all ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct HostReport {
    /// Ticks of the host monitor.
    #[serde(rename = "tick_count")]
    pub ticks: u64,
    /// Busy share of all cores, thousandths: mean and highest.
    pub cpu_busy_mean_permille: u64,
    /// The highest of a tick.
    pub cpu_busy_max_permille: u64,
    /// Memory in use, bytes: mean; absent where no tick knows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_used_mean_bytes: Option<u64>,
    /// The highest of a tick.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_used_max_bytes: Option<u64>,
}

/// A process's figures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProcessReport {
    /// The daemon's number for it.
    pub producer_id: u32,
    /// Its pid on the host, where the host can see it.
    #[serde(rename = "pid")]
    pub process_id: Option<i32>,
    /// Its name.
    pub name: String,
    /// Worker number, -1 if unknown.
    pub worker_gid: i32,
    /// `attached`, `capturing`, `dead`, `detached`, `quarantined` or `unknown`.
    pub state: &'static str,
    /// Records of it in the trace.
    #[serde(rename = "event_count")]
    pub events: u64,
    /// What became of its events, over its rings; absent as in [`Report::totals`].
    #[serde(flatten, serialize_with = "each_key")]
    pub account: Option<Totals>,
    /// Events for NeuronCores that had no ring.
    pub no_ring: u64,
    /// Events with an NC index of 256 or more, recorded as NC 0.
    pub nc_out_of_range: u64,
    /// Names that found no room.
    pub strings_full: u64,
    /// Names that were refused.
    pub strings_refused: u64,
}

/// What became of a ring's events: `claimed = delivered + lost + pending + unread`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RingReport {
    /// The daemon's number for the process.
    pub producer_id: u32,
    /// The process's pid on the host.
    #[serde(rename = "pid")]
    pub process_id: Option<i32>,
    /// NeuronCore as the process sees it.
    pub nc_idx: u32,
    /// Records of the ring in the trace.
    #[serde(rename = "event_count")]
    pub events: u64,
    /// The account, where the trace has one.
    #[serde(flatten, serialize_with = "each_key")]
    pub account: Option<Totals>,
    /// Starts with their stop, of all types.
    #[serde(rename = "pair_count")]
    pub pairs: u64,
    /// Their durations.
    pub durations: Option<DurationStats>,
    /// How busy the NeuronCore was, if it executed anything.
    #[serde(rename = "occupancy")]
    pub idle: Option<IdleReport>,
}

impl Report {
    /// The figures as JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("plain data with string keys always serializes")
    }
}

/// The figures of a summary.
pub(super) fn of(summary: &Summary) -> Report {
    let rings: Vec<RingReport> = rings(summary);
    // Of a document nothing is known even where it is empty.
    let unaccounted = summary.unaccounted && summary.accounts.is_empty();
    let totals = Totals::over(&rings, |_| true).filter(|_| !unaccounted);
    let processes: Vec<ProcessReport> = summary
        .producers
        .iter()
        .map(|(id, p)| process(*id, p, &rings, unaccounted))
        .collect();
    let warnings = warnings(&processes, &rings);
    let rows = summary
        .types
        .rows
        .iter()
        .enumerate()
        .filter(|(_, stats)| stats.events > 0);
    // `generic` comes first, and then what it stands for.
    let mut types = named(summary);
    types.extend(rows.map(|(row, stats)| type_report(EventType::ALL.get(row).copied(), stats)));
    types.sort_by_key(|t| t.event_type != EventType::Generic.name());
    Report {
        events: summary.events(),
        types,
        processes,
        totals,
        rings,
        slowest: summary
            .types
            .slowest
            .spans
            .iter()
            .map(|slow| slow_report(summary, slow))
            .collect(),
        host: host_report(&summary.load),
        warnings,
    }
}

fn slow_report(summary: &Summary, slow: &Slow) -> SlowReport {
    let (producer_id, nc_idx) = slow.key;
    let process = summary.producers.get(&producer_id);
    SlowReport {
        event_type: EventType::from_value(slow.trace_type).map_or("unknown", EventType::name),
        name: summary.names.get(&slow.name).map(ToString::to_string),
        duration_ns: slow.duration_ns,
        start_ns: slow.start_ns,
        process_id: process.and_then(|p| p.producer.as_ref()?.pid),
        nc_idx,
        tracking_id: slow.tracking_id,
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "percentages and bytes, which are not negative"
)]
fn host_report(load: &Load) -> Option<HostReport> {
    let memory = |value: f64| (load.memory.count > 0).then_some(value as u64);
    (load.ticks > 0).then(|| HostReport {
        ticks: load.ticks,
        cpu_busy_mean_permille: (load.cpu.mean() * 10.0).round() as u64,
        cpu_busy_max_permille: (load.cpu.max * 10.0).round() as u64,
        memory_used_mean_bytes: memory(load.memory.mean()),
        memory_used_max_bytes: memory(load.memory.max),
    })
}

fn ring_durations(activity: &Activity) -> Option<DurationStats> {
    let histogram = activity.durations.as_ref()?;
    Some(durations(histogram, activity.total_ns, activity.longest_ns))
}

fn idle_report(activity: &Activity) -> Option<IdleReport> {
    let running = &activity.running;
    (running.executions > 0).then_some(IdleReport {
        executions: running.executions,
        busy_ns: running.busy_ns,
        gaps: running.gaps,
        idle_ns: running.idle_ns,
        longest_gap_ns: running.longest_gap_ns,
        longest_gap_at_ns: running.longest_gap_at,
    })
}

fn durations(histogram: &Histogram<u64>, total_ns: u64, max_ns: u64) -> DurationStats {
    let at = |quantile| histogram.value_at_quantile(quantile).min(max_ns);
    DurationStats {
        total_ns,
        mean_ns: total_ns / histogram.len().max(1),
        p50_ns: at(0.5),
        p90_ns: at(0.9),
        p99_ns: at(0.99),
        max_ns,
    }
}

/// Spans by name, in the names' order.
fn named(summary: &Summary) -> Vec<TypeReport> {
    let rows = summary.types.named.iter();
    let mut types: Vec<TypeReport> = rows
        .map(|(id, stats)| TypeReport {
            name: summary.names.get(id).map(ToString::to_string),
            ..type_report(Some(EventType::Generic), stats)
        })
        .collect();
    types.sort_by(|a, b| a.name.cmp(&b.name));
    types
}

fn type_report(kind: Option<EventType>, stats: &TypeStats) -> TypeReport {
    let histogram = stats.durations.as_ref();
    let durations = histogram.map(|h| durations(h, stats.total_ns, stats.longest_ns));
    TypeReport {
        event_type: kind.map_or("unknown", EventType::name),
        name: None,
        category: kind.map_or(Category::Unknown, EventType::category).name(),
        events: stats.events,
        starts: stats.starts,
        stops: stats.stops,
        instants: stats.instants,
        pairs: stats.pairs,
        unmatched_starts: stats.starts - stats.pairs,
        unmatched_stops: stats.stops - stats.pairs,
        not_positive: stats.not_positive,
        durations,
    }
}

/// Rings that have an account or records, by producer and NC.
fn rings(summary: &Summary) -> Vec<RingReport> {
    let mut keys: Vec<(u32, u32)> = summary.accounts.keys().copied().collect();
    keys.extend(
        summary
            .rings
            .keys()
            .filter(|k| !summary.accounts.contains_key(*k)),
    );
    keys.sort_unstable();
    let report = |(producer_id, nc_idx)| {
        let key = (producer_id, nc_idx);
        let process = summary
            .producers
            .get(&producer_id)
            .and_then(|p| p.producer.as_ref());
        let activity = summary.rings.get(&key).map(|ring| &ring.activity);
        RingReport {
            producer_id,
            process_id: process.and_then(|p| p.pid),
            nc_idx,
            events: summary.rings.get(&key).map_or(0, |r| r.events),
            account: summary.accounts.get(&key).map(Totals::of),
            pairs: activity.map_or(0, |a| a.pairs),
            durations: activity.and_then(ring_durations),
            idle: activity.and_then(idle_report),
        }
    };
    keys.into_iter().map(report).collect()
}

fn process(
    producer_id: u32,
    process: &Process,
    rings: &[RingReport],
    unaccounted: bool,
) -> ProcessReport {
    let of_process = |ring: &RingReport| ring.producer_id == producer_id;
    let account = process.account.unwrap_or_default();
    let known = process.producer.as_ref();
    ProcessReport {
        producer_id,
        process_id: known.and_then(|p| p.pid),
        name: known.map_or_else(String::new, |p| p.name.clone()),
        worker_gid: known.map_or(-1, |p| p.worker_gid),
        state: known.map_or("unknown", |p| state_name(p.state())),
        events: process.events,
        account: Totals::over(rings, of_process).filter(|_| !unaccounted),
        no_ring: account.no_ring,
        nc_out_of_range: account.nc_out_of_range,
        strings_full: account.strings_full,
        strings_refused: account.strings_refused,
    }
}

const fn state_name(state: ProducerState) -> &'static str {
    match state {
        ProducerState::Unspecified => "unknown",
        ProducerState::Attached => "attached",
        ProducerState::Capturing => "capturing",
        ProducerState::Dead => "dead",
        ProducerState::Detached => "detached",
        ProducerState::Quarantined => "quarantined",
        ProducerState::Away => "away",
    }
}
