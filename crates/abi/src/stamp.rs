//! A slot's stamp word.
//!
//! ```text
//!  63         62                                                    0
//! ┌──────────┬──────────────────────────────────────────────────────┐
//! │IN_FLIGHT │ value                                                │
//! └──────────┴──────────────────────────────────────────────────────┘
//! ```
//!
//! With `i` the index of the claim whose turn the slot is in (`geometry::Geometry::index`):
//!
//! | stamp | meaning | who may move on from here |
//! |---|---|---|
//! | `i + 1` | event `i` is readable | a producer that claimed a later index |
//! | `IN_FLIGHT \| i` | the producer that claimed `i` writes the payload | only that producer |
//! | anything `<= i`, not in flight | writable for `i` (zero, the fresh slot, included) | a producer that claimed `i` or later |
//!
//! The value only grows. Readable stamps and in-flight values can't be confused: indices of one slot differ by whole
//! laps, and a lap is longer than the capacity.

/// The slot's payload is being written by the producer that set this bit.
pub const IN_FLIGHT: u64 = 1 << 63;

/// What a producer that claimed index `i` may do with a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Writable {
    /// Nobody writes it, and what it holds is older: take it with a compare-and-swap from this stamp.
    Yes,
    /// Another producer is in the middle of writing it: give up.
    InFlight,
    /// A later lap has already been here: give up.
    Lapped,
}

/// What a reader that looks for index `i` finds in a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Readable {
    /// Event `i` is there.
    Yes,
    /// A later claim has taken the slot, or is taking it: event `i` is gone for good.
    Gone,
    /// Not yet written, and perhaps never: look again later. If the slot still holds an older event, here is that
    /// event's index.
    Pending {
        /// Index of the older event that is still readable in the slot.
        older: Option<u64>,
    },
}

/// The stamp of a slot in which event `i` is readable.
#[inline]
#[must_use]
pub const fn published(i: u64) -> u64 {
    i + 1
}

/// The stamp of a slot whose payload the claimant of `i` is writing.
#[inline]
#[must_use]
pub const fn in_flight(i: u64) -> u64 {
    i | IN_FLIGHT
}

/// Classifies `stamp` for a producer that claimed index `i`.
#[inline]
pub const fn writable(stamp: u64, i: u64) -> Writable {
    if stamp & IN_FLIGHT != 0 {
        Writable::InFlight
    } else if stamp > i {
        Writable::Lapped
    } else {
        Writable::Yes
    }
}

/// Classifies `stamp` for a reader that looks for index `i`.
#[inline]
pub const fn readable(stamp: u64, i: u64) -> Readable {
    // An in-flight stamp is numerically huge: compare the value without the bit.
    let value = stamp & !IN_FLIGHT;
    let in_flight = stamp != value;
    if !in_flight && value == i + 1 {
        Readable::Yes
    } else if value > i {
        Readable::Gone
    } else if in_flight || value == 0 {
        Readable::Pending { older: None }
    } else {
        Readable::Pending {
            older: Some(value - 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_producer_takes_only_quiet_and_older_slots() {
        assert_eq!(writable(0, 0), Writable::Yes);
        assert_eq!(writable(published(0), 4), Writable::Yes);
        assert_eq!(writable(published(4), 4), Writable::Lapped);
        assert_eq!(writable(in_flight(0), 4), Writable::InFlight);
        assert_eq!(writable(in_flight(8), 4), Writable::InFlight);
    }

    #[test]
    fn a_reader_tells_ready_gone_and_pending_apart() {
        assert_eq!(readable(published(4), 4), Readable::Yes);
        assert_eq!(readable(in_flight(4), 4), Readable::Pending { older: None });
        assert_eq!(readable(0, 4), Readable::Pending { older: None });
        assert_eq!(
            readable(published(0), 4),
            Readable::Pending { older: Some(0) }
        );
        assert_eq!(readable(published(8), 4), Readable::Gone);
        assert_eq!(readable(in_flight(8), 4), Readable::Gone);
    }
}
