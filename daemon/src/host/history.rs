//! The ticks that are kept: at most so many, and at most so much memory.

use std::collections::VecDeque;
use std::sync::Arc;

use super::tick::Tick;

/// What happens when there is no more room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Retention {
    /// Sampling stops, and every answer says so.
    #[default]
    Saturate,
    /// The oldest tick gives way.
    Ring,
}

impl std::fmt::Display for Retention {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Saturate => "saturate",
            Self::Ring => "ring",
        })
    }
}

impl std::str::FromStr for Retention {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "saturate" => Ok(Self::Saturate),
            "ring" => Ok(Self::Ring),
            _ => Err(()),
        }
    }
}

/// Bounds of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) samples: usize,
    pub(crate) bytes: usize,
    pub(crate) retention: Retention,
}

/// The ticks, oldest first.
#[derive(Debug)]
pub(crate) struct History {
    bounds: Bounds,
    ticks: VecDeque<Arc<Tick>>,
    bytes: usize,
    saturated: bool,
}

impl History {
    /// Nothing yet.
    pub(crate) fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            ticks: VecDeque::new(),
            bytes: 0,
            saturated: false,
        }
    }

    /// Keeps a tick; nothing once it is saturated.
    pub(crate) fn push(&mut self, tick: Tick) {
        if self.saturated {
            return;
        }
        self.bytes += tick.bytes();
        self.ticks.push_back(Arc::new(tick));
        match self.bounds.retention {
            Retention::Saturate => {
                self.saturated =
                    self.ticks.len() >= self.bounds.samples || self.bytes >= self.bounds.bytes;
            }
            Retention::Ring => {
                // The newest stays, however large it is.
                while self.ticks.len() > self.bounds.samples
                    || (self.bytes > self.bounds.bytes && self.ticks.len() > 1)
                {
                    let oldest = self.ticks.pop_front();
                    self.bytes -= oldest.map_or(0, |tick| tick.bytes());
                }
            }
        }
    }

    /// Whether there is no room for another, and never will be.
    pub(crate) fn is_saturated(&self) -> bool {
        self.saturated
    }

    /// Its bounds.
    pub(crate) fn bounds(&self) -> Bounds {
        self.bounds
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.ticks.len()
    }

    /// Memory that they take.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The newest.
    pub(crate) fn newest(&self) -> Option<&Arc<Tick>> {
        self.ticks.back()
    }

    /// All, oldest first.
    pub(crate) fn all(&self) -> impl ExactSizeIterator<Item = &Arc<Tick>> {
        self.ticks.iter()
    }

    /// Those with a number above `seq`, oldest first.
    pub(crate) fn after(&self, seq: u64) -> impl Iterator<Item = &Arc<Tick>> {
        let first = self.ticks.partition_point(|tick| tick.seq <= seq);
        self.ticks.range(first..)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tick::{Machine, Moment};
    use super::*;

    fn tick(seq: u64) -> Tick {
        Tick {
            seq,
            moment: Moment::default(),
            interval_ns: 0,
            late_ns: 0,
            missed: 0,
            machine: Machine::default(),
            cores: [].into(),
            rows: [].into(),
        }
    }

    fn history(samples: usize, bytes: usize, retention: Retention) -> History {
        let mut history = History::new(Bounds {
            samples,
            bytes,
            retention,
        });
        (1..=10).for_each(|seq| history.push(tick(seq)));
        history
    }

    fn seqs(history: &History) -> Vec<u64> {
        history.all().map(|tick| tick.seq).collect()
    }

    #[test]
    fn a_full_history_keeps_the_first_and_says_so() {
        let full = history(3, usize::MAX, Retention::Saturate);
        assert_eq!((seqs(&full), full.is_saturated()), (vec![1, 2, 3], true));
        let roomy = history(11, usize::MAX, Retention::Saturate);
        assert_eq!((roomy.len(), roomy.is_saturated()), (10, false));
        let heavy = history(100, 2 * tick(1).bytes(), Retention::Saturate);
        assert_eq!((heavy.len(), heavy.is_saturated()), (2, true));
    }

    #[test]
    fn a_ring_keeps_the_last_within_both_bounds() {
        let ring = history(3, usize::MAX, Retention::Ring);
        assert_eq!((seqs(&ring), ring.is_saturated()), (vec![8, 9, 10], false));
        assert_eq!(ring.bytes(), 3 * tick(1).bytes());
        assert_eq!(
            seqs(&history(100, 2 * tick(1).bytes(), Retention::Ring)),
            [9, 10]
        );
        assert_eq!(seqs(&history(100, 1, Retention::Ring)), [10]);
        let after = |seq| ring.after(seq).map(|tick| tick.seq).collect::<Vec<_>>();
        assert_eq!(
            (after(0), after(9), after(10)),
            (vec![8, 9, 10], vec![10], vec![])
        );
    }
}
