//! A process of the soak: emits numbered events, and writes down each before and after.

use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Result, anyhow};
use clap::Args;
use nrt_trace_client::{Event, EventType, Options, Tracer};
use nrt_trace_tests::dice::Dice;
use nrt_trace_tests::ledger::Ledger;
use nrt_trace_tests::payload;

/// NCs of a process, a thread each.
pub(crate) const RINGS: u32 = 2;

/// One process.
#[derive(Debug, Args)]
pub(crate) struct WorkerOptions {
    /// Its private log
    #[arg(long)]
    log: PathBuf,
    /// Repeats its pauses
    #[arg(long)]
    seed: u64,
}

/// Emits until standard input ends.
pub(crate) fn work(options: &WorkerOptions) -> Result<()> {
    let tracer = Tracer::attach(Options::named("soak").cores(&[0, 1]));
    let ledger = Arc::new(Ledger::create(&options.log)?);
    let end = Arc::new(AtomicBool::new(false));
    let threads: Vec<_> = (0..RINGS)
        .map(|nc| {
            let (ledger, end) = (ledger.clone(), end.clone());
            let dice = Dice::of(options.seed ^ u64::from(nc) << 32);
            thread::spawn(move || emit(tracer, nc, &ledger, dice, &end))
        })
        .collect();
    // Whatever comes, its end is the end.
    drop(std::io::stdin().lock().read_to_end(&mut Vec::new()));
    end.store(true, Ordering::Relaxed);
    for thread in threads {
        thread.join().map_err(|_| anyhow!("a thread panicked"))?;
    }
    Ok(())
}

/// Some 500 events a second, and now and then as many as two or three rings hold, as fast as it goes.
fn emit(tracer: Tracer, nc: u32, ledger: &Ledger, mut dice: Dice, end: &AtomicBool) {
    let mut number = 0;
    while !end.load(Ordering::Relaxed) {
        let burst = if dice.below(400) == 0 { 4000 } else { 10 };
        for _ in 0..burst {
            number += 1;
            let data = payload::numbered(u64::from(nc), number);
            ledger.begin(u64::from(nc), number);
            let event = Event::stop(EventType::DmaMemAlloc, nc, None).data(data);
            let id = tracer.emit(event).map_or(0, |id| id.0);
            ledger.end(u64::from(nc), number, id);
        }
        thread::sleep(Duration::from_millis(10 + dice.below(20) as u64));
    }
}
