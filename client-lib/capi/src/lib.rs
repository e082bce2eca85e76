//! `libnrt_trace`: the C ABI of the client library.
//!
//! The contract is in `include/nrt_trace.h` and `include/nrt`; here is only the translation. Nothing on the emit path can
//! panic; the other functions catch what they must not let into C.

#![expect(
    unsafe_code,
    reason = "a C ABI: raw pointers in, exported symbols, an ELF constructor"
)]

mod boundary;
pub mod buffer;
mod c_array;
pub mod config;
mod document;
pub mod drain;
pub mod event_types;
pub mod fetch_options;
pub mod host_stats;
pub mod log_callback;
pub mod session;
pub mod shard;
pub mod strings_db;

use std::ffi::{CStr, c_char, c_int};
use std::panic::catch_unwind;
use std::time::Duration;

use nrt_trace_client::{Options, Tracer, control_page, emit_raw, emit_raw_with_seq, intern_bytes};

/// The 40-byte payload union of an event, `nrt_sys_trace_event_data_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct EventData {
    /// The union's five words.
    pub words: [u64; 5],
}

const _: () = assert!(size_of::<EventData>() == 40 && align_of::<EventData>() == 8);

/// Runs when the library is loaded, or the program that it is linked into starts: attaches in the background.
extern "C" fn attach_at_load() {
    // A panic here would end a host that only linked the library.
    let _attached = catch_unwind(|| Tracer::attach(Options::default()));
}

/// The ELF constructor.
// Sound, because an entry of .init_array is called once, by the loader, with the C calling convention; the function takes no
// arguments, which on every supported ABI may be called with some.
#[unsafe(link_section = ".init_array")]
#[used]
static ATTACH_AT_LOAD: extern "C" fn() = attach_at_load;

/// Records an event.
///
/// # Safety
/// `data` is null or points to 40 readable bytes, aligned to 8.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrt_sys_trace_new_event(
    event_type: c_int,
    phase: c_int,
    nc_idx: u32,
    tracking_id: u64,
    data: *const EventData,
) -> u64 {
    // SAFETY: the caller's promise.
    let Some(data) = (unsafe { data.as_ref() }) else {
        return without_data(event_type, phase, nc_idx, tracking_id);
    };
    // Negative numbers become large ones: no such type, and an unknown phase.
    emit_raw(
        event_type.cast_unsigned(),
        phase.cast_unsigned(),
        nc_idx,
        tracking_id,
        &data.words,
    )
}

/// An event with a payload of zeros. Apart, so that the usual case does not choose between two addresses.
#[inline(never)]
extern "C" fn without_data(event_type: c_int, phase: c_int, nc_idx: u32, tracking_id: u64) -> u64 {
    emit_raw(
        event_type.cast_unsigned(),
        phase.cast_unsigned(),
        nc_idx,
        tracking_id,
        &[0; 5],
    )
}

/// Records an event of an asynchronous request.
///
/// # Safety
/// `data` is null or points to 40 readable bytes, aligned to 8.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrt_sys_trace_new_event_with_seq(
    event_type: c_int,
    phase: c_int,
    nc_idx: u32,
    tracking_id: u64,
    data: *const EventData,
    nrta_seq_id: u64,
) -> u64 {
    // SAFETY: the caller's promise.
    let data = unsafe { data.as_ref() };
    emit_raw_with_seq(
        event_type.cast_unsigned(),
        phase.cast_unsigned(),
        nc_idx,
        tracking_id,
        data.map_or(&[0; 5], |data| &data.words),
        nrta_seq_id,
    )
}

// The header's NRT_TRACE_GATES.
const _: () = assert!(nrt_trace_abi::layout::control::GATES == 256);

/// Where the address of the control page stands, for the header's inline `nrt_trace_enabled`.
#[unsafe(no_mangle)]
pub extern "C" fn nrt_trace_page() -> *const *const u64 {
    control_page()
}

/// Interns a name; 0 for null or bytes that are not UTF-8.
///
/// # Safety
/// `name` is null or points to a string that ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrt_sys_trace_capture_intern_string(
    nc_idx: u32,
    name: *const c_char,
) -> u64 {
    if name.is_null() {
        return 0;
    }
    // SAFETY: not null, and the caller's promise; it is only read during this call.
    let name = unsafe { CStr::from_ptr(name) };
    let Ok(name) = name.to_str() else { return 0 };
    catch_unwind(|| intern_bytes(nc_idx, name.as_bytes())).unwrap_or(0)
}

/// Waits at most `timeout_ms` until events are recorded; true (1) if they are.
#[unsafe(no_mangle)]
pub extern "C" fn nrt_trace_wait_armed(timeout_ms: u32) -> bool {
    let wait = || {
        let tracer = Tracer::attach(Options::default());
        tracer.wait_armed(Duration::from_millis(timeout_ms.into()))
    };
    catch_unwind(wait).unwrap_or(false)
}
