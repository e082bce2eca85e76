//! A soak: processes that emit, are stopped, end and are killed; a daemon that is killed, ended and started again; runs that
//! start and stop; fetches that are whole, partial, broken off or not committed, and snapshots. At random, by a seed that repeats the choices.
//!
//! Then an account over all runs: what was delivered and what was said to be lost, against each process's private log. And
//! memory and descriptors of the daemon, early and late.

pub(crate) mod account;
mod report;
pub(crate) mod worker;

use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use clap::Args;
use nrt_trace_tests::dice::Dice;
use rustix::process::Signal;

use crate::world::{Worker, World};
use account::{Batch, Books};
use report::{Counts, Sample};

/// Processes at a time.
const WORKERS: usize = 6;
/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// Pause between two things that are done.
const PAUSE_MS: usize = 300;

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// How long, minutes
    #[arg(long, default_value_t = 10.0)]
    minutes: f64,
    /// Repeats a run's choices
    #[arg(long)]
    seed: Option<u64>,
}

/// What may be done next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Act {
    Fetch,
    FetchSome,
    /// A fetch that is not committed: a look at what is there.
    Look,
    /// All that the rings hold, read or not.
    Snapshot,
    NextRun,
    KillProcess,
    EndProcess,
    StopProcess,
    KillDaemon,
    EndDaemon,
    KillDuringFetch,
}

impl Act {
    const ALL: [Self; 11] = [
        Self::Fetch,
        Self::FetchSome,
        Self::Look,
        Self::Snapshot,
        Self::NextRun,
        Self::KillProcess,
        Self::EndProcess,
        Self::StopProcess,
        Self::KillDaemon,
        Self::EndDaemon,
        Self::KillDuringFetch,
    ];

    /// By weight: the daemon lives for about twenty seconds, so that its memory has time to grow.
    fn roll(dice: &mut Dice) -> Self {
        match dice.below(100) {
            0..32 => Self::Fetch,
            32..42 => Self::FetchSome,
            42..48 => Self::Look,
            48..54 => Self::Snapshot,
            54..66 => Self::NextRun,
            66..78 => Self::KillProcess,
            78..86 => Self::EndProcess,
            86..96 => Self::StopProcess,
            96 | 97 => Self::KillDaemon,
            98 => Self::EndDaemon,
            _ => Self::KillDuringFetch,
        }
    }
}

struct Soak {
    world: World,
    dice: Dice,
    books: Books,
    live: Vec<Worker>,
    /// Pids and logs of all processes that there ever were.
    logs: Vec<(u32, PathBuf)>,
    run: u64,
    counts: Counts,
    samples: Vec<Sample>,
    began: Instant,
}

/// Runs it, and prints the report.
pub(crate) fn run(options: &Options) -> Result<()> {
    let clock = || SystemTime::now().duration_since(UNIX_EPOCH);
    let seed = match options.seed {
        Some(seed) => seed,
        None => clock()?.as_secs(),
    };
    println!("soak of {} minutes, --seed {seed}", options.minutes);
    let mut soak = Soak {
        world: World::new()?,
        dice: Dice::of(seed),
        books: Books::default(),
        live: Vec::new(),
        logs: Vec::new(),
        run: 0,
        counts: Counts::default(),
        samples: Vec::new(),
        began: Instant::now(),
    };
    let done = soak.all(Duration::from_secs_f64(options.minutes * 60.0));
    if done.is_err() {
        println!("{}", last_lines(&soak.world.log(), 60));
        println!("everything is in {}", soak.world.keep().display());
    }
    done.with_context(|| format!("soak --minutes {} --seed {seed}", options.minutes))
}

fn last_lines(text: &str, most: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(most)..].join("\n")
}

impl Soak {
    fn all(&mut self, time: Duration) -> Result<()> {
        for _ in 0..WORKERS {
            self.start_worker()?;
        }
        self.start()?;
        // Everything once, in some order, and then as it comes.
        let mut first = Act::ALL.to_vec();
        while self.began.elapsed() < time || !first.is_empty() {
            let act = if first.is_empty() {
                Act::roll(&mut self.dice)
            } else {
                first.swap_remove(self.dice.below(first.len()))
            };
            self.act(act).with_context(|| format!("{act:?}"))?;
            self.sample()?;
            let pause = self.dice.below(PAUSE_MS) as u64;
            std::thread::sleep(Duration::from_millis(pause));
        }
        for mut worker in std::mem::take(&mut self.live) {
            worker.end(false)?;
        }
        self.stop(true)?;
        let sums = self.books.check(&self.logs)?;
        self.counts.unsure = self.books.unsure_commits;
        report::print(self.began.elapsed(), &self.counts, &sums, &self.samples);
        report::check(&sums, &self.samples)
    }

