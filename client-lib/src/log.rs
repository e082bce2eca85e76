//! What the background thread says, if asked to.

use std::sync::atomic::{AtomicU8, Ordering};

/// Something is not as it should be.
pub(crate) const WARN: u8 = 1;
/// A step was taken.
pub(crate) const DEBUG: u8 = 2;

static LEVEL: AtomicU8 = AtomicU8::new(0);

/// Reads `NRT_TRACE_LOG`.
pub(crate) fn set_up() {
    let level = match std::env::var("NRT_TRACE_LOG").as_deref() {
        Ok("warn") => WARN,
        Ok("debug") => DEBUG,
        Err(_) | Ok("" | "off") => 0,
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

/// Writes a line to standard error, if `level` is asked for.
pub(crate) fn write(level: u8, line: &str) {
    use std::io::Write as _;
    if level <= LEVEL.load(Ordering::Relaxed) {
        // A host program with a closed standard error must not notice.
        let _closed = writeln!(std::io::stderr(), "nrt-trace: {line}");
    }
}
