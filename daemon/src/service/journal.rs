//! An event as the journal takes it: each value in a field by itself, and all of them in its message too, which is what
//! `journalctl` shows.
//!
//! The journal's own protocol: a datagram for each entry, of a line `NAME=value` for each field; where the value has several
//! lines, its name, its length as eight bytes, and the value (systemd's "Native Journal Protocol").

use std::fmt::{Debug, Write as _};
use std::io;
use std::os::unix::net::UnixDatagram;

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

use super::outlet::Outlet;

/// Where the journal listens.
const SOCKET: &str = "/run/systemd/journal/socket";
/// What the names of the events' own fields begin with: `NRT_TRACE_PRODUCER`, `NRT_TRACE_PID` and so on.
const PREFIX: &str = "NRT_TRACE_";

/// A socket that the journal reads.
pub(super) fn connect() -> io::Result<UnixDatagram> {
    let socket = UnixDatagram::unbound()?;
    socket.connect(SOCKET)?;
    Ok(socket)
}

/// Makes an entry of each event, and leaves it at the outlet.
pub(super) struct Journal(pub Outlet);

impl<S: Subscriber> Layer<S> for Journal {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let metadata = event.metadata();
        let mut entry = Entry::default();
        entry.field("PRIORITY", priority(*metadata.level()));
        entry.field("SYSLOG_IDENTIFIER", "nrt-traced");
        entry.field("TARGET", metadata.target());
        if let Some(file) = metadata.file() {
            entry.field("CODE_FILE", file);
        }
        if let Some(line) = metadata.line() {
            entry.field("CODE_LINE", &line.to_string());
        }
        let mut values = Values {
            entry,
            message: String::new(),
            shown: String::new(),
        };
        event.record(&mut values);
        self.0.push(values.finish());
    }
}

/// The journal's priorities. A notice is more than a step of a life cycle is.
fn priority(level: Level) -> &'static str {
    match level {
        Level::ERROR => "3",
        Level::WARN => "4",
        Level::INFO => "6",
        Level::DEBUG | Level::TRACE => "7",
    }
}

#[derive(Default)]
struct Entry(Vec<u8>);

impl Entry {
    fn field(&mut self, name: &str, value: &str) {
        let bytes = &mut self.0;
        bytes.extend_from_slice(name.as_bytes());
        if value.contains('\n') {
            bytes.push(b'\n');
            bytes.extend_from_slice(&(value.len() as u64).to_le_bytes());
        } else {
            bytes.push(b'=');
        }
        bytes.extend_from_slice(value.as_bytes());
        bytes.push(b'\n');
    }
}

/// What an event says, on its way into an entry.
struct Values {
    entry: Entry,
    message: String,
    /// ` name=value` of each.
    shown: String,
}

impl Values {
    fn finish(mut self) -> Vec<u8> {
        let message = self.message + &self.shown;
        self.entry.field("MESSAGE", &message);
        self.entry.0
    }
}

impl Visit for Values {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            self.message.extend(value.chars().flat_map(printable));
            return;
        }
        // Letters, digits and underscores are what a name may have.
        let letter = |c: char| match c.to_ascii_uppercase() {
            c @ ('A'..='Z' | '0'..='9') => c,
            _ => '_',
        };
        let name: String = PREFIX
            .chars()
            .chain(field.name().chars().map(letter))
            .collect();
        self.entry.field(&name, value);
        self.shown.push(' ');
        self.shown.push_str(field.name());
        self.shown.push('=');
        self.shown.extend(value.chars().flat_map(printable));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = write!(text, "{value:?}");
        self.record_str(field, &text);
    }
}

/// A control character as its escape: `journalctl` shows a message that has one as so many bytes of a blob.
fn printable(c: char) -> impl Iterator<Item = char> {
    let escaped = c.is_control().then(|| c.escape_default());
    let plain = escaped.is_none().then_some(c);
    escaped.into_iter().flatten().chain(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_of_several_lines_has_its_length() {
        let mut entry = Entry::default();
        entry.field("A", "one");
        entry.field("B", "two\nlines");
        assert_eq!(entry.0, b"A=one\nB\n\x09\0\0\0\0\0\0\0two\nlines\n");
    }

    #[test]
    fn a_control_character_is_shown_as_its_escape() {
        let shown: String = "a\u{1b}[1m\nb".chars().flat_map(printable).collect();
        assert_eq!(shown, "a\\u{1b}[1m\\nb");
    }
}
