//! `nrt-trace-bench instructions`: how many instructions one event takes.
//!
//! Time is noisy where others share the machine, and instructions are not: a longer emit path shows here at once. The C
//! worker runs under valgrind's callgrind twice, with different numbers of events; the difference is what events cost.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use std::io::Write;

use crate::emit::{Session, compile};

/// Events of the shorter run, and how many more the longer one has.
const FEW: u64 = 2_000;
const MORE: u64 = 20_000;

/// The cases: name, the worker's engine, and the most that one event may take, its share of the worker's loop included.
/// A compiler may do a little better or worse; a tenth above what was measured when the limit was set is a regression.
const CASES: [(&str, &str, f64); 3] = [
    ("recorded", "recorded", 150.0),
    ("filtered", "filtered", 27.0),
    ("filtered, inline gate", "inline-filtered", 15.0),
];

/// Measures, prints, and fails if a case takes more than it may.
pub(crate) fn run() -> Result<()> {
    let session = Session::start(1024).context("start a daemon and a run")?;
    let program = compile(None)?;
    let folder = tempfile::tempdir()?;
    let mut worst = None;
    for (name, engine, most) in CASES {
        let count = |events| -> Result<u64> {
            let out = folder.path().join("callgrind.out");
            let mut child = Command::new("valgrind")
                .args(["--tool=callgrind", "--quiet"])
                .arg(format!("--callgrind-out-file={}", out.display()))
                .arg(&program)
                .envs(session.environment())
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .spawn()
                .context("run valgrind")?;
            let mut ask = child.stdin.take().context("the worker's input")?;
            writeln!(ask, "{engine} 0 {events} 0")?;
            drop(ask);
            ensure!(child.wait()?.success(), "the worker failed under valgrind");
            let text = std::fs::read_to_string(&out)?;
            let total = text
                .lines()
                .find_map(|line| line.strip_prefix("totals: "))
                .context("callgrind's output has no totals")?;
            Ok(total.trim().parse()?)
        };
        let (few, many) = (count(FEW)?, count(FEW + MORE)?);
        let per_event = many.saturating_sub(few) as f64 / MORE as f64;
        println!("{name:<24}{per_event:>8.1} instructions per event, at most {most}");
        if per_event > most {
            worst = Some(name);
        }
    }
    match worst {
        Some(name) => bail!("an event takes more instructions than it may: {name}"),
        None => Ok(()),
    }
}
