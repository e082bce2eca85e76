//! Who reads the rings: a plain client, and the command line.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use nrt_trace_abi::record::RECORD_BYTES;
use nrt_trace_proto::v1::FetchRequest;
use nrt_trace_proto::v1::trace_control_client::TraceControlClient;
use nrt_trace_proto::v1::trace_part::Part;
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tonic::transport::Channel;

use super::measure::{Run, Watch};

/// Reads what a daemon holds.
pub(crate) struct Reader {
    tool: PathBuf,
    socket: PathBuf,
    folder: TempDir,
    runtime: Runtime,
    client: TraceControlClient<Channel>,
}

impl Reader {
    pub(crate) fn new(tool: Option<&Path>, folder: Option<&Path>, socket: &Path) -> Result<Self> {
        let beside = std::env::current_exe()?;
        let beside = beside.parent().context("a folder of this program")?;
        let tool = tool.map_or_else(|| beside.join("nrt-tracectl"), Path::to_owned);
        ensure!(
            tool.exists(),
            "no {}: build it with cargo build --release -p nrt-tracectl",
            tool.display()
        );
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let uri = format!("unix://{}", socket.display());
        let client = runtime.block_on(TraceControlClient::connect(uri))?;
        Ok(Self {
            tool,
            socket: socket.to_owned(),
            folder: tempfile::tempdir_in(folder.unwrap_or(beside))?,
            runtime,
            client,
        })
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.tool);
        command.arg("--socket").arg(&self.socket).arg("fetch");
        command
            .args(arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    /// Gives up what is there.
    pub(crate) fn discard(&self) -> Result<()> {
        let status = self.command(&["--discard"]).status()?;
        ensure!(status.success(), "discarding failed");
        Ok(())
    }

    /// Fetches everything over gRPC, counts it, and consumes nothing; seconds.
    pub(crate) fn raw(&mut self, events: u64) -> Result<f64> {
        let begin = Instant::now();
        let records = self.runtime.block_on(async {
            let mut stream = self
                .client
                .fetch(FetchRequest::default())
                .await?
                .into_inner();
            let mut records = 0;
            while let Some(part) = stream.message().await? {
                if let Some(Part::Records(chunk)) = part.part {
                    records += (chunk.packed.len() / RECORD_BYTES) as u64;
                }
            }
            anyhow::Ok(records)
        })?;
        let seconds = begin.elapsed().as_secs_f64();
        ensure!(records == events, "{records} of {events} events came");
        Ok(seconds)
    }

    /// Fetches everything into /dev/null, and consumes it.
    pub(crate) fn to_null(&self, events: u64) -> Result<Run> {
        let run = Watch::run(&mut self.command(&["-o", "/dev/null", "--to", "json"]))?;
        self.is_empty(events)?;
        Ok(run)
    }

    /// Fetches everything into a file, and consumes it; the file's size too.
    pub(crate) fn to_file(&self, events: u64) -> Result<(Run, u64)> {
        let file = self.folder.path().join("trace.json");
        let name = file.to_str().context("a path in UTF-8")?;
        // What is replaced has to be freed as well; dd writes into a new file, too.
        let _absent = std::fs::remove_file(&file);
        settle()?;
        let run = Watch::run(&mut self.command(&["-o", name]))?;
        self.is_empty(events)?;
        Ok((run, file.metadata()?.len()))
    }

    /// Copies the file with `dd`, to the disk; seconds.
    pub(crate) fn dd(&self) -> Result<f64> {
        let copy = self.folder.path().join("copy.json");
        let _absent = std::fs::remove_file(&copy);
        settle()?;
        let mut command = Command::new("dd");
        command
            .arg(format!(
                "if={}",
                self.folder.path().join("trace.json").display()
            ))
            .arg(format!("of={}", copy.display()))
            .args(["bs=1M", "conv=fsync"])
            .stderr(Stdio::null());
        let begin = Instant::now();
        ensure!(command.status().context("run dd")?.success(), "dd failed");
        let seconds = begin.elapsed().as_secs_f64();
        std::fs::remove_file(&copy)?;
        Ok(seconds)
    }

    /// The tool reported success; nothing may be left then.
    fn is_empty(&self, events: u64) -> Result<()> {
        let mut client = self.client.clone();
        let left = self.runtime.block_on(async {
            let mut stream = client.fetch(FetchRequest::default()).await?.into_inner();
            let mut left = 0;
            while let Some(part) = stream.message().await? {
                if let Some(Part::Account(account)) = part.part {
                    left += account.unread + account.pending + account.lost - account.abandoned;
                }
            }
            anyhow::Ok(left)
        })?;
        ensure!(left == 0, "{left} of {events} events were lost or left");
        Ok(())
    }
}

/// Lets earlier writes reach the disk, so that nobody pays for another's.
fn settle() -> Result<()> {
    ensure!(Command::new("sync").status()?.success(), "sync failed");
    Ok(())
}
