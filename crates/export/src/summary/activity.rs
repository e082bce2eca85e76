//! What a summary keeps beside the figures of types: how busy each NeuronCore was, the longest spans, the host's load.

use hdrhistogram::Histogram;
use nrt_trace_model::EventType;
use nrt_trace_proto::v1::HostSample;

/// Longest spans that are shown.
pub(super) const SLOWEST: usize = 10;

/// Significant digits of a NeuronCore's durations: there may be thousands of them.
const DIGITS: u8 = 2;

/// A span, with where to find it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slow {
    pub(super) duration_ns: u64,
    pub(super) start_ns: u64,
    pub(super) key: (u32, u32),
    pub(super) trace_type: u32,
    /// Id of its name, or 0.
    pub(super) name: u64,
    pub(super) tracking_id: u64,
}

/// The longest spans, the longest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Slowest {
    pub(super) spans: Vec<Slow>,
    /// What is not longer than this is not among them.
    floor: u64,
}

impl Slowest {
    #[inline]
    pub(super) fn offer(&mut self, slow: Slow) {
        if slow.duration_ns > self.floor {
            self.take(slow);
        }
    }

    #[cold]
    fn take(&mut self, slow: Slow) {
        let place = self
            .spans
            .partition_point(|other| other.duration_ns >= slow.duration_ns);
        self.spans.insert(place, slow);
        self.spans.truncate(SLOWEST);
        if let (SLOWEST, Some(last)) = (self.spans.len(), self.spans.last()) {
            self.floor = last.duration_ns;
        }
    }
}

/// Durations of spans of all types.
#[derive(Clone, Debug, Default)]
pub(super) struct Activity {
    pub(super) pairs: u64,
    pub(super) total_ns: u64,
    pub(super) longest_ns: u64,
    pub(super) durations: Option<Histogram<u64>>,
    pub(super) running: Running,
}

/// Executions on the device, which come one after another.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Running {
    pub(super) executions: u64,
    pub(super) busy_ns: u64,
    pub(super) gaps: u64,
    pub(super) idle_ns: u64,
    pub(super) longest_gap_ns: u64,
    pub(super) longest_gap_at: u64,
    until: u64,
}

impl Activity {
    #[inline]
    pub(super) fn span(&mut self, trace_type: u32, start_ns: u64, duration_ns: u64) {
        self.pairs += 1;
        self.total_ns = self.total_ns.saturating_add(duration_ns);
        self.longest_ns = self.longest_ns.max(duration_ns);
        let new = || Histogram::new(DIGITS).expect("the number of digits is one it takes");
        let recorded = self.durations.get_or_insert_with(new).record(duration_ns);
        recorded.expect("it grows to any 64-bit value");
        if trace_type == EventType::DeviceExec.value() {
            self.running.execution(start_ns, duration_ns);
        }
    }
}

impl Running {
    fn execution(&mut self, start_ns: u64, duration_ns: u64) {
        let end = start_ns.saturating_add(duration_ns);
        if self.executions > 0 && start_ns > self.until {
            let gap = start_ns - self.until;
            self.gaps += 1;
            self.idle_ns = self.idle_ns.saturating_add(gap);
            if gap > self.longest_gap_ns {
                (self.longest_gap_ns, self.longest_gap_at) = (gap, self.until);
            }
        }
        // What ran beside another one does not count twice.
        let alone = end.saturating_sub(start_ns.max(self.until));
        self.busy_ns = self.busy_ns.saturating_add(if self.executions == 0 {
            duration_ns
        } else {
            alone
        });
        self.executions += 1;
        self.until = self.until.max(end);
    }
}

/// A quantity over the ticks that know it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mean {
    pub(super) count: u64,
    sum: f64,
    pub(super) max: f64,
}

impl Mean {
    fn add(&mut self, value: f64) {
        self.count += 1;
        self.sum += value;
        self.max = self.max.max(value);
    }

    #[expect(clippy::cast_precision_loss, reason = "a mean")]
    pub(super) fn mean(&self) -> f64 {
        self.sum / self.count.max(1) as f64
    }
}

/// What the machine used.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Load {
    pub(super) ticks: u64,
    /// Percent of all cores.
    pub(super) cpu: Mean,
    /// Bytes.
    pub(super) memory: Mean,
}

impl Load {
    #[expect(clippy::cast_precision_loss, reason = "a mean")]
    pub(super) fn sample(&mut self, sample: &HostSample) {
        self.ticks += 1;
        let busy: Vec<f64> = sample
            .cpus
            .iter()
            .filter_map(|cpu| cpu.util)
            .map(f64::from)
            .collect();
        if !busy.is_empty() {
            self.cpu.add(busy.iter().sum::<f64>() / busy.len() as f64);
        }
        if let Some(used) = sample.memory.and_then(|memory| memory.used_bytes) {
            self.memory.add(used as f64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_ten_stay_in_their_order() {
        let mut slowest = Slowest::default();
        for duration_ns in (0..100).map(|i| i * 37 % 101) {
            slowest.offer(Slow {
                duration_ns,
                start_ns: 0,
                key: (1, 0),
                trace_type: 3,
                name: 0,
                tracking_id: 0,
            });
        }
        let mut all: Vec<u64> = (0..100).map(|i| i * 37 % 101).collect();
        all.sort_unstable_by(|a, b| b.cmp(a));
        let kept: Vec<u64> = slowest.spans.iter().map(|slow| slow.duration_ns).collect();
        assert_eq!(kept, all[..SLOWEST]);
    }

    #[test]
    fn gaps_lie_between_executions_and_overlaps_count_once() {
        let mut running = Running::default();
        for (start, duration) in [(100, 50), (150, 10), (200, 100), (250, 100), (500, 1)] {
            running.execution(start, duration);
        }
        assert_eq!((running.executions, running.gaps), (5, 2));
        assert_eq!(running.busy_ns, 50 + 10 + 100 + 50 + 1);
        assert_eq!(running.idle_ns, 40 + 150);
        assert_eq!((running.longest_gap_ns, running.longest_gap_at), (150, 350));
    }
}
