//! What the host monitor costs with many processes on a large machine, and how punctual it is.
//!
//! The processes are real ones, attached and asleep, read in the real `/proc` through links; the machine's own files are a
//! fixture with as many CPUs as asked for. The daemon runs in this process; its sampling thread's CPU time is the
//! kernel's, from `schedstat`.

mod fixture;

use std::fs;
use std::io::{BufRead, BufReader, Read, stdin};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;
use nrt_trace_client::{Options as Attach, Tracer};
use nrt_trace_proto::v1;
use nrt_trace_proto::v1::trace_control_client::TraceControlClient;
use nrt_traced::{Config, Daemon, Running};
use tokio::runtime::Runtime;
use tonic::transport::Channel;

use fixture::Fixture;

/// What the monitor may take of a core, percent.
const MAX_PERCENT: f64 = 1.0;
/// Lateness of 99 of 100 ticks on an idle and on a loaded machine.
const MAX_LATE: [Duration; 2] = [Duration::from_millis(5), Duration::from_millis(30)];

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Attached processes
    #[arg(long, default_value_t = 200)]
    producers: usize,
    /// CPUs of the simulated machine
    #[arg(long, default_value_t = 128)]
    cpus: u32,
    /// Seconds of each of the three measurements
    #[arg(long, default_value_t = 20)]
    seconds: u64,
}

#[derive(Debug, Args)]
pub(crate) struct WorkerOptions {
    /// Keep a CPU busy instead of attaching
    #[arg(long)]
    busy: bool,
}

/// A process of the benchmark.
pub(crate) fn work(options: WorkerOptions) -> Result<()> {
    if options.busy {
        // Until stdin ends; looked at now and then, by another thread.
        thread::spawn(|| {
            loop {
                std::hint::spin_loop();
            }
        });
    } else {
        let tracer = Tracer::attach(Attach::named("sleeper"));
        println!("{}", tracer.is_capturing());
    }
    stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

/// Processes that end with this program.
struct Workers(Vec<Child>);

impl Workers {
    fn start(count: usize, arguments: &[&str], daemon: Option<&Running>) -> Result<Self> {
        let mut workers = Self(Vec::new());
        for _ in 0..count {
            let mut command = Command::new(std::env::current_exe()?);
            command.arg("host-worker").args(arguments);
            if let Some(daemon) = daemon {
                command.env("NRT_TRACE_PRODUCER_SOCKET", daemon.producer_socket());
            }
            let worker = command
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()?;
            workers.0.push(worker);
        }
        Ok(workers)
    }

    fn wait_ready(&mut self) -> Result<()> {
        for worker in &mut self.0 {
            let out = worker.stdout.take().context("piped")?;
            BufReader::new(out).read_line(&mut String::new())?;
        }
        Ok(())
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        for worker in &mut self.0 {
            let _gone = worker.kill();
            let _waited = worker.wait();
        }
    }
}

struct Monitor {
    client: TraceControlClient<Channel>,
    runtime: Runtime,
}

impl Monitor {
    fn of(daemon: &Running) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let uri = format!("unix://{}", daemon.control_socket().display());
        let client = runtime.block_on(TraceControlClient::connect(uri))?;
        Ok(Self { client, runtime })
    }

    fn start(&mut self, period_ms: u32) -> Result<()> {
        let request = v1::StartHostRequest {
            period_ms: Some(period_ms),
            ..Default::default()
        };
        self.runtime.block_on(self.client.start_host(request))?;
        Ok(())
    }

    fn stop(&mut self) -> Result<()> {
        self.runtime
            .block_on(self.client.stop_host(v1::StopHostRequest {}))?;
        Ok(())
    }

    fn stats(&mut self) -> Result<(v1::HostState, v1::HostSample)> {
        let request = v1::GetHostStatsRequest::default();
        let mut reply = self
            .runtime
            .block_on(self.client.get_host_stats(request))?
            .into_inner();
        let sample = reply.samples.pop().unwrap_or_default();
        Ok((reply.state.unwrap_or_default(), sample))
    }

    fn attached(&mut self) -> Result<usize> {
        let request = v1::GetStatusRequest {};
        let status = self
            .runtime
            .block_on(self.client.get_status(request))?
            .into_inner();
        Ok(usize::try_from(status.producers)?)
    }
}

