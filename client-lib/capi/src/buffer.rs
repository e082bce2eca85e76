//! Texts that the library gives to C and takes back.

use std::alloc::{Layout, alloc, dealloc};
use std::ffi::c_char;

use crate::boundary::guarded;

/// In front of the text stands the size of the allocation, so that it is freed as it was made even if C wrote a zero into
/// the text: the place of the first zero, which a `CString` goes by, would no longer tell.
const PREFIX: usize = size_of::<usize>();

fn layout(size: usize) -> Option<Layout> {
    Layout::from_size_align(size, align_of::<usize>()).ok()
}

/// A copy of `text` with a zero at its end, which [`nrt_sys_trace_buffer_free`] frees; `None` when memory ran out.
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "fetching, which gives texts, needs a session")
)]
pub(crate) fn give(text: &[u8]) -> Option<*mut c_char> {
    let size = text.len().checked_add(PREFIX + 1)?;
    // SAFETY: the layout is not empty: size is at least PREFIX + 1.
    let base = unsafe { alloc(layout(size)?) };
    if base.is_null() {
        return None;
    }
    // SAFETY: the allocation has PREFIX bytes at its start, and any alignment will do.
    unsafe { base.cast::<usize>().write_unaligned(size) };
    // SAFETY: PREFIX < size, so the address lies in the allocation.
    let start = unsafe { base.add(PREFIX) };
    // SAFETY: text.len() bytes fit behind PREFIX, and the allocation is new, so that the two don't overlap.
    unsafe { start.copy_from_nonoverlapping(text.as_ptr(), text.len()) };
    // SAFETY: PREFIX + text.len() is the allocation's last byte.
    let last = unsafe { start.add(text.len()) };
    // SAFETY: in the allocation, as said.
    unsafe { last.write(0) };
    Some(start.cast())
}

/// Frees a text that a fetch gave.
///
/// # Safety
/// `buffer` is null or came from a fetch, and is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrt_sys_trace_buffer_free(buffer: *mut c_char) {
    if buffer.is_null() {
        return;
    }
    guarded((), || {
        // SAFETY: `give` made it, PREFIX bytes behind the start of its allocation.
        let base = unsafe { buffer.cast::<u8>().sub(PREFIX) };
        // SAFETY: `give` wrote the size there.
        let size = unsafe { base.cast::<usize>().read_unaligned() };
        if let Some(layout) = layout(size) {
            // SAFETY: `give` allocated base with this layout; the caller gives it up.
            unsafe { dealloc(base, layout) };
        }
    });
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;

    use super::*;

    #[test]
    fn a_text_can_be_freed_even_after_c_cut_it() {
        for text in ["", "{}", r#"{"events":[],"data_version":2}"#] {
            let given = give(text.as_bytes()).unwrap();
            // SAFETY: `give` wrote a zero at its end.
            let seen = unsafe { CStr::from_ptr(given) };
            assert_eq!(seen.to_bytes(), text.as_bytes());
            // SAFETY: its first byte, at least the closing zero.
            unsafe { given.write(0) };
            // SAFETY: from `give`, and used no more.
            unsafe { nrt_sys_trace_buffer_free(given) };
        }
        // SAFETY: null is allowed.
        unsafe { nrt_sys_trace_buffer_free(std::ptr::null_mut()) };
    }
}
