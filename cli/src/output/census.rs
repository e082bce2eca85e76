//! Events by process and type.

use std::collections::BTreeMap;

use nrt_trace_model::EventType;
use nrt_trace_proto::v1;
use nrt_trace_proto::v1::trace_part::Part;

/// Bytes of a packed record; its first four are the type.
const RECORD_BYTES: usize = 112;

/// Counts of event types, by pid.
pub(crate) type Counts = BTreeMap<u32, BTreeMap<String, u64>>;

/// Counts events by process and type.
#[derive(Debug, Default)]
pub(crate) struct Census {
    pids: BTreeMap<u32, u32>,
    /// By producer, then by type's value.
    events: BTreeMap<u32, BTreeMap<u32, u64>>,
}

impl Census {
    /// Takes note of a part of a trace.
    pub(crate) fn part(&mut self, part: &v1::TracePart) {
        match &part.part {
            Some(Part::Producer(producer)) => {
                let pid = producer.pid.and_then(|pid| u32::try_from(pid).ok());
                self.pids.insert(producer.producer_id, pid.unwrap_or(0));
            }
            Some(Part::Records(records)) => {
                let events = self.events.entry(records.producer_id).or_default();
                let mut by_type = [0_u64; EventType::ALL.len()];
                for record in records.packed.as_chunks::<RECORD_BYTES>().0 {
                    let [a, b, c, d, ..] = *record;
                    let value = u32::from_le_bytes([a, b, c, d]);
                    match by_type.get_mut(value as usize) {
                        Some(count) => *count += 1,
                        None => *events.entry(value).or_default() += 1,
                    }
                }
                for (value, count) in (0..).zip(by_type).filter(|(_, count)| *count > 0) {
                    *events.entry(value).or_default() += count;
                }
            }
            _ => {}
        }
    }

    /// The counts by pid and display name. A type without a name shows as its number.
    pub(crate) fn counts(&self) -> Counts {
        let mut counts = Counts::new();
        for (producer, events) in &self.events {
            let pid = self.pids.get(producer).copied().unwrap_or(0);
            let by_name = counts.entry(pid).or_default();
            for (value, count) in events {
                let name = EventType::from_value(*value)
                    .map_or_else(|| value.to_string(), |event| event.name().to_owned());
                *by_name.entry(name).or_default() += count;
            }
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_counted_by_pid_and_name() {
        let mut census = Census::default();
        let producer = v1::Producer {
            producer_id: 9,
            pid: Some(42),
            ..v1::Producer::default()
        };
        census.part(&v1::TracePart {
            part: Some(Part::Producer(producer)),
        });
        for nc_idx in [0, 1] {
            let mut packed = vec![0; 3 * RECORD_BYTES];
            packed[RECORD_BYTES] = 3;
            packed[2 * RECORD_BYTES] = 250;
            let records = v1::Records {
                producer_id: 9,
                nc_idx,
                packed: packed.into(),
            };
            census.part(&v1::TracePart {
                part: Some(Part::Records(records)),
            });
        }
        let expected = [("generic", 2), ("nrt_execute", 2), ("250", 2)];
        let expected = expected
            .map(|(name, count)| (name.to_owned(), count))
            .into();
        assert_eq!(census.counts(), Counts::from([(42, expected)]));
    }
}
