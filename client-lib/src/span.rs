//! A span as a guard.

use crate::event::{Event, TrackingId};
use crate::tracer::Tracer;
use crate::{EventType, emit_raw};

/// A started span. Its stop is emitted when it goes out of scope, with the payload of [`Span::stop_data`] (the start's,
/// if that was never called).
#[derive(Debug)]
#[must_use = "the span ends when this goes out of scope"]
pub struct Span {
    stop: Event,
    started: bool,
}

impl Span {
    pub(crate) fn start(tracer: Tracer, kind: EventType, nc: u32, data: [u64; 5]) -> Self {
        let tracking = tracer.emit(Event::start(kind, nc).data(data));
        Self {
            stop: Event::stop(kind, nc, tracking).data(data),
            started: tracking.is_some(),
        }
    }

    /// The id that start and stop share; `None` if the start was not recorded.
    #[must_use]
    pub fn tracking(&self) -> Option<TrackingId> {
        self.stop.tracking
    }

    /// Sets the payload of the stop.
    pub fn stop_data(&mut self, data: [u64; 5]) {
        self.stop.data = data;
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        // A stop without its start could only confuse: when capturing began in the middle of the span, leave it out.
        if self.started {
            let Event {
                kind,
                phase,
                nc,
                tracking,
                data,
            } = self.stop;
            emit_raw(
                kind.value(),
                phase.value(),
                nc,
                tracking.map_or(0, |id| id.0),
                &data,
            );
        }
    }
}
