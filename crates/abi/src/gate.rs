//! A NeuronCore's gate word: the one load that answers every question of an emit.
//!
//! ```text
//!  63            48 47 46 45                                        0
//! ┌────────────────┬─────┬──────────────────────────────────────────┐
//! │ run generation │  0  │ one bit per event type: enabled          │
//! └────────────────┴─────┴──────────────────────────────────────────┘
//! ```
//!
//! Zero means closed: not capturing, or this NC is filtered out. The daemon writes it, producers only read it. A bit
//! set in place of the 46 enable bytes of the original keeps all gates of an NC in one word: capturing, NC open, type
//! enabled, and which run this is, are one atomic answer, and eight NCs share a cache line that nobody writes while a
//! run lasts. The generation ties the answer to the segment that the run's Arm message brought.

use crate::EVENT_TYPES;

/// All 46 types.
pub const ALL_TYPES: u64 = (1 << EVENT_TYPES) - 1;

/// The word of an NC that is open for the types of the bit set `types`, in run `generation`.
#[must_use]
pub const fn open(types: u64, generation: u64) -> u64 {
    if types & ALL_TYPES == 0 {
        0
    } else {
        types & ALL_TYPES | generation << 48
    }
}

/// Whether an event of `trace_type` passes. Types outside `0..46` never do.
#[inline]
#[must_use]
pub const fn passes(gate: u64, trace_type: u32) -> bool {
    trace_type < EVENT_TYPES && gate >> trace_type & 1 != 0
}

/// The low 16 bits of the run's generation.
#[inline]
#[must_use]
pub const fn generation(gate: u64) -> u64 {
    gate >> 48
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gate_answers_for_each_type_alone() {
        for t in 0..EVENT_TYPES {
            let gate = open(1 << t, 0xFFFF_0003);
            assert_eq!(generation(gate), 3);
            for u in 0..70 {
                assert_eq!(passes(gate, u), u == t, "gate of {t}, type {u}");
            }
        }
        assert!(!passes(u64::MAX, 46));
        assert!(!passes(u64::MAX, u32::MAX));
    }

    #[test]
    fn a_gate_without_types_is_closed_whatever_the_generation() {
        assert_eq!(open(0, 7), 0);
        assert_eq!(open(!ALL_TYPES, 7), 0);
    }
}
