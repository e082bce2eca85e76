//! A daemon and its processes, as real programs, in a folder of their own: what is measured over their lives.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use nrt_trace_proto::v1::trace_control_client::TraceControlClient;
use nrt_trace_proto::v1::{self, TracePart};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tonic::transport::{Channel, Endpoint};

/// How long anything may take: what takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// A process: this program, with another first argument.
#[derive(Debug)]
pub(crate) struct Worker {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl Worker {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: Signal) -> Result<()> {
        Ok(kill_process(Pid::from_child(&self.child), signal)?)
    }

    /// The next line that it prints.
    pub(crate) fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        self.stdout.read_line(&mut line)?;
        ensure!(line.ends_with('\n'), "a process ended early");
        Ok(line)
    }

    /// Numbers that it prints in a line.
    pub(crate) fn numbers<const N: usize>(&mut self) -> Result<[u64; N]> {
        let line = self.line()?;
        let numbers = line.split_whitespace().map(str::parse);
        let numbers: Vec<u64> = numbers.collect::<Result<_, _>>()?;
        match numbers.try_into() {
            Ok(numbers) => Ok(numbers),
            Err(_) => bail!("{N} numbers in {line:?}"),
        }
    }

    /// Says something to it: a line without a word.
    pub(crate) fn nudge(&mut self) -> Result<()> {
        let stdin = self.stdin.as_mut().context("its input is closed")?;
        Ok(stdin.write_all(b"\n")?)
    }

    /// Lets it come to its end.
    pub(crate) fn close(&mut self) {
        drop(self.stdin.take());
    }

    /// Kills it, or lets it come to its end, and waits for that.
    pub(crate) fn end(&mut self, kill: bool) -> Result<()> {
        if kill {
            self.signal(Signal::KILL)?;
        }
        self.close();
        let status = self.child.wait()?;
        ensure!(kill || status.success(), "a process failed: {status}");
        Ok(())
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The daemon, its clients, and a folder for all.
#[derive(Debug)]
pub(crate) struct World {
    folder: TempDir,
    daemon: Option<Child>,
    runtime: Runtime,
    grpc: Option<TraceControlClient<Channel>>,
}

impl World {
    pub(crate) fn new() -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("nrt-bench-").tempdir()?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let mut world = Self {
            folder,
            daemon: None,
            runtime,
            grpc: None,
        };
        world.start_daemon()?;
        Ok(world)
    }

    /// A file in the folder of all.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Starts the daemon that lies beside this program, and waits until it answers.
    pub(crate) fn start_daemon(&mut self) -> Result<()> {
        let program = std::env::current_exe()?.with_file_name("nrt-traced");
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.path("log"))?;
        let daemon = Command::new(&program)
            .env("NRT_TRACE_SOCKET", self.path("c.sock"))
            .env("NRT_TRACE_PRODUCER_SOCKET", self.path("p.sock"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .with_context(|| format!("{}: build nrt-traced first", program.display()))?;
        self.daemon = Some(daemon);
        let began = Instant::now();
        let address = format!("unix://{}", self.path("c.sock").display());
        while let Err(error) = self.connect(&address) {
            ensure!(
                began.elapsed() < PATIENCE,
                "the daemon does not answer: {error}"
            );
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    fn connect(&mut self, address: &str) -> Result<()> {
        let endpoint = Endpoint::from_shared(address.to_owned())?;
        let channel = self.runtime.block_on(endpoint.connect())?;
        self.grpc = Some(TraceControlClient::new(channel));
        self.status().map(drop)
    }

    /// Sends the daemon a signal, after a while if one is given.
    pub(crate) fn signal_daemon(&self, signal: Signal, after: Duration) -> Result<()> {
        let daemon = self.daemon.as_ref().context("a daemon")?;
        let pid = Pid::from_child(daemon);
        if after.is_zero() {
            kill_process(pid, signal)?;
        } else {
            // It is waited for after this, so that the number stays its own.
            std::thread::spawn(move || {
                std::thread::sleep(after);
                let _gone = kill_process(pid, signal);
            });
        }
        Ok(())
    }

    /// Waits for the daemon's end, and starts the next one.
    pub(crate) fn next_daemon(&mut self) -> Result<Duration> {
        let began = Instant::now();
        if let Some(mut daemon) = self.daemon.take() {
            daemon.wait()?;
        }
        let ended = began.elapsed();
        self.grpc = None;
        self.start_daemon()?;
        Ok(ended)
    }

    /// Starts a process: this program with these arguments. It waits for the daemon as long as `wait_ms` says.
    pub(crate) fn start_worker(&self, wait_ms: u32, arguments: &[&OsStr]) -> Result<Worker> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(arguments)
            .env("NRT_TRACE_PRODUCER_SOCKET", self.path("p.sock"))
            .env("NRT_TRACE_WAIT_MS", wait_ms.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().context("a pipe")?;
        Ok(Worker {
            child,
            stdin,
            stdout: BufReader::new(stdout),
        })
    }

    fn call<T>(
        &mut self,
        what: impl AsyncFnOnce(&mut TraceControlClient<Channel>) -> Result<T, tonic::Status>,
    ) -> Result<T> {
        let grpc = self.grpc.as_mut().context("no connection")?;
        let answer = self
            .runtime
            .block_on(async { tokio::time::timeout(PATIENCE, what(grpc)).await });
        match answer {
            Ok(answer) => Ok(answer?),
            Err(_) => bail!("the daemon does not answer any more"),
        }
    }

    pub(crate) fn status(&mut self) -> Result<v1::GetStatusResponse> {
        self.call(async |grpc| Ok(grpc.get_status(v1::GetStatusRequest {}).await?.into_inner()))
    }

    pub(crate) fn producers(&mut self) -> Result<Vec<v1::Producer>> {
        let request = v1::ListProducersRequest { token: None };
        self.call(async |grpc| Ok(grpc.list_producers(request).await?.into_inner().producers))
    }

    /// Waits until every process has found the daemon again; `note` sees each list that is looked at.
    pub(crate) fn back(
        &mut self,
        workers: &[Worker],
        mut note: impl FnMut(&[v1::Producer]),
    ) -> Result<()> {
        let began = Instant::now();
        loop {
            let producers = self.producers()?;
            note(&producers);
            let is_back = |worker: &Worker| {
                producers.iter().any(|producer| {
                    producer.pid.map(i32::unsigned_abs) == Some(worker.pid())
                        && producer.state() == v1::ProducerState::Capturing
                })
            };
            if workers.iter().all(is_back) {
                return Ok(());
            }
            ensure!(began.elapsed() < PATIENCE, "a process does not come back");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub(crate) fn start(&mut self, cap: u64) -> Result<v1::StartResponse> {
        let request = v1::StartRequest {
            max_events_per_nc: Some(cap),
            arm_timeout_ms: Some(10_000),
            ..Default::default()
        };
        self.call(async |grpc| Ok(grpc.start(request).await?.into_inner()))
    }

    /// Changes the host's run: these event types from now on; none: all.
    pub(crate) fn set_types(&mut self, events: &[&str]) -> Result<()> {
        let events = events.iter().map(|&name| name.to_owned()).collect();
        let request = v1::SetFilterRequest {
            events: Some(v1::TypeFilter { events }),
            ..Default::default()
        };
        self.call(async |grpc| grpc.set_filter(request).await.map(drop))
    }

    pub(crate) fn stop(&mut self) -> Result<v1::StopResponse> {
        let request = v1::StopRequest::default();
        self.call(async |grpc| Ok(grpc.stop(request).await?.into_inner()))
    }

    /// All parts of a fetch, which consumes nothing before it is committed.
    pub(crate) fn fetch(&mut self, most: u64) -> Result<Vec<TracePart>> {
        let request = v1::FetchRequest {
            max_events_per_nc: most,
            ..Default::default()
        };
        self.call(async |grpc| all_parts(grpc.fetch(request).await?.into_inner()).await)
    }

    /// All parts of a snapshot, which consumes nothing at all.
    pub(crate) fn snapshot(&mut self) -> Result<Vec<TracePart>> {
        let request = v1::SnapshotRequest::default();
        self.call(async |grpc| all_parts(grpc.snapshot(request).await?.into_inner()).await)
    }

    pub(crate) fn commit(&mut self, fetch_id: u64) -> Result<()> {
        self.call(async |grpc| grpc.commit(v1::CommitRequest { fetch_id }).await.map(drop))
    }

    /// Descriptors that the daemon has open.
    pub(crate) fn descriptors(&self) -> usize {
        let pid = self.daemon.as_ref().map_or(0, Child::id);
        fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count)
    }

    /// CPU time that the daemon has taken so far.
    pub(crate) fn daemon_cpu(&self) -> Result<Duration> {
        let pid = self.daemon.as_ref().map_or(0, Child::id);
        let mut sum = 0;
        for task in fs::read_dir(format!("/proc/{pid}/task"))? {
            let text = fs::read_to_string(task?.path().join("schedstat"))?;
            let ns = text.split_whitespace().next().context("schedstat")?;
            sum += ns.parse::<u64>()?;
        }
        Ok(Duration::from_nanos(sum))
    }

    /// The log of all daemons.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    /// Where everything is, which stays there from now on.
    pub(crate) fn keep(&mut self) -> &Path {
        self.folder.disable_cleanup(true);
        self.folder.path()
    }
}

async fn all_parts(
    mut stream: tonic::Streaming<TracePart>,
) -> Result<Vec<TracePart>, tonic::Status> {
    let mut parts = Vec::new();
    while let Some(part) = stream.message().await? {
        parts.push(part);
    }
    Ok(parts)
}

impl Drop for World {
    fn drop(&mut self) {
        if let Some(mut daemon) = self.daemon.take() {
            drop(daemon.kill());
            drop(daemon.wait());
        }
    }
}
