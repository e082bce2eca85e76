//! What stands for the device: its clock, its memory, and what it notes of an execution.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::mlp::LAYERS;

/// A moment on the device's clock and on the host's.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Moment {
    /// Device clock, ns.
    pub(crate) nc: u64,
    /// `CLOCK_REALTIME`, ns.
    pub(crate) cpu: u64,
}

/// A NeuronCore's own clock: it runs at the host's rate, from a zero of its own.
#[derive(Debug)]
pub(crate) struct Clock {
    epoch: Instant,
    offset: u64,
}

impl Clock {
    /// A clock that is `offset` ns after its zero now.
    pub(crate) fn new(offset: u64) -> Self {
        Self {
            epoch: Instant::now(),
            offset,
        }
    }

    /// Reads both clocks, one after the other.
    pub(crate) fn read(&self) -> Moment {
        Moment {
            cpu: realtime_ns(),
            nc: self.device_ns(),
        }
    }

    /// Reads the device's clock between two readings of the host's. An interruption in between would make a sync point
    /// that moves every event of the execution by as much, so the closest of a few readings is taken.
    pub(crate) fn sync(&self) -> Moment {
        let reading = |_| {
            let before = realtime_ns();
            let nc = self.device_ns();
            let apart = realtime_ns().saturating_sub(before);
            (
                apart,
                Moment {
                    nc,
                    cpu: before + apart / 2,
                },
            )
        };
        let best = (0..8).map(reading).min_by_key(|(apart, _)| *apart);
        best.map_or_else(|| self.read(), |(_, moment)| moment)
    }

    fn device_ns(&self) -> u64 {
        self.offset + nanoseconds(self.epoch.elapsed().as_nanos())
    }
}

/// Begin and end on the device.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lapse {
    pub(crate) start: Moment,
    pub(crate) stop: Moment,
}

/// What the device notes while it executes, for the host to read afterwards.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Notes {
    /// The two clocks, read together when the execution began.
    pub(crate) sync: Moment,
    /// Waiting for the neighbours.
    pub(crate) barrier: Lapse,
    /// The execution.
    pub(crate) execution: Lapse,
    /// The all-reduce of each layer, in the order in which they ran.
    pub(crate) collectives: [Lapse; LAYERS],
    /// When the last layer's weights were new.
    pub(crate) updated: Moment,
}

/// Accounts of the device's memory, by usage type.
#[derive(Debug)]
pub(crate) struct Memory {
    by_usage: [u64; 23],
    total: u64,
    next_address: u64,
}

impl Memory {
    pub(crate) fn new() -> Self {
        Self {
            by_usage: [0; 23],
            total: 0,
            next_address: 0x10_0000_0000,
        }
    }

    /// Takes `bytes` for `usage` and gives them an address.
    pub(crate) fn take(&mut self, usage: u32, bytes: u64) -> u64 {
        self.total += bytes;
        self.by_usage[usage as usize] += bytes;
        let address = self.next_address;
        self.next_address += bytes.next_multiple_of(4096);
        address
    }

    /// Gives `bytes` of `usage` back.
    pub(crate) fn give_back(&mut self, usage: u32, bytes: u64) {
        self.total -= bytes;
        self.by_usage[usage as usize] -= bytes;
    }

    /// Bytes in use for `usage`, and for all.
    pub(crate) fn in_use(&self, usage: u32) -> (u64, u64) {
        (self.by_usage[usage as usize], self.total)
    }
}

fn realtime_ns() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |d| nanoseconds(d.as_nanos()))
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "64 bits of nanoseconds last for centuries"
)]
const fn nanoseconds(n: u128) -> u64 {
    n as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sync_point_brings_a_device_time_back_to_the_host() {
        let clock = Clock::new(1 << 60);
        let sync = clock.sync();
        let before = realtime_ns();
        let nc = clock.read().nc;
        let after = realtime_ns();
        let moved = sync.cpu + (nc - sync.nc);
        let slack = 100_000; // of the eight readings, all interrupted
        assert!(
            before - slack <= moved && moved <= after + slack,
            "{before} {moved} {after}"
        );
        assert!(nc >= 1 << 60);
    }

    #[test]
    fn memory_is_accounted_by_usage() {
        let mut memory = Memory::new();
        let first = memory.take(6, 10);
        let second = memory.take(11, 5000);
        assert!(second >= first + 10);
        assert_eq!(memory.in_use(6), (10, 5010));
        memory.give_back(11, 5000);
        assert_eq!(memory.in_use(11), (0, 10));
    }
}
