//! The connection to a daemon.

use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hyper_util::rt::TokioIo;
use nrt_trace_proto::v1;
use nrt_trace_proto::v1::trace_control_client::TraceControlClient;
use tokio::net::UnixStream;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status, Streaming};

use crate::error::{Failure, from_status, innermost, reason};

/// Bytes that a unix socket's path may have.
pub(crate) const SOCKET_PATH_MAX: usize = 107;

/// How long a service may take to show that it is ours. Only something foreign, or a stopped process, takes so long.
const FIRST_ANSWER: Duration = Duration::from_secs(5);

/// Replies are small and chunks at most 1 MiB; this only bounds what a broken daemon can make us hold.
const MESSAGE_MAX: usize = 64 << 20;

/// A daemon that has answered once.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    grpc: TraceControlClient<Channel>,
    socket: PathBuf,
    status: v1::GetStatusResponse,
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectError {
    /// No process listens there.
    #[error("no daemon at {path}: {why}. Is nrt-traced running?")]
    Absent {
        /// The control socket.
        path: String,
        /// What the system said.
        why: String,
    },
    /// The system does not let us.
    #[error(
        "no permission to use the daemon at {path}: its group (nrt-trace, unless configured otherwise) may, and root"
    )]
    Denied {
        /// The control socket.
        path: String,
    },
    /// It can't be the path of a socket.
    #[error("the socket path {path} has {bytes} bytes; at most {SOCKET_PATH_MAX} are possible")]
    TooLong {
        /// The control socket.
        path: String,
        /// Its length.
        bytes: usize,
    },
    /// Something else is there.
    #[error("{path} is not the control socket of nrt-traced: {why}")]
    Foreign {
        /// The path.
        path: String,
        /// How that shows.
        why: String,
    },
    /// Somebody listens there, and says nothing.
    #[error(
        "the daemon at {path} did not answer within {seconds} s: it is stopped, or hangs, or something else listens there"
    )]
    Silent {
        /// The control socket.
        path: String,
        /// How long it was waited for.
        seconds: u64,
    },
    /// Any other error of the system.
    #[error("cannot connect to {path}: {why}")]
    System {
        /// The control socket.
        path: String,
        /// What the system said.
        why: String,
    },
}

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl Client {
    /// Connects, and makes sure that the service is ours.
    pub(crate) async fn connect(socket: &Path) -> Result<Self, ConnectError> {
        let path = socket.display().to_string();
        let bytes = socket.as_os_str().len();
        if bytes > SOCKET_PATH_MAX {
            return Err(ConnectError::TooLong { path, bytes });
        }
        let stream = match UnixStream::connect(socket).await {
            Ok(stream) => stream,
            Err(error) => return Err(refused(socket, &error)),
        };
        // One connection for one command: should it break, there is nothing to be had by another.
        let mut stream = Some(TokioIo::new(stream));
        let once = tower::service_fn(move |_| {
            let stream = stream
                .take()
                .ok_or_else(|| io::Error::from(io::ErrorKind::NotConnected));
            async move { stream }
        });
        let foreign = |why: String| ConnectError::Foreign {
            path: path.clone(),
            why,
        };
        let endpoint = Endpoint::from_static("http://nrt-trace");
        let channel = endpoint
            .connect_with_connector(once)
            .await
            .map_err(|error| foreign(innermost(&error)))?;
        let mut grpc = TraceControlClient::new(channel).max_decoding_message_size(MESSAGE_MAX);
        let answer = tokio::time::timeout(FIRST_ANSWER, grpc.get_status(v1::GetStatusRequest {}));
        match answer.await {
            Ok(Ok(status)) => Ok(Self {
                grpc,
                socket: socket.to_owned(),
                status: status.into_inner(),
            }),
            Ok(Err(status)) if status.code() == Code::PermissionDenied => {
                Err(ConnectError::Denied { path })
            }
            Ok(Err(status)) if status.code() == Code::Unimplemented => {
                Err(foreign("it offers another gRPC service".to_owned()))
            }
            Ok(Err(status)) => Err(foreign(innermost(&status))),
            // Whoever is no daemon of ours says something else, or closes the connection.
            Err(_) => Err(ConnectError::Silent {
                path,
                seconds: FIRST_ANSWER.as_secs(),
            }),
        }
    }

    /// The control socket.
    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }

    /// What the daemon said of itself when the connection was made.
    pub(crate) fn status_at_connect(&self) -> &v1::GetStatusResponse {
        &self.status
    }

    /// Starts a run.
    pub(crate) async fn start(
        &mut self,
        request: v1::StartRequest,
    ) -> Result<v1::StartResponse, Failure> {
        let reply = self.grpc.start(request).await;
        self.reply(reply)
    }

    /// Changes what a run captures.
    pub(crate) async fn set_filter(
        &mut self,
        request: v1::SetFilterRequest,
    ) -> Result<v1::SetFilterResponse, Failure> {
        let reply = self.grpc.set_filter(request).await;
        self.reply(reply)
    }

    /// Stops a run.
    pub(crate) async fn stop(
        &mut self,
        request: v1::StopRequest,
    ) -> Result<v1::StopResponse, Failure> {
        let reply = self.grpc.stop(request).await;
        self.reply(reply)
    }

    /// Opens a fetch.
    pub(crate) async fn fetch(&mut self, request: v1::FetchRequest) -> Result<Parts, Failure> {
        let reply = self.grpc.fetch(request).await;
        let stream = self.reply(reply)?;
        Ok(Parts {
            stream,
            socket: self.socket.clone(),
        })
    }

    /// Opens a snapshot.
    pub(crate) async fn snapshot(
        &mut self,
        request: v1::SnapshotRequest,
    ) -> Result<Parts, Failure> {
        let reply = self.grpc.snapshot(request).await;
        let stream = self.reply(reply)?;
        Ok(Parts {
            stream,
            socket: self.socket.clone(),
        })
    }

    /// Opens a subscription.
    pub(crate) async fn subscribe(
        &mut self,
        request: v1::SubscribeRequest,
    ) -> Result<Parts, Failure> {
        let reply = self.grpc.subscribe(request).await;
        let stream = self.reply(reply)?;
        Ok(Parts {
            stream,
            socket: self.socket.clone(),
        })
    }

    /// Consumes what a fetch delivered.
    pub(crate) async fn commit(&mut self, fetch_id: u64) -> Result<(), Failure> {
        match self.commit_or_void(fetch_id).await {
            Err(Failure::Busy(why)) => Err(Failure::Failed(why)),
            reply => reply,
        }
    }

    /// The same for who fetches again and again.
    ///
    /// # Errors
    /// [`Failure::Busy`]: somebody else has begun a fetch since, which made this one void. Nothing was consumed by it.
    pub(crate) async fn commit_or_void(&mut self, fetch_id: u64) -> Result<(), Failure> {
        let reply = self.grpc.commit(v1::CommitRequest { fetch_id }).await;
        let is_void = (reply.as_ref()).is_err_and(|status| status.code() == Code::NotFound);
        match self.reply(reply) {
            Err(failure) if is_void => Err(Failure::Busy(failure.to_string())),
            reply => reply.map(|_| ()),
        }
    }

    /// The daemon and its runs, now.
    pub(crate) async fn status(&mut self) -> Result<v1::GetStatusResponse, Failure> {
        let reply = self.grpc.get_status(v1::GetStatusRequest {}).await;
        self.reply(reply)
    }

    /// The producers of a scope, or all.
    pub(crate) async fn producers(
        &mut self,
        token: Option<String>,
    ) -> Result<Vec<v1::Producer>, Failure> {
        let reply = self
            .grpc
            .list_producers(v1::ListProducersRequest { token })
            .await;
        self.reply(reply).map(|list| list.producers)
    }

    /// The daemon's metrics as text.
    pub(crate) async fn metrics(&mut self) -> Result<String, Failure> {
        let reply = self.grpc.get_metrics(v1::GetMetricsRequest {}).await;
        let mut stream = self.reply(reply)?;
        let mut text = String::new();
        loop {
            let piece = stream.message().await;
            match piece.map_err(|status| from_status(&status, &self.socket))? {
                Some(piece) => text.push_str(&piece.text),
                None => return Ok(text),
            }
        }
    }

    /// The event types that the daemon knows.
    pub(crate) async fn event_types(&mut self) -> Result<Vec<v1::EventType>, Failure> {
        let reply = self
            .grpc
            .list_event_types(v1::ListEventTypesRequest {})
            .await;
        self.reply(reply).map(|list| list.types)
    }

    /// A page of names: those with these ids, or if there are none, those from a position on.
    pub(crate) async fn strings(
        &mut self,
        from: u64,
        id: Vec<u64>,
    ) -> Result<v1::GetStringsResponse, Failure> {
        let request = v1::GetStringsRequest { from, id };
        let reply = self.grpc.get_strings(request).await;
        self.reply(reply)
    }

    /// Starts the host monitor.
    pub(crate) async fn start_host(
        &mut self,
        request: v1::StartHostRequest,
    ) -> Result<v1::StartHostResponse, Failure> {
        let reply = self.grpc.start_host(request).await;
        self.reply(reply)
    }

    /// Stops the host monitor.
    pub(crate) async fn stop_host(&mut self) -> Result<v1::HostState, Failure> {
        let reply = self.grpc.stop_host(v1::StopHostRequest {}).await;
        self.reply(reply)
            .map(|reply| reply.state.unwrap_or_default())
    }

    /// The host monitor's state, and its ticks after number `after`; absent: the newest.
    pub(crate) async fn host_stats(
        &mut self,
        after_seq: Option<u64>,
    ) -> Result<v1::GetHostStatsResponse, Failure> {
        let request = v1::GetHostStatsRequest { after_seq };
        let reply = self.grpc.get_host_stats(request).await;
        self.reply(reply)
    }

    /// The host monitor's ticks from now on; starts it if it is off.
    pub(crate) async fn watch_host(&mut self, period_ms: Option<u32>) -> Result<Ticks, Failure> {
        let request = v1::WatchHostStatsRequest {
            start: true,
            period_ms,
        };
        let reply = self.grpc.watch_host_stats(request).await;
        let stream = self.reply(reply)?;
        Ok(Ticks {
            stream,
            socket: self.socket.clone(),
        })
    }

    fn reply<T>(&self, reply: Result<tonic::Response<T>, Status>) -> Result<T, Failure> {
        match reply {
            Ok(response) => Ok(response.into_inner()),
            Err(status) => Err(from_status(&status, &self.socket)),
        }
    }
}

