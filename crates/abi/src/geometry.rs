//! Capacity arithmetic of a ring: claim number to index and slot.
//!
//! As in crossbeam's `ArrayQueue`, an index is `lap * one_lap + slot` with `one_lap` a power of two above the
//! capacity, so a stamp tells slot and lap, and "readable" (`index + 1`) never equals the next slot's index of
//! another lap. The claim counter itself counts events, not indices: sequence numbers come from it for free.

use crate::stamp;

/// Capacities that a run may ask for. The upper bound keeps `one_lap` and segment sizes far from overflow.
pub const CAPACITY_RANGE: core::ops::RangeInclusive<u64> = 1..=1 << 32;

/// A capacity with what dividing by it quickly needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    cap: u64,
    one_lap: u64,
    /// `floor(2^64 / cap)`, saturated for `cap == 1`.
    reciprocal: u64,
    /// `cap - 1` for a power of two above 1, whose places need no multiplication; else 0.
    mask: u64,
}

/// Where a claim goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The claim's index: grows along the ring and jumps to the next multiple of `one_lap` past the last slot.
    pub index: u64,
    /// The slot, `0..cap`.
    pub slot: u64,
}

impl Geometry {
    /// The geometry of a ring of `cap` slots; `None` outside [`CAPACITY_RANGE`].
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "2^64 / cap fits 64 bits for cap >= 2"
    )]
    pub const fn new(cap: u64) -> Option<Self> {
        if cap < *CAPACITY_RANGE.start() || cap > *CAPACITY_RANGE.end() {
            return None;
        }
        let reciprocal = if cap == 1 {
            u64::MAX
        } else {
            ((1u128 << 64) / cap as u128) as u64
        };
        Some(Self {
            cap,
            one_lap: (cap + 1).next_power_of_two(),
            reciprocal,
            mask: if cap.is_power_of_two() { cap - 1 } else { 0 },
        })
    }

    /// Slots of the ring.
    #[inline]
    #[must_use]
    pub const fn cap(&self) -> u64 {
        self.cap
    }

    /// Distance of the indices of one slot from lap to lap.
    #[must_use]
    pub const fn one_lap(&self) -> u64 {
        self.one_lap
    }

    /// The place of claim `n`, counted from 0. Exact for every `n < 2^50` and every capacity.
    ///
    /// `floor(n * floor(2^64 / cap) / 2^64)` falls short of `n / cap` by less than `n / 2^64 < 2^-14`, so the
    /// quotient is right or one too small, and one conditional step mends it: 3 ns less than a 64-bit division. For a
    /// power of two, the usual capacity, a mask is another 2 ns less between the claim and its slot.
    #[inline]
    #[must_use]
    pub const fn place(&self, n: u64) -> Place {
        if self.mask != 0 {
            // A lap is twice the capacity: the laps' share of `n` counts double.
            return Place {
                index: n + (n & !self.mask),
                slot: n & self.mask,
            };
        }
        let mut lap = ((n as u128 * self.reciprocal as u128) >> 64) as u64;
        let mut slot = n.wrapping_sub(lap.wrapping_mul(self.cap));
        if slot >= self.cap {
            lap += 1;
            slot -= self.cap;
        }
        Place {
            index: lap.wrapping_mul(self.one_lap).wrapping_add(slot),
            slot,
        }
    }

    /// The stamp of a slot whose turn is index `i` next, if nothing was dropped there: the event of the lap before is
    /// readable. In the first lap, which has none before it, a value that no slot has: an in-flight one far beyond
    /// any index.
    #[inline]
    #[must_use]
    pub const fn stamp_before(&self, i: u64) -> u64 {
        stamp::published(i.wrapping_sub(self.one_lap))
    }

    /// The claim number of `index`, the inverse of [`Geometry::place`]; `None` if no claim has that index.
    #[must_use]
    pub const fn claim_of(&self, index: u64) -> Option<u64> {
        let slot = index & (self.one_lap - 1);
        let lap = index / self.one_lap;
        if slot >= self.cap {
            return None;
        }
        match lap.checked_mul(self.cap) {
            Some(base) => base.checked_add(slot),
            None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_agree_with_plain_division() {
        for cap in [
            1,
            2,
            3,
            7,
            8,
            9,
            1000,
            1023,
            1024,
            1025,
            4_000_000,
            0x10_0000,
            (1 << 32) - 1,
            1 << 32,
        ] {
            let g = Geometry::new(cap).unwrap();
            let edges = (0..5).flat_map(|k| [k, cap * k, (cap * k).saturating_sub(1), cap * k + 1]);
            let far = (0..200).map(|k| (1u64 << 50) - 1 - k * 7919);
            for n in edges.chain(far).filter(|n| *n < 1 << 50) {
                let place = g.place(n);
                assert_eq!(place.slot, n % cap, "cap {cap}, n {n}");
                assert_eq!(
                    place.index,
                    n / cap * g.one_lap() + n % cap,
                    "cap {cap}, n {n}"
                );
                assert_eq!(g.claim_of(place.index), Some(n));
            }
        }
    }

    #[test]
    fn one_lap_is_crossbeams() {
        let lap = |cap| Geometry::new(cap).unwrap().one_lap();
        assert_eq!(
            (lap(1), lap(2), lap(3), lap(1023), lap(1024), lap(0x10_0000)),
            (2, 4, 4, 1024, 2048, 0x20_0000)
        );
        assert_eq!(Geometry::new(0), None);
        assert_eq!(Geometry::new((1 << 32) + 1), None);
    }

    #[test]
    fn an_index_between_laps_is_nobodys() {
        let g = Geometry::new(3).unwrap();
        assert_eq!(g.claim_of(2), Some(2));
        assert_eq!(g.claim_of(3), None);
        assert_eq!(g.claim_of(4), Some(3));
    }
}
