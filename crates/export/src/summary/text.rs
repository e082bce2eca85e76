//! The figures of a summary, as aligned text.

use std::fmt::Write as _;

use super::account::Totals;
use super::report::{Report, RingReport};
use crate::printable::printable;

impl Report {
    /// The figures as text: event types, processes, loss account, warnings. It ends with a line feed.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        self.types(&mut out);
        self.cores(&mut out);
        self.slowest(&mut out);
        self.host(&mut out);
        self.processes(&mut out);
        self.losses(&mut out);
        for warning in &self.warnings {
            line(&mut out, &printable(warning));
        }
        out
    }

    /// The same for a terminal: the first line of each paragraph stands out, and warnings do.
    #[must_use]
    pub fn to_coloured_text(&self) -> String {
        let text = self.to_text();
        let mut out = String::with_capacity(text.len() + 256);
        let mut first = true;
        for row in text.lines() {
            let colour = if row.starts_with("Warning: ") {
                "\x1b[1;33m"
            } else if first && !row.is_empty() {
                "\x1b[1m"
            } else {
                ""
            };
            first = row.is_empty();
            let end = if colour.is_empty() { "" } else { "\x1b[0m" };
            line(&mut out, &format!("{colour}{row}{end}"));
        }
        out
    }

    /// NeuronCores: their spans, and how busy they were.
    fn cores(&self, out: &mut String) {
        if self.rings.iter().all(|ring| ring.pairs == 0) {
            return;
        }
        let mut table = Table::new(&[
            "pid",
            "nc",
            "pairs",
            "total",
            "mean",
            "p50",
            "p90",
            "p99",
            "max",
            "busy",
            "idle gaps",
            "longest",
        ]);
        for ring in self.rings.iter().filter(|ring| ring.pairs > 0) {
            let of = |pick: fn(&super::DurationStats) -> u64| {
                ring.durations.as_ref().map_or_else(dash, |d| span(pick(d)))
            };
            let idle = ring.idle.as_ref();
            table.row([
                ring.process_id.map_or_else(dash, |pid| pid.to_string()),
                ring.nc_idx.to_string(),
                ring.pairs.to_string(),
                of(|d| d.total_ns),
                of(|d| d.mean_ns),
                of(|d| d.p50_ns),
                of(|d| d.p90_ns),
                of(|d| d.p99_ns),
                of(|d| d.max_ns),
                idle.map_or_else(dash, |i| share(i.busy_ns, i.idle_ns)),
                idle.map_or_else(dash, |i| i.gaps.to_string()),
                idle.map_or_else(dash, |i| span(i.longest_gap_ns)),
            ]);
        }
        out.push('\n');
        table.write(out);
    }

    fn slowest(&self, out: &mut String) {
        if self.slowest.is_empty() {
            return;
        }
        let mut table = Table::new(&["<slowest", "took", "pid", "nc", "start_ns", "tracking_id"]);
        for slow in &self.slowest {
            table.row([
                slow.name
                    .as_deref()
                    .map_or_else(|| slow.event_type.to_owned(), quoted),
                span(slow.duration_ns),
                slow.process_id.map_or_else(dash, |pid| pid.to_string()),
                slow.nc_idx.to_string(),
                slow.start_ns.to_string(),
                slow.tracking_id.to_string(),
            ]);
        }
        out.push('\n');
        table.write(out);
    }

    fn host(&self, out: &mut String) {
        let Some(host) = &self.host else { return };
        let percent = |permille: u64| format!("{}.{} %", permille / 10, permille % 10);
        let memory = match (host.memory_used_mean_bytes, host.memory_used_max_bytes) {
            (Some(mean), Some(max)) => format!(
                "; memory used {} MiB on average, {} MiB at most",
                mean >> 20,
                max >> 20
            ),
            _ => String::new(),
        };
        out.push('\n');
        line(
            out,
            &format!(
                "host: {} ticks; cores busy {} on average, {} at most{memory}",
                host.ticks,
                percent(host.cpu_busy_mean_permille),
                percent(host.cpu_busy_max_permille)
            ),
        );
    }

    fn types(&self, out: &mut String) {
        let mut table = Table::new(&[
            "<event",
            "events",
            "pairs",
            "total",
            "mean",
            "p50",
            "p90",
            "p99",
            "max",
            "unmatched",
        ]);
        let mut not_positive = 0;
        for t in &self.types {
            let duration = |pick: fn(&super::DurationStats) -> u64| {
                t.durations.as_ref().map_or_else(dash, |d| span(pick(d)))
            };
            table.row([
                t.name
                    .as_deref()
                    .map_or_else(|| t.event_type.to_owned(), quoted),
                t.events.to_string(),
                t.pairs.to_string(),
                duration(|d| d.total_ns),
                duration(|d| d.mean_ns),
                duration(|d| d.p50_ns),
                duration(|d| d.p90_ns),
                duration(|d| d.p99_ns),
                duration(|d| d.max_ns),
                (t.unmatched_starts + t.unmatched_stops).to_string(),
            ]);
            not_positive += t.not_positive;
        }
        let sum = |pick: fn(&super::TypeReport) -> u64| {
            self.types.iter().map(pick).sum::<u64>().to_string()
        };
        let unmatched = sum(|t| t.unmatched_starts + t.unmatched_stops);
        table.row([
            "total".to_owned(),
            sum(|t| t.events),
            sum(|t| t.pairs),
            dash(),
            dash(),
            dash(),
            dash(),
            dash(),
            dash(),
            unmatched,
        ]);
        table.write(out);
        if not_positive > 0 {
            line(
                out,
                &format!("{not_positive} pairs have a stop that is not after its start"),
            );
        }
    }

    fn processes(&self, out: &mut String) {
        let mut table = Table::new(&[
            "pid", "<name", "worker", "events", "claimed", "lost", "<state",
        ]);
        for p in &self.processes {
            let of = |pick: fn(&Totals) -> u64| {
                (p.account.as_ref()).map_or_else(unknown, |account| pick(account).to_string())
            };
            table.row([
                p.process_id.map_or_else(dash, |pid| pid.to_string()),
                printable(&p.name),
                p.worker_gid.to_string(),
                p.events.to_string(),
                of(|t| t.claimed),
                of(|t| t.lost),
                p.state.to_owned(),
            ]);
        }
        out.push('\n');
        table.write(out);
    }

    fn losses(&self, out: &mut String) {
        out.push('\n');
        match &self.totals {
            Some(t) => {
                let Totals {
                    claimed,
                    delivered,
                    lost,
                    pending,
                    unread,
                    ..
                } = t;
                line(
                    out,
                    &format!(
                        "claimed {claimed} = delivered {delivered} + lost {lost} + pending {pending} + unread {unread}"
                    ),
                );
                if t.lost + t.pending > 0 {
                    line(out, &format!("causes: {}", causes(t)));
                }
            }
            None => line(
                out,
                "claimed and lost: unknown, since the trace does not say (a JSON document never does)",
            ),
        }
        let no_ring: u64 = self.processes.iter().map(|p| p.no_ring).sum();
        if no_ring > 0 {
            line(out, &format!("beside them no_ring {no_ring}"));
        }
        let accounts = self.rings.iter().filter_map(|r| Some((r, r.account?)));
        let rings: Vec<(&RingReport, Totals)> = accounts
            .filter(|(_, account)| account.lost + account.pending + account.unread > 0)
            .collect();
        if rings.is_empty() {
            return;
        }
        let mut table = Table::new(&[
            "pid",
            "nc",
            "claimed",
            "delivered",
            "lost",
            "pending",
            "unread",
            "<causes",
        ]);
        for (r, account) in rings {
            table.row([
                r.process_id.map_or_else(dash, |pid| pid.to_string()),
                r.nc_idx.to_string(),
                account.claimed.to_string(),
                account.delivered.to_string(),
                account.lost.to_string(),
                account.pending.to_string(),
                account.unread.to_string(),
                causes(&account),
            ]);
        }
        table.write(out);
    }
}

