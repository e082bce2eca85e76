//! Lines of the log that a peer can cause as often as it likes: so many, and then a count.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use nrt_trace_shm::clock::realtime_ns;

/// Time between two lines of one cause.
const SILENCE: Duration = Duration::from_secs(60);
/// Lines about processes that come and go, in a row, and how many more each second.
const BURST: u32 = 256;
const EACH_SECOND: u32 = 4;

/// What was refused, by its cause: the name of the setting that decides, or a word for what has none.
#[derive(Debug, Default)]
pub(crate) struct Refusals(BTreeMap<&'static str, Cause>);

/// One cause.
#[derive(Clone, Debug)]
pub(crate) struct Cause {
    /// How often, since the start.
    pub count: u64,
    /// What was said to the last of them.
    pub text: String,
    /// When, `CLOCK_REALTIME` ns.
    pub last_ns: u64,
    told: Option<Instant>,
}

impl Refusals {
    /// Notes a refusal; says whether it is time for a line about it.
    pub(crate) fn note(&mut self, cause: &'static str, text: &str, now: Instant) -> bool {
        let entry = self.0.entry(cause).or_insert(Cause {
            count: 0,
            text: String::new(),
            last_ns: 0,
            told: None,
        });
        entry.count += 1;
        text.clone_into(&mut entry.text);
        entry.last_ns = realtime_ns();
        let due = (entry.told).is_none_or(|told| now.saturating_duration_since(told) >= SILENCE);
        if due {
            entry.told = Some(now);
        }
        due
    }

    /// Each cause that there was.
    pub(crate) fn causes(&self) -> impl Iterator<Item = (&'static str, &Cause)> {
        self.0.iter().map(|(key, cause)| (*key, cause))
    }
}

/// Lines about processes that attach and end.
#[derive(Debug)]
pub(crate) struct Talk {
    left: u32,
    filled: Instant,
    left_out: u64,
}

impl Talk {
    /// With room for a burst.
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            left: BURST,
            filled: now,
            left_out: 0,
        }
    }

    /// Whether there is room for one more line.
    pub(crate) fn may(&mut self, now: Instant) -> bool {
        let seconds = now.saturating_duration_since(self.filled).as_secs();
        if seconds > 0 {
            let more = u32::try_from(seconds)
                .unwrap_or(BURST)
                .saturating_mul(EACH_SECOND);
            self.left = self.left.saturating_add(more).min(BURST);
            self.filled = now;
        }
        let Some(left) = self.left.checked_sub(1) else {
            self.left_out += 1;
            return false;
        };
        self.left = left;
        true
    }

    /// Lines that were left out since this was last asked.
    pub(crate) fn take_left_out(&mut self) -> u64 {
        std::mem::take(&mut self.left_out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_has_a_line_a_minute_and_keeps_its_count() {
        let (mut refusals, now) = (Refusals::default(), Instant::now());
        assert!(refusals.note("max_producers", "7 are attached", now));
        assert!(!refusals.note("max_producers", "8 are attached", now));
        assert!(
            refusals.note("max_segment_bytes", "too large", now),
            "another cause"
        );
        assert!(!refusals.note("max_producers", "8", now + SILENCE / 2));
        assert!(refusals.note("max_producers", "9", now + SILENCE));
        let told: Vec<_> = (refusals.causes())
            .map(|(key, cause)| (key, cause.count, cause.text.as_str()))
            .collect();
        assert_eq!(
            told,
            [
                ("max_producers", 4, "9"),
                ("max_segment_bytes", 1, "too large")
            ]
        );
    }

    #[test]
    fn beyond_a_burst_lines_are_counted_and_some_come_back_each_second() {
        let now = Instant::now();
        let mut talk = Talk::new(now);
        let may = (0..1000).filter(|_| talk.may(now)).count();
        assert_eq!((may, talk.take_left_out()), (256, 744));
        let later = now + Duration::from_secs(2);
        let may = (0..100).filter(|_| talk.may(later)).count();
        assert_eq!((may, talk.take_left_out()), (8, 92));
        assert_eq!(talk.take_left_out(), 0);
    }
}
