//! What follows from the figures for whoever recorded them.

use super::account::Totals;
use super::report::{ProcessReport, RingReport};

/// What the user should know, a sentence or two each.
pub(super) fn warnings(processes: &[ProcessReport], rings: &[RingReport]) -> Vec<String> {
    let mut warnings = Vec::new();
    // Ring by ring: what producers dropped may still be pending, then it is not in `lost`.
    let of_ring = |a: &Totals| {
        a.lost
            .saturating_sub(a.abandoned)
            .max(a.dropped_by_producers())
    };
    let accounts = || rings.iter().filter_map(|ring| ring.account.as_ref());
    let no_ring: u64 = processes.iter().map(|p| p.no_ring).sum();
    let dropped = accounts().map(of_ring).sum::<u64>() + no_ring;
    if dropped > 0 {
        let stored: u64 = accounts().map(|a| a.delivered).sum();
        let total = accounts().map(|a| a.claimed).sum::<u64>() + no_ring;
        warnings.push(format!(
            "Warning: {dropped} trace events were dropped during capture (stored {stored} out of {total} total events). \
             Consider increasing buffer size, reducing trace duration, or filtering events."
        ));
    }
    for p in processes {
        let who = p.label();
        let mut warn = |count: u64, text: &str| {
            if count > 0 {
                warnings.push(format!("Warning: {count} {text}"));
            }
        };
        warn(
            p.no_ring,
            &format!(
                "events of {who} were for NeuronCores that have no ring: set NEURON_RT_VISIBLE_CORES or NEURON_RT_NUM_CORES"
            ),
        );
        warn(
            p.nc_out_of_range,
            &format!("events of {who} had an NC index of 256 or more and count for NC 0"),
        );
        warn(
            p.strings_full,
            &format!(
                "names of {who} were longer than 64 KiB or found no room in its string table: their ids have no name"
            ),
        );
        warn(
            p.strings_refused,
            &format!(
                "names of {who} were refused: what the daemon keeps of its user's names, or of all, was used up (names_budget_bytes_per_uid, names_budget_bytes), or they were no names (wrong id, not UTF-8, out of bounds)"
            ),
        );
        if p.state == "quarantined" {
            warnings.push(format!("Warning: {who} wrote impossible words into its rings: nothing more was read from it"));
        } else if p.account.map_or(0, |a| a.claimed) + p.events + p.no_ring == 0 {
            warnings.push(format!(
                "Warning: {who} was attached, but no event of it was recorded"
            ));
        }
    }
    warnings
}

impl ProcessReport {
    /// `process 4711 (name)`, or the producer's number where the host has no pid for it.
    pub(super) fn label(&self) -> String {
        let id = match self.process_id {
            Some(pid) => format!("process {pid}"),
            None => format!("producer {}", self.producer_id),
        };
        if self.name.is_empty() {
            id
        } else {
            format!("{id} ({})", self.name)
        }
    }
}
