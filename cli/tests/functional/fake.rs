//! A daemon that does what a test says, and writes down what it is asked.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;

use nrt_trace_proto::v1;
use nrt_trace_proto::v1::trace_control_server::{TraceControl, TraceControlServer};
use nrt_trace_proto::v1::trace_part::Part;
use tempfile::TempDir;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::{Request, Response, Status};

/// What it answers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Script {
    /// Refuses `GetStatus`.
    pub(crate) status: Option<Status>,
    /// Refuses Start.
    pub(crate) start: Option<Status>,
    pub(crate) started: v1::StartResponse,
    pub(crate) filtered: v1::SetFilterResponse,
    pub(crate) stopped: v1::StopResponse,
    /// Refuses Fetch.
    pub(crate) fetch: Option<Status>,
    /// What a fetch delivers …
    pub(crate) parts: Vec<Part>,
    /// … and how it ends, if not well.
    pub(crate) broken: Option<Status>,
    /// Refuses Commit.
    pub(crate) commit: Option<Status>,
    pub(crate) runs: Vec<v1::RunStatus>,
    pub(crate) producers: Vec<v1::Producer>,
    /// Names, of which a page holds two.
    pub(crate) names: Vec<v1::StringEntry>,
    pub(crate) host: v1::HostState,
    /// What a stream of ticks delivers.
    pub(crate) ticks: Vec<v1::WatchHostStatsResponse>,
    /// A file whose presence is written down at each Commit.
    pub(crate) watched: PathBuf,
}

/// The daemon.
#[derive(Debug)]
pub(crate) struct Fake {
    folder: TempDir,
    socket: PathBuf,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Fake {
    /// Starts one, in a folder of its own.
    pub(crate) fn start(write: impl FnOnce(&mut Script)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("control.sock");
        let mut script = Script {
            watched: folder.path().join("trace.json"),
            ..Script::default()
        };
        write(&mut script);
        let asked = Arc::new(Mutex::new(Vec::new()));
        let service = Service {
            script,
            asked: Arc::clone(&asked),
        };
        let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        listener.set_nonblocking(true).unwrap();
        // It serves until the test's process ends.
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let listener = tokio::net::UnixListener::from_std(listener).unwrap();
                let server = tonic::transport::Server::builder();
                let mut server = server;
                server
                    .add_service(TraceControlServer::new(service))
                    .serve_with_incoming(UnixListenerStream::new(listener))
                    .await
                    .unwrap();
            });
        });
        Self {
            folder,
            socket,
            asked,
        }
    }

    /// Its control socket.
    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }

    /// A folder for the test's files; `trace.json` in it is watched.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// What it was asked, but for `GetStatus`.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

#[derive(Debug)]
struct Service {
    script: Script,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Service {
    fn note(&self, what: String) {
        self.asked.lock().unwrap().push(what);
    }
}

fn answer<T>(refusal: Option<&Status>, reply: T) -> Result<Response<T>, Status> {
    refusal.map_or_else(|| Ok(Response::new(reply)), |status| Err(status.clone()))
}

impl Service {
    /// What a fetch or a snapshot streams.
    fn parts(&self) -> tokio_stream::Iter<std::vec::IntoIter<Result<v1::TracePart, Status>>> {
        let parts = self.script.parts.iter();
        let parts = parts.map(|part| {
            Ok(v1::TracePart {
                part: Some(part.clone()),
            })
        });
        let all: Vec<_> = parts.chain(self.script.broken.clone().map(Err)).collect();
        tokio_stream::iter(all)
    }
}

#[tonic::async_trait]
impl TraceControl for Service {
    async fn start(
        &self,
        request: Request<v1::StartRequest>,
    ) -> Result<Response<v1::StartResponse>, Status> {
        let v1::StartRequest {
            max_events_per_nc,
            nc,
            events,
            keep,
            arm_timeout_ms,
            token,
        } = request.into_inner();
        self.note(format!(
            "start token={token:?} max={max_events_per_nc:?} nc={nc:?} events={events:?} keep={keep} \
             wait={arm_timeout_ms:?}"
        ));
        answer(self.script.start.as_ref(), self.script.started.clone())
    }

    async fn set_filter(
        &self,
        request: Request<v1::SetFilterRequest>,
    ) -> Result<Response<v1::SetFilterResponse>, Status> {
        let v1::SetFilterRequest {
            token, nc, events, ..
        } = request.into_inner();
        let (nc, events) = (nc.map(|f| f.nc), events.map(|f| f.events));
        self.note(format!(
            "set_filter token={token:?} nc={nc:?} events={events:?}"
        ));
        answer(self.script.start.as_ref(), self.script.filtered.clone())
    }

    async fn stop(
        &self,
        request: Request<v1::StopRequest>,
    ) -> Result<Response<v1::StopResponse>, Status> {
        let v1::StopRequest { token, discard } = request.into_inner();
        self.note(format!("stop token={token:?} discard={discard}"));
        answer(None, self.script.stopped.clone())
    }

    type FetchStream = tokio_stream::Iter<std::vec::IntoIter<Result<v1::TracePart, Status>>>;

    async fn fetch(
        &self,
        request: Request<v1::FetchRequest>,
    ) -> Result<Response<Self::FetchStream>, Status> {
        let request = request.into_inner();
        let v1::FetchRequest {
            nc,
            process,
            max_events_per_nc,
            discard,
            auto_commit,
            ..
        } = &request;
        self.note(format!(
            "fetch nc={nc:?} process={process:?} max={max_events_per_nc} discard={discard} auto={auto_commit}"
        ));
        answer(self.script.fetch.as_ref(), self.parts())
    }

    type SubscribeStream = Self::FetchStream;

