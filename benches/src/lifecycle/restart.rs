//! The daemon killed and started again and again under processes that emit without pause.
//!
//! What an emit takes is its thread's own CPU time: the difference of two readings of `CLOCK_THREAD_CPUTIME_ID`, one after
//! each emit, less what a reading itself takes at least. Every emit is measured. Interrupts that the kernel serves on the
//! thread's account are in it, and what a hypervisor takes: so each kill is followed by as long a time without one, and what
//! is judged is how much more long emits there are with kills than without, in one run. Whether a thread ever slept is the
//! kernel's count of its voluntary context switches.

use std::ffi::OsStr;
use std::fs;
use std::io::BufRead;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;
use nrt_trace_tests::dice::Dice;
use rustix::process::Signal;
use rustix::time::ClockId;

use super::{attach, fetch, now, numbered};
use crate::soak::account::Books;
use crate::world::{Worker, World};

/// Events of a ring.
const CAP: u64 = 8192;
/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// The longest emit that is promised, ns of its thread's CPU time, on a machine with nothing else to do.
const PROMISED: u64 = 1_000_000;
/// How much more often emits may take longer than that while the daemon is killed than while it is not: once in ten kills more
/// than twice as often. What a kill itself does would show at each of them.
const KILLS_FOR_ONE_MORE: u64 = 10;

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// How often the daemon is killed
    #[arg(long, default_value_t = 100)]
    kills: u32,
    /// Processes that emit, a thread each
    #[arg(long, default_value_t = 2)]
    processes: u32,
}

/// What a process saw in the times of one kind.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    /// Emits.
    emits: u64,
    /// Of these, recorded.
    recorded: u64,
    /// The CPU time of the longest, ns.
    longest: u64,
    /// How many took more than 100 us.
    long: u64,
    /// How many took more than was promised.
    too_long: u64,
    /// Its thread's voluntary context switches.
    slept: u64,
}

impl Seen {
    fn line(&self) -> String {
        let Self {
            emits,
            recorded,
            longest,
            long,
            too_long,
            slept,
        } = self;
        format!("{emits} {recorded} {longest} {long} {too_long} {slept}")
    }

    const fn of([emits, recorded, longest, long, too_long, slept]: [u64; 6]) -> Self {
        Self {
            emits,
            recorded,
            longest,
            long,
            too_long,
            slept,
        }
    }
}

