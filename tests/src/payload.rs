//! Events that carry their own number and a checksum, so that a torn, foreign or repeated one is seen.
//!
//! They are stops of `nrt_dma_mem_alloc`: the one payload whose five words all stand in the JSON.

use std::borrow::Borrow;
use std::collections::BTreeMap;

use nrt_trace_client::payload::DmaMemAllocStop;

use crate::document::Event;

/// Display name of the events' type.
pub const EVENT_TYPE: &str = "nrt_dma_mem_alloc";

/// The payload of event `number` (1 for the first) of thread `thread`.
#[must_use]
pub fn numbered(thread: u64, number: u64) -> [u64; 5] {
    let scrambled = scramble(thread << 48 | number);
    let more = scramble(scrambled);
    let payload = DmaMemAllocStop {
        allocated_bytes: number,
        return_code: thread,
        physical_address: scrambled,
        usage_type_total_bytes: more,
        total_bytes: checksum([thread, number, scrambled, more]),
    };
    payload.to_data()
}

/// The numbers that stand in `events`, by thread and in the order of the document.
///
/// # Panics
///
/// If an event of the probe's type does not hold together.
#[must_use]
pub fn numbers(events: impl IntoIterator<Item: Borrow<Event>>) -> BTreeMap<u64, Vec<u64>> {
    let mut out = BTreeMap::<u64, Vec<u64>>::new();
    for event in events {
        let event = event.borrow();
        if event.event_type != EVENT_TYPE {
            continue;
        }
        let (thread, number) = (event.number("return_code"), event.number("allocated_bytes"));
        let address = event.data["physical_address"]
            .as_str()
            .expect("an address is a string");
        let address = u64::from_str_radix(address.trim_start_matches("0x"), 16).expect("hex");
        let more = event.number("usage_type_total_bytes");
        assert_eq!(
            event.number("total_bytes"),
            checksum([thread, number, address, more]),
            "an event is torn: {event:?}"
        );
        out.entry(thread).or_default().push(number);
    }
    out
}

fn checksum(words: [u64; 4]) -> u64 {
    words.into_iter().fold(0, |sum, word| scramble(sum ^ word))
}

/// The finalizer of `SplitMix64`: every bit of the input moves about half of the output.
const fn scramble(x: u64) -> u64 {
    let z = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(data: [u64; 5]) -> Event {
        let p = DmaMemAllocStop::from_data(&data);
        let value = json!({
            "event_type": EVENT_TYPE, "phase": "stop", "id": 1, "nc_idx": 0, "nc_local_id": 1, "tracking_id": 1,
            "thread_id": 1, "worker_gid": -1, "timestamp_ns": 1,
            "data": {
                "allocated_bytes": p.allocated_bytes, "total_bytes": p.total_bytes,
                "usage_type_total_bytes": p.usage_type_total_bytes, "return_code": p.return_code,
                "physical_address": format!("{:#x}", p.physical_address),
            },
        });
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn numbers_come_back_by_thread() {
        let events = [numbered(0, 1), numbered(3, 1), numbered(0, 2)].map(event);
        assert_eq!(numbers(&events), [(0, vec![1, 2]), (3, vec![1])].into());
    }

    #[test]
    fn two_events_mixed_are_torn_wherever_they_are_cut() {
        for cut in 1..5 {
            let (first, second) = (numbered(0, 1), numbered(0, 2));
            let mixed = std::array::from_fn(|n| if n < cut { first[n] } else { second[n] });
            let read = std::panic::catch_unwind(|| numbers([event(mixed)]));
            // Both have the same third word, the thread's number.
            assert!(
                read.is_err() || mixed == first || mixed == second,
                "cut at {cut}"
            );
        }
    }
}
