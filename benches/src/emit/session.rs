//! A daemon in this process with a run of a given ring size.

use std::path::Path;

use anyhow::{Context, Result};
use nrt_trace_proto::v1::StartRequest;
use nrt_trace_proto::v1::trace_control_client::TraceControlClient;
use nrt_traced::{Config, Daemon, Running};
use tempfile::TempDir;

/// A running daemon whose host run captures everything but `generic`.
pub(crate) struct Session {
    daemon: Option<Running>,
    _folder: TempDir,
}

impl Session {
    pub(crate) fn start(cap: u64) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let daemon = Daemon::start(Config::embedded_in(folder.path()))?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let uri = format!("unix://{}", daemon.control_socket().display());
        runtime.block_on(async {
            let mut client = TraceControlClient::connect(uri).await.context("connect")?;
            let request = StartRequest {
                max_events_per_nc: Some(cap),
                events: vec!["hardware".into(), "software".into(), "^generic".into()],
                ..StartRequest::default()
            };
            client.start(request).await.context("start a run")?;
            anyhow::Ok(())
        })?;
        Ok(Self {
            daemon: Some(daemon),
            _folder: folder,
        })
    }

    /// Where people ask.
    pub(crate) fn control_socket(&self) -> Result<&Path> {
        let daemon = self.daemon.as_ref().context("a running daemon")?;
        Ok(daemon.control_socket())
    }

    /// Where programs attach.
    pub(crate) fn producer_socket(&self) -> Result<&Path> {
        let daemon = self.daemon.as_ref().context("a running daemon")?;
        Ok(daemon.producer_socket())
    }

    /// Environment of a process that this daemon records.
    pub(crate) fn environment(&self) -> Vec<(&'static str, String)> {
        let socket = self
            .daemon
            .as_ref()
            .map(|daemon| daemon.producer_socket().display().to_string());
        vec![
            ("NRT_TRACE_PRODUCER_SOCKET", socket.unwrap_or_default()),
            ("NRT_TRACE_WAIT_MS", "5000".into()),
            ("NEURON_RT_NUM_CORES", "2".into()),
        ]
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if let Some(daemon) = self.daemon.take() {
            daemon.shutdown();
        }
    }
}
