//! The daemon killed and started again and again under processes that emit without pause.
//!
//! What an emit takes is its thread's own CPU time: the difference of two readings of `CLOCK_THREAD_CPUTIME_ID`, one after
//! each emit, less what a reading itself takes at least. Every emit is measured. Interrupts that the kernel served on the
//! thread's account are in it. Whether a thread ever slept is the kernel's count of its voluntary context switches.

use std::ffi::OsStr;
use std::fs;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;
use nrt_trace_tests::dice::Dice;
use rustix::process::Signal;
use rustix::time::ClockId;

use super::{attach, end_of_input, fetch, now, numbered};
use crate::soak::account::Books;
use crate::world::{Worker, World};

/// Events of a ring.
const CAP: u64 = 8192;
/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// The longest emit that is promised, ns of its thread's CPU time, on a machine with nothing else to do.
const PROMISED: u64 = 1_000_000;

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// How often the daemon is killed
    #[arg(long, default_value_t = 100)]
    kills: u32,
    /// Spare the daemon each time: what the machine does to the figures by itself
    #[arg(long)]
    spare: bool,
    /// Processes that emit, a thread each
    #[arg(long, default_value_t = 2)]
    processes: u32,
}

/// One process: emits until standard input ends, and prints emits, those recorded, the longest one's CPU time, how many
/// took more than 100 us, and its thread's voluntary context switches.
pub(crate) fn work() -> Result<()> {
    let tracer = attach("bench");
    ensure!(tracer.wait_armed(PATIENCE), "it is not captured");
    let end = end_of_input();
    println!("attached");
    let cpu = || now(ClockId::ThreadCPUTime);
    let reading = (0..10_000).map(|_| cpu().abs_diff(cpu())).min();
    let reading = reading.unwrap_or(0);
    let (mut number, mut recorded, mut longest, mut long) = (0_u64, 0_u64, 0, 0_u64);
    let slept = voluntary_switches()?;
    let mut last = cpu();
    while !end.load(Ordering::Relaxed) {
        number += 1;
        recorded += u64::from(tracer.emit(numbered(number)).is_some());
        let now = cpu();
        let took = (now - last).saturating_sub(reading);
        longest = longest.max(took);
        long += u64::from(took > 100_000);
        last = now;
    }
    let slept = voluntary_switches()? - slept;
    println!("{number} {recorded} {longest} {long} {slept}");
    // Of a process that has ended nobody can say whether it was inside an emit: it waits for the stop.
    while tracer.is_capturing() {
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// Of this thread so far.
fn voluntary_switches() -> Result<u64> {
    let status = fs::read_to_string("/proc/thread-self/status")?;
    let line = (status.lines()).find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    Ok(line.context("a count of switches")?.trim().parse()?)
}

/// Measures, and holds the figures against the promises.
pub(crate) fn run(options: &Options) -> Result<()> {
    let mut world = World::new()?;
    let mut books = Books::default();
    world.start(CAP)?;
    let argument = [OsStr::new("restart-worker")];
    let workers = (0..options.processes).map(|_| world.start_worker(60_000, &argument));
    let mut workers: Vec<Worker> = workers.collect::<Result<_>>()?;
    for worker in &mut workers {
        worker.line()?;
    }
    let (mut dice, began) = (Dice::of(1), Instant::now());
    for _ in 0..options.kills {
        std::thread::sleep(Duration::from_millis(dice.below(300) as u64));
        if !options.spare {
            world.signal_daemon(Signal::KILL, Duration::ZERO)?;
        }
        std::thread::sleep(Duration::from_millis(dice.below(900) as u64));
        if !options.spare {
            world.next_daemon()?;
        }
        world.back(&workers, |_| ())?;
        fetch(&mut world, &mut books)?;
    }
    let took = began.elapsed();
    let mut told = Vec::new();
    for worker in &mut workers {
        worker.close();
        told.push((worker.pid(), worker.numbers::<5>()?));
    }
    world.stop()?;
    while !fetch(&mut world, &mut books)? {}
    for mut worker in workers {
        worker.end(false)?;
    }
    println!(
        "{} {} in {:.0} s, {} processes of one thread, rings of {CAP}",
        options.kills,
        if options.spare {
            "kills left out"
        } else {
            "kills"
        },
        took.as_secs_f64(),
        options.processes
    );
    println!(
        "| emits | delivered | overwritten | dropped | longest emit, us of CPU | of more than 100 us | voluntary switches |"
    );
    println!("|---|---|---|---|---|---|---|");
    let (mut slowest, mut sleeps) = (0, 0);
    for (pid, [emits, recorded, longest, long, slept]) in told {
        let (mut claimed, mut delivered, mut overwritten, mut dropped) = (0, 0, 0, 0);
        for account in books.accounts_of(pid) {
            ensure!(account.exact, "not exact: {account:?}");
            claimed += account.claimed;
            delivered += account.delivered;
            overwritten += account.overwritten;
            dropped += account.dropped_in_flight + account.dropped_lapped;
        }
        println!(
            "| {emits} | {delivered} | {overwritten} | {dropped} | {} | {long} | {slept} |",
            longest / 1000
        );
        ensure!(
            claimed == emits && emits == recorded + dropped,
            "{claimed} claimed, {recorded} recorded and {dropped} dropped of {emits}"
        );
        ensure!(
            emits == delivered + overwritten + dropped,
            "events without an account"
        );
        slowest = slowest.max(longest);
        sleeps = sleeps.max(slept);
    }
    ensure!(
        slowest <= PROMISED,
        "an emit took {slowest} ns; promised: {PROMISED}"
    );
    ensure!(
        sleeps <= u64::from(options.kills),
        "an emitting thread slept {sleeps} times: more than once for each new control page"
    );
    Ok(())
}
