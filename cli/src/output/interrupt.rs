//! Ctrl-C, SIGTERM and SIGHUP while a trace is read or written: the first one ends this program, with a line that says what
//! became of the trace.
//!
//! A thread waits for them: what they interrupt may be waiting for a pipe that nobody writes or reads. A trace that was not
//! finished leaves nothing, since its file has no name until then.

use std::io::{Write, stderr};
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::target::Target;
use super::{file, tell};
use crate::error::Failure;
use crate::record::signals::{is_ignored, status_of};

/// What a person has to know who ends this program.
#[derive(Debug)]
pub(crate) enum Work {
    /// Nothing is left of it.
    Reading,
    /// A trace is being written.
    Writing(Target),
    /// The same, with events that are consumed once it is whole.
    Fetching(Target),
}

/// Takes the signals over, until this process ends. One that is ignored stays ignored (`nohup`, a job in the background).
pub(crate) fn install(work: Work) -> Result<(), Failure> {
    let failed = |error| Failure::file("wait for", "signals", &error);
    let all = [(SIGINT, "SIGINT"), (SIGTERM, "SIGTERM"), (SIGHUP, "SIGHUP")];
    let wanted = all.iter().map(|(number, _)| *number);
    let wanted: Vec<i32> = wanted.filter(|number| !is_ignored(*number)).collect();
    let mut signals = Signals::new(&wanted).map_err(failed)?;
    let wait = move || {
        if let Some(number) = signals.forever().next() {
            let name = all.iter().find(|(known, _)| *known == number);
            leave(&work, number, name.map_or("a signal", |(_, name)| *name));
        }
    };
    let waiting = thread::Builder::new().name("signals".to_owned());
    waiting.spawn(wait).map(drop).map_err(failed)
}

#[expect(
    clippy::exit,
    reason = "whoever would have to end may be waiting for a pipe for ever"
)]
fn leave(work: &Work, number: i32, name: &str) {
    // From here on no file gets a name, and what is said stays true.
    let names = file::names();
    names.remove_temporary();
    if tell::fancy(&stderr()) {
        // The line that shows how far it is.
        let _best_effort = stderr().lock().write_all(b"\r\x1b[K");
    }
    tell::error(&format!(
        "ended by {name}{}",
        work.state(names.finished() > 0)
    ));
    std::process::exit(i32::from(status_of(number)));
}

impl Work {
    /// What became of the trace.
    fn state(&self, finished: bool) -> String {
        let (target, fetched) = match self {
            Self::Reading => return String::new(),
            Self::Writing(target) => (target, ""),
            Self::Fetching(target) if finished => (target, "; its events may come again"),
            Self::Fetching(target) => (target, "; nothing was consumed"),
        };
        let name = target.name();
        let state = match (target.file(), finished) {
            (None, _) => "ends in the middle",
            (Some(_), true) => "is written",
            (Some(_), false) => "was not written",
        };
        format!(": {name} {state}{fetched}")
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn what_is_said_is_what_became_of_the_trace() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("t.json");
        let file = || Target::new(&place, None).unwrap();
        let stream = || Target::new(Path::new("/dev/null"), None).unwrap();
        let name = place.display();
        for (work, finished, said) in [
            (Work::Reading, false, String::new()),
            (
                Work::Writing(file()),
                false,
                format!(": {name} was not written"),
            ),
            (Work::Writing(file()), true, format!(": {name} is written")),
            (
                Work::Writing(stream()),
                false,
                ": /dev/null ends in the middle".to_owned(),
            ),
            (
                Work::Fetching(file()),
                false,
                format!(": {name} was not written; nothing was consumed"),
            ),
            (
                Work::Fetching(file()),
                true,
                format!(": {name} is written; its events may come again"),
            ),
        ] {
            assert_eq!(work.state(finished), said);
        }
    }
}