/// The causes that occur. Where a thread may have ended in the middle of an event, what looks overwritten may also be
/// unfinished.
fn causes(t: &Totals) -> String {
    let overwritten = if t.exact {
        "overwritten"
    } else {
        "overwritten or unfinished"
    };
    let all = [
        (overwritten, t.overwritten),
        ("dropped_in_flight", t.dropped_in_flight),
        ("dropped_lapped", t.dropped_lapped),
        ("dropped_seq", t.dropped_seq),
        ("abandoned", t.abandoned),
    ];
    let present: Vec<String> = all
        .iter()
        .filter(|(_, n)| *n > 0)
        .map(|(name, n)| format!("{name} {n}"))
        .collect();
    if present.is_empty() {
        dash()
    } else {
        present.join(", ")
    }
}

/// Part of the time in which something ran, percent.
fn share(busy: u64, idle: u64) -> String {
    let permille = u128::from(busy) * 1000 / u128::from(busy.saturating_add(idle).max(1));
    format!("{}.{} %", permille / 10, permille % 10)
}

/// A name that no event type has and no terminal obeys.
fn quoted(name: &str) -> String {
    format!("\"{}\"", printable(name))
}

fn dash() -> String {
    "-".to_owned()
}

fn unknown() -> String {
    "unknown".to_owned()
}

