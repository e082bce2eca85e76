//! The daemon and the processes of a soak, as real programs.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
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

/// A process with its log.
#[derive(Debug)]
pub(super) struct Worker {
    pub(super) log: PathBuf,
    child: Child,
    stdin: Option<ChildStdin>,
}

impl Worker {
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(super) fn signal(&self, signal: Signal) -> Result<()> {
        Ok(kill_process(Pid::from_child(&self.child), signal)?)
    }

    /// Kills it, or lets it come to its end.
    pub(super) fn end(&mut self, kill: bool) -> Result<()> {
        if kill {
            self.signal(Signal::KILL)?;
        }
        drop(self.stdin.take());
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
pub(super) struct World {
    folder: TempDir,
    daemon: Option<Child>,
    runtime: Runtime,
    grpc: Option<TraceControlClient<Channel>>,
    workers: u64,
}

impl World {
    pub(super) fn new() -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("nrt-soak-").tempdir()?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let mut world = Self {
            folder,
            daemon: None,
            runtime,
            grpc: None,
            workers: 0,
        };
        world.start_daemon()?;
        Ok(world)
    }

    fn socket(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Starts the daemon that lies beside this program, and waits until it answers.
    pub(super) fn start_daemon(&mut self) -> Result<()> {
        let program = std::env::current_exe()?.with_file_name("nrt-traced");
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.socket("log"))?;
        let daemon = Command::new(&program)
            .env("NRT_TRACE_SOCKET", self.socket("c.sock"))
            .env("NRT_TRACE_PRODUCER_SOCKET", self.socket("p.sock"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .with_context(|| format!("{}: build nrt-traced first", program.display()))?;
        self.daemon = Some(daemon);
        let began = Instant::now();
        let address = format!("unix://{}", self.socket("c.sock").display());
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
    pub(super) fn signal_daemon(&self, signal: Signal, after: Duration) -> Result<()> {
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
    pub(super) fn next_daemon(&mut self) -> Result<Duration> {
        let began = Instant::now();
        if let Some(mut daemon) = self.daemon.take() {
            daemon.wait()?;
        }
        let ended = began.elapsed();
        self.grpc = None;
        self.start_daemon()?;
        Ok(ended)
    }

    /// Starts a process.
    pub(super) fn start_worker(&mut self, seed: u64) -> Result<Worker> {
        self.workers += 1;
        let log = self.folder.path().join(format!("{}.ledger", self.workers));
        let mut child = Command::new(std::env::current_exe()?)
            .arg("soak-worker")
            .arg("--log")
            .arg(&log)
            .arg("--seed")
            .arg(seed.to_string())
            .env("NRT_TRACE_PRODUCER_SOCKET", self.socket("p.sock"))
            .env("NRT_TRACE_WAIT_MS", "0")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()?;
        let stdin = child.stdin.take();
        Ok(Worker { log, child, stdin })
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

    pub(super) fn status(&mut self) -> Result<v1::GetStatusResponse> {
        self.call(async |grpc| Ok(grpc.get_status(v1::GetStatusRequest {}).await?.into_inner()))
    }

    pub(super) fn producers(&mut self) -> Result<Vec<v1::Producer>> {
        let request = v1::ListProducersRequest { token: None };
        self.call(async |grpc| Ok(grpc.list_producers(request).await?.into_inner().producers))
    }

    pub(super) fn start(&mut self, cap: u64) -> Result<v1::StartResponse> {
        let request = v1::StartRequest {
            max_events_per_nc: Some(cap),
            arm_timeout_ms: Some(10_000),
            ..Default::default()
        };
        self.call(async |grpc| Ok(grpc.start(request).await?.into_inner()))
    }

    pub(super) fn stop(&mut self) -> Result<v1::StopResponse> {
        let request = v1::StopRequest::default();
        self.call(async |grpc| Ok(grpc.stop(request).await?.into_inner()))
    }

    /// All parts of a fetch, which consumes nothing before it is committed.
    pub(super) fn fetch(&mut self, most: u64) -> Result<Vec<TracePart>> {
        let request = v1::FetchRequest {
            max_events_per_nc: most,
            ..Default::default()
        };
        self.call(async |grpc| {
            let mut stream = grpc.fetch(request).await?.into_inner();
            let mut parts = Vec::new();
            while let Some(part) = stream.message().await? {
                parts.push(part);
            }
            Ok(parts)
        })
    }

    pub(super) fn commit(&mut self, fetch_id: u64) -> Result<()> {
        self.call(async |grpc| grpc.commit(v1::CommitRequest { fetch_id }).await.map(drop))
    }

    /// Descriptors that the daemon has open.
    pub(super) fn descriptors(&self) -> usize {
        let pid = self.daemon.as_ref().map_or(0, Child::id);
        fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count)
    }

    /// The log of all daemons.
    pub(super) fn log(&self) -> String {
        fs::read_to_string(self.socket("log")).unwrap_or_default()
    }

    /// Where everything is, which stays there from now on.
    pub(super) fn keep(&mut self) -> &Path {
        self.folder.disable_cleanup(true);
        self.folder.path()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if let Some(mut daemon) = self.daemon.take() {
            drop(daemon.kill());
            drop(daemon.wait());
        }
    }
}
