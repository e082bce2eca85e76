//! The metrics, asked for.

use nrt_trace_model::Status as NrtStatus;
use nrt_trace_proto::v1;
use tonic::Status;

use super::status;
use crate::host::HostMonitor;
use crate::metrics::{Calls, View};
use crate::registry::command::{Command, Handle};

/// Bytes of text in one message.
const PIECE: usize = 1 << 20;

/// What the stream carries.
pub(super) type Item = Result<v1::GetMetricsResponse, Status>;

/// Where metrics come from.
#[derive(Clone, Debug)]
pub(super) struct Source {
    /// The registry's door.
    pub handle: Handle,
    /// The host monitor.
    pub host: HostMonitor,
    /// What is counted while calls are served.
    pub calls: Calls,
}

impl Source {
    /// The daemon's metrics as text.
    pub(super) async fn text(&self) -> Result<String, Status> {
        let refused = |error| status::of_error(&error);
        let mut status = self.handle.ask(Command::Status).await.map_err(refused)?;
        status::fill_process(&mut status);
        let producers = self.handle.ask(|reply| Command::Producers(None, reply));
        let producers = producers.await.map_err(refused)?;
        let totals = self.handle.ask(Command::Totals).await.map_err(refused)?;
        let view = View {
            status,
            producers,
            totals,
            host: self.host.state(),
            ticks: self.host.ever(),
            calls: self.calls.clone(),
        };
        let failed = |error: std::fmt::Error| Status::internal(error.to_string());
        view.text()
            .map_err(|error| status::with_nrt(failed(error), NrtStatus::Failure))
    }
}

/// The text in pieces that fit a message.
pub(super) fn pieces(text: &str) -> Vec<Item> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (piece, later) = rest.split_at(rest.floor_char_boundary(PIECE));
        pieces.push(Ok(v1::GetMetricsResponse {
            text: piece.to_owned(),
        }));
        rest = later;
    }
    pieces
}
