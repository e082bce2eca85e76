//! The rings of this process's own capture, record by record.

use std::ffi::c_int;

use nrt_trace_abi::record::{RECORD_BYTES, Record};
use nrt_trace_client::own::{self, Which};
use nrt_trace_model::Status;

use crate::boundary::{guarded, put, status};
use crate::session::chosen_nc;

/// Records that are read at a time.
const CHUNK: usize = 1024;

/// `nrt_sys_trace_event_t`: a record's bytes.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(8))]
pub struct Event {
    /// The record, little-endian.
    pub bytes: [u8; RECORD_BYTES],
}

const _: () = assert!(size_of::<Event>() == 112 && align_of::<Event>() == 8);

/// Takes records out of the rings.
///
/// # Safety
/// `out` is null or has room for `cap` records; `n` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrt_sys_trace_capture_drain_events(
    nc_idx: i32,
    out: *mut Event,
    cap: usize,
    n: *mut usize,
) -> c_int {
    status(|| {
        // SAFETY: the caller's promise.
        unsafe { put(n, 0) };
        if n.is_null() || (out.is_null() && cap > 0) {
            return Err(Status::Invalid);
        }
        let nc = chosen_nc(nc_idx)?;
        let which = Which { nc, ..Which::ALL };
        let written = own::read(which, |events| {
            let (mut written, mut chunk) = (0, Vec::new());
            while written < cap
                && events
                    .next_chunk(CHUNK.min(cap - written), &mut chunk)
                    .is_some()
            {
                for record in &chunk {
                    // SAFETY: written < cap, since a chunk has no more than cap - written records; so the place lies in
                    // the caller's room.
                    let place = unsafe { out.add(written) };
                    let bytes = Record::to_bytes(record);
                    // SAFETY: in the caller's room, which is aligned as an Event, and may be written.
                    unsafe { place.write(Event { bytes }) };
                    written += 1;
                }
            }
            Ok(written)
        })?;
        // SAFETY: not null, and the caller's promise.
        unsafe { put(n, written) };
        Ok(())
    })
}

/// Events that each ring of the capture keeps; 0 when none is on.
#[unsafe(no_mangle)]
pub extern "C" fn nrt_sys_trace_ring_size() -> usize {
    guarded(0, || {
        usize::try_from(own::ring_size()).unwrap_or(usize::MAX)
    })
}

/// Events in the rings of the capture that were not fetched; 0 when none is on.
#[unsafe(no_mangle)]
pub extern "C" fn nrt_sys_trace_total_event_count() -> u64 {
    guarded(0, own::unread)
}
