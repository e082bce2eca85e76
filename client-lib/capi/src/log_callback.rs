//! Where the library's lines go.

use std::ffi::{CString, c_char, c_int, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

use nrt_trace_client::log;

use crate::boundary::guarded;

/// `nrt_trace_log_callback_t`.
pub type LogCallback = unsafe extern "C" fn(level: c_int, line: *const c_char, user: *mut c_void);

/// Gives each line to `callback`; null goes back to standard error.
///
/// # Safety
/// `callback` is null or may be called from any thread, with `user`, for as long as the program runs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrt_trace_set_log_callback(
    callback: Option<LogCallback>,
    user: *mut c_void,
) {
    guarded((), || {
        log::set_sink(callback.map(|callback| {
            let user = AtomicPtr::new(user);
            let sink: log::Sink = Box::new(move |level, line: &str| {
                // A line holds what others wrote too, a name for one; a zero would cut it.
                let line = CString::new(line.replace('\0', " ")).unwrap_or_default();
                // Relaxed: it never changes.
                let user = user.load(Ordering::Relaxed);
                // SAFETY: by the caller's promise it may be called from any thread at any time; the line is a string that
                // ends with a zero and stays for the call.
                unsafe { callback(c_int::from(level), line.as_ptr(), user) };
            });
            sink
        }));
    });
}
