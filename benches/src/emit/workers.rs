//! The worker processes, as the measuring side talks to them: a line asks, a line answers.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

use super::session::Session;
use super::table::Latency;
use super::worker::pin;

/// A process that emits on request.
pub(crate) struct Worker {
    child: Child,
    ask: ChildStdin,
    answer: BufReader<ChildStdout>,
}

impl Worker {
    /// This program as a worker, recorded.
    pub(crate) fn rust(session: &Session) -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("emit-worker").envs(session.environment());
        Self::spawn(command)
    }

    /// The C worker, recorded, or with the library turned off.
    pub(crate) fn c(program: &Path, session: &Session, off: bool) -> Result<Self> {
        let mut command = Command::new(program);
        command.envs(session.environment());
        if off {
            command.env("NRT_TRACE_DISABLE", "1");
        }
        Self::spawn(command)
    }

    fn spawn(mut command: Command) -> Result<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("start a worker")?;
        let ask = child.stdin.take().context("a worker's input")?;
        let answer = BufReader::new(child.stdout.take().context("a worker's output")?);
        Ok(Self { child, ask, answer })
    }

    /// Its pid.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Emits `events` on each of `ncs` ("0", "0,1", …), a pinned thread each; ns per event and thread.
    pub(crate) fn emit(&mut self, engine: &str, ncs: &str, events: u64) -> Result<f64> {
        self.ask(engine, ncs, events, 0)?;
        self.answer()
    }

    /// The first half of [`Worker::emit`], with the first thread on core `core`.
    pub(crate) fn ask(&mut self, engine: &str, ncs: &str, events: u64, core: usize) -> Result<()> {
        writeln!(self.ask, "{engine} {ncs} {events} {core}").context("ask a worker")
    }

    /// The second half.
    pub(crate) fn answer(&mut self) -> Result<f64> {
        self.line()?.trim().parse().context("a worker's answer")
    }

    /// Gives an engine of the Rust worker's own rings of `cap` slots.
    pub(crate) fn resize(&mut self, engine: &str, cap: u64) -> Result<()> {
        self.ask(&format!("resize-{engine}"), "0", cap, 0)?;
        self.answer().map(|_| ())
    }

    /// Times single calls: `latency` as fast as they come, `paced` one each microsecond.
    pub(crate) fn latency(&mut self, engine: &str, ncs: &str, events: u64) -> Result<Latency> {
        self.ask(engine, ncs, events, 0)?;
        let line = self.line()?;
        let numbers: Vec<f64> = line
            .split_whitespace()
            .filter_map(|word| word.parse().ok())
            .collect();
        let [p50, p99, p999, empty] = numbers[..] else {
            bail!("a worker's answer: {line}")
        };
        Ok(Latency {
            p50,
            p99,
            p999,
            empty,
        })
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        self.answer.read_line(&mut line).context("hear a worker")?;
        ensure!(!line.is_empty(), "a worker ended");
        Ok(line)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ended = self.child.kill();
        let _status = self.child.wait();
    }
}

/// Compiles the C worker against the shared library; the path of the program.
pub(crate) fn compile(library: Option<&Path>) -> Result<PathBuf> {
    let own = std::env::current_exe()?;
    let folder = own.parent().context("the folder of this program")?;
    let library = library.map_or_else(|| folder.join("libnrt_trace.so"), Path::to_owned);
    ensure!(
        library.exists(),
        "{} is not there: run `cargo build --release -p nrt-trace-capi -p nrt-trace-bench` first",
        library.display()
    );
    let folder = library.parent().context("the folder of the library")?;
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    let cc = |arguments: &[&str], source: &str, output: &Path| {
        let status = Command::new("cc")
            .args(["-O2", "-Wall", "-Wextra", "-Werror", "-pthread", "-I"])
            .arg(manifest.join("../client-lib/capi/include"))
            .arg("-o")
            .arg(output)
            .arg(manifest.join(source))
            .arg("-L")
            .arg(folder)
            .args(arguments)
            .status()
            .context("run cc")?;
        ensure!(status.success(), "cc could not compile {source}");
        Ok(())
    };
    let (program, empty) = (
        folder.join("nrt-trace-bench-c"),
        folder.join("libnrt_trace_bench_empty.so"),
    );
    cc(&["-shared", "-fPIC"], "c/empty.c", &empty)?;
    let rpath = format!("-Wl,-rpath,{}", folder.display());
    cc(
        &["-lnrt_trace", "-lnrt_trace_bench_empty", &rpath],
        "c/emit.c",
        &program,
    )?;
    Ok(program)
}

/// What it costs to hand a cache line to the other core, ns: half of a round trip.
pub(crate) fn hop_ns() -> f64 {
    const ROUNDS: u64 = 20_000;
    let ball = AtomicU64::new(0);
    let begin = Instant::now();
    std::thread::scope(|scope| {
        for side in 0..2 {
            let ball = &ball;
            scope.spawn(move || {
                pin(usize::from(side == 1));
                for round in 0..ROUNDS {
                    while ball.load(Ordering::Acquire) != 2 * round + side {
                        std::hint::spin_loop();
                    }
                    ball.store(2 * round + side + 1, Ordering::Release);
                }
            });
        }
    });
    begin.elapsed().as_nanos() as f64 / (2 * ROUNDS) as f64
}
