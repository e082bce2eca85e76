//! `nrt-trace-bench json`: our JSON writer beside `serde_json` with derived `Serialize`.
//!
//! Both write the same document, which is compared byte for byte before anything is timed. Ours starts from the packed
//! records of a fetch and works out models and host times on the way; the derived one starts from structs that have all
//! of that already. Rounds alternate; a figure is the median of a round's CPU time.

use std::fmt;
use std::io::{self, Write};

use anyhow::{Context, Result, ensure};
use nrt_trace_export::{JsonOptions, JsonWriter};
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

mod derived;
mod mix;

use mix::Mix;

/// `json`
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Rounds; the figures are medians.
    #[arg(long, default_value_t = 9)]
    rounds: usize,
    /// Events of the document.
    #[arg(long, default_value_t = 1_000_000)]
    events: usize,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// The figures.
#[derive(Debug, Serialize)]
struct Table {
    events: u64,
    bytes: u64,
    rounds: usize,
    /// The two documents were compared and are the same.
    equal: bool,
    /// CPU time, ns per event.
    ours_ns: f64,
    serde_json_ns: f64,
    /// How many times as fast ours is: the median of each round's ratio.
    times_as_fast: f64,
}

/// Runs the measurement and prints its table.
pub(crate) fn run(options: &Options) -> Result<()> {
    ensure!(
        options.rounds > 0 && options.events >= 8,
        "--rounds must be at least 1, --events at least 8"
    );
    let mix = mix::trace(options.events);
    let bytes = compare(&mix).context("the two writers disagree")?;
    let events = mix.events.len();
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..options.rounds {
        ours.push(timed(|| write_ours(&mix, Sink).map(drop))?);
        theirs.push(timed(|| derived::write(&mix.events, Sink).map(drop))?);
    }
    let ratios = ours.iter().zip(&theirs).map(|(o, t)| t / o).collect();
    let each = |seconds: f64| seconds * 1e9 / f64::from(u32::try_from(events).unwrap_or(u32::MAX));
    let table = Table {
        events: events as u64,
        bytes,
        rounds: options.rounds,
        equal: true,
        ours_ns: each(crate::median(ours)),
        serde_json_ns: each(crate::median(theirs)),
        times_as_fast: crate::median(ratios),
    };
    if options.json {
        println!("{}", serde_json::to_string_pretty(&table)?);
    } else {
        print!("{table}");
    }
    Ok(())
}

fn write_ours<W: Write>(mix: &Mix, out: W) -> io::Result<W> {
    let mut writer = JsonWriter::new(out, JsonOptions::default());
    mix.parts.iter().try_for_each(|part| writer.part(part))?;
    writer.finish()
}

/// Both documents, byte for byte; the answer is their length.
fn compare(mix: &Mix) -> Result<u64> {
    let ours = write_ours(mix, Vec::new())?;
    let rest = derived::write(&mix.events, Expected(&ours, 0))?;
    ensure!(rest.0.is_empty(), "ours goes on: {}", show(rest.0));
    Ok(ours.len() as u64)
}

/// Refuses what differs from the text that is expected.
struct Expected<'a>(&'a [u8], usize);

impl Write for Expected<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let same = self.0.iter().zip(bytes).take_while(|(a, b)| a == b).count();
        if same < bytes.len() {
            let before = same.saturating_sub(200);
            return Err(io::Error::other(format!(
                "at byte {}\nours:   {}\nderive: {}",
                self.1 + same,
                show(&self.0[before..]),
                show(&bytes[before..])
            )));
        }
        self.0 = &self.0[bytes.len()..];
        self.1 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn show(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(400)]).into_owned()
}

/// Takes everything.
struct Sink;

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        std::hint::black_box(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// CPU time of this process, s: what others do on the machine counts less than in wall time.
#[expect(clippy::cast_precision_loss, reason = "shown with a few digits")]
fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn timed(run: impl FnOnce() -> io::Result<()>) -> io::Result<f64> {
    let begin = cpu_seconds();
    run()?;
    Ok(cpu_seconds() - begin)
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} events of every type and phase, {} bytes, byte for byte the same; medians of {} rounds, CPU time",
            self.events, self.bytes, self.rounds
        )?;
        for (name, ns) in [
            ("ours, from packed records", self.ours_ns),
            (
                "serde_json, derived Serialize, from structs",
                self.serde_json_ns,
            ),
        ] {
            writeln!(
                f,
                "{name:<46}{ns:>8.1} ns/event{:>8.2} M events/s",
                1e3 / ns
            )?;
        }
        writeln!(
            f,
            "ours is {:.2} times as fast (promised: at least 2)",
            self.times_as_fast
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_derived_document_is_ours_byte_for_byte() {
        let mix = mix::trace(3_000);
        assert!(compare(&mix).unwrap() > 300_000);
        let wrong = Mix {
            parts: mix.parts,
            events: mix.events.into_iter().skip(1).collect(),
        };
        assert!(compare(&wrong).is_err(), "a difference is seen");
    }
}