/// One process: emits until standard input ends. Each line of it begins a time of the other kind: the first is one without
/// kills. Prints what it saw in those, and then in the others.
pub(crate) fn work() -> Result<()> {
    let tracer = attach("bench");
    ensure!(tracer.wait_armed(PATIENCE), "it is not captured");
    let turns = turns();
    println!("attached");
    let cpu = || now(ClockId::ThreadCPUTime);
    let reading = (0..10_000).map(|_| cpu().abs_diff(cpu())).min();
    let reading = reading.unwrap_or(0);
    let (mut number, mut seen) = (0_u64, [Seen::default(); 2]);
    loop {
        let turn = turns.load(Ordering::Relaxed);
        if turn == ENDED {
            break;
        }
        let (seen, slept) = (&mut seen[turn as usize % 2], voluntary_switches()?);
        let mut last = cpu();
        while turns.load(Ordering::Relaxed) == turn {
            number += 1;
            seen.emits += 1;
            seen.recorded += u64::from(tracer.emit(numbered(number)).is_some());
            let now = cpu();
            let took = (now - last).saturating_sub(reading);
            seen.longest = seen.longest.max(took);
            seen.long += u64::from(took > 100_000);
            seen.too_long += u64::from(took > PROMISED);
            last = now;
        }
        seen.slept += voluntary_switches()? - slept;
    }
    for seen in seen {
        println!("{}", seen.line());
    }
    // Of a process that has ended nobody can say whether it was inside an emit: it waits for the stop.
    while tracer.is_capturing() {
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// What [`turns`] says when the input has ended.
const ENDED: u32 = u32::MAX;

/// The lines of standard input so far.
fn turns() -> Arc<AtomicU32> {
    let turns = Arc::new(AtomicU32::new(0));
    let count = turns.clone();
    std::thread::spawn(move || {
        for _line in std::io::stdin().lock().lines().map_while(Result::ok) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        count.store(ENDED, Ordering::Relaxed);
    });
    turns
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
    let mut dice = Dice::of(1);
    let mut times = [Duration::ZERO; 2];
    let turn = |workers: &mut [Worker]| workers.iter_mut().try_for_each(Worker::nudge);
    for _ in 0..options.kills {
        let began = Instant::now();
        std::thread::sleep(Duration::from_millis(700));
        world.back(&workers, |_| ())?;
        fetch(&mut world, &mut books)?;
        times[0] += began.elapsed();
        turn(&mut workers)?;
        let began = Instant::now();
        std::thread::sleep(Duration::from_millis(dice.below(300) as u64));
        world.signal_daemon(Signal::KILL, Duration::ZERO)?;
        std::thread::sleep(Duration::from_millis(dice.below(900) as u64));
        world.next_daemon()?;
        world.back(&workers, |_| ())?;
        fetch(&mut world, &mut books)?;
        times[1] += began.elapsed();
        turn(&mut workers)?;
    }
    let mut told = Vec::new();
    for worker in &mut workers {
        worker.close();
        let seen = [worker.numbers()?, worker.numbers()?].map(Seen::of);
        told.push((worker.pid(), seen));
    }
    world.stop()?;
    while !fetch(&mut world, &mut books)? {}
    for mut worker in workers {
        worker.end(false)?;
    }
    println!(
        "{} kills, {} processes of one thread, rings of {CAP}",
        options.kills, options.processes
    );
    println!(
        "| | emits | longest, us of CPU | of more than 100 us | of more than {} us | voluntary switches |",
        PROMISED / 1000
    );
    println!("|---|---|---|---|---|---|");
    for (_, seen) in &told {
        for (what, seen, time) in [
            ("without", seen[0], times[0]),
            ("with kills", seen[1], times[1]),
        ] {
            println!(
                "| {what}, {:.0} s | {} | {} | {} | {} | {} |",
                time.as_secs_f64(),
                seen.emits,
                seen.longest / 1000,
                seen.long,
                seen.too_long,
                seen.slept
            );
        }
    }
    told.iter()
        .try_for_each(|&(pid, seen)| check(pid, &seen, &books))?;
    judge(&told, times, u64::from(options.kills))
}

/// Every emit of a process is in the account.
fn check(pid: u32, seen: &[Seen; 2], books: &Books) -> Result<()> {
    let emits = seen[0].emits + seen[1].emits;
    let recorded = seen[0].recorded + seen[1].recorded;
    let (mut claimed, mut delivered, mut overwritten, mut dropped) = (0, 0, 0, 0);
    for account in books.accounts_of(pid) {
        ensure!(account.exact, "not exact: {account:?}");
        claimed += account.claimed;
        delivered += account.delivered;
        overwritten += account.overwritten;
        dropped += account.dropped_in_flight + account.dropped_lapped;
    }
    println!(
        "{emits} emits = {delivered} delivered + {overwritten} overwritten + {dropped} dropped"
    );
    ensure!(
        claimed == emits && emits == recorded + dropped,
        "{claimed} claimed, {recorded} recorded and {dropped} dropped of {emits}"
    );
    ensure!(
        emits == delivered + overwritten + dropped,
        "events without an account"
    );
    Ok(())
}

/// No thread slept, and long emits are what the machine makes them.
fn judge(told: &[(u32, [Seen; 2])], times: [Duration; 2], kills: u64) -> Result<()> {
    let sum =
        |of: fn(&Seen) -> u64, kind: usize| told.iter().map(|(_, seen)| of(&seen[kind])).sum();
    let slept: u64 = sum(|seen| seen.slept, 1);
    ensure!(slept == 0, "emitting threads slept {slept} times");
    let (without, with): (u64, u64) = (sum(|seen| seen.too_long, 0), sum(|seen| seen.too_long, 1));
    let expected = without as f64 * times[1].as_secs_f64() / times[0].as_secs_f64().max(1e-3);
    let most = 2.0 * expected + (kills / KILLS_FOR_ONE_MORE) as f64;
    println!(
        "emits of more than {} us: {with} with kills, {expected:.1} in as long a time without; at most {most:.1}",
        PROMISED / 1000
    );
    ensure!(with as f64 <= most, "killing the daemon makes emits long");
    Ok(())
}
