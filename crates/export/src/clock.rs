//! Clocks that were set.

use nrt_trace_proto::v1::ClockAnchor;

/// How far REALTIME may move against BOOTTIME between two looks without having been set: a clock that is slewed moves 0.5 ms
/// a second at most.
const SLEW: u64 = 2000;
const STEP_NS: u64 = 1_000_000;

/// Steps that are told; beyond that the clock is not worth a name.
pub(crate) const STEPS_MAX: usize = 1024;

/// Looks at three clocks, one after the other.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clock {
    /// The last look.
    pub(crate) last: Option<ClockAnchor>,
}

/// A clock that was set between two looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// The look before.
    pub(crate) before: ClockAnchor,
    /// The look after.
    pub(crate) after: ClockAnchor,
    /// How far REALTIME was set, ns.
    pub(crate) moved: i128,
}

impl Clock {
    /// Looks again: whether REALTIME was set meanwhile.
    pub(crate) fn look(&mut self, after: ClockAnchor) -> Option<Step> {
        if after.realtime_ns == 0 || after.boottime_ns == 0 {
            return None;
        }
        let before = self.last.replace(after)?;
        let Some(passed) = after.boottime_ns.checked_sub(before.boottime_ns) else {
            // Told out of order: nothing follows from it.
            self.last = Some(before);
            return None;
        };
        let moved =
            i128::from(after.realtime_ns) - i128::from(before.realtime_ns) - i128::from(passed);
        let slewed = u128::from(STEP_NS + passed / SLEW);
        let step = Step {
            before,
            after,
            moved,
        };
        (moved.unsigned_abs() > slewed).then_some(step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(realtime_ns: u64, boottime_ns: u64) -> ClockAnchor {
        ClockAnchor {
            realtime_ns,
            monotonic_ns: 1,
            boottime_ns,
        }
    }

    #[test]
    fn a_clock_that_was_set_is_told_from_one_that_is_slewed() {
        let second = 1_000_000_000;
        let mut clock = Clock::default();
        assert_eq!(clock.look(at(100 * second, second)), None);
        // 1.4 ms in a second: a step is more than 1.5.
        assert_eq!(clock.look(at(101 * second + 1_400_000, 2 * second)), None);
        let step = clock.look(at(150 * second, 3 * second)).unwrap();
        assert_eq!(step.moved, 48 * i128::from(second) - 1_400_000);
        assert_eq!(step.before, at(101 * second + 1_400_000, 2 * second));
        let step = clock.look(at(10 * second, 4 * second)).unwrap();
        assert_eq!(step.moved, -141 * i128::from(second));
        // An older look, and one that nobody took, change nothing.
        assert_eq!(clock.look(at(999 * second, second)), None);
        assert_eq!(clock.look(at(0, 9 * second)), None);
        assert_eq!(clock.look(at(11 * second, 5 * second)), None);
    }
}
