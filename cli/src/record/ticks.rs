//! The host monitor's ticks in a recording: into the growing file while it goes on, and at its end into a document of their
//! own where that is wanted.

use std::io::BufWriter;
use std::path::{Path, PathBuf};

use nrt_trace_export::HostWriter;
use nrt_trace_proto::v1;
use nrt_trace_proto::v1::trace_part::Part;

use crate::client::{Client, Ticks};
use crate::error::Failure;
use crate::output::file::WholeFile;
use crate::output::tell;

/// What is wanted of the host monitor.
#[derive(Clone, Debug, Default)]
pub(crate) struct HostPlan {
    /// Time between two ticks if nobody has started the monitor yet.
    pub(crate) period_ms: Option<u32>,
    /// File for Neuron's objects.
    pub(crate) file: Option<PathBuf>,
}

/// The ticks of a recording.
#[derive(Debug)]
pub(super) struct HostTicks {
    /// `None`: there are none, or no more.
    ticks: Option<Ticks>,
    taken: u64,
}

impl HostTicks {
    /// Starts the monitor, or joins it, if it is wanted.
    pub(super) async fn begin(client: &Client, plan: Option<&HostPlan>) -> Result<Self, Failure> {
        let ticks = match plan {
            Some(plan) => Some(client.clone().watch_host(plan.period_ms).await?),
            None => None,
        };
        Ok(Self { ticks, taken: 0 })
    }

    /// Waits for the parts of the next tick; for ever when there are none. May be dropped half-way: none is lost.
    pub(super) async fn next(&mut self) -> Vec<Part> {
        let Some(ticks) = &mut self.ticks else {
            return std::future::pending().await;
        };
        match ticks.next().await {
            Ok(Some(tick)) => self.take(tick),
            Ok(None) => {
                self.end("the host monitor was stopped");
                Vec::new()
            }
            // The recording finds that out itself, and begins again.
            Err(Failure::Gone(_)) => {
                self.ticks = None;
                Vec::new()
            }
            Err(failure) => {
                self.end(&failure.to_string());
                Vec::new()
            }
        }
    }

    /// Goes on at a daemon that started anew.
    pub(super) async fn resume(&mut self, client: &Client, plan: Option<&HostPlan>) {
        if let Some(plan) = plan {
            match client.clone().watch_host(plan.period_ms).await {
                Ok(ticks) => self.ticks = Some(ticks),
                Err(failure) => self.end(&failure.to_string()),
            }
        }
    }

    fn take(&mut self, tick: v1::WatchHostStatsResponse) -> Vec<Part> {
        if tick.saturated {
            self.end(
                "the host monitor is full (max_samples), `nrt-tracectl host start` begins anew",
            );
        }
        self.taken += 1;
        let info = tick.info.map(Part::HostInfo);
        info.into_iter()
            .chain(tick.sample.map(Part::HostSample))
            .collect()
    }

    fn end(&mut self, why: &str) {
        self.ticks = None;
        tell::warning(format!(
            "{why}: what the machine uses is not recorded from here on"
        ));
    }

    /// Says so if there was not one.
    pub(super) fn close(self) {
        if self.ticks.is_some() && self.taken == 0 {
            tell::warning(
                "the recording was shorter than the host monitor's period: see --host-period",
            );
        }
    }
}

/// A document of ticks that is being written.
#[derive(Debug)]
pub(super) struct HostFile {
    writer: HostWriter<BufWriter<WholeFile>>,
    path: PathBuf,
}

impl HostFile {
    /// Begins it; it shows under its name when it is whole.
    pub(super) fn create(path: &Path) -> Result<Self, Failure> {
        let failed = |error| Failure::file("write", path, &error);
        let file = WholeFile::create(path).map_err(failed)?;
        let writer = HostWriter::new(BufWriter::new(file)).map_err(failed)?;
        Ok(Self {
            writer,
            path: path.to_owned(),
        })
    }

    /// Takes a part of the trace.
    pub(super) fn part(&mut self, part: &v1::TracePart) -> Result<(), Failure> {
        let written = self.writer.part(part);
        written.map_err(|error| Failure::file("write", &self.path, &error))
    }

    /// Puts it in its place.
    pub(super) fn finish(self) -> Result<(), Failure> {
        let path = self.path;
        let whole = self.writer.finish().and_then(|buffered| {
            let file = buffered
                .into_inner()
                .map_err(std::io::IntoInnerError::into_error)?;
            file.finish()
        });
        whole.map_err(|error| Failure::file("write", &path, &error))
    }
}
