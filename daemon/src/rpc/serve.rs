//! The server's threads.

use std::io;
use std::os::unix::net::UnixListener;
use std::thread::JoinHandle;
use std::time::Duration;

use nrt_trace_proto::v1::trace_control_server::TraceControlServer;
use tokio::net::UnixStream;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{mpsc, oneshot};
use tokio_stream::wrappers::ReceiverStream;
use tonic::server::NamedService;
use tonic::service::interceptor::InterceptorLayer;
use tonic::transport::server::UdsConnectInfo;
use tonic::{Request, Status};
use tonic_health::ServingStatus;
use tower::util::MapResponseLayer;

use super::authority::MendedAuthority;
use super::carried::carry;
use super::{Control, scrape};
use crate::access::Access;
use crate::listen::{MetricsSocket, StartError};

/// How long open calls may still run when the server ends, and after that their tasks.
const GRACE: Duration = Duration::from_millis(500);
/// Pause after a connection could not be taken.
const DEAF: Duration = Duration::from_millis(200);
/// Connections that were taken and not yet served.
const TAKEN: usize = 16;

/// The running server. It lives in threads of its own, so that its owner may be asynchronous or not.
#[derive(Debug)]
pub(crate) struct Server {
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Serves `control` on `listener`, and metrics where they are wanted; `died` is dropped when the server ends, for whatever reason.
    pub(crate) fn start(
        control: Control,
        access: Access,
        listener: UnixListener,
        metrics: Option<MetricsSocket>,
        died: impl Send + 'static,
    ) -> Result<Self, StartError> {
        let failed = |source| StartError::System {
            what: "start the control API",
            source,
        };
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("nrt-rpc")
            .enable_all()
            .build()
            .map_err(failed)?;
        let (end, ending) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name("nrt-rpc-main".to_owned())
            .spawn(move || {
                run(&runtime, control, access, (listener, metrics), ending);
                // Whatever still runs is cut off: streams that nobody reads, connections that never speak.
                runtime.shutdown_timeout(GRACE);
                drop(died);
            })
            .map_err(failed)?;
        Ok(Self {
            end: Some(end),
            thread: Some(thread),
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Gone already: it ended by itself.
        let _ = self.end.take().map(|end| end.send(()));
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

fn run(
    runtime: &Runtime,
    control: Control,
    access: Access,
    (listener, metrics): (UnixListener, Option<MetricsSocket>),
    ending: oneshot::Receiver<()>,
) {
    let served = runtime.block_on(async {
        let listener = tokio::net::UnixListener::from_std(listener)?;
        let (sender, connections) = mpsc::channel(TAKEN);
        let accepting = tokio::spawn(accept(listener, sender));
        let (told, mut closing) = oneshot::channel();
        let streams = control.ending();
        if let Some(socket) = metrics {
            scrape::listen(socket, control.source())?;
        }
        let (health, health_service) = tonic_health::server::health_reporter();
        health.set_serving::<TraceControlServer<Control>>().await;
        let server = tonic::transport::Server::builder()
            .layer(MapResponseLayer::new(carry))
            .layer(InterceptorLayer::new(move |request| admit(access, request)))
            .add_service(TraceControlServer::new(control))
            .add_service(health_service)
            .add_service(described().build_v1().map_err(io::Error::other)?)
            .add_service(described().build_v1alpha().map_err(io::Error::other)?)
            .serve_with_incoming_shutdown(ReceiverStream::new(connections), async {
                // An owner that is gone wants the same as one that says so.
                drop(ending.await);
                // Each service by its name, and the whole server, which has none.
                for name in [TraceControlServer::<Control>::NAME, ""] {
                    health
                        .set_service_status(name, ServingStatus::NotServing)
                        .await;
                }
                streams.tell();
                let _ = told.send(());
            });
        tokio::pin!(server);
        tokio::select! {
            result = &mut server => return result.map_err(io::Error::other),
            _ = &mut closing => {}
        }
        accepting.abort();
        // Case G03: a silent connection or a stream that is not read would keep a graceful end waiting for ever.
        match tokio::time::timeout(GRACE, server).await {
            Ok(result) => result.map_err(io::Error::other),
            Err(_) => Ok(()),
        }
    });
    if let Err(error) = served {
        tracing::error!("the control API ended: {error}");
    }
}

/// What reflection tells of: our services and the standard ones, itself in both versions among them, whichever is asked. Python's
/// client, older versions of grpcurl and others ask in v1alpha.
fn described<'a>() -> tonic_reflection::server::Builder<'a> {
    tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(nrt_trace_proto::FILE_DESCRIPTOR_SET)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        .register_encoded_file_descriptor_set(tonic_reflection::pb::v1::FILE_DESCRIPTOR_SET)
        .register_encoded_file_descriptor_set(tonic_reflection::pb::v1alpha::FILE_DESCRIPTOR_SET)
}

/// Lets a request pass, if whoever connected may control this daemon.
fn admit(access: Access, request: Request<()>) -> Result<Request<()>, Status> {
    let peer = request.extensions().get::<UdsConnectInfo>();
    let Some(peer) = peer.and_then(|info| info.peer_cred) else {
        return Err(Status::permission_denied(
            "the kernel does not say who asks",
        ));
    };
    if access.allows(peer.uid(), peer.gid(), peer.pid()) {
        return Ok(request);
    }
    tracing::debug!(uid = peer.uid(), pid = peer.pid(), "a request was refused");
    let text = format!(
        "user {} may not control this daemon: {}",
        peer.uid(),
        access.who()
    );
    Err(Status::permission_denied(text))
}

/// Takes connections, with a pause when there are no descriptors: the listener stays readable.
async fn accept(
    listener: tokio::net::UnixListener,
    connections: mpsc::Sender<io::Result<MendedAuthority<UnixStream>>>,
) {
    loop {
        match listener.accept().await {
            Ok((connection, _)) => {
                let connection = MendedAuthority::new(connection);
                if connections.send(Ok(connection)).await.is_err() {
                    return;
                }
            }
            Err(error) => {
                tracing::warn!("can't take a client: {error}");
                tokio::time::sleep(DEAF).await;
            }
        }
    }
}
