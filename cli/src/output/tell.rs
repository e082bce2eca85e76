//! Answers on standard output, and lines on standard error. A reader that went away is nobody's problem here: what can't be told is not told.

use std::fmt::Display;
use std::io::{self, IsTerminal, StdoutLock, Write};

use super::table::printable;
use crate::error::Failure;

/// Writes an answer to standard output, all of it.
pub(crate) fn answer(
    write: impl FnOnce(&mut StdoutLock<'static>) -> io::Result<()>,
) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    write(&mut out)?;
    Ok(out.flush()?)
}

/// Name in front of each line, so that it is told apart from what a recorded command says.
const NAME: &str = "nrt-tracectl";

const RED: &str = "\x1b[1;31m";
const YELLOW: &str = "\x1b[1;33m";
const RESET: &str = "\x1b[0m";

/// Whether `stream` takes colours and moving lines.
pub(crate) fn fancy(stream: &impl IsTerminal) -> bool {
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    stream.is_terminal() && !dumb && !set("NO_COLOR")
}

/// Why the command fails.
pub(crate) fn error(text: &impl Display) {
    line(RED, "error: ", text);
}

/// Something that the person should know, and that may need doing.
pub(crate) fn warning(text: impl Display) {
    line(YELLOW, "Warning: ", &text);
}

/// What goes on.
pub(crate) fn note(text: impl Display) {
    line("", "", &text);
}

fn line(colour: &str, kind: &str, text: &impl Display) {
    let stderr = io::stderr();
    let kind = match colour {
        "" => kind.to_owned(),
        _ if !fancy(&stderr) => kind.to_owned(),
        _ => format!("{colour}{kind}{RESET}"),
    };
    // A name or a path in it may hold anything. One write for the line: a recorded command may be writing to the same place.
    let whole = format!("{NAME}: {kind}{}\n", printable(&text.to_string()));
    let _best_effort = stderr.lock().write_all(whole.as_bytes());
}
