//! A plain client of the control API.

use std::path::Path;

use nrt_trace_proto::v1;
use nrt_trace_proto::v1::trace_control_client::TraceControlClient;
use tokio::runtime::Runtime;
use tonic::Status;
use tonic::transport::{Channel, Endpoint};

use super::{Fetched, fetch, wait_for};

/// A client with a runtime of its own.
pub(crate) struct Client {
    pub(crate) rpc: TraceControlClient<Channel>,
    pub(crate) runtime: Runtime,
}

impl Client {
    /// A client of the daemon at `socket`.
    pub(crate) fn of(socket: &Path) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        Self {
            rpc: TraceControlClient::new(Self::channel(&runtime, socket)),
            runtime,
        }
    }

    /// A connection to the daemon at `socket`.
    pub(crate) fn channel(runtime: &Runtime, socket: &Path) -> Channel {
        let endpoint = Endpoint::from_shared(format!("unix://{}", socket.display())).unwrap();
        runtime.block_on(endpoint.connect()).unwrap()
    }

    pub(crate) fn start(&mut self, request: v1::StartRequest) -> Result<v1::StartResponse, Status> {
        self.runtime
            .block_on(self.rpc.start(request))
            .map(tonic::Response::into_inner)
    }

    pub(crate) fn stop(&mut self, token: &str, discard: bool) -> Result<v1::StopResponse, Status> {
        let request = v1::StopRequest {
            token: token.to_owned(),
            discard,
        };
        self.runtime
            .block_on(self.rpc.stop(request))
            .map(tonic::Response::into_inner)
    }

    /// Runs a fetch to its end, without committing it.
    pub(crate) fn fetch(&mut self, request: v1::FetchRequest) -> Result<Fetched, Status> {
        self.fetch_with(request, &[])
    }

    /// As [`Client::fetch`], with producers whose events may say anything.
    pub(crate) fn fetch_with(
        &mut self,
        request: v1::FetchRequest,
        hostile: &[u32],
    ) -> Result<Fetched, Status> {
        self.runtime.block_on(async {
            let stream = self.rpc.fetch(request).await?.into_inner();
            Self::take(stream, hostile).await
        })
    }

    pub(crate) fn snapshot(&mut self, request: v1::SnapshotRequest) -> Result<Fetched, Status> {
        self.runtime.block_on(async {
            let stream = self.rpc.snapshot(request).await?.into_inner();
            Self::take(stream, &[]).await
        })
    }

    async fn take(
        mut stream: tonic::Streaming<v1::TracePart>,
        hostile: &[u32],
    ) -> Result<Fetched, Status> {
        let mut fetched = Fetched::among(hostile);
        while let Some(part) = stream.message().await? {
            fetched.take(part);
        }
        fetched.check();
        Ok(fetched)
    }

    pub(crate) fn commit(&mut self, fetch_id: u64) -> Result<(), Status> {
        self.runtime
            .block_on(self.rpc.commit(v1::CommitRequest { fetch_id }))
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
            .block_on(self.rpc.get_status(v1::GetStatusRequest {}))
            .unwrap()
            .into_inner()
    }

    pub(crate) fn producers(&mut self) -> Vec<v1::Producer> {
        let request = v1::ListProducersRequest { token: None };
        self.runtime
            .block_on(self.rpc.list_producers(request))
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
