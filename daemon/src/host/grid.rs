//! When ticks are due: at whole periods after the start, on the monotonic clock. A tick that comes late does not move the
//! next ones, and one that was missed is counted and not made up.

/// The next deadline and the time between two, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grid {
    next: u64,
    period: u64,
}

/// A tick that is due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Due {
    /// How late it is, ns.
    pub late_ns: u64,
    /// Deadlines that passed without a tick before this one.
    pub missed: u64,
}

impl Grid {
    /// Deadlines at `start` + `period`, and so on.
    pub(crate) fn new(start: u64, period: u64) -> Self {
        let period = period.max(1);
        Self {
            next: start + period,
            period,
        }
    }

    /// The next deadline.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// What is due at `now`: nothing before the deadline.
    pub(crate) fn at(&mut self, now: u64) -> Option<Due> {
        let missed = now.checked_sub(self.next)? / self.period;
        let deadline = self.next + missed * self.period;
        self.next = deadline + self.period;
        Some(Due {
            late_ns: now - deadline,
            missed,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_ticks_stay_on_the_grid_and_missed_ones_are_counted() {
        let mut grid = Grid::new(1000, 100);
        assert_eq!(grid.at(1099), None);
        let due = |late_ns, missed| Some(Due { late_ns, missed });
        assert_eq!(grid.at(1100), due(0, 0));
        assert_eq!(grid.at(1199), None, "not twice");
        assert_eq!(grid.at(1299), due(99, 0));
        assert_eq!(grid.next(), 1300);
        assert_eq!(grid.at(1750), due(50, 4));
        assert_eq!(grid.at(1800), due(0, 0));
    }
}
