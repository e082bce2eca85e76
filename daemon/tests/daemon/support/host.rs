//! A daemon in a folder of its own, and a client of it.

use std::path::Path;

use nrt_trace_proto::v1;
use nrt_trace_proto::v1::trace_control_client::TraceControlClient;
use nrt_traced::{Config, Daemon, Running};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};

use super::{Fetched, wait_for};

/// A daemon with a client.
pub(crate) struct Host {
    pub(crate) client: TraceControlClient<Channel>,
    pub(crate) runtime: Runtime,
    pub(crate) daemon: Running,
    _folder: TempDir,
}

/// A start of the host's run, with rings of `cap` events.
pub(crate) fn host_run(cap: u64) -> v1::StartRequest {
    token_run("", cap)
}

/// A start of a token's run. The timeout is far beyond what an answer takes.
pub(crate) fn token_run(token: &str, cap: u64) -> v1::StartRequest {
    v1::StartRequest {
        token: token.to_owned(),
        max_events_per_nc: Some(cap),
        arm_timeout_ms: Some(10_000),
        ..Default::default()
    }
}

/// A fetch of everything of the host's run.
pub(crate) fn fetch() -> v1::FetchRequest {
    v1::FetchRequest::default()
}

impl Host {
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    pub(crate) fn with(change: impl FnOnce(&mut Config)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut config = Config::embedded_in(folder.path());
        config.test_small_rings = true;
        config.default_cores = 2;
        // Answers are awaited for as long as a loaded machine may need; tests of timeouts say so.
        config.disarm_timeout_ms = 10_000;
        change(&mut config);
        let daemon = Daemon::start(config).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let client = runtime.block_on(client(daemon.control_socket()));
        Self {
            client,
            runtime,
            daemon,
            _folder: folder,
        }
    }

    pub(crate) fn start(&mut self, request: v1::StartRequest) -> Result<v1::StartResponse, Status> {
        self.runtime
            .block_on(self.client.start(request))
            .map(tonic::Response::into_inner)
    }

    pub(crate) fn stop(&mut self, token: &str, discard: bool) -> Result<v1::StopResponse, Status> {
        let request = v1::StopRequest {
            token: token.to_owned(),
            discard,
        };
        self.runtime
            .block_on(self.client.stop(request))
            .map(tonic::Response::into_inner)
    }

    /// Runs a fetch to its end, without committing it.
    pub(crate) fn fetch(&mut self, request: v1::FetchRequest) -> Result<Fetched, Status> {
        self.runtime.block_on(async {
            let mut stream = self.client.fetch(request).await?.into_inner();
            let mut fetched = Fetched::default();
            while let Some(part) = stream.message().await? {
                fetched.take(part);
            }
            fetched.check();
            Ok(fetched)
        })
    }

    pub(crate) fn commit(&mut self, fetch_id: u64) -> Result<(), Status> {
        self.runtime
            .block_on(self.client.commit(v1::CommitRequest { fetch_id }))
            .map(drop)
    }

    /// Fetches everything of the host's run and commits it.
    pub(crate) fn consume(&mut self) -> Fetched {
        let fetched = self.fetch(fetch()).unwrap();
        self.commit(fetched.id()).unwrap();
        fetched
    }

    pub(crate) fn status(&mut self) -> v1::GetStatusResponse {
        self.runtime
            .block_on(self.client.get_status(v1::GetStatusRequest {}))
            .unwrap()
            .into_inner()
    }

    pub(crate) fn producers(&mut self) -> Vec<v1::Producer> {
        let request = v1::ListProducersRequest { token: None };
        self.runtime
            .block_on(self.client.list_producers(request))
            .unwrap()
            .into_inner()
            .producers
    }

    /// Waits until producer `id` is in `state`.
    pub(crate) fn wait_state(&mut self, id: u32, state: v1::ProducerState) {
        wait_for(&format!("{state:?} of {id}"), || {
            self.producers()
                .iter()
                .any(|producer| producer.producer_id == id && producer.state() == state)
        });
    }
}

async fn client(socket: &Path) -> TraceControlClient<Channel> {
    let endpoint = Endpoint::from_shared(format!("unix://{}", socket.display())).unwrap();
    TraceControlClient::new(endpoint.connect().await.unwrap())
}

/// Asserts on a refusal's code and words.
#[track_caller]
pub(crate) fn refused<T: std::fmt::Debug>(result: Result<T, Status>, code: Code, words: &str) {
    let status = result.unwrap_err();
    assert_eq!(status.code(), code, "{status}");
    assert!(status.message().contains(words), "{status}");
}
