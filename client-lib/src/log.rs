//! What the library says, if asked to: to standard error as `NRT_TRACE_LOG` says, or to whoever took the place of it.

use std::sync::atomic::{AtomicU8, Ordering};

use nrt_trace_shm::per_process::PerProcess;

/// A mistake of the program's.
pub(crate) const ERROR: u8 = 0;
/// Something is not as it should be.
pub(crate) const WARN: u8 = 1;
/// A step was taken.
pub(crate) const DEBUG: u8 = 2;

/// Nothing is written.
const OFF: u8 = u8::MAX;

/// Up to which level lines go to standard error.
static LEVEL: AtomicU8 = AtomicU8::new(OFF);

/// Takes each line in place of standard error, with its level: 0 error, 1 warning, 2 debug.
pub type Sink = Box<dyn Fn(u8, &str) + Send + Sync>;

/// The last sink that was set.
static SINK: PerProcess<Place> = PerProcess::none();

/// Where lines go.
struct Place {
    /// `None`: to standard error.
    sink: Option<Sink>,
    /// What it replaced, which others may be using: never freed, and kept in sight of those who look for leaks.
    _before: Option<&'static Place>,
}

/// Gives every line to `sink` in place of standard error, whatever `NRT_TRACE_LOG` says; `None` goes back.
///
/// It is called on the thread that has something to say, often the background thread, perhaps on several at once, and may
/// be called once more shortly after another took its place. The place of a sink is never freed: it is meant to be set
/// once or twice in a program's life.
pub fn set_sink(sink: Option<Sink>) {
    SINK.set(Place {
        sink,
        _before: SINK.get(),
    });
}

/// Writes a line from outside of this crate.
pub fn say(level: u8, line: &str) {
    write(level, line);
}

/// Whether a line of this level would go anywhere.
#[must_use]
pub fn is_on(level: u8) -> bool {
    sink().is_some() || is_wanted(level)
}

fn sink() -> Option<&'static Sink> {
    SINK.get().and_then(|place| place.sink.as_ref())
}

fn is_wanted(level: u8) -> bool {
    let most = LEVEL.load(Ordering::Relaxed);
    most != OFF && level <= most
}

/// Reads `NRT_TRACE_LOG`.
pub(crate) fn set_up() {
    let level = match std::env::var("NRT_TRACE_LOG").as_deref() {
        Ok("warn") => WARN,
        Ok("debug") => DEBUG,
        Err(_) | Ok("" | "off") => OFF,
        Ok(other) => {
            LEVEL.store(WARN, Ordering::Relaxed);
            write(
                WARN,
                &format!("NRT_TRACE_LOG={other}: allowed are off, warn and debug"),
            );
            return;
        }
    };
    LEVEL.store(level, Ordering::Relaxed);
}

/// Writes a line, if somebody wants it. Never called by an emit.
pub(crate) fn write(level: u8, line: &str) {
    if let Some(sink) = sink() {
        sink(level, line);
    } else if is_wanted(level) {
        let line = format!("nrt-trace: {line}\n");
        // Not through `std::io::stderr`: its lock may have been held at a fork, and then is for ever in the child. And a
        // line is one write, whole among those of other processes. A host program with a closed standard error must not
        // notice.
        let _closed = rustix::io::write(rustix::stdio::stderr(), line.as_bytes());
    }
}
