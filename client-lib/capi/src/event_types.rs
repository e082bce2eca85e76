//! The event types: their names and categories.

use std::ffi::{c_char, c_int};
use std::ptr;

use nrt_trace_client::log;
use nrt_trace_model::{Category, EventType, Status};

use crate::boundary::{guarded, put, status};
use crate::c_array::{CStrings, free_strings};

/// Gives the names of those types that `wanted` is true for to C, by value, all or none.
///
/// # Safety
/// `names` and `count` are null or may be written.
pub(crate) unsafe fn give_names(
    wanted: impl Fn(EventType) -> bool,
    names: *mut *mut *const c_char,
    count: *mut usize,
) -> Result<(), Status> {
    // SAFETY: the caller's promise.
    unsafe { put(names, ptr::null_mut()) };
    // SAFETY: the caller's promise.
    unsafe { put(count, 0) };
    if names.is_null() || count.is_null() {
        return Err(Status::Invalid);
    }
    let types = || EventType::ALL.into_iter().filter(|&kind| wanted(kind));
    let found = types().count();
    let mut strings = CStrings::with_room(found)?;
    for kind in types() {
        strings.push(kind.name())?;
    }
    // SAFETY: the caller's promise.
    unsafe { put(names, strings.into_raw().cast()) };
    // SAFETY: the caller's promise.
    unsafe { put(count, found) };
    Ok(())
}

/// The names of all event types.
///
/// # Safety
/// `event_types` and `count` are null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrt_sys_trace_get_event_types(
    event_types: *mut *mut *const c_char,
    count: *mut usize,
) -> c_int {
    // SAFETY: the caller's promise.
    status(|| unsafe { give_names(|_| true, event_types, count) })
}

/// Frees an array of names.
///
/// # Safety
/// `event_types` is null or came with `count` from a function that gives names, and is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrt_sys_trace_free_event_types(
    event_types: *mut *const c_char,
    count: usize,
) {
    // SAFETY: `give_names` made it from `count` strings; the rest is the caller's promise.
    guarded((), || unsafe { free_strings(event_types.cast(), count) });
}

/// The category of a type.
#[unsafe(no_mangle)]
pub extern "C" fn nrt_sys_trace_get_event_type_category(event_type: c_int) -> u32 {
    if Category::of_value(event_type.into()) == Category::Unknown {
        guarded((), || {
            log::say(0, &format!("Unknown event type: {event_type}"));
        });
    }
    // The enum is unsigned in C; as an int, what lies above its middle is negative, and no type either way.
    Category::of_value(event_type.into()) as u32
}
