//! How soon a changed filter holds: from the call to the first emit that goes the new way, in each of several processes.

use std::ffi::OsStr;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Result, ensure};
use clap::Args;
use nrt_trace_tests::dice::Dice;
use rustix::time::ClockId;

use super::{attach, end_of_input, now, numbered, percentile};
use crate::world::{Worker, World};

/// What is promised, ns.
const PROMISED: u64 = 10_000_000;

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Changes
    #[arg(long, default_value_t = 200)]
    changes: u32,
    /// Processes that emit
    #[arg(long, default_value_t = 8)]
    processes: u32,
    #[command(flatten)]
    worker: WorkerOptions,
}

#[derive(Debug, Args)]
pub(crate) struct WorkerOptions {
    /// Pause after each emit of a process, us; without one, more processes than cores wait for their turn, not for the filter
    #[arg(long, default_value_t = 200)]
    pause_us: u64,
}

/// One process: whenever its emits go another way than before, it prints when the last one went the old way, and when
/// the first one had gone the new way.
pub(crate) fn work(options: &WorkerOptions) -> Result<()> {
    let tracer = attach("bench");
    let end = end_of_input();
    println!("attached");
    let (mut passes, mut last) = (false, 0);
    for number in 1.. {
        if end.load(Ordering::Relaxed) {
            break;
        }
        let before = now(ClockId::Monotonic);
        let passed = tracer.emit(numbered(number)).is_some();
        if passed == passes {
            last = before;
        } else {
            println!("{last} {}", now(ClockId::Monotonic));
            passes = passed;
        }
        if options.pause_us > 0 {
            std::thread::sleep(Duration::from_micros(options.pause_us));
        }
    }
    Ok(())
}

/// Measures, and holds the middle against the promise.
pub(crate) fn run(options: &Options) -> Result<()> {
    let mut world = World::new()?;
    let pause = options.worker.pause_us.to_string();
    let arguments = ["filter-worker", "--pause-us", &pause].map(OsStr::new);
    let workers = (0..options.processes).map(|_| world.start_worker(60_000, &arguments));
    let mut workers: Vec<Worker> = workers.collect::<Result<_>>()?;
    for worker in &mut workers {
        worker.line()?;
    }
    world.start(65_536)?;
    for worker in &mut workers {
        worker.line()?; // the gates opened
    }
    let mut dice = Dice::of(1);
    let (mut old, mut new, mut answers) = (Vec::new(), Vec::new(), Vec::new());
    for change in 0..options.changes {
        // What they emit is an event of the host's software.
        let types: &[&str] = if change % 2 == 0 { &["hardware"] } else { &[] };
        let called = now(ClockId::Monotonic);
        world.set_types(types)?;
        answers.push(now(ClockId::Monotonic) - called);
        for worker in &mut workers {
            let [last, first] = worker.numbers()?;
            ensure!(first > called, "the filter changed by itself");
            old.push(last.saturating_sub(called));
            new.push(first - called);
        }
        std::thread::sleep(Duration::from_millis(1 + dice.below(10) as u64));
    }
    println!(
        "{} changes, {} processes, an emit each {} us; from the call, us:",
        options.changes, options.processes, options.worker.pause_us
    );
    println!("| | half within | 99 of 100 within | all within |\n|---|---|---|---|");
    for (what, values) in [
        ("the last emit that began the old way", &mut old),
        ("the first emit that went the new way", &mut new),
        ("the answer", &mut answers),
    ] {
        values.sort_unstable();
        let at = |percent| percentile(values, percent) / 1000;
        println!("| {what} | {} | {} | {} |", at(50), at(99), at(100));
    }
    let middle = percentile(&new, 50);
    ensure!(
        middle < PROMISED,
        "half of the changes took more than {middle} ns; promised: {PROMISED}"
    );
    Ok(())
}
