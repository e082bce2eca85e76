//! The runtime's code on every refusal, whoever made it.
//!
//! What the service's methods refuse carries `nrt-status` already. The rest is answered around them: whoever may not control
//! the daemon, a method or service that there is not, a message that is too large or can't be decoded, and what the health and
//! reflection services refuse. All of it passes here on its way out, in the head of an answer without a message, or in the
//! trailers behind a stream.

use http_body_util::BodyExt;
use hyper::body::{Body as HttpBody, Bytes, Frame};
use hyper::http::{HeaderMap, HeaderValue, Response};
use nrt_trace_model::Status as NrtStatus;
use nrt_trace_proto::STATUS_METADATA;
use tonic::body::Body;
use tonic::codegen::StdError;
use tonic::{Code, Status};

/// `response`, with the runtime's code wherever it ends with a refusal.
pub(super) fn carry<B>(response: Response<B>) -> Response<Body>
where
    B: HttpBody<Data = Bytes, Error: Into<StdError>> + Send + 'static,
{
    let (mut head, body) = response.into_parts();
    add(&mut head.headers);
    Response::from_parts(head, Body::new(body.map_frame(of_trailers)))
}

fn of_trailers<D>(mut frame: Frame<D>) -> Frame<D> {
    if let Some(trailers) = frame.trailers_mut() {
        add(trailers);
    }
    frame
}

/// Adds the code, where there is a refusal without one.
fn add(metadata: &mut HeaderMap) {
    let refused = metadata
        .get(Status::GRPC_STATUS)
        .and_then(|code| nrt_of(Code::from_bytes(code.as_bytes())));
    if let Some(nrt) = refused {
        metadata
            .entry(STATUS_METADATA)
            .or_insert_with(|| HeaderValue::from(nrt.code()));
    }
}

/// What the runtime would have returned for a refusal of which nothing but its code is known. None for what is no refusal: an
/// answer, and the client's own wish to have none.
fn nrt_of(code: Code) -> Option<NrtStatus> {
    Some(match code {
        Code::Ok | Code::Cancelled | Code::DeadlineExceeded => return None,
        // A message above the limit; one that is no message.
        Code::InvalidArgument | Code::OutOfRange | Code::Internal => NrtStatus::Invalid,
        // A health check of a service that there is not.
        Code::NotFound => NrtStatus::InvalidHandle,
        Code::ResourceExhausted => NrtStatus::Resource,
        Code::Unavailable => NrtStatus::Closed,
        _ => NrtStatus::Failure,
    })
}

#[cfg(test)]
mod tests {
    use http_body_util::{Full, StreamBody};

    use super::*;

    fn code(metadata: &HeaderMap) -> Option<&str> {
        metadata
            .get(STATUS_METADATA)
            .map(|code| code.to_str().unwrap())
    }

    /// Each code that the daemon or the libraries below it answer with, and what comes with it.
    const CODES: [(Code, Option<&str>); 17] = [
        (Code::Ok, None),
        (Code::Cancelled, None),
        (Code::Unknown, Some("1")),
        (Code::InvalidArgument, Some("2")),
        (Code::DeadlineExceeded, None),
        (Code::NotFound, Some("3")),
        (Code::AlreadyExists, Some("1")),
        (Code::PermissionDenied, Some("1")),
        (Code::ResourceExhausted, Some("4")),
        (Code::FailedPrecondition, Some("1")),
        (Code::Aborted, Some("1")),
        (Code::OutOfRange, Some("2")),
        (Code::Unimplemented, Some("1")),
        (Code::Internal, Some("2")),
        (Code::Unavailable, Some("14")),
        (Code::DataLoss, Some("1")),
        (Code::Unauthenticated, Some("1")),
    ];

    #[test]
    fn a_refusal_in_the_head_carries_the_runtimes_code() {
        for (refused, expected) in CODES {
            let carried = carry(Status::new(refused, "no").into_http::<Body>());
            assert_eq!(code(carried.headers()), expected, "{refused:?}");
        }
    }

    #[tokio::test]
    async fn a_refusal_behind_a_stream_carries_it_in_its_trailers() {
        for (refused, expected) in CODES {
            let mut trailers = HeaderMap::new();
            Status::new(refused, "no")
                .add_header(&mut trailers)
                .unwrap();
            let frames: [Result<_, Status>; 2] = [
                Ok(Frame::data(Bytes::from_static(b"part"))),
                Ok(Frame::trailers(trailers)),
            ];
            let body = Body::new(StreamBody::new(tokio_stream::iter(frames)));
            let carried = carry(Response::new(body));
            assert_eq!(code(carried.headers()), None);
            let collected = carried.into_body().collect().await.unwrap();
            assert_eq!(code(collected.trailers().unwrap()), expected, "{refused:?}");
            assert_eq!(collected.to_bytes(), "part");
        }
    }

    #[tokio::test]
    async fn what_has_a_code_keeps_it_and_what_is_no_refusal_gets_none() {
        let refused = super::super::status::with_nrt(Status::aborted("no"), NrtStatus::Closed);
        assert_eq!(
            code(carry(refused.into_http::<Body>()).headers()),
            Some("14")
        );
        let answer = carry(Response::new(Full::<Bytes>::from("part")));
        assert_eq!(code(answer.headers()), None);
        assert!(
            answer
                .into_body()
                .collect()
                .await
                .unwrap()
                .trailers()
                .is_none()
        );
    }
}