    fn act(&mut self, act: Act) -> Result<()> {
        *self.counts.acts.entry(format!("{act:?}")).or_default() += 1;
        match act {
            Act::Fetch => self.fetch(0),
            Act::FetchSome => {
                let most = 1 + self.dice.below(500) as u64;
                self.fetch(most)
            }
            Act::Look => Batch::of(&self.world.fetch(0)?).map(drop),
            Act::Snapshot => Batch::of(&self.world.snapshot()?).map(drop),
            Act::NextRun => {
                self.back()?;
                let whole = self.dice.below(2) == 0;
                self.stop(whole)?;
                self.start()
            }
            Act::KillProcess | Act::EndProcess => {
                let at = self.dice.below(self.live.len());
                self.live[at].end(act == Act::KillProcess)?;
                self.live.swap_remove(at);
                self.start_worker()
            }
            Act::StopProcess => {
                let at = self.dice.below(self.live.len());
                self.live[at].signal(Signal::STOP)?;
                let looked = self.fetch(0).and_then(|()| self.fetch(0));
                self.live[at].signal(Signal::CONT)?;
                looked
            }
            Act::KillDaemon | Act::EndDaemon => {
                // What ended processes left unread ends with the daemon; it is counted, but no more exactly.
                if self.dice.below(2) == 0 {
                    self.fetch(0)?;
                }
                let how = if act == Act::KillDaemon {
                    Signal::KILL
                } else {
                    Signal::TERM
                };
                self.world.signal_daemon(how, Duration::ZERO)?;
                let ended = self.world.next_daemon()?;
                if how == Signal::TERM {
                    self.counts.longest_end = self.counts.longest_end.max(ended);
                }
                self.counts.lives += 1;
                Ok(())
            }
            Act::KillDuringFetch => self.kill_during_fetch(),
        }
    }

    fn kill_during_fetch(&mut self) -> Result<()> {
        let after = Duration::from_micros(1 + self.dice.below(20_000) as u64);
        self.world.signal_daemon(Signal::KILL, after)?;
        if let Ok(parts) = self.world.fetch(0) {
            let batch = Batch::of(&parts)?;
            match self.world.commit(batch.fetch_id) {
                Ok(()) => self.books.take(batch)?,
                Err(_) => self.books.take_unsure(batch)?,
            }
        }
        self.world.next_daemon()?;
        self.counts.lives += 1;
        if self.books.is_unsure() {
            self.back()?;
            self.fetch(0)?;
        }
        Ok(())
    }

    fn start_worker(&mut self) -> Result<()> {
        let seed = self.dice.below(usize::MAX) as u64;
        let log = self.world.path(&format!("{}.ledger", self.logs.len()));
        let seed = seed.to_string();
        let arguments = ["soak-worker", "--seed", &seed, "--log"].map(OsStr::new);
        let arguments = [&arguments[..], &[log.as_os_str()]].concat();
        let worker = self.world.start_worker(0, &arguments)?;
        self.logs.push((worker.pid(), log));
        self.live.push(worker);
        Ok(())
    }

    fn start(&mut self) -> Result<()> {
        let cap = 1024 + self.dice.below(4096) as u64;
        let reply = self.world.start(cap)?;
        let refused = (reply.producers.iter()).find(|producer| !producer.refused.is_empty());
        ensure!(refused.is_none(), "{refused:?}");
        self.run = reply.run.map_or(0, |run| run.run_id);
        self.counts.runs += 1;
        Ok(())
    }

    /// Ends the run, and takes what is unread or leaves it to be given up by the next start.
    fn stop(&mut self, whole: bool) -> Result<()> {
        let stopped = self.world.stop()?;
        let (run, producers) = (self.run, self.world.producers()?);
        self.books.processes(&producers);
        self.books.accounts(run, &stopped.accounts)?;
        if !whole && stopped.not_quiescent.is_empty() {
            return Ok(());
        }
        let began = Instant::now();
        loop {
            let batch = Batch::of(&self.world.fetch(0)?)?;
            let ended = batch.ended;
            self.world.commit(batch.fetch_id)?;
            self.counts.fetches += 1;
            self.books.take(batch)?;
            if ended {
                return Ok(());
            }
            ensure!(
                began.elapsed() < PATIENCE,
                "the run does not come to an end"
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn fetch(&mut self, most: u64) -> Result<()> {
        let batch = Batch::of(&self.world.fetch(most)?)?;
        self.world.commit(batch.fetch_id)?;
        self.counts.fetches += 1;
        self.books.take(batch)
    }

    /// Waits until every process has found the daemon again.
    fn back(&mut self) -> Result<()> {
        let books = &mut self.books;
        self.world
            .back(&self.live, |producers| books.processes(producers))
    }

    fn sample(&mut self) -> Result<()> {
        let status = self.world.status()?;
        self.samples.push(Sample {
            rss_kib: status.rss_bytes >> 10,
            descriptors: self.world.descriptors(),
            life: self.counts.lives,
        });
        Ok(())
    }
}
