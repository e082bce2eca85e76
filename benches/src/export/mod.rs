//! `nrt-trace-bench export`: how fast a recorded trace becomes a document or a summary, and in how much memory.
//!
//! The input is the demo's recording, repeated until it has as many events as wanted, so that types, payloads and pairs are in
//! the demo's proportion. It is a native file in the page cache; the output goes to /dev/null. Each measurement is a process of its
//! own, whose peak memory is the kernel's.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

mod repeat;
mod work;

use crate::median;

/// What is made of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
pub(crate) enum Product {
    /// The parts alone: reading, decompressing, putting in order.
    Read,
    /// Perfetto's trace.
    Pftrace,
    /// Neuron's JSON document.
    Json,
    /// The figures.
    Summary,
    /// Pairs.
    Csv,
}

/// `export`
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Recording of the demo; without it, the demo is run (`nrt-tracectl` beside this program).
    #[arg(long)]
    from: Option<PathBuf>,
    /// Events.
    #[arg(long, default_value_t = 5_000_000)]
    events: u64,
    /// Rounds; the figures are medians.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// One measurement's work.
#[derive(Debug, clap::Args)]
pub(crate) struct WorkOptions {
    product: Product,
    file: PathBuf,
}

/// What a measurement found.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Measured {
    events: u64,
    bytes: u64,
    wall_ns: u64,
    cpu_ns: u64,
    peak_bytes: u64,
}

/// A row of the table.
#[derive(Debug, Serialize)]
struct Row {
    product: Product,
    events: u64,
    bytes_per_event: f64,
    /// Millions of events per second of wall time, and of CPU time.
    wall: f64,
    cpu: f64,
    peak_mb: f64,
}

/// Runs the measurement and prints its table.
pub(crate) fn run(options: &Options) -> Result<()> {
    ensure!(
        options.rounds > 0 && options.events > 0,
        "--rounds and --events must be at least 1"
    );
    let folder = tempfile::tempdir().context("no folder for the trace")?;
    let from = match &options.from {
        Some(from) => from.clone(),
        None => demo(folder.path())?,
    };
    let file = folder.path().join("repeated.nrtt");
    repeat::write(&from, &file, options.events)?;
    // Into the page cache.
    std::io::copy(&mut File::open(&file)?, &mut std::io::sink())?;
    let products = Product::value_variants();
    let mut all: Vec<Vec<Measured>> = vec![Vec::new(); products.len()];
    for _ in 0..options.rounds {
        for (product, measured) in products.iter().zip(&mut all) {
            measured.push(measure(*product, &file)?);
        }
    }
    let rows: Vec<Row> = products
        .iter()
        .zip(&all)
        .map(|(product, measured)| row(*product, measured))
        .collect();
    if options.json {
        println!("{}", serde_json::to_string_pretty(&rows)?);
        return Ok(());
    }
    println!(
        "{} events, {:.1} bytes each in the native file, {} rounds",
        rows[0].events,
        ratio(fs::metadata(&file)?.len(), rows[0].events),
        options.rounds
    );
    println!("product   M events/s  per CPU second  bytes/event  peak MB");
    for row in rows {
        println!(
            "{:<8}  {:>10.2}  {:>14.2}  {:>11.1}  {:>7.0}",
            format!("{:?}", row.product).to_lowercase(),
            row.wall,
            row.cpu,
            row.bytes_per_event,
            row.peak_mb
        );
    }
    Ok(())
}

/// Does one measurement's work, and prints what it found.
pub(crate) fn work(options: &WorkOptions) -> Result<()> {
    let measured = work::measure(options.product, &options.file)?;
    println!("{}", serde_json::to_string(&measured)?);
    Ok(())
}

/// Records the demo.
fn demo(folder: &Path) -> Result<PathBuf> {
    let tool = std::env::current_exe()?.with_file_name("nrt-tracectl");
    let place = folder.join("demo.nrtt");
    let output = Command::new(&tool)
        .args(["demo", "--no-rate", "-o"])
        .arg(&place)
        .output()
        .with_context(|| format!("{} does not run: build it, or say --from", tool.display()))?;
    ensure!(
        output.status.success(),
        "the demo failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(place)
}

fn measure(product: Product, file: &Path) -> Result<Measured> {
    let name = format!("{product:?}").to_lowercase();
    let output = Command::new(std::env::current_exe()?)
        .args(["export-worker", &name])
        .arg(file)
        .output()?;
    ensure!(
        output.status.success(),
        "{name} failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn row(product: Product, measured: &[Measured]) -> Row {
    let of = |pick: fn(&Measured) -> f64| median(measured.iter().map(pick).collect());
    Row {
        product,
        events: measured[0].events,
        bytes_per_event: ratio(measured[0].bytes, measured[0].events),
        wall: of(|m| 1e3 * ratio(m.events, m.wall_ns)),
        cpu: of(|m| 1e3 * ratio(m.events, m.cpu_ns)),
        peak_mb: of(|m| ratio(m.peak_bytes, 1_000_000)),
    }
}

#[expect(clippy::cast_precision_loss, reason = "a figure of three digits")]
fn ratio(a: u64, b: u64) -> f64 {
    a as f64 / b.max(1) as f64
}
