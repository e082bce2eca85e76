//! Every metric, in one table.

use nrt_trace_proto::v1;

use super::{Outcome, View};
use crate::run::tally::{Cause, Tally};
use crate::service::outlet;
use crate::strings::Refused;

/// What a metric's value does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Grows while what it is about exists.
    Counter,
    /// Goes up and down.
    Gauge,
}

/// Names and values of a sample's labels.
pub(super) type Labels = Vec<(&'static str, String)>;

/// Takes a sample.
type Sink<'a> = &'a mut dyn FnMut(Labels, f64);

/// One metric.
pub(super) struct Family {
    /// Without the `_total` that the format adds to counters.
    pub name: &'static str,
    pub help: &'static str,
    pub kind: Kind,
    pub samples: fn(&View, Sink<'_>),
}

const fn counter(name: &'static str, help: &'static str, samples: fn(&View, Sink<'_>)) -> Family {
    Family {
        name,
        help,
        kind: Kind::Counter,
        samples,
    }
}

const fn gauge(name: &'static str, help: &'static str, samples: fn(&View, Sink<'_>)) -> Family {
    Family {
        name,
        help,
        kind: Kind::Gauge,
        samples,
    }
}

/// The table. Sizes are bytes, times seconds.
pub(super) const FAMILIES: [Family; 47] = [
    gauge(
        "nrt_trace_build_info",
        "1, with the daemon's version and that of its shared memory",
        |view, sink| {
            let abi = view.status.abi_version.to_string();
            let labels = vec![("version", view.status.version.clone()), ("abi", abi)];
            sink(labels, 1.0);
        },
    ),
    gauge(
        "nrt_trace_start_time_seconds",
        "When the daemon started, since 1970",
        |view, sink| {
            one(sink, seconds(view.status.started_ns));
        },
    ),
    counter(
        "nrt_trace_cpu_seconds",
        "CPU time of the daemon",
        |view, sink| {
            one(sink, seconds(view.status.cpu_ns));
        },
    ),
    gauge(
        "nrt_trace_resident_bytes",
        "Memory of the daemon, without what it shares",
        |view, sink| {
            one(sink, number(view.status.rss_bytes));
        },
    ),
    gauge(
        "nrt_trace_segment_reserved_bytes",
        "Shared memory promised to processes",
        |view, sink| {
            one(sink, number(view.status.reserved_bytes));
        },
    ),
    gauge(
        "nrt_trace_segment_resident_bytes",
        "Shared memory really taken",
        |view, sink| {
            one(sink, number(view.status.resident_bytes));
        },
    ),
    gauge(
        "nrt_trace_budget_used",
        "What is used of each limit",
        |view, sink| {
            budgets(view, sink, |budget| budget.used);
        },
    ),
    gauge("nrt_trace_budget_allowed", "Each limit", |view, sink| {
        budgets(view, sink, |budget| budget.allowed);
    }),
    gauge(
        "nrt_trace_producers",
        "Processes attached now",
        |view, sink| {
            one(sink, f64::from(view.status.producers));
        },
    ),
    counter(
        "nrt_trace_attached",
        "Processes that attached since the start",
        |view, sink| {
            one(sink, number(view.status.attached));
        },
    ),
    counter(
        "nrt_trace_refused",
        "Processes not attached, or not captured, by cause",
        |view, sink| {
            for refusal in &view.status.refusals {
                sink(
                    vec![("cause", refusal.cause.clone())],
                    number(refusal.count),
                );
            }
        },
    ),
    counter(
        "nrt_trace_names_refused",
        "Names of processes that show as their numbers, by cause: no name, or the setting that was reached",
        |view, sink| {
            for cause in Refused::ALL {
                let count = view.totals.names_refused[cause as usize];
                sink(vec![("cause", cause.name().to_owned())], number(count));
            }
        },
    ),
    counter(
        "nrt_trace_log_dropped",
        "Lines of the log that were dropped because what it is written to took none",
        |_, sink| one(sink, number(outlet::dropped())),
    ),
    counter(
        "nrt_trace_quarantined",
        "Processes whose shared memory said what can't be",
        |view, sink| {
            one(sink, number(view.status.quarantined));
        },
    ),
    counter(
        "nrt_trace_not_kept",
        "Unread events of ended processes that a restart of the daemon would lose: there was no room to write them",
        |view, sink| {
            one(sink, number(view.status.not_kept));
        },
    ),
    gauge(
        "nrt_trace_runs",
        "Runs, by whether they still capture",
        |view, sink| {
            for (state, capturing) in [("capturing", true), ("stopped", false)] {
                let runs = view.status.runs.iter();
                let runs = runs.filter(|run| run.capturing == capturing).count();
                sink(vec![("state", state.to_owned())], number(runs as u64));
            }
        },
    ),
    counter(
        "nrt_trace_events_recorded",
        "Events that were recorded, of all runs and processes that ever were: delivered, skipped, lost and open add up to it",
        |view, sink| one(sink, number(view.totals.all.recorded)),
    ),
    counter(
        "nrt_trace_events_delivered",
        "Of these, events that were fetched and committed",
        |view, sink| one(sink, number(view.totals.all.delivered)),
    ),
    counter(
        "nrt_trace_events_skipped",
        "Of these, events passed by: only a process's own capture had asked for them",
        |view, sink| one(sink, number(view.totals.all.skipped)),
    ),
    counter(
        "nrt_trace_events_lost",
        "Of these, events that nobody will get, by cause",
        |view, sink| lost(&view.totals.all, &Vec::new(), sink),
    ),
    gauge(
        "nrt_trace_events_open",
        "Of these, events that wait to be fetched, or whose emit is under way",
        |view, sink| one(sink, number(view.totals.all.open())),
    ),
    counter(
        "nrt_trace_events_unplaced",
        "Events that were not recorded because their NeuronCore had no ring, by cause",
        |view, sink| {
            let causes = ["no_ring", "nc_out_of_range"].into_iter();
            for (cause, count) in causes.zip(view.totals.all.unplaced) {
                sink(vec![("cause", cause.to_owned())], number(count));
            }
        },
    ),
    counter(
        "nrt_trace_scope_recorded",
        "As events_recorded, of the runs of a token, or of the host where it is empty",
        |view, sink| scopes(view, sink, |tally| tally.recorded),
    ),
    counter(
        "nrt_trace_scope_delivered",
        "As events_delivered, by scope",
        |view, sink| scopes(view, sink, |tally| tally.delivered),
    ),
    counter(
        "nrt_trace_scope_skipped",
        "As events_skipped, by scope",
        |view, sink| scopes(view, sink, |tally| tally.skipped),
    ),
    counter(
        "nrt_trace_scope_lost",
        "As events_lost, by scope",
        |view, sink| {
            for (token, tally) in &view.totals.scopes {
                lost(tally, &vec![("token", token.clone())], sink);
            }
        },
    ),
    gauge(
        "nrt_trace_scope_open",
        "As events_open, by scope",
        |view, sink| scopes(view, sink, Tally::open),
    ),
    counter(
        "nrt_trace_ring_claimed",
        "Events that a ring's writers claimed a number for",
        |view, sink| {
            rings(view, sink, |account| account.claimed);
        },
    ),
    counter(
        "nrt_trace_ring_delivered",
        "Events of a ring that were fetched",
        |view, sink| {
            rings(view, sink, |account| account.delivered);
        },
    ),
    counter(
        "nrt_trace_ring_lost",
        "Events of a ring that nobody will get: the causes add up to it",
        |view, sink| {
            rings(view, sink, |account| account.lost);
        },
    ),
    counter(
        "nrt_trace_ring_overwritten",
        "Events of a ring that were overwritten before they were read",
        |view, sink| {
            rings(view, sink, |account| account.overwritten);
        },
    ),
    counter(
        "nrt_trace_ring_dropped",
        "Events of a ring that their writer dropped, by cause",
        |view, sink| {
            each_ring(view, |labels, account| {
                for (cause, count) in [
                    ("in_flight", account.dropped_in_flight),
                    ("lapped", account.dropped_lapped),
                    ("seq", account.dropped_seq),
                ] {
                    let mut labels = labels.clone();
                    labels.push(("cause", cause.to_owned()));
                    sink(labels, number(count));
                }
            });
        },
    ),
    counter(
        "nrt_trace_ring_abandoned",
        "Events of a ring that were given up on request",
        |view, sink| {
            rings(view, sink, |account| account.abandoned);
        },
    ),
    gauge(
        "nrt_trace_ring_unread",
        "Events of a ring that wait to be fetched",
        |view, sink| {
            rings(view, sink, |account| account.unread);
        },
    ),
    gauge(
        "nrt_trace_ring_pending",
        "Events of a ring that were looked for and are not there yet",
        |view, sink| {
            rings(view, sink, |account| account.pending);
        },
    ),
    counter(
        "nrt_trace_fetches",
        "Fetches and snapshots, by how they ended",
        |view, sink| {
            for (name, outcome) in [
                ("whole", Outcome::Whole),
                ("broken_off", Outcome::BrokenOff),
            ] {
                sink(
                    vec![("outcome", name.to_owned())],
                    number(view.calls.count(outcome)),
                );
            }
        },
    ),
    counter(
        "nrt_trace_fetched_events",
        "Events that went into fetches and snapshots",
        |view, sink| {
            one(sink, number(view.calls.events()));
        },
    ),
    gauge(
        "nrt_trace_subscribers",
        "Subscribers that follow a run now",
        |view, sink| {
            one(sink, number(view.calls.subscribers().0));
        },
    ),
    counter(
        "nrt_trace_subscribed_events",
        "Events that went to subscribers, counted for each",
        |view, sink| {
            one(sink, number(view.calls.subscribers().1));
        },
    ),
    counter(
        "nrt_trace_subscribed_lost",
        "Events that subscribers missed because they were too slow, or that were never recorded, counted for each",
        |view, sink| {
            one(sink, number(view.calls.subscribers().2));
        },
    ),
    gauge(
        "nrt_trace_host_running",
        "1 while the host monitor samples",
        |view, sink| {
            one(sink, f64::from(u8::from(view.host.running)));
        },
    ),
    gauge(
        "nrt_trace_host_ticks",
        "Ticks of the host monitor that are kept",
        |view, sink| {
            one(sink, number(view.host.num_samples));
        },
    ),
    gauge(
        "nrt_trace_host_kept_bytes",
        "Memory that they take",
        |view, sink| {
            one(sink, number(view.host.kept_bytes));
        },
    ),
    counter(
        "nrt_trace_host_sampled_ticks",
        "Ticks of the host monitor that happened",
        |view, sink| {
            one(sink, number(view.ticks.ticks));
        },
    ),
    counter(
        "nrt_trace_host_missed_ticks",
        "Ticks that were due and did not happen",
        |view, sink| {
            one(sink, number(view.ticks.missed));
        },
    ),
    counter(
        "nrt_trace_host_bad_values",
        "Values in the kernel's files that made no sense",
        |view, sink| {
            one(sink, number(view.ticks.bad_values));
        },
    ),
    gauge(
        "nrt_trace_host_late_seconds",
        "How late the kept ticks came, at quantiles",
        |view, sink| {
            for (quantile, ns) in [
                ("0.5", view.host.late_p50_ns),
                ("0.99", view.host.late_p99_ns),
                ("1", view.host.late_max_ns),
            ] {
                sink(vec![("quantile", quantile.to_owned())], seconds(ns));
            }
        },
    ),
];

fn one(sink: Sink<'_>, value: f64) {
    sink(Vec::new(), value);
}

#[expect(
    clippy::cast_precision_loss,
    reason = "OpenMetrics has floats; below 2^53 they are exact"
)]
fn number(value: u64) -> f64 {
    value as f64
}

fn seconds(ns: u64) -> f64 {
    number(ns) / 1e9
}

fn budgets(view: &View, sink: Sink<'_>, value: fn(&v1::Budget) -> u64) {
    for budget in &view.status.budgets {
        sink(vec![("key", budget.key.clone())], number(value(budget)));
    }
}

fn scopes(view: &View, sink: Sink<'_>, value: fn(&Tally) -> u64) {
    for (token, tally) in &view.totals.scopes {
        sink(vec![("token", token.clone())], number(value(tally)));
    }
}

/// Every cause, also those that nothing was lost for: the first loss is then a step of a counter that is there.
fn lost(tally: &Tally, labels: &Labels, sink: Sink<'_>) {
    for cause in Cause::ALL {
        let mut labels = labels.clone();
        labels.push(("cause", cause.name().to_owned()));
        sink(labels, number(tally.lost[cause as usize]));
    }
}

fn rings(view: &View, sink: Sink<'_>, value: fn(&v1::RingAccount) -> u64) {
    each_ring(view, |labels, account| sink(labels, number(value(account))));
}

/// The rings that have events, with the labels that say whose they are. Most processes use few of those that they have.
fn each_ring(view: &View, mut take: impl FnMut(Labels, &v1::RingAccount)) {
    for run in &view.status.runs {
        let scope = run.run.as_ref().map_or("", |run| run.token.as_str());
        for account in run.accounts.iter().filter(|account| account.claimed > 0) {
            let id = account.producer_id;
            let producer = view.producers.iter().find(|p| p.producer_id == id);
            let pid = producer.and_then(|producer| producer.pid);
            let labels = vec![
                ("token", scope.to_owned()),
                ("producer", id.to_string()),
                ("pid", pid.map_or_else(String::new, |pid| pid.to_string())),
                (
                    "name",
                    producer.map_or_else(String::new, |p| p.name.clone()),
                ),
                ("nc", account.nc_idx.to_string()),
            ];
            take(labels, account);
        }
    }
}