/// CPU time of the sampling thread so far, which is in this process.
fn sampler_cpu() -> Result<Duration> {
    for task in fs::read_dir("/proc/self/task")? {
        let task = task?.path();
        if fs::read_to_string(task.join("comm"))?.trim() == "nrt-host" {
            let text = fs::read_to_string(task.join("schedstat"))?;
            let ns = text
                .split_whitespace()
                .next()
                .context("schedstat")?
                .parse()?;
            return Ok(Duration::from_nanos(ns));
        }
    }
    anyhow::bail!("no sampling thread")
}

/// Measures and holds the figures against the promises.
pub(crate) fn run(options: &Options) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let fixture = Fixture::new(folder.path(), options.cpus)?;
    let mut config = Config::embedded_in(folder.path());
    config.host.proc_root = fixture.proc();
    config.host.sys_root = fixture.sys();
    let daemon = Daemon::start(config)?;
    let mut monitor = Monitor::of(&daemon)?;
    let cost = cost(options, &fixture, &daemon, &mut monitor)?;
    drop(daemon);

    let plain = tempfile::tempdir()?;
    let daemon = Daemon::start(Config::embedded_in(plain.path()))?;
    let mut monitor = Monitor::of(&daemon)?;
    let idle = lateness("as it is", options, &mut monitor)?;
    let cores = thread::available_parallelism()?.get();
    let busy = Workers::start(cores * 2, &["--busy"], None)?;
    let loaded = lateness("loaded", options, &mut monitor)?;
    drop(busy);
    drop(daemon);

    ensure!(
        cost <= MAX_PERCENT,
        "{cost:.2} % of a core; promised: {MAX_PERCENT} %"
    );
    for (late, most) in [idle, loaded].into_iter().zip(MAX_LATE) {
        ensure!(
            late <= most,
            "99 of 100 ticks within {late:?}; promised: {most:?}"
        );
    }
    Ok(())
}

/// Percent of a core that sampling takes, once a second.
fn cost(
    options: &Options,
    fixture: &Fixture,
    daemon: &Running,
    monitor: &mut Monitor,
) -> Result<f64> {
    let mut workers = Workers::start(options.producers, &[], Some(daemon))?;
    workers.wait_ready()?;
    let deadline = Instant::now() + Duration::from_secs(60);
    while monitor.attached()? < options.producers {
        ensure!(Instant::now() < deadline, "not all processes attached");
        thread::sleep(Duration::from_millis(20));
    }
    for worker in &workers.0 {
        fixture.link(worker.id())?;
    }
    monitor.start(1000)?;
    // The first ticks open the files.
    thread::sleep(Duration::from_millis(2500));
    let (before, (state, _)) = (sampler_cpu()?, monitor.stats()?);
    let begun = Instant::now();
    thread::sleep(Duration::from_secs(options.seconds));
    let (spent, wall) = (sampler_cpu()? - before, begun.elapsed());
    let (after, sample) = monitor.stats()?;
    let ticks = after.num_samples - state.num_samples;
    ensure!(
        sample.cpus.len() == usize::try_from(options.cpus)?
            && sample.producers.len() == options.producers,
        "a tick has {} CPUs and {} processes",
        sample.cpus.len(),
        sample.producers.len()
    );
    ensure!(
        sample.producers.iter().all(|p| p.rss_bytes > Some(0)),
        "a process without memory"
    );
    let percent = spent.as_secs_f64() * 100.0 / wall.as_secs_f64();
    println!(
        "cost       {percent:.2} % of a core: {ticks} ticks of {:?} each; {} processes, {} CPUs; {} bytes a tick",
        spent / u32::try_from(ticks.max(1))?,
        options.producers,
        options.cpus,
        after.kept_bytes / after.num_samples.max(1)
    );
    monitor.stop()?;
    Ok(percent)
}

/// Lateness of 99 of 100 ticks, ten a second.
fn lateness(what: &str, options: &Options, monitor: &mut Monitor) -> Result<Duration> {
    monitor.start(100)?;
    thread::sleep(Duration::from_secs(options.seconds));
    let (state, _) = monitor.stats()?;
    monitor.stop()?;
    let of = Duration::from_nanos;
    println!(
        "lateness   {what}: {} ticks, half within {:?}, 99 of 100 within {:?}, all within {:?}; {} missed",
        state.num_samples,
        of(state.late_p50_ns),
        of(state.late_p99_ns),
        of(state.late_max_ns),
        state.missed
    );
    Ok(of(state.late_p99_ns))
}