/// The parts of one fetch, as they come.
#[derive(Debug)]
pub(crate) struct Parts {
    stream: Streaming<v1::TracePart>,
    socket: PathBuf,
}

impl Parts {
    /// The next part; `None` at the end of the stream.
    pub(crate) async fn next(&mut self) -> Result<Option<v1::trace_part::Part>, Failure> {
        loop {
            match self.stream.message().await {
                // A part of a kind that this version does not know carries nothing that it could write.
                Ok(Some(v1::TracePart { part: None })) => {}
                Ok(Some(v1::TracePart { part })) => return Ok(part),
                Ok(None) => return Ok(None),
                Err(status) => return Err(from_status(&status, &self.socket)),
            }
        }
    }
}

/// Ticks of the host monitor, as they come.
#[derive(Debug)]
pub(crate) struct Ticks {
    stream: Streaming<v1::WatchHostStatsResponse>,
    socket: PathBuf,
}

impl Ticks {
    /// The next tick; `None` when there will be no more. May be dropped half-way: none is lost.
    pub(crate) async fn next(&mut self) -> Result<Option<v1::WatchHostStatsResponse>, Failure> {
        let message = self.stream.message().await;
        message.map_err(|status| from_status(&status, &self.socket))
    }
}

/// Why a socket did not take the connection.
fn refused(socket: &Path, error: &io::Error) -> ConnectError {
    let path = socket.display().to_string();
    let is_socket = || std::fs::metadata(socket).is_ok_and(|meta| meta.file_type().is_socket());
    match error
        .raw_os_error()
        .map(rustix::io::Errno::from_raw_os_error)
    {
        Some(rustix::io::Errno::NOENT) => ConnectError::Absent {
            path,
            why: "there is no such file".to_owned(),
        },
        Some(rustix::io::Errno::CONNREFUSED) if is_socket() => ConnectError::Absent {
            path,
            why: "nobody listens on it".to_owned(),
        },
        Some(rustix::io::Errno::CONNREFUSED | rustix::io::Errno::NOTSOCK) => {
            ConnectError::Foreign {
                path,
                why: "it is no socket".to_owned(),
            }
        }
        Some(rustix::io::Errno::PROTOTYPE) => ConnectError::Foreign {
            path,
            why: "it is a socket of another kind (the producer socket?)".to_owned(),
        },
        Some(rustix::io::Errno::ACCESS | rustix::io::Errno::PERM) => ConnectError::Denied { path },
        _ => ConnectError::System {
            path,
            why: reason(error),
        },
    }
}
