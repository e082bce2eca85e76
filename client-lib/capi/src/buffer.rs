//! Texts that the library gives to C and takes back.

use std::collections::TryReserveError;
use std::ffi::c_char;
use std::io::{self, Write};
use std::mem::ManuallyDrop;

use crate::boundary::guarded;

/// In front of the text stands the size of the allocation, so that it is freed as it was made even if C wrote a zero into
/// the text: the place of the first zero, which a `CString` goes by, would no longer tell.
const PREFIX: usize = size_of::<usize>();

/// A text that grows, for C. Dropped, it is freed.
#[derive(Debug)]
pub(crate) struct Text {
    /// The prefix, then the text; there is always room for a zero at its end.
    bytes: Vec<u8>,
}

impl Text {
    /// An empty text; `None` when memory ran out.
    pub(crate) fn new() -> Option<Self> {
        let mut bytes = Vec::new();
        bytes.try_reserve(PREFIX + 1).ok()?;
        bytes.extend_from_slice(&[0; PREFIX]);
        Some(Self { bytes })
    }

    /// Appends, all or nothing.
    fn append(&mut self, more: &[u8]) -> Result<(), TryReserveError> {
        self.bytes.try_reserve(more.len().saturating_add(1))?;
        self.bytes.extend_from_slice(more);
        Ok(())
    }

    /// Bytes of the text.
    pub(crate) fn length(&self) -> usize {
        self.bytes.len() - PREFIX
    }

    /// Gives the text to C, with a zero at its end; [`nrt_sys_trace_buffer_free`] frees it.
    pub(crate) fn give(mut self) -> *mut c_char {
        self.bytes.push(0); // there is room: see `bytes`
        let capacity = self.bytes.capacity();
        self.bytes[..PREFIX].copy_from_slice(&capacity.to_ne_bytes());
        let mut bytes = ManuallyDrop::new(self.bytes);
        // SAFETY: PREFIX is not beyond the vector's length.
        unsafe { bytes.as_mut_ptr().add(PREFIX) }.cast()
    }
}

impl Write for Text {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.append(bytes).map_err(|_| io::ErrorKind::OutOfMemory)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
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
        // SAFETY: `give` wrote the capacity there, at no particular alignment.
        let capacity = unsafe { base.cast::<usize>().read_unaligned() };
        // SAFETY: base is where a vector of this capacity began that `give` took apart; no byte is read, and the caller
        // gives it up.
        drop(unsafe { Vec::from_raw_parts(base, 0, capacity) });
    });
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;

    use super::*;

    #[test]
    fn a_text_can_be_freed_even_after_c_cut_it() {
        let long = "x".repeat(100_000);
        for parts in [&["", ""], &["{", "}"], &[long.as_str(), "y"]] {
            let mut text = Text::new().unwrap();
            for part in parts {
                text.write_all(part.as_bytes()).unwrap();
            }
            let (length, given) = (text.length(), text.give());
            // SAFETY: `give` wrote a zero at its end.
            let seen = unsafe { CStr::from_ptr(given) };
            assert_eq!(seen.to_str().unwrap(), parts.concat());
            assert_eq!(length, seen.count_bytes());
            // SAFETY: its first byte, at least the closing zero.
            unsafe { given.write(0) };
            // SAFETY: from `give`, and used no more.
            unsafe { nrt_sys_trace_buffer_free(given) };
        }
        // SAFETY: null is allowed.
        unsafe { nrt_sys_trace_buffer_free(std::ptr::null_mut()) };
    }
}
