//! How soon to look again: when the ring that fills fastest would be a quarter full.

use std::collections::HashMap;
use std::time::Duration;

use nrt_trace_proto::v1::RingAccount;

/// Looking more often costs more than it saves.
const SHORTEST: Duration = Duration::from_millis(1);

/// Looking less often would let a burst after a quiet time go far round the ring.
const LONGEST: Duration = Duration::from_millis(100);

/// Watches how fast rings fill.
#[derive(Debug)]
pub(crate) struct Pace {
    interval: Duration,
    longest: Duration,
    capacity: u64,
    claimed: HashMap<(u32, u32), u64>,
}

impl Pace {
    /// A pace for rings of `capacity` slots. Starts fast: programs are busiest when they begin.
    pub(crate) fn new(capacity: u64) -> Self {
        // A quiet ring may start to fill at any moment, a small one is soon full: 4 M/s is a fast thread with real work.
        let longest =
            Duration::from_nanos(capacity.saturating_mul(250)).clamp(SHORTEST * 5, LONGEST);
        Self {
            interval: SHORTEST * 2,
            longest,
            capacity,
            claimed: HashMap::new(),
        }
    }

    /// Takes the rings' accounts after `elapsed` since the last time, and says how long to wait now.
    pub(crate) fn next(&mut self, accounts: &[RingAccount], elapsed: Duration) -> Duration {
        let mut fastest = 0;
        for account in accounts {
            let key = (account.producer_id, account.nc_idx);
            // Events of a process's own capture fill the ring as any others do.
            let claimed = account.claimed.saturating_add(account.skipped);
            let before = self.claimed.insert(key, claimed).unwrap_or(0);
            fastest = fastest.max(claimed.saturating_sub(before));
        }
        let due = quarter_full(self.capacity, fastest, elapsed);
        // Down at once, up step by step: a pause between two bursts is no quiet time.
        self.interval = due.min(self.interval * 2).clamp(SHORTEST, self.longest);
        self.interval
    }
}

/// When a ring that took `events` in `elapsed` will have taken a quarter of `capacity`.
fn quarter_full(capacity: u64, events: u64, elapsed: Duration) -> Duration {
    if events == 0 {
        return Duration::MAX;
    }
    let nanos = elapsed.as_nanos() * u128::from(capacity / 4) / u128::from(events);
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claimed(claimed: u64) -> [RingAccount; 1] {
        [RingAccount {
            claimed,
            ..RingAccount::default()
        }]
    }

    #[test]
    fn a_fast_ring_is_visited_when_a_quarter_full() {
        let mut pace = Pace::new(1 << 20);
        let mut next = Duration::ZERO;
        // 10 M/s: a quarter of 1 Mi slots is 26 ms.
        for i in 1..20 {
            next = pace.next(&claimed(i * 100_000), Duration::from_millis(10));
        }
        assert_eq!(next.as_micros(), 26_214);
        // Ten times as fast, from one visit to the next.
        let soon = pace.next(&claimed(2_900_000), Duration::from_millis(10));
        assert_eq!(soon.as_micros(), 2_621);
    }

    #[test]
    fn a_quiet_time_slows_the_visits_step_by_step() {
        let mut pace = Pace::new(1 << 20);
        let waits: Vec<u128> = (0..8)
            .map(|_| pace.next(&claimed(0), Duration::from_millis(1)).as_millis())
            .collect();
        assert_eq!(waits, [4, 8, 16, 32, 64, 100, 100, 100]);
    }

    #[test]
    fn small_rings_are_never_left_alone_for_long() {
        let mut pace = Pace::new(1024);
        for _ in 0..20 {
            assert!(pace.next(&claimed(0), Duration::from_millis(1)) <= Duration::from_millis(5));
        }
        let mut busy = Pace::new(1024);
        assert_eq!(
            busy.next(&claimed(u64::MAX), Duration::from_millis(1)),
            SHORTEST
        );
    }
}
