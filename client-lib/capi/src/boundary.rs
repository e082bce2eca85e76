//! What the functions of the C ABI have in common: results, texts, objects.

use std::alloc::{Layout, alloc};
use std::ffi::{CStr, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

use nrt_trace_model::Status;

/// Runs a function's body. A panic ends here, as `otherwise`.
///
/// What the body changed before is either complete or lost with it: the callers write results last.
pub(crate) fn guarded<T>(otherwise: T, body: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(otherwise)
}

/// Runs the body of a function that returns an `NRT_STATUS`.
pub(crate) fn status(body: impl FnOnce() -> Result<(), Status>) -> c_int {
    let ended = guarded(Err(Status::Failure), body);
    ended.err().unwrap_or(Status::Success).code()
}

/// Writes a result, if C wants it.
///
/// # Safety
/// `out` is null or may be written.
pub(crate) unsafe fn put<T>(out: *mut T, value: T) {
    if !out.is_null() {
        // SAFETY: not null, so the caller's promise that it may be written.
        unsafe { out.write(value) };
    }
}

/// A string from C.
///
/// # Errors
/// [`Status::Invalid`] if it is null or not UTF-8.
///
/// # Safety
/// `text` is null or points to a string that ends with a zero byte and stays as it is for `'a`.
pub(crate) unsafe fn text<'a>(text: *const c_char) -> Result<&'a str, Status> {
    if text.is_null() {
        return Err(Status::Invalid);
    }
    // SAFETY: not null, so the caller's promise of a string that ends, and of how long it stays.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map_err(|_| Status::Invalid)
}

/// Makes an object for C and writes its address to `out`, which [`end`] takes back.
///
/// # Errors
/// [`Status::Invalid`] if `out` is null; [`Status::Resource`] if memory ran out, with null in `out`.
///
/// # Safety
/// `out` is null or may be written.
pub(crate) unsafe fn make<T>(out: *mut *mut T, value: T) -> Result<(), Status> {
    if out.is_null() {
        return Err(Status::Invalid);
    }
    let object = object(value).unwrap_or(std::ptr::null_mut());
    // SAFETY: the caller's promise.
    unsafe { put(out, object) };
    if object.is_null() {
        return Err(Status::Resource);
    }
    Ok(())
}

/// An object on the heap, as a `Box` would hold it; `None` when memory ran out, where `Box` would end the process.
pub(crate) fn object<T>(value: T) -> Option<*mut T> {
    const { assert!(size_of::<T>() > 0) };
    // SAFETY: the layout is not empty, as asserted in the line above.
    let object = unsafe { alloc(Layout::new::<T>()) }.cast::<T>();
    if object.is_null() {
        return None;
    }
    // SAFETY: just allocated with the size and the alignment of T.
    unsafe { object.write(value) };
    Some(object)
}

/// Ends an object.
///
/// # Safety
/// `object` is null or came from [`object`], and is not used any more.
pub(crate) unsafe fn end<T>(object: *mut T) {
    if object.is_null() {
        return;
    }
    // SAFETY: `object` allocated it from the global allocator with the layout of T, as Box does, and wrote a T into it; the
    // caller gives up the only pointer.
    drop(unsafe { Box::from_raw(object) });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_ends_at_the_boundary() {
        assert_eq!(guarded(7, || panic!("on purpose")), 7);
        assert_eq!(guarded(7, || 8), 8);
        assert_eq!(status(|| panic!("on purpose")), Status::Failure.code());
        assert_eq!(status(|| Ok(())), 0);
        assert_eq!(status(|| Err(Status::Resource)), 4);
    }
}
