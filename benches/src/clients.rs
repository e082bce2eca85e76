//! `nrt-trace-bench clients`: what clients that never stop asking cost a program that is traced.
//!
//! One program emits on one core. Daemon and clients share the other, which they use up. Each round measures the program
//! alone and beside them; the figure is the ratio within a round, of the CPU time that the whole program took per event.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use nrt_trace_proto::v1::GetStatusRequest;
use nrt_trace_proto::v1::trace_control_client::TraceControlClient;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use tonic::transport::Channel;

use crate::emit::{Session, Worker, pin};
use crate::median;

/// `clients`
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Clients, each with a connection of its own.
    #[arg(long, default_value_t = 50)]
    clients: usize,
    /// Rounds; the figures are medians.
    #[arg(long, default_value_t = 15)]
    rounds: usize,
    /// Events of a measurement.
    #[arg(long, default_value_t = 10_000_000)]
    events: u64,
}

/// Slots of the ring: large enough for the first lap to be over soon, as in a run that lasts.
const CAP: u64 = 1 << 16;

/// Runs the measurement and prints it.
#[expect(clippy::cast_precision_loss, reason = "shown with a few digits")]
pub(crate) fn run(options: &Options) -> Result<()> {
    ensure!(
        options.clients > 0 && options.rounds > 0 && options.events >= CAP,
        "--clients and --rounds must be at least 1, --events at least {CAP}"
    );
    // Every thread that is started from here on stays there; the program's own goes to the first core.
    pin(1);
    let session = Session::start(CAP)?;
    let mut worker = Worker::rust(&session)?;
    worker.emit("api", "0", CAP)?;
    let clients = Clients::connect(&session, options.clients)?;
    let (mut ratios, mut quiet_ns, mut rates) = (Vec::new(), Vec::new(), Vec::new());
    let mut memory = Vec::new();
    for _ in 0..options.rounds {
        let quiet = cpu_per_event(&mut worker, options.events, |worker| {
            worker.answer().map(|_| ())
        })?;
        let mut rate = 0.0;
        let beside = cpu_per_event(&mut worker, options.events, |worker| {
            rate = clients.ask_while(|| worker.answer().map(|_| ()))?;
            Ok(())
        })?;
        ratios.push(beside / quiet);
        quiet_ns.push(quiet);
        rates.push(rate);
        memory.push(clients.memory()?);
    }
    let (first, last) = (memory.first(), memory.last());
    let mib = |bytes: Option<&u64>| bytes.map_or(f64::NAN, |bytes| *bytes as f64 / 1048576.0);
    println!("{} clients, {} rounds", options.clients, options.rounds);
    println!("status calls            {:>10.0} /s", median(rates));
    println!("CPU per event, alone    {:>10.1} ns", median(quiet_ns));
    println!("beside them             {:>10.3} of that", median(ratios));
    println!(
        "memory, daemon + clients {:>9.1} MiB after the first round, {:.1} after the last",
        mib(first),
        mib(last)
    );
    Ok(())
}

/// CPU time that the worker's process takes for an event, ns; `wait` hears its answer.
#[expect(clippy::cast_precision_loss, reason = "shown with a few digits")]
fn cpu_per_event(
    worker: &mut Worker,
    events: u64,
    wait: impl FnOnce(&mut Worker) -> Result<()>,
) -> Result<f64> {
    let before = cpu_ns(worker.pid())?;
    worker.ask("api", "0", events, 0)?;
    wait(worker)?;
    Ok((cpu_ns(worker.pid())? - before) as f64 / events as f64)
}

/// CPU time of all threads that a process has and had, ns. The threads that emitted have ended when it is asked.
fn cpu_ns(pid: u32) -> Result<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // Clock ticks of 10 ms, over measurements of tenths of seconds.
    let (_, fields) = stat.rsplit_once(')').context("the worker's times")?;
    let ticks = fields.split_whitespace().skip(11).take(2);
    let ticks: u64 = ticks.map(|ticks| ticks.parse().unwrap_or(0)).sum();
    Ok(ticks * 1_000_000_000 / rustix::param::clock_ticks_per_second())
}

/// Clients that ask for the status again and again.
struct Clients {
    runtime: Runtime,
    all: Vec<TraceControlClient<Channel>>,
}

impl Clients {
    fn connect(session: &Session, count: usize) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let uri = format!("unix://{}", session.control_socket()?.display());
        let mut all = Vec::new();
        for _ in 0..count {
            let client = runtime.block_on(TraceControlClient::connect(uri.clone()));
            all.push(client.context("connect a client")?);
        }
        Ok(Self { runtime, all })
    }

    /// Asks until `other` has ended; calls a second.
    #[expect(clippy::cast_precision_loss, reason = "shown with a few digits")]
    fn ask_while(&self, other: impl FnOnce() -> Result<()> + Send) -> Result<f64> {
        let over = Arc::new(AtomicBool::new(false));
        let began = Instant::now();
        let calls = std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                let result = other();
                // Relaxed, here and below: nothing but the end depends on it.
                over.store(true, Ordering::Relaxed);
                result
            });
            let calls = self.runtime.block_on(self.ask(&over));
            other
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            calls
        })?;
        Ok(calls as f64 / began.elapsed().as_secs_f64())
    }

    /// Each client asks, and asks again as soon as it has its answer; the number of answers.
    async fn ask(&self, over: &Arc<AtomicBool>) -> Result<u64> {
        let mut asking = JoinSet::new();
        for mut client in self.all.iter().cloned() {
            let over = Arc::clone(over);
            asking.spawn(async move {
                let mut answers = 0_u64;
                while !over.load(Ordering::Relaxed) {
                    client.get_status(GetStatusRequest {}).await?;
                    answers += 1;
                }
                Ok::<_, tonic::Status>(answers)
            });
        }
        let mut answers = 0;
        while let Some(of) = asking.join_next().await {
            answers += of??;
        }
        Ok(answers)
    }

    /// Resident memory of this process, bytes, as the daemon in it says.
    fn memory(&self) -> Result<u64> {
        let mut client = self.all.first().cloned().context("a client")?;
        let status = self
            .runtime
            .block_on(client.get_status(GetStatusRequest {}))?;
        Ok(status.into_inner().rss_bytes)
    }
}
