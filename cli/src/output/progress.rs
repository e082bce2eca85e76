//! The line that shows how a recording goes: on a terminal only, nothing elsewhere.

use std::io::{Write, stderr};
use std::time::{Duration, Instant};

use super::human;

/// How often the line changes: often enough to be alive, seldom enough to be read.
const EVERY: Duration = Duration::from_millis(250);

/// A line on standard error that is written over and over.
#[derive(Debug)]
pub(crate) struct Progress {
    started: Instant,
    drawn: Option<Instant>,
    enabled: bool,
    /// Since when what is shown now has been going on.
    stage: Option<(&'static str, Instant)>,
}

impl Progress {
    /// A line that shows from now on, if standard error is a terminal.
    pub(crate) fn new() -> Self {
        // Moving the cursor is for terminals that can; colour or not makes no difference here.
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        let enabled = std::io::IsTerminal::is_terminal(&stderr()) && !dumb;
        Self {
            started: Instant::now(),
            drawn: None,
            enabled,
            stage: None,
        }
    }

    /// Shows how a recording goes.
    pub(crate) fn recording(&mut self, events: u64, bytes: u64, lost: u64) {
        let elapsed = self.started.elapsed();
        self.draw(|| {
            let lost = match lost {
                0 => String::new(),
                n => format!(", {} lost", human::count(n)),
            };
            format!(
                "{}: {}, {}, {}{lost}",
                human::span(elapsed),
                human::events(events),
                human::rate(events, elapsed),
                human::bytes(bytes)
            )
        });
    }

    /// Shows that the daemon is waited for.
    pub(crate) fn waiting(&mut self, gone: Duration, events: u64) {
        self.draw(|| {
            format!(
                "{}, waiting for the daemon for {}",
                human::events(events),
                human::span(gone)
            )
        });
    }

    /// Shows how far the writing of the trace is.
    pub(crate) fn writing(&mut self, events: u64, all: u64) {
        self.going_on("writing the trace", events, all, human::rate);
    }

    /// Shows how far the counting of a trace is.
    pub(crate) fn counting(&mut self, events: u64, all: u64) {
        self.going_on("reading the trace", events, all, human::rate);
    }

    /// Shows how much of an input has been read; `all` is 0 where nobody knows.
    pub(crate) fn reading(&mut self, bytes: u64, all: u64) {
        self.going_on("reading", bytes, all, human::byte_rate);
    }

    /// Shows part and whole, rate, and the time that it will take at this rate.
    fn going_on(
        &mut self,
        what: &'static str,
        done: u64,
        all: u64,
        rate: fn(u64, Duration) -> String,
    ) {
        if !self.enabled {
            return;
        }
        let begun = match self.stage {
            Some((stage, begun)) if stage == what => begun,
            _ => self.stage.insert((what, Instant::now())).1,
        };
        self.draw(|| {
            let elapsed = begun.elapsed();
            let share = match all {
                0 => String::new(),
                _ => format!(" {},", human::percent(done, all)),
            };
            let left = match left(done, all, elapsed) {
                Some(left) => format!(", {} left", human::span(left)),
                None => String::new(),
            };
            format!("{what}:{share} {}{left}", rate(done, elapsed))
        });
    }

    fn draw(&mut self, line: impl FnOnce() -> String) {
        if !self.enabled || self.drawn.is_some_and(|drawn| drawn.elapsed() < EVERY) {
            return;
        }
        self.drawn = Some(Instant::now());
        let _best_effort = stderr()
            .lock()
            .write_all(format!("\r\x1b[K{}", line()).as_bytes());
    }

    /// Takes the line away, before something else is said.
    pub(crate) fn clear(&mut self) {
        if self.drawn.take().is_some() {
            let _best_effort = stderr().lock().write_all(b"\r\x1b[K");
        }
    }
}

/// How long the rest takes if it goes on like this.
fn left(done: u64, all: u64, elapsed: Duration) -> Option<Duration> {
    if done == 0 || all < done {
        return None;
    }
    let rest = elapsed.as_nanos() * u128::from(all - done) / u128::from(done);
    u64::try_from(rest).ok().map(Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_takes_as_long_as_the_rest_is_long() {
        let second = Duration::from_secs(1);
        assert_eq!(left(25, 100, second), Some(3 * second));
        assert_eq!(left(100, 100, second), Some(Duration::ZERO));
        assert_eq!(left(0, 100, second), None);
        assert_eq!(left(10, 0, second), None, "nobody knows");
    }
}
