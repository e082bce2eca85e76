//! The soak's figures.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, ensure};

use super::account::Sums;

/// What was done.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) acts: BTreeMap<String, u64>,
    pub(super) runs: u64,
    pub(super) fetches: u64,
    /// Daemons after the first.
    pub(super) lives: u64,
    /// The longest that a daemon took to end after SIGTERM.
    pub(super) longest_end: Duration,
    /// Commits whose answer was cut off.
    pub(super) unsure: u64,
}

/// The daemon at a moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    pub(super) rss_kib: u64,
    pub(super) descriptors: usize,
    pub(super) life: u64,
}

/// Peaks of a third of the samples.
fn peaks(samples: &[Sample]) -> (u64, usize) {
    let rss = samples.iter().map(|sample| sample.rss_kib).max();
    let descriptors = samples.iter().map(|sample| sample.descriptors).max();
    (rss.unwrap_or(0), descriptors.unwrap_or(0))
}

fn thirds(samples: &[Sample]) -> [(u64, usize); 3] {
    let third = samples.len() / 3;
    [
        peaks(&samples[..third]),
        peaks(&samples[third..2 * third]),
        peaks(&samples[2 * third..]),
    ]
}

/// Prints it as a table for the specification.
pub(super) fn print(took: Duration, counts: &Counts, sums: &Sums, samples: &[Sample]) {
    let acts: Vec<String> = (counts.acts.iter())
        .map(|(act, times)| format!("{act} {times}"))
        .collect();
    let of_thirds = |what: &dyn Fn(&(u64, usize)) -> String| {
        thirds(samples)
            .iter()
            .map(what)
            .collect::<Vec<_>>()
            .join(", ")
    };
    let missing = sums.recorded.saturating_sub(sums.delivered);
    let rows = [
        ("took", format!("{:.0} s", took.as_secs_f64())),
        ("done", acts.join(", ")),
        (
            "runs, fetches, daemons, processes",
            format!(
                "{}, {}, {}, {}",
                counts.runs,
                counts.fetches,
                counts.lives + 1,
                sums.processes
            ),
        ),
        (
            "commits whose answer was cut off",
            counts.unsure.to_string(),
        ),
        (
            "events recorded, by the processes' own logs",
            format!(
                "{} ({} cut off in the middle)",
                sums.recorded, sums.unfinished
            ),
        ),
        (
            "delivered, each once",
            format!("{}; not delivered {missing}", sums.delivered),
        ),
        (
            "said to be lost",
            format!(
                "overwritten {}, dropped {}, given up {}",
                sums.overwritten, sums.dropped, sums.abandoned
            ),
        ),
        (
            "processes that ended with the daemon, their last counts marked as not exact",
            format!(
                "{}; {} events of theirs in no account",
                sums.inexact, sums.untold
            ),
        ),
        (
            "longest end after SIGTERM",
            format!("{} ms", counts.longest_end.as_millis()),
        ),
        (
            "peak memory of the daemon by thirds of the time, KiB",
            of_thirds(&|peak| peak.0.to_string()),
        ),
        (
            "peak descriptors, the same",
            of_thirds(&|peak| peak.1.to_string()),
        ),
    ];
    println!("\n| what | |\n|---|---|");
    for (what, value) in rows {
        println!("| {what} | {value} |");
    }
}

/// Whether memory and descriptors are flat, and anything was tried at all.
pub(super) fn check(sums: &Sums, samples: &[Sample]) -> Result<()> {
    ensure!(
        sums.delivered > 0 && sums.processes > 0,
        "nothing came: {sums:?}"
    );
    let [(rss, files), _, (late_rss, late_files)] = thirds(samples);
    ensure!(
        late_rss <= rss + rss / 2 + 8192,
        "memory grows: {rss} KiB at first, {late_rss} at last"
    );
    ensure!(
        late_files <= 2 * files + 16,
        "descriptors grow: {files} at first, {late_files} at last"
    );
    let lives = samples.last().map_or(0, |sample| sample.life);
    ensure!(lives >= 3, "the daemon was never killed");
    Ok(())
}
