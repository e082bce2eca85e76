//! The figures, for people and for programs.

use std::fmt;

use serde::Serialize;

/// All of it.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Table {
    pub(crate) events: u64,
    /// Of the document.
    pub(crate) bytes: u64,
    pub(crate) rounds: usize,
    /// Events a second through gRPC, counted and thrown away.
    pub(crate) raw_per_second: f64,
    /// Events a second, ring to JSON in /dev/null.
    pub(crate) null_per_second: f64,
    /// Events a second, ring to JSON in a file that is on the disk.
    pub(crate) file_per_second: f64,
    /// That, by what `dd` reaches with the same bytes, on the disk as well.
    pub(crate) file_to_dd: f64,
    /// CPU time, ns per event, of a fetch to /dev/null.
    pub(crate) daemon_cpu_ns: f64,
    pub(crate) tool_cpu_ns: f64,
    /// Peaks of memory, of all events and of half of them.
    pub(crate) tool_peak_kib: u64,
    pub(crate) tool_peak_half_kib: u64,
    pub(crate) daemon_peak_kib: u64,
    pub(crate) daemon_peak_half_kib: u64,
}

#[expect(clippy::cast_precision_loss, reason = "shown with a few digits")]
impl Table {
    /// Events a second.
    pub(crate) fn rate(&self, seconds: f64) -> f64 {
        self.events as f64 / seconds
    }

    /// Nanoseconds for each event.
    pub(crate) fn each(&self, seconds: f64) -> f64 {
        seconds * 1e9 / self.events as f64
    }

    fn megabytes(&self, per_second: f64) -> f64 {
        self.bytes as f64 / 1e6 * per_second / self.events as f64
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} events, a document of {} bytes; medians of {} rounds",
            self.events, self.bytes, self.rounds
        )?;
        writeln!(
            f,
            "raw over gRPC             {:>7.2} M events/s (promised: 5)",
            self.raw_per_second / 1e6
        )?;
        writeln!(
            f,
            "to JSON in /dev/null      {:>7.2} M events/s (promised: 3), {:.0} MB/s",
            self.null_per_second / 1e6,
            self.megabytes(self.null_per_second)
        )?;
        writeln!(
            f,
            "to JSON in a file, synced {:>7.2} M events/s, {:.0} MB/s; dd with the same bytes: {:.0} MB/s; ratio {:.2} (promised: 0.9)",
            self.file_per_second / 1e6,
            self.megabytes(self.file_per_second),
            self.megabytes(self.file_per_second) / self.file_to_dd,
            self.file_to_dd
        )?;
        writeln!(
            f,
            "CPU of a fetch to /dev/null: daemon {:.0} ns/event, nrt-tracectl {:.0} ns/event",
            self.daemon_cpu_ns, self.tool_cpu_ns
        )?;
        writeln!(
            f,
            "peak memory: nrt-tracectl {} KiB ({} KiB with half of the events), daemon without its rings {} KiB ({} KiB)",
            self.tool_peak_kib,
            self.tool_peak_half_kib,
            self.daemon_peak_kib,
            self.daemon_peak_half_kib
        )
    }
}
