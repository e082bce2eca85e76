//! How fast events came without a loss.

use std::time::Duration;

/// A rate that lasted this long is one that lasts.
const WINDOW: Duration = Duration::from_secs(1);

/// The best rate without a loss over a whole window.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rate {
    best: Option<(u64, Duration)>,
    events: u64,
    during: Duration,
    lost: u64,
}

impl Rate {
    /// Takes what came in the last `elapsed`, and how much is lost since the beginning.
    pub(crate) fn add(&mut self, events: u64, elapsed: Duration, lost: u64) {
        if lost != self.lost {
            *self = Self {
                best: self.best,
                lost,
                ..Self::default()
            };
            return;
        }
        self.events += events;
        self.during += elapsed;
        if self.during >= WINDOW {
            let this = (self.events, self.during);
            if self
                .best
                .is_none_or(|best| per_second(this) > per_second(best))
            {
                self.best = Some(this);
            }
            (self.events, self.during) = (0, Duration::ZERO);
        }
    }

    /// Events and time of the best window; the whole recording if it was shorter than one.
    pub(crate) fn best(&self) -> Option<(u64, Duration)> {
        let whole = (self.lost == 0 && self.events > 0).then_some((self.events, self.during));
        self.best.or(whole)
    }
}

#[expect(clippy::cast_precision_loss, reason = "compared only")]
fn per_second((events, during): (u64, Duration)) -> f64 {
    events as f64 / during.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TENTH: Duration = Duration::from_millis(100);

    #[test]
    fn the_best_second_counts() {
        let mut rate = Rate::default();
        for i in 0..30 {
            rate.add(if i / 10 == 1 { 500 } else { 100 }, TENTH, 0);
        }
        assert_eq!(rate.best(), Some((5000, Duration::from_secs(1))));
    }

    #[test]
    fn a_second_with_a_loss_does_not() {
        let mut rate = Rate::default();
        for _ in 0..9 {
            rate.add(1000, TENTH, 0);
        }
        rate.add(1000, TENTH, 7);
        for _ in 0..10 {
            rate.add(10, TENTH, 7);
        }
        assert_eq!(rate.best(), Some((100, Duration::from_secs(1))));
    }

    #[test]
    fn a_short_recording_is_its_own_window() {
        let mut rate = Rate::default();
        assert_eq!(rate.best(), None);
        rate.add(5, TENTH, 0);
        assert_eq!(rate.best(), Some((5, TENTH)));
    }
}
