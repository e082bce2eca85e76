//! The host monitor's calls.

use nrt_trace_model::Status as NrtStatus;
use nrt_trace_proto::v1;
use prost::Message;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Response, Status};

use super::status;
use crate::host::{History, HostError, HostMonitor, Lease, Retention, Wish};

/// What a stream of ticks carries.
pub(super) type Item = Result<v1::WatchHostStatsResponse, Status>;

/// Ticks between the task that follows the monitor and the stream.
const AHEAD: usize = 4;
/// Ticks that are taken from the history at a time.
const AT_ONCE: usize = 64;
/// Bytes of ticks in one reply: far below the 4 MiB that clients take, whatever the last one adds.
const REPLY_BYTES: usize = 1 << 20;

/// Starts the monitor.
pub(super) fn start(
    monitor: &HostMonitor,
    request: v1::StartHostRequest,
) -> Result<Response<v1::StartHostResponse>, Status> {
    let retention = match v1::HostRetention::try_from(request.retention) {
        Ok(v1::HostRetention::Unspecified) => None,
        Ok(v1::HostRetention::Saturate) => Some(Retention::Saturate),
        Ok(v1::HostRetention::Ring) => Some(Retention::Ring),
        Err(unknown) => {
            let told = format!("retention {} is not known: 1 or 2", unknown.0);
            return Err(status::with_nrt(
                Status::invalid_argument(told),
                NrtStatus::Invalid,
            ));
        }
    };
    let wish = Wish {
        period_ms: request.period_ms,
        samples: request.max_samples,
        retention,
    };
    let was_running = monitor
        .start(wish)
        .map_err(|error| status::of_host_error(&error))?;
    Ok(Response::new(v1::StartHostResponse {
        state: Some(monitor.state()),
        was_running,
    }))
}

/// Stops it.
pub(super) fn stop(monitor: &HostMonitor) -> Response<v1::StopHostResponse> {
    monitor.stop();
    Response::new(v1::StopHostResponse {
        state: Some(monitor.state()),
    })
}

/// What it keeps.
pub(super) fn get(
    monitor: &HostMonitor,
    request: v1::GetHostStatsRequest,
) -> Response<v1::GetHostStatsResponse> {
    // Only pointers are copied under the lock; the messages are made after it.
    let ticks: Vec<_> = monitor.look(|history| match request.after_seq {
        Some(seq) => history.after(seq).cloned().collect(),
        None => history.newest().cloned().into_iter().collect(),
    });
    let (mut samples, mut bytes) = (Vec::new(), 0);
    for tick in &ticks {
        let sample = tick.message();
        bytes += sample.encoded_len();
        samples.push(sample);
        if bytes > REPLY_BYTES {
            break;
        }
    }
    Response::new(v1::GetHostStatsResponse {
        state: Some(monitor.state()),
        info: monitor.info(),
        more: samples.len() < ticks.len(),
        samples,
    })
}

/// Each tick from now on.
pub(super) fn watch(
    monitor: &HostMonitor,
    request: v1::WatchHostStatsRequest,
) -> Result<ReceiverStream<Item>, Status> {
    let newest = monitor.look(|history| history.newest().map_or(0, |tick| tick.seq));
    let full = monitor.look(History::is_saturated);
    let lease = if request.start {
        let lease = monitor.lease(request.period_ms);
        Some(lease.map_err(|error| status::of_host_error(&error))?)
    } else if monitor.is_running() || full {
        None
    } else {
        return Err(status::of_host_error(&HostError::Off));
    };
    let (sender, receiver) = mpsc::channel(AHEAD);
    // One that was full before is told by its last tick.
    let seen = if full {
        newest.saturating_sub(1)
    } else {
        newest
    };
    tokio::spawn(follow(monitor.clone(), lease, seen, sender));
    Ok(ReceiverStream::new(receiver))
}

/// Sends ticks until the client goes, the monitor stops, or it is full.
async fn follow(
    monitor: HostMonitor,
    lease: Option<Lease>,
    mut seen: u64,
    sender: mpsc::Sender<Item>,
) {
    let mut news = monitor.news();
    let mut first = true;
    loop {
        news.mark_unchanged();
        // Looked at first: what it kept before it stopped is still to be sent.
        let running = monitor.is_running();
        let (ticks, full, last) = monitor.look(|history| {
            let ticks: Vec<_> = history.after(seen).take(AT_ONCE).cloned().collect();
            let last = history.newest().map_or(0, |tick| tick.seq);
            (ticks, history.is_saturated(), last)
        });
        let anything = !ticks.is_empty();
        for tick in ticks {
            seen = tick.seq;
            let response = v1::WatchHostStatsResponse {
                info: if first { monitor.info() } else { None },
                saturated: full && tick.seq == last,
                sample: Some(tick.message()),
            };
            first = false;
            if sender.send(Ok(response)).await.is_err() {
                return;
            }
        }
        if anything {
            continue;
        }
        if !running {
            break;
        }
        tokio::select! {
            _ = news.changed() => {}
            () = sender.closed() => break,
        }
    }
    drop(lease);
}
