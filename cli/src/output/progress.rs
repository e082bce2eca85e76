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

    /// Shows how far the writing of the trace is.
    pub(crate) fn writing(&mut self, events: u64, all: u64) {
        self.draw(|| format!("writing the trace: {}", human::percent(events, all)));
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