fn line(out: &mut String, text: &str) {
    writeln!(out, "{text}").expect("a String takes everything");
}

/// A duration with three significant digits and a unit.
fn span(ns: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
    let value = ns as f64;
    let (scaled, unit) = match ns {
        0..1_000 => return format!("{ns} ns"),
        1_000..1_000_000 => (value / 1e3, "us"),
        1_000_000..1_000_000_000 => (value / 1e6, "ms"),
        _ => (value / 1e9, "s"),
    };
    let decimals = if scaled < 9.995 {
        2
    } else if scaled < 99.95 {
        1
    } else {
        0
    };
    format!("{scaled:.decimals$} {unit}")
}

/// Columns as wide as their widest cell; a title that begins with `<` aligns to the left.
struct Table<const N: usize> {
    left: [bool; N],
    rows: Vec<[String; N]>,
}

impl<const N: usize> Table<N> {
    fn new(titles: &[&str; N]) -> Self {
        let row = titles.map(|t| t.trim_start_matches('<').to_owned());
        Self {
            left: titles.map(|t| t.starts_with('<')),
            rows: vec![row],
        }
    }

    fn row(&mut self, cells: [String; N]) {
        self.rows.push(cells);
    }

    fn write(&self, out: &mut String) {
        let width = |column: usize| {
            self.rows
                .iter()
                .map(|r| r[column].chars().count())
                .max()
                .unwrap_or(0)
        };
        let widths: [usize; N] = std::array::from_fn(width);
        for row in &self.rows {
            let mut text = String::new();
            for ((cell, width), left) in row.iter().zip(widths).zip(self.left) {
                if left {
                    write!(text, "  {cell:<width$}")
                } else {
                    write!(text, "  {cell:>width$}")
                }
                .expect("a String takes everything");
            }
            line(out, text.get(2..).unwrap_or_default().trim_end());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_three_digits_and_a_unit() {
        let shown = [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_000, "1.00 us"),
            (9_994, "9.99 us"),
            (9_999, "10.0 us"),
            (123_456, "123 us"),
            (1_234_567, "1.23 ms"),
            (59_990_000_000, "60.0 s"),
            (u64::MAX, "18446744074 s"),
        ];
        for (ns, text) in shown {
            assert_eq!(span(ns), text, "{ns}");
        }
    }

    #[test]
    fn columns_are_aligned() {
        let mut table = Table::new(&["n", "<name"]);
        table.row(["123".into(), "é".into()]);
        table.row(["4".into(), "long".into()]);
        let mut out = String::new();
        table.write(&mut out);
        assert_eq!(out, "  n  name\n123  é\n  4  long\n");
    }
}
