//! Time stamp counter to `CLOCK_REALTIME` nanoseconds, by parameters that the daemon refreshes.

/// One line: `ns = base_ns + (tsc - base_tsc) * mult / 2^64`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockParams {
    /// Counter value at which the line starts.
    pub base_tsc: u64,
    /// `CLOCK_REALTIME` ns at `base_tsc`.
    pub base_ns: u64,
    /// Nanoseconds per tick, below 1, times 2^64.
    pub mult: u64,
}

impl ClockParams {
    /// Fraction bits of [`ClockParams::mult`]. A constant, where the kernel's vDSO keeps a shift, and all of the word:
    /// the product's upper half is then the result, and emit has nothing to shift. A counter of 1 GHz or less does not
    /// fit, and is not used.
    pub const FRACTION_BITS: u32 = 64;

    /// A disagreement of more than this is a clock that was set, ns.
    pub const STEP_NS: u64 = 1_000_000;

    /// This line, or, where it would have the time at `tsc` run backwards for who went by `earlier` until then, one that
    /// stands still at the time that was reached until this one gets there. After a step of the clock it is this line.
    #[must_use]
    pub fn not_before(self, earlier: &Self, tsc: u64) -> Self {
        let (reached, now) = (earlier.ns_at(tsc), self.ns_at(tsc));
        let ahead = reached.saturating_sub(now);
        if ahead == 0 || ahead > Self::STEP_NS || self.mult == 0 {
            return self;
        }
        let ticks = (u128::from(ahead) << Self::FRACTION_BITS) / u128::from(self.mult);
        Self {
            base_tsc: tsc.saturating_add(u64::try_from(ticks).unwrap_or(u64::MAX)),
            base_ns: reached,
            ..self
        }
    }

    /// The time at counter value `tsc`. A value before the base (another core's counter, read a moment earlier) gives
    /// the base itself, so that a refresh never makes time run backwards.
    #[inline]
    #[must_use]
    pub const fn ns_at(&self, tsc: u64) -> u64 {
        let ticks = tsc.saturating_sub(self.base_tsc);
        self.base_ns + ((ticks as u128 * self.mult as u128) >> Self::FRACTION_BITS) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_behind_waits_until_it_has_caught_up() {
        // 2 GHz: 0.5 ns a tick.
        let line = |base_ns| ClockParams {
            base_tsc: 1_000,
            base_ns,
            mult: 1 << 63,
        };
        let (earlier, later) = (line(2_000_000), line(1_990_000));
        let kept = later.not_before(&earlier, 5_000);
        assert_eq!(kept.ns_at(5_000), earlier.ns_at(5_000));
        assert_eq!(kept.ns_at(24_000), earlier.ns_at(5_000), "it stands still");
        for tsc in [25_000, 25_002, 1 << 40] {
            assert!(kept.ns_at(tsc).abs_diff(later.ns_at(tsc)) <= 1, "at {tsc}");
        }
        assert_eq!(earlier.not_before(&later, 5_000), earlier, "it is ahead");
        let set_back = line(2_000_000 - ClockParams::STEP_NS - 1);
        assert_eq!(set_back.not_before(&earlier, 5_000), set_back);
        let never = ClockParams { mult: 0, ..later };
        assert_eq!(never.not_before(&earlier, 5_000), never);
    }

    #[test]
    fn a_line_is_exact_over_days() {
        // 2.5 GHz: 0.4 ns a tick.
        let mult = u64::MAX / 5 * 2;
        let p = ClockParams {
            base_tsc: 1_000,
            base_ns: 5_000,
            mult,
        };
        assert_eq!(p.ns_at(1_000), 5_000);
        assert_eq!(p.ns_at(999), 5_000, "before the base");
        let day = 86_400 * 2_500_000_000u64;
        let error = p.ns_at(1_000 + day).abs_diff(5_000 + 86_400_000_000_000);
        assert!(
            error < 86_400,
            "{error} ns after a day: under a nanosecond a second"
        );
    }
}
