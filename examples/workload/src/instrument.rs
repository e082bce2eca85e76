//! The only place that talks to the tracer: emits a NeuronCore's events, pairs each start with its stop, and counts.

use std::cell::RefCell;
use std::collections::BTreeMap;

use nrt_trace_client::payload::Payload;
use nrt_trace_client::{Event, EventType, Tracer, TrackingId};

use crate::report::Count;

/// The events of one NeuronCore, emitted by the one thread that drives it.
#[derive(Debug)]
pub(crate) struct Instrument {
    tracer: Tracer,
    nc: u32,
    counts: RefCell<[Count; EventType::ALL.len()]>,
}

/// A span that has started. Dropping it stops it, so that a step that fails half way leaves no start alone.
#[derive(Debug)]
#[must_use]
pub(crate) struct Span<'a> {
    instrument: &'a Instrument,
    kind: EventType,
    data: [u64; 5],
    /// Absent if the start was not recorded: then neither is the stop, which nothing could be paired with.
    tracking: Option<TrackingId>,
}

impl Instrument {
    pub(crate) fn new(tracer: Tracer, nc: u32) -> Self {
        Self {
            tracer,
            nc,
            counts: RefCell::new([Count::default(); EventType::ALL.len()]),
        }
    }

    pub(crate) fn nc(&self) -> u32 {
        self.nc
    }

    /// The id of a name.
    pub(crate) fn name(&self, text: &str) -> u64 {
        self.tracer.intern(self.nc, text).0
    }

    /// Starts a span whose stop has the same payload.
    pub(crate) fn span<P: Payload>(&self, payload: P) -> Span<'_> {
        self.start(P::LAYOUT.event, payload.to_data())
    }

    /// Starts a span of a type whose start has no payload.
    pub(crate) fn bare_span(&self, kind: EventType) -> Span<'_> {
        self.start(kind, [0; 5])
    }

    /// Emits an event without duration.
    pub(crate) fn instant<P: Payload>(&self, payload: P) {
        let kind = P::LAYOUT.event;
        let recorded = self
            .tracer
            .emit(Event::instant(kind, self.nc).data(payload.to_data()));
        self.count(kind, recorded);
    }

    /// Emits start and stop of a request that goes on asynchronously under the number `seq`, around `work`.
    pub(crate) fn asynchronous<P: Payload, R>(
        &self,
        payload: P,
        seq: u64,
        work: impl FnOnce() -> R,
    ) -> R {
        let (kind, data) = (P::LAYOUT.event, payload.to_data());
        let tracking = self
            .tracer
            .emit_with_seq(Event::start(kind, self.nc).data(data), seq);
        self.count(kind, tracking);
        let result = work();
        let stop = |id| {
            self.tracer
                .emit_with_seq(Event::stop(kind, self.nc, Some(id)).data(data), seq)
        };
        self.count(kind, tracking.and_then(stop));
        result
    }

    /// Events recorded so far.
    pub(crate) fn recorded(&self) -> u64 {
        self.counts.borrow().iter().map(|n| n.recorded).sum()
    }

    /// Adds what was emitted so far to `into`, by display name.
    pub(crate) fn add_counts(&self, into: &mut BTreeMap<String, Count>) {
        for (kind, n) in EventType::ALL
            .iter()
            .zip(self.counts.borrow().iter())
            .filter(|(_, n)| n.emitted > 0)
        {
            let total = into.entry(kind.name().to_owned()).or_default();
            total.emitted += n.emitted;
            total.recorded += n.recorded;
        }
    }

    fn start(&self, kind: EventType, data: [u64; 5]) -> Span<'_> {
        let tracking = self.tracer.emit(Event::start(kind, self.nc).data(data));
        self.count(kind, tracking);
        Span {
            instrument: self,
            kind,
            data,
            tracking,
        }
    }

    fn count(&self, kind: EventType, tracking: Option<TrackingId>) {
        let n = &mut self.counts.borrow_mut()[kind.index()];
        n.emitted += 1;
        n.recorded += u64::from(tracking.is_some());
    }
}

impl Span<'_> {
    /// Stops the span with a payload of its own.
    pub(crate) fn stop_with<P: Payload>(mut self, payload: P) {
        self.data = payload.to_data();
    }
}

impl Drop for Span<'_> {
    fn drop(&mut self) {
        let Self {
            instrument,
            kind,
            data,
            tracking,
        } = *self;
        let stopped = tracking.and_then(|id| {
            instrument
                .tracer
                .emit(Event::stop(kind, instrument.nc, Some(id)).data(data))
        });
        instrument.count(kind, stopped);
    }
}
