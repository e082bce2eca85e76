//! How fast processes come and go: attach, rings, an event, the end; one after the other, alone and beside many that are
//! attached and do nothing.

use std::ffi::OsStr;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;

use super::{attach, end_of_input, fetch, numbered};
use crate::soak::account::Books;
use crate::world::{Worker, World};

/// Ends between two fetches: somebody collects.
const FETCH_EVERY: u32 = 100;
/// How long a process waits for the daemon, ms.
const WAIT_MS: u32 = 60_000;
/// What is promised.
const RATE: f64 = 1000.0 / 30.0;

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Processes that come and go
    #[arg(long, default_value_t = 1000)]
    cycles: u32,
    /// Processes that are attached meanwhile, in the second round
    #[arg(long, default_value_t = 200)]
    beside: u32,
}

#[derive(Debug, Args)]
pub(crate) struct WorkerOptions {
    /// Stay until standard input ends
    #[arg(long)]
    linger: bool,
}

/// One process: attaches, and emits one event before it ends.
pub(crate) fn work(options: &WorkerOptions) -> Result<()> {
    let tracer = attach("bench");
    if options.linger {
        println!("attached");
        let end = end_of_input();
        while !end.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(50));
        }
    }
    tracer.emit(numbered(1)).context("it was not captured")?;
    Ok(())
}

/// Measures, and holds the rate against the promise.
pub(crate) fn run(options: &Options) -> Result<()> {
    println!("| beside | processes a second | daemon's CPU of each | descriptors | memory, KiB |");
    println!("|---|---|---|---|---|");
    let mut rates = Vec::new();
    for beside in [0, options.beside] {
        rates.push(round(options.cycles, beside)?);
    }
    for rate in rates {
        ensure!(
            rate >= RATE,
            "{rate:.1} processes a second; promised: {RATE:.1}"
        );
    }
    Ok(())
}

fn round(cycles: u32, beside: u32) -> Result<f64> {
    let mut world = World::new()?;
    let mut books = Books::default();
    let arguments = ["attach-worker", "--linger"].map(OsStr::new);
    let idle = (0..beside).map(|_| world.start_worker(0, &arguments));
    let mut idle: Vec<Worker> = idle.collect::<Result<_>>()?;
    for worker in &mut idle {
        worker.line()?;
    }
    world.start(1024)?;
    // The first ones make tables and caches.
    cycle(&mut world, &mut books, FETCH_EVERY)?;
    let held = |world: &mut World| -> Result<_> {
        Ok((world.descriptors(), world.status()?.rss_bytes >> 10))
    };
    let (before, cpu, began) = (held(&mut world)?, world.daemon_cpu()?, Instant::now());
    cycle(&mut world, &mut books, cycles)?;
    let (took, cpu) = (began.elapsed(), world.daemon_cpu()? - cpu);
    let after = held(&mut world)?;
    for mut worker in idle {
        worker.end(false)?;
    }
    world.stop()?;
    while !fetch(&mut world, &mut books)? {}
    let delivered = books.delivered();
    let expected = u64::from(cycles + FETCH_EVERY + beside);
    ensure!(
        delivered == expected,
        "{delivered} events came, of {expected}"
    );
    let rate = f64::from(cycles) / took.as_secs_f64();
    println!(
        "| {beside} | {rate:.0} | {:.2} ms | {}, then {} | {}, then {} |",
        cpu.as_secs_f64() * 1000.0 / f64::from(cycles.max(1)),
        before.0,
        after.0,
        before.1,
        after.1
    );
    Ok(rate)
}

fn cycle(world: &mut World, books: &mut Books, cycles: u32) -> Result<()> {
    for number in 1..=cycles {
        (world.start_worker(WAIT_MS, &[OsStr::new("attach-worker")])?).end(false)?;
        if number % FETCH_EVERY == 0 {
            fetch(world, books)?;
        }
    }
    Ok(())
}
