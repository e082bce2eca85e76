//! What a program says of an event.

use nrt_trace_model::event::{EventType, Phase};

/// Ties a stop to its start. Never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TrackingId(pub u64);

/// The id of an interned name: a pure function of its bytes, 50 bits wide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StringId(pub u64);

/// An event to emit. Number, time and thread are the library's business.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its type.
    pub kind: EventType,
    /// Start, stop or instant.
    pub phase: Phase,
    /// NeuronCore, as this process counts them; 256 and above is recorded as 0 and counted.
    pub nc: u32,
    /// Ties a stop to its start; `None` for "an id of its own".
    pub tracking: Option<TrackingId>,
    /// The payload of (type, phase): see [`crate::payload`] for the structs that make it.
    pub data: [u64; 5],
}

impl Event {
    /// The start of a span; the id that emitting it returns goes into its stop.
    #[must_use]
    pub const fn start(kind: EventType, nc: u32) -> Self {
        Self {
            kind,
            phase: Phase::Start,
            nc,
            tracking: None,
            data: [0; 5],
        }
    }

    /// The stop of the span whose start returned `tracking`. With `None`, because the start was not recorded, the stop
    /// gets an id of its own.
    #[must_use]
    pub const fn stop(kind: EventType, nc: u32, tracking: Option<TrackingId>) -> Self {
        Self {
            kind,
            phase: Phase::Stop,
            nc,
            tracking,
            data: [0; 5],
        }
    }

    /// An event without duration.
    #[must_use]
    pub const fn instant(kind: EventType, nc: u32) -> Self {
        Self {
            kind,
            phase: Phase::Instant,
            nc,
            tracking: None,
            data: [0; 5],
        }
    }

    /// The same event with a payload.
    #[must_use]
    pub const fn data(self, data: [u64; 5]) -> Self {
        Self { data, ..self }
    }

    /// The same event with a tracking id of the caller's; 0 for "an id of its own".
    #[must_use]
    pub const fn tracking(self, id: u64) -> Self {
        Self {
            tracking: if id == 0 { None } else { Some(TrackingId(id)) },
            ..self
        }
    }
}