    async fn subscribe(
        &self,
        request: Request<v1::SubscribeRequest>,
    ) -> Result<Response<Self::SubscribeStream>, Status> {
        let v1::SubscribeRequest {
            token,
            from,
            nc,
            process,
            events,
            ..
        } = request.into_inner();
        self.note(format!(
            "subscribe token={token} from={from} nc={nc:?} process={process:?} events={events:?}"
        ));
        answer(self.script.fetch.as_ref(), self.parts())
    }

    type SnapshotStream = Self::FetchStream;

    async fn snapshot(
        &self,
        request: Request<v1::SnapshotRequest>,
    ) -> Result<Response<Self::SnapshotStream>, Status> {
        let v1::SnapshotRequest {
            token, nc, process, ..
        } = request.into_inner();
        self.note(format!(
            "snapshot token={token} nc={nc:?} process={process:?}"
        ));
        answer(self.script.fetch.as_ref(), self.parts())
    }

    async fn commit(
        &self,
        request: Request<v1::CommitRequest>,
    ) -> Result<Response<v1::CommitResponse>, Status> {
        let there = self.script.watched.exists();
        self.note(format!(
            "commit {} there={there}",
            request.into_inner().fetch_id
        ));
        answer(self.script.commit.as_ref(), v1::CommitResponse {})
    }

    async fn get_status(
        &self,
        _request: Request<v1::GetStatusRequest>,
    ) -> Result<Response<v1::GetStatusResponse>, Status> {
        let status = v1::GetStatusResponse {
            version: "9.9.9".to_owned(),
            abi_version: 1,
            pid: 4711,
            started_ns: 1_796_005_265_123_456_789,
            runs: self.script.runs.clone(),
            producer_socket: "/nowhere/producer.sock".to_owned(),
            ..v1::GetStatusResponse::default()
        };
        answer(self.script.status.as_ref(), status)
    }

    async fn list_producers(
        &self,
        _request: Request<v1::ListProducersRequest>,
    ) -> Result<Response<v1::ListProducersResponse>, Status> {
        answer(
            None,
            v1::ListProducersResponse {
                producers: self.script.producers.clone(),
            },
        )
    }

    type GetMetricsStream =
        tokio_stream::Iter<std::vec::IntoIter<Result<v1::GetMetricsResponse, Status>>>;

    async fn get_metrics(
        &self,
        _request: Request<v1::GetMetricsRequest>,
    ) -> Result<Response<Self::GetMetricsStream>, Status> {
        let piece = |text: &str| Ok(v1::GetMetricsResponse { text: text.into() });
        let pieces = vec![piece("# TYPE a gauge\n"), piece("a 1\n# EOF\n")];
        answer(None, tokio_stream::iter(pieces))
    }

    async fn list_event_types(
        &self,
        _request: Request<v1::ListEventTypesRequest>,
    ) -> Result<Response<v1::ListEventTypesResponse>, Status> {
        let event = v1::EventType {
            value: 99,
            name: "from_a_newer_daemon".to_owned(),
            aliases: vec!["new".to_owned()],
            category: v1::EventCategory::Software.into(),
        };
        answer(None, v1::ListEventTypesResponse { types: vec![event] })
    }
    async fn get_strings(
        &self,
        request: Request<v1::GetStringsRequest>,
    ) -> Result<Response<v1::GetStringsResponse>, Status> {
        let v1::GetStringsRequest { from, id } = request.into_inner();
        self.note(format!("strings from={from} id={id:?}"));
        let names = &self.script.names;
        let from = usize::try_from(from).unwrap().min(names.len());
        let entries: Vec<_> = match id.as_slice() {
            [] => names[from..].iter().take(2).cloned().collect(),
            ids => names
                .iter()
                .filter(|n| ids.contains(&n.id))
                .cloned()
                .collect(),
        };
        answer(
            None,
            v1::GetStringsResponse {
                next: (from + entries.len()) as u64,
                total: names.len() as u64,
                entries,
            },
        )
    }

    async fn start_host(
        &self,
        request: Request<v1::StartHostRequest>,
    ) -> Result<Response<v1::StartHostResponse>, Status> {
        self.note(format!("start_host {:?}", request.into_inner()));
        let reply = v1::StartHostResponse {
            state: Some(self.script.host),
            was_running: self.script.host.running,
        };
        answer(None, reply)
    }

    async fn stop_host(
        &self,
        _request: Request<v1::StopHostRequest>,
    ) -> Result<Response<v1::StopHostResponse>, Status> {
        self.note("stop_host".to_owned());
        let reply = v1::StopHostResponse {
            state: Some(self.script.host),
        };
        answer(None, reply)
    }

    async fn get_host_stats(
        &self,
        _request: Request<v1::GetHostStatsRequest>,
    ) -> Result<Response<v1::GetHostStatsResponse>, Status> {
        let newest = self.script.ticks.last().cloned().unwrap_or_default();
        let reply = v1::GetHostStatsResponse {
            state: Some(self.script.host),
            info: newest.info,
            samples: newest.sample.into_iter().collect(),
            more: false,
        };
        answer(None, reply)
    }

    type WatchHostStatsStream =
        tokio_stream::Iter<std::vec::IntoIter<Result<v1::WatchHostStatsResponse, Status>>>;

    async fn watch_host_stats(
        &self,
        request: Request<v1::WatchHostStatsRequest>,
    ) -> Result<Response<Self::WatchHostStatsStream>, Status> {
        self.note(format!("watch_host {:?}", request.into_inner()));
        let ticks: Vec<_> = self.script.ticks.iter().cloned().map(Ok).collect();
        answer(None, tokio_stream::iter(ticks))
    }
}
