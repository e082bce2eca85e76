//! `nrt-trace-bench emit`: what one event costs.
//!
//! Two worker processes that emit on request (one through the Rust API, one through the C ABI of the shared library) are
//! recorded by a daemon in this process. The cases that are compared are interleaved, round by round, since the machine
//! may change its speed within seconds; the figure of a case is the median of its rounds.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

use crate::median;

mod session;
mod table;
pub(crate) mod worker;
mod workers;

pub(crate) use session::Session;
use table::{Row, Table};
pub(crate) use worker::pin;
pub(crate) use workers::Worker;
pub(crate) use workers::compile;
use workers::hop_ns;

/// `emit`
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Rounds; the figures are medians.
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Events of a thread in a round.
    #[arg(long, default_value_t = 1_000_000)]
    events: u64,
    /// Ring sizes, events per NC.
    #[arg(long, value_delimiter = ',', default_value = "1024,1048576")]
    rings: Vec<u64>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// The shared library to measure; default: beside this program.
    #[arg(long)]
    library: Option<PathBuf>,
}

/// How the emitting threads share rings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    One,
    TwoOnOneNc,
    TwoOnTwoNcs,
    TwoProcesses,
}

impl Shape {
    const ALL: [Self; 4] = [
        Self::One,
        Self::TwoOnOneNc,
        Self::TwoOnTwoNcs,
        Self::TwoProcesses,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::One => "1 thread",
            Self::TwoOnOneNc => "2 threads, 1 NC",
            Self::TwoOnTwoNcs => "2 threads, 2 NCs",
            Self::TwoProcesses => "2 processes, 2 NCs",
        }
    }

    /// NC of each thread of a process.
    const fn ncs(self) -> &'static str {
        match self {
            Self::One | Self::TwoProcesses => "0",
            Self::TwoOnOneNc => "0,0",
            Self::TwoOnTwoNcs => "0,1",
        }
    }
}

/// The cases of a row, in the order of the table's columns: name, which worker, its engine.
const CASES: [(&str, Kind, &str); 9] = [
    ("a original", Kind::Rust, "original"),
    ("b Rust", Kind::Rust, "api"),
    ("c C ABI", Kind::C, "recorded"),
    ("d not capturing", Kind::Off, "recorded"),
    ("e filtered", Kind::C, "filtered"),
    ("f floor", Kind::Rust, "floor"),
    ("empty call", Kind::Off, "empty"),
    ("d inline gate", Kind::Off, "inline"),
    ("e inline gate", Kind::C, "inline-filtered"),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The Rust worker, recorded.
    Rust,
    /// The C worker, recorded.
    C,
    /// The C worker with the library turned off.
    Off,
}

/// Runs the measurement and prints its table.
pub(crate) fn run(options: &Options) -> Result<()> {
    ensure!(
        options.rounds > 0 && options.events > 0,
        "--rounds and --events must be at least 1"
    );
    let mut table = Table::default();
    for &cap in &options.rings {
        let session = Session::start(cap).context("start a daemon and a run")?;
        let mut fleet = Fleet::start(options, &session)?;
        fleet.first_lap(cap, &mut table)?;
        for shape in Shape::ALL {
            let row = fleet.measure(shape, cap, options)?;
            table.rows.push(row);
        }
        table
            .latency
            .push((cap, fleet.c[0].latency("latency", "0,0", options.events)?));
    }
    if options.json {
        println!("{}", serde_json::to_string_pretty(&table)?);
    } else {
        print!("{table}");
    }
    Ok(())
}

/// The worker processes: two of each kind, so that two processes can emit at once.
struct Fleet {
    rust: [Worker; 2],
    c: [Worker; 2],
    off: [Worker; 2],
}

impl Fleet {
    fn start(options: &Options, session: &Session) -> Result<Self> {
        let program = compile(options.library.as_deref())?;
        Ok(Self {
            rust: [Worker::rust(session)?, Worker::rust(session)?],
            c: [
                Worker::c(&program, session, false)?,
                Worker::c(&program, session, false)?,
            ],
            off: [
                Worker::c(&program, session, true)?,
                Worker::c(&program, session, true)?,
            ],
        })
    }

    fn of(&mut self, kind: Kind) -> &mut [Worker; 2] {
        match kind {
            Kind::Rust => &mut self.rust,
            Kind::C => &mut self.c,
            Kind::Off => &mut self.off,
        }
    }

    /// The first lap pays for the pages; it is a row of its own. Afterwards every ring has wrapped.
    fn first_lap(&mut self, cap: u64, table: &mut Table) -> Result<()> {
        let first = self.c[0].emit("recorded", "0", cap)?;
        table.first_laps.push((cap, first));
        let paced = self.c[1].latency("paced", "0", cap)?;
        table.paced_first_laps.push((cap, paced));
        for worker in self.c.iter_mut() {
            worker.emit("recorded", "0,1", cap)?;
            worker.emit("recorded", "0", 1000)?;
        }
        for worker in self.rust.iter_mut() {
            worker.emit("api", "0,1", cap)?;
            for engine in ["original", "floor"] {
                worker.resize(engine, cap)?;
                worker.emit(engine, "0,1", cap + 1000)?;
            }
        }
        Ok(())
    }

    fn measure(&mut self, shape: Shape, cap: u64, options: &Options) -> Result<Row> {
        let mut samples: [Vec<f64>; CASES.len()] = Default::default();
        let mut hops = Vec::new();
        for _ in 0..options.rounds {
            if shape != Shape::One {
                hops.push(hop_ns());
            }
            for (sample, (_, kind, engine)) in samples.iter_mut().zip(CASES) {
                let workers = self.of(kind);
                let ns = if shape == Shape::TwoProcesses {
                    let [one, two] = workers;
                    one.ask(engine, shape.ncs(), options.events, 0)?;
                    two.ask(engine, shape.ncs(), options.events, 1)?;
                    (one.answer()? + two.answer()?) / 2.0
                } else {
                    workers[0].emit(engine, shape.ncs(), options.events)?
                };
                sample.push(ns);
            }
        }
        Ok(Row::new(
            shape.name(),
            cap,
            samples.map(median),
            (!hops.is_empty()).then(|| median(hops)),
        ))
    }
}
