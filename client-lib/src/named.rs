//! Spans that have a name instead of a type.

use crate::event::StringId;
use crate::span::Span;
use crate::tracer::Tracer;
use crate::{Event, EventType};

impl Tracer {
    /// Starts a span under a name, which [`Tracer::intern`] gave. It ends when the guard goes out of scope.
    ///
    /// Such a span is of type `generic`, with the name's id in the first word of its payload; tools show it under the name.
    pub fn named_span(&self, nc: u32, name: StringId) -> Span {
        self.span(EventType::Generic, nc, [name.0, 0, 0, 0, 0])
    }
}

impl Event {
    /// An event without duration, under a name.
    #[must_use]
    pub const fn named(nc: u32, name: StringId) -> Self {
        Self::instant(EventType::Generic, nc).data([name.0, 0, 0, 0, 0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_word_carries_the_name() {
        let event = Event::named(3, StringId(77));
        assert_eq!((event.kind, event.nc), (EventType::Generic, 3));
        assert_eq!(event.data, [77, 0, 0, 0, 0]);
    }
}
