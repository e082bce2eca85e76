//! `nrt-trace-bench fetch`: how fast events get from the rings into a document.
//!
//! This process is daemon and traced program; the reader is the real command line, `nrt-tracectl fetch`, in a process of
//! its own. Each round fills the rings and fetches them raw (counted by a plain gRPC client), to /dev/null, and to a
//! file, which `dd` then copies beside it. The figures are medians of rounds, the one beside `dd` a ratio within each.

use std::path::PathBuf;

use anyhow::{Result, ensure};

mod measure;
mod reader;
mod rings;
mod table;

use crate::emit::Session;
use crate::median;
use reader::Reader;
use rings::Rings;
use table::Table;

/// `fetch`
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Rounds; the figures are medians.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Events of a fetch.
    #[arg(long, default_value_t = 4_000_000)]
    events: u64,
    /// Folder for the files that are written; default: beside this program.
    #[arg(long)]
    folder: Option<PathBuf>,
    /// The command line to measure; default: beside this program.
    #[arg(long)]
    tool: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Rings that the events are spread over. Few, so that half of the events already fill what is remembered of a ring, and
/// the comparison of memory is one of flat with flat.
const RINGS: u32 = 2;

/// Runs the measurement and prints its table.
pub(crate) fn run(options: &Options) -> Result<()> {
    let per_ring = options.events / u64::from(RINGS);
    ensure!(
        options.rounds > 0 && per_ring >= 1024,
        "--rounds must be at least 1, --events at least 4096"
    );
    let session = Session::start(per_ring)?;
    let rings = Rings::attach(session.producer_socket()?, RINGS)?;
    let mut reader = Reader::new(
        options.tool.as_deref(),
        options.folder.as_deref(),
        session.control_socket()?,
    )?;
    // The first lap takes the rings' memory, which is no part of a fetch.
    rings.fill(per_ring);
    reader.discard()?;

    let mut table = Table {
        events: per_ring * u64::from(RINGS),
        rounds: options.rounds,
        ..Table::default()
    };
    rings.fill(per_ring / 2);
    let half = reader.to_null(per_ring / 2 * u64::from(RINGS))?;
    let (mut raw, mut null, mut file, mut to_dd) = (vec![], vec![], vec![], vec![]);
    let (mut daemon, mut tool) = (vec![], vec![]);
    let mut peaks = (0, 0);
    for _ in 0..options.rounds {
        rings.fill(per_ring);
        raw.push(reader.raw(table.events)?);
        let run = reader.to_null(table.events)?;
        null.push(run.seconds);
        daemon.push(run.daemon_cpu);
        tool.push(run.tool_cpu);
        peaks = (peaks.0.max(run.tool_peak), peaks.1.max(run.daemon_peak));
        rings.fill(per_ring);
        let (run, bytes) = reader.to_file(table.events)?;
        let dd = reader.dd()?;
        table.bytes = bytes;
        file.push(run.seconds);
        to_dd.push(dd / run.seconds);
    }
    table.raw_per_second = table.rate(median(raw));
    table.null_per_second = table.rate(median(null));
    table.file_per_second = table.rate(median(file));
    table.file_to_dd = median(to_dd);
    table.daemon_cpu_ns = table.each(median(daemon));
    table.tool_cpu_ns = table.each(median(tool));
    table.tool_peak_kib = peaks.0;
    table.tool_peak_half_kib = half.tool_peak;
    table.daemon_peak_kib = peaks.1;
    table.daemon_peak_half_kib = half.daemon_peak;
    if options.json {
        println!("{}", serde_json::to_string_pretty(&table)?);
    } else {
        print!("{table}");
    }
    Ok(())
}
