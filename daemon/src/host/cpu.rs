//! Cores: their times in `/proc/stat`, and the shares between two readings.

use std::collections::BTreeMap;

use super::text::{Bad, lines, words};

/// Columns of a core's line that are read; later kernels may append some.
const COLUMNS: usize = 10;
const USER: usize = 0;
const NICE: usize = 1;
const SYSTEM: usize = 2;
const IDLE: usize = 3;
/// Columns that add up to all the time there is. The two after them (guest, `guest_nice`) are in user and nice already.
const DISJOINT: usize = 8;

/// A counter that goes back by no more than this many clock ticks has only been corrected: idle and iowait are, by a tick
/// or a few, when a core wakes up. One that goes back further has begun anew, and nothing is known of the time between.
const CORRECTION: u64 = 100;

/// A core's times since boot, in clock ticks: user, nice, system, idle, iowait, irq, softirq, steal, guest, `guest_nice`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Times([Option<u64>; COLUMNS]);

/// Cores by number.
pub(crate) type Cores = BTreeMap<u16, Times>;

/// Reads the cores' lines of `/proc/stat`: those that are online, in the order of their numbers.
pub(crate) fn parse(text: &[u8], bad: &mut Bad) -> Cores {
    let mut cores = Cores::new();
    for line in lines(text) {
        let mut words = words(line);
        let Some(label) = words.next().and_then(|word| word.strip_prefix(b"cpu")) else {
            continue;
        };
        if label.is_empty() {
            continue; // the sum
        }
        let number = bad
            .number(label)
            .and_then(|number| u16::try_from(number).ok());
        let mut times = Times::default();
        let mut columns = 0;
        for (place, word) in times.0.iter_mut().zip(words) {
            *place = bad.number(word);
            columns += 1;
        }
        // A line that is cut before the four columns that every kernel has tells nothing.
        if let Some(number) = number
            && bad.expect((columns > IDLE).then_some(())).is_some()
        {
            cores.insert(number, times);
        }
    }
    cores
}

/// What a core did between two readings, percent. `None`: not known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Shares {
    /// 100 * (user + nice + system) / (user + nice + system + idle).
    pub util: Option<f32>,
    /// user, nice, system, idle, iowait, irq, softirq, steal: percent of their sum.
    pub parts: [Option<f32>; DISJOINT],
    /// guest + `guest_nice`, percent of the same sum.
    pub guest: Option<f32>,
}

impl Shares {
    /// Between `before` and `now`.
    pub(crate) fn between(before: &Times, now: &Times) -> Self {
        let mut passed = [None; COLUMNS];
        for (i, passed) in passed.iter_mut().enumerate() {
            *passed = difference(before.0[i], now.0[i]);
        }
        // A column that is missing or unknown has no share, and adds nothing to the sum.
        let total: u64 = passed[..DISJOINT].iter().flatten().sum();
        let share = |part: Option<u64>| percent(part?, total);
        let of = |i: usize| passed[i];
        let busy = (|| Some(of(USER)? + of(NICE)? + of(SYSTEM)?))();
        let mut parts = [None; DISJOINT];
        for (part, passed) in parts.iter_mut().zip(passed) {
            *part = share(passed);
        }
        Self {
            util: busy.and_then(|busy| percent(busy, busy + of(IDLE)?)),
            parts,
            guest: share(of(DISJOINT).map(|guest| guest + of(DISJOINT + 1).unwrap_or(0)))
                .map(|guest| guest.min(100.0)),
        }
    }
}

fn difference(before: Option<u64>, now: Option<u64>) -> Option<u64> {
    let (before, now) = (before?, now?);
    match now.checked_sub(before) {
        Some(passed) => Some(passed),
        None => (before - now <= CORRECTION).then_some(0),
    }
}

/// `None` when no time passed: that is no share of it.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "a percentage of counters that a float holds to more digits than they are exact to"
)]
fn percent(part: u64, whole: u64) -> Option<f32> {
    (whole > 0).then(|| (part as f64 * 100.0 / whole as f64) as f32)
}

#[cfg(test)]
mod tests;
