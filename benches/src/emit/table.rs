//! The figures, for people and for programs.

use std::fmt;

use serde::Serialize;

use super::CASES;

/// One shape and ring size: ns per event of each case, and the ratios that are promised.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    shape: &'static str,
    ring: u64,
    /// ns per event and thread, in the order of the cases.
    ns: [f64; CASES.len()],
    /// Each case by (a), the original's engine.
    to_original: [f64; CASES.len()],
    /// Each case by (f), the floor.
    to_floor: [f64; CASES.len()],
    /// What a cache line's way from core to core and back cost, by two, at the time.
    hop_ns: Option<f64>,
}

impl Row {
    pub(crate) fn new(
        shape: &'static str,
        ring: u64,
        ns: [f64; CASES.len()],
        hop_ns: Option<f64>,
    ) -> Self {
        Self {
            shape,
            ring,
            ns,
            to_original: ns.map(|x| x / ns[0]),
            to_floor: ns.map(|x| x / ns[5]),
            hop_ns,
        }
    }
}

/// Single calls, timed one by one with the time stamp counter, two threads on one NC, ns.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Latency {
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    pub(crate) p999: f64,
    /// What timing an empty call gives; it is contained in the others.
    pub(crate) empty: f64,
}

/// All of it.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Table {
    pub(crate) rows: Vec<Row>,
    /// (ring size, ns per event) of the lap that takes the pages.
    pub(crate) first_laps: Vec<(u64, f64)>,
    /// The same lap at a million events a second, single calls, one thread.
    pub(crate) paced_first_laps: Vec<(u64, Latency)>,
    pub(crate) latency: Vec<(u64, Latency)>,
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<20}{:>9}", "ns per event", "ring")?;
        for (name, ..) in CASES {
            write!(f, "{name:>17}")?;
        }
        writeln!(f, "{:>8}{:>8}{:>8}", "c/a", "c/f", "hop")?;
        for row in &self.rows {
            write!(f, "{:<20}{:>9}", row.shape, row.ring)?;
            for ns in row.ns {
                write!(f, "{ns:>17.1}")?;
            }
            write!(f, "{:>8.2}{:>8.2}", row.to_original[2], row.to_floor[2])?;
            match row.hop_ns {
                Some(ns) => writeln!(f, "{ns:>8.0}")?,
                None => writeln!(f, "{:>8}", "-")?,
            }
        }
        for (ring, ns) in &self.first_laps {
            writeln!(
                f,
                "first lap of {ring} events, C ABI, pages taken on the way: {ns:.1} ns per event"
            )?;
        }
        for (ring, l) in &self.paced_first_laps {
            writeln!(
                f,
                "first lap of {ring} events, one call each microsecond: p50 {:.0} ns, p99 {:.0} ns, p99.9 {:.0} ns (timing alone: {:.0} ns)",
                l.p50, l.p99, l.p999, l.empty
            )?;
        }
        for (ring, l) in &self.latency {
            writeln!(
                f,
                "one call, C ABI, 2 threads on one NC, ring {ring}: p50 {:.0} ns, p99 {:.0} ns, p99.9 {:.0} ns (timing alone: {:.0} ns)",
                l.p50, l.p99, l.p999, l.empty
            )?;
        }
        Ok(())
    }
}
