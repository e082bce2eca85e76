//! A minute at the rate at which nothing is lost, as the README states it: what a reader gets, and what that costs the daemon.
//!
//! Rings of the default size, a process of one thread, a fetch after the other. Every event's number in the ring is looked at:
//! none may be missing.

use std::ffi::OsStr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;
use nrt_trace_abi::record::{RECORD_BYTES, Record};
use nrt_trace_proto::v1::trace_part::Part;
use nrt_trace_proto::v1::{RingAccount, TracePart};

use super::{attach, numbered};
use crate::world::World;

/// Events of a ring: the daemon's default.
const CAP: u64 = 1 << 20;
/// Pause between two fetches, as `record` makes it.
const PAUSE: Duration = Duration::from_millis(200);
/// How far behind its rate the process may stay.
const IN_TIME: f64 = 0.98;

#[derive(Debug, Args)]
pub(crate) struct Options {
    #[command(flatten)]
    worker: WorkerOptions,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct WorkerOptions {
    /// Events a second
    #[arg(long, default_value_t = 1_000_000)]
    rate: u64,
    /// How long, s
    #[arg(long, default_value_t = 60)]
    seconds: u64,
}

/// The process: emits at the rate, and prints the events, and how long they took, us. Then it waits for the stop.
pub(crate) fn work(options: &WorkerOptions) -> Result<()> {
    let tracer = attach("bench");
    ensure!(
        tracer.wait_armed(Duration::from_secs(60)),
        "it is not captured"
    );
    let (all, step) = (options.rate * options.seconds, options.rate.div_ceil(1000));
    let (began, mut emitted) = (Instant::now(), 0);
    while emitted < all {
        for number in emitted + 1..=all.min(emitted + step) {
            ensure!(
                tracer.emit(numbered(number)).is_some(),
                "event {number} was not recorded"
            );
        }
        emitted = all.min(emitted + step);
        let due = Duration::from_secs_f64(emitted as f64 / options.rate as f64);
        std::thread::sleep(due.saturating_sub(began.elapsed()));
    }
    println!("{emitted} {}", began.elapsed().as_micros());
    while tracer.is_capturing() {
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// What came of the one ring.
#[derive(Debug, Default)]
struct Got {
    records: u64,
    account: RingAccount,
    ended: bool,
}

impl Got {
    /// Takes a fetch; each record must be the next one of the ring.
    fn take(&mut self, parts: &[TracePart]) -> Result<u64> {
        let mut fetch_id = None;
        for part in parts.iter().filter_map(|part| part.part.as_ref()) {
            match part {
                Part::Begin(begin) => fetch_id = Some(begin.fetch_id),
                Part::Records(records) => {
                    for bytes in records.packed.as_chunks::<RECORD_BYTES>().0 {
                        let seq = Record::from_bytes(bytes).seq();
                        ensure!(
                            seq == self.records + 1,
                            "{seq} follows {} others",
                            self.records
                        );
                        self.records += 1;
                    }
                }
                Part::Account(account) => self.account = *account,
                Part::End(end) => self.ended = end.run_ended,
                _ => {}
            }
        }
        fetch_id.context("a fetch has a number")
    }
}

/// Measures, and fails if an event is missing.
pub(crate) fn run(options: &Options) -> Result<()> {
    let WorkerOptions { rate, seconds } = options.worker;
    let mut world = World::new()?;
    world.start(CAP)?;
    let (rate_text, seconds_text) = (rate.to_string(), seconds.to_string());
    let arguments = [
        "sustained-worker",
        "--rate",
        &rate_text,
        "--seconds",
        &seconds_text,
    ];
    let mut worker = world.start_worker(60_000, &arguments.map(OsStr::new))?;
    let (began, cpu) = (Instant::now(), world.daemon_cpu()?);
    let mut got = Got::default();
    let mut fetch = |world: &mut World| -> Result<bool> {
        let fetch_id = got.take(&world.fetch(0)?)?;
        world.commit(fetch_id)?;
        Ok(got.ended)
    };
    while began.elapsed() < Duration::from_secs(seconds) {
        fetch(&mut world)?;
        std::thread::sleep(PAUSE);
    }
    let [emitted, took_us] = worker.numbers()?;
    world.stop()?;
    while !fetch(&mut world)? {}
    let cpu = world.daemon_cpu()?.saturating_sub(cpu);
    worker.end(false)?;
    let account = got.account;
    println!(
        "{emitted} events in {:.1} s, {} delivered, {} lost; the daemon took {:.1} s of CPU time, {:.0} ns an event",
        took_us as f64 / 1e6,
        got.records,
        account.lost,
        cpu.as_secs_f64(),
        cpu.as_nanos() as f64 / emitted as f64
    );
    ensure!(
        account.claimed == emitted && account.lost == 0 && got.records == emitted,
        "not all events came: {account:?}"
    );
    let reached = seconds as f64 * 1e6 / took_us as f64;
    ensure!(
        reached >= IN_TIME,
        "the process itself reached {:.0} % of its rate",
        100.0 * reached
    );
    Ok(())
}
