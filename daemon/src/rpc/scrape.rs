//! The metrics over HTTP/1.1, for what reads metrics and speaks no gRPC.
//!
//! One page, one method, one request a connection. Whoever connects can cost no more than a few connections of a few
//! seconds: heads are bounded in size and time, and so is an answer that nobody reads.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Semaphore;

use super::metrics::Source;
use crate::access::Access;
use crate::listen::MetricsSocket;

/// The page.
const PAGE: &str = "/metrics";
/// What it is.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// Bytes of a request's head.
const HEAD_BYTES: usize = 16 << 10;
/// Time for a request's head.
const HEAD_TIME: Duration = Duration::from_secs(5);
/// Time for a whole connection.
const WHOLE_TIME: Duration = Duration::from_secs(30);
/// Connections at a time; more wait in the socket's queue.
const CONNECTIONS: usize = 16;
/// Pause after a connection could not be taken.
const DEAF: Duration = Duration::from_millis(200);

/// Serves metrics on a socket for as long as the runtime lives.
pub(super) fn listen(socket: MetricsSocket, source: Source) -> io::Result<()> {
    match socket {
        MetricsSocket::Unix(listener, access) => {
            let listener = tokio::net::UnixListener::from_std(listener)?;
            drop(tokio::spawn(serve(source, async move || {
                let (stream, _) = listener.accept().await?;
                let allowed = stream.peer_cred().is_ok_and(|peer| may(access, &peer));
                Ok((stream, allowed))
            })));
        }
        MetricsSocket::Loopback(listener) => {
            let listener = tokio::net::TcpListener::from_std(listener)?;
            drop(tokio::spawn(serve(source, async move || {
                let (stream, peer) = listener.accept().await?;
                Ok((stream, peer.ip().is_loopback()))
            })));
        }
    }
    Ok(())
}

fn may(access: Access, peer: &tokio::net::unix::UCred) -> bool {
    access.allows(peer.uid(), peer.gid(), peer.pid())
}

async fn serve<S>(source: Source, mut accept: impl AsyncFnMut() -> io::Result<(S, bool)>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    // It is never closed.
    while let Ok(place) = places.clone().acquire_owned().await {
        match accept().await {
            Ok((stream, true)) => {
                let source = source.clone();
                drop(tokio::spawn(async move {
                    // Whatever a client does wrong is its own business.
                    drop(tokio::time::timeout(WHOLE_TIME, connection(stream, source)).await);
                    drop(place);
                }));
            }
            Ok((_, false)) => tracing::debug!("a reader of metrics was refused"),
            Err(error) => {
                tracing::warn!("can't take a reader of metrics: {error}");
                tokio::time::sleep(DEAF).await;
            }
        }
    }
}

async fn connection<S>(stream: S, source: Source) -> hyper::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let answer = service_fn(move |request: Request<Incoming>| {
        let source = source.clone();
        async move { Ok::<_, Infallible>(answer(&request, &source).await) }
    });
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_buf_size(HEAD_BYTES)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), answer)
        .await
}

async fn answer(request: &Request<Incoming>, source: &Source) -> Response<Full<Bytes>> {
    if request.uri().path() != PAGE {
        let text = "metrics are at /metrics\n".to_owned();
        return page(StatusCode::NOT_FOUND, text);
    }
    if request.method() != Method::GET {
        let mut refused = page(StatusCode::METHOD_NOT_ALLOWED, "only GET\n".to_owned());
        refused
            .headers_mut()
            .insert(ALLOW, HeaderValue::from_static("GET"));
        return refused;
    }
    match source.text().await {
        Ok(text) => {
            let mut page = page(StatusCode::OK, text);
            let kind = HeaderValue::from_static(OPEN_METRICS);
            page.headers_mut().insert(CONTENT_TYPE, kind);
            page
        }
        Err(status) => page(
            StatusCode::SERVICE_UNAVAILABLE,
            format!("{}\n", status.message()),
        ),
    }
}

fn page(status: StatusCode, text: String) -> Response<Full<Bytes>> {
    let mut page = Response::new(Full::new(Bytes::from(text)));
    *page.status_mut() = status;
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    page.headers_mut().insert(CONTENT_TYPE, kind);
    page
}
