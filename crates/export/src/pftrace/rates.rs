//! How fast a NeuronCore's memory was written and read, as a counter.
//!
//! Each copy counts with its mean rate from its start to its stop; copies at one time add up. Spans come in the order of
//! their stops, so a rate may still change before the last stop: changes are kept until the ring ends, the oldest of
//! them given out when there are too many.

use std::collections::BTreeMap;

use nrt_trace_abi::record::Record;
use nrt_trace_model::payload::{self, FieldValue};
use nrt_trace_model::{EventType, Phase};

/// Changes that are kept.
const CHANGES_MAX: usize = 65_536;

/// Which way a copy goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    In,
    Out,
}

/// Changes of a rate, bytes per second.
#[derive(Debug, Default)]
pub(crate) struct Rate {
    changes: BTreeMap<u64, i128>,
    /// The rate up to here is given out.
    until: u64,
    rate: i128,
}

impl Rate {
    /// A copy of `bytes` from `begin` to `end`, ns. What has to be given out now goes to `give` as time and rate.
    pub(crate) fn copy<E>(
        &mut self,
        bytes: u64,
        begin: u64,
        end: u64,
        give: impl FnMut(u64, i64) -> Result<(), E>,
    ) -> Result<(), E> {
        let (begin, end) = (begin.max(self.until), end.max(self.until));
        if begin >= end || bytes == 0 {
            return Ok(());
        }
        let rate = i128::from(bytes) * 1_000_000_000 / i128::from(end - begin);
        *self.changes.entry(begin).or_default() += rate;
        *self.changes.entry(end).or_default() -= rate;
        if self.changes.len() > CHANGES_MAX {
            self.give(CHANGES_MAX / 2, give)
        } else {
            Ok(())
        }
    }

    /// Gives out all but `keep` changes, and forgets the past if that is all.
    pub(crate) fn give<E>(
        &mut self,
        keep: usize,
        mut give: impl FnMut(u64, i64) -> Result<(), E>,
    ) -> Result<(), E> {
        while self.changes.len() > keep {
            let Some((time, change)) = self.changes.pop_first() else {
                break;
            };
            self.until = time;
            if change != 0 {
                self.rate += change;
                give(time, i64::try_from(self.rate).unwrap_or(i64::MAX))?;
            }
        }
        if keep == 0 {
            *self = Self::default();
        }
        Ok(())
    }
}

/// Way and bytes of a copy between host and device, by the stop of its span.
pub(crate) fn copied(stop: &Record) -> Option<(Way, u64)> {
    let (way, field) = match EventType::from_value(stop.trace_type())? {
        EventType::DmemBufCopyin => (Way::In, "size"),
        EventType::DmemBufCopyout => (Way::Out, "size"),
        EventType::DmemBufBatchCopyin => (Way::In, "total_size"),
        EventType::DmemBufBatchCopyout => (Way::Out, "total_size"),
        _ => return None,
    };
    let kind = EventType::from_value(stop.trace_type())?;
    let layout = payload::layout(kind, Phase::Stop)?;
    match layout.field(field)?.read(&stop.data()) {
        FieldValue::Unsigned(bytes) => Some((way, bytes)),
        FieldValue::Bool(_) | FieldValue::Signed(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    #[test]
    fn rates_of_copies_at_one_time_add_up_and_end_at_nothing() {
        let mut rate = Rate::default();
        let mut points = Vec::new();
        let mut give = |time, value| {
            points.push((time, value));
            Ok::<(), Infallible>(())
        };
        rate.copy(1000, 100, 200, &mut give).unwrap();
        rate.copy(300, 150, 250, &mut give).unwrap();
        rate.copy(5, 7, 7, &mut give).unwrap();
        rate.give(0, &mut give).unwrap();
        let (a, b) = (10_000_000_000, 3_000_000_000);
        assert_eq!(points, [(100, a), (150, a + b), (200, b), (250, 0)]);
    }

    #[test]
    fn what_is_kept_is_bounded_and_the_end_is_still_nothing() {
        let mut rate = Rate::default();
        let mut last = (0, 1);
        for i in 0..100_000_u64 {
            let give = |time, value| {
                assert!(time >= last.0);
                last = (time, value);
                Ok::<(), Infallible>(())
            };
            rate.copy(7, 10 * i, 10 * i + 25, give).unwrap();
            assert!(rate.changes.len() <= CHANGES_MAX + 2);
        }
        rate.give(0, |time, value| {
            last = (time, value);
            Ok::<(), Infallible>(())
        })
        .unwrap();
        assert_eq!(last, (10 * 99_999 + 25, 0));
    }
}
