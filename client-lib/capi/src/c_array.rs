//! Arrays that C frees with `free`.

use std::ffi::c_char;
use std::mem::ManuallyDrop;
use std::ptr;

use nrt_trace_model::Status;

/// An array from `calloc`, which is filled from the front. Dropped, it is freed.
#[derive(Debug)]
pub(crate) struct CArray<T: Copy> {
    /// Null if `room` is 0.
    start: *mut T,
    room: usize,
    len: usize,
}

impl<T: Copy> CArray<T> {
    /// Room for `room` elements.
    ///
    /// # Errors
    /// [`Status::Resource`] if memory ran out.
    pub(crate) fn with_room(room: usize) -> Result<Self, Status> {
        const { assert!(size_of::<T>() > 0 && align_of::<T>() <= align_of::<libc::max_align_t>()) };
        let mut start = ptr::null_mut();
        if room > 0 {
            // SAFETY: calloc may be called with any two numbers.
            start = unsafe { libc::calloc(room, size_of::<T>()) }.cast::<T>();
            if start.is_null() {
                return Err(Status::Resource);
            }
        }
        Ok(Self {
            start,
            room,
            len: 0,
        })
    }

    /// Appends an element; one more than there is room for is left out.
    pub(crate) fn push(&mut self, element: T) {
        debug_assert!(self.len < self.room);
        if self.len == self.room {
            return;
        }
        // SAFETY: len < room, so the address lies in the allocation of room elements.
        let place = unsafe { self.start.add(self.len) };
        // SAFETY: in the allocation, which is aligned for every type up to max_align_t, as T is by the assertion in
        // `with_room`, and which nobody else knows yet.
        unsafe { place.write(element) };
        self.len += 1;
    }

    /// Gives the array away: null if it is empty.
    pub(crate) fn into_raw(self) -> *mut T {
        ManuallyDrop::new(self).start
    }
}

impl<T: Copy> Drop for CArray<T> {
    fn drop(&mut self) {
        // SAFETY: null or from calloc, and freed nowhere else: `into_raw` gives it away without this.
        unsafe { libc::free(self.start.cast()) };
    }
}

/// An array of strings, each from `malloc`. Dropped, all of it is freed.
#[derive(Debug)]
pub(crate) struct CStrings(CArray<*mut c_char>);

impl CStrings {
    /// Room for `room` strings.
    ///
    /// # Errors
    /// [`Status::Resource`] if memory ran out.
    pub(crate) fn with_room(room: usize) -> Result<Self, Status> {
        CArray::with_room(room).map(Self)
    }

    /// Appends a copy of `text`, which holds no zero byte.
    ///
    /// # Errors
    /// [`Status::Resource`] if memory ran out.
    pub(crate) fn push(&mut self, text: &str) -> Result<(), Status> {
        // SAFETY: strndup reads at most text.len() bytes from the start of text, which has as many, and needs no zero there.
        let copy = unsafe { libc::strndup(text.as_ptr().cast(), text.len()) };
        if copy.is_null() {
            return Err(Status::Resource);
        }
        self.0.push(copy);
        Ok(())
    }

    /// Gives the array and its strings away: null if it is empty.
    pub(crate) fn into_raw(self) -> *mut *mut c_char {
        let this = ManuallyDrop::new(self);
        this.0.start
    }
}

impl Drop for CStrings {
    fn drop(&mut self) {
        let (start, len) = (self.0.start, self.0.len);
        // SAFETY: `push` wrote len strings from strndup to start; the array itself is left to the field's own drop.
        unsafe { free_elements(start, len) };
    }
}

/// Frees the strings of an array, nulls included, but not the array.
///
/// # Safety
/// `start` points to `len` strings from `malloc` or nulls, which are not used any more; it may be null if `len` is 0.
unsafe fn free_elements(start: *mut *mut c_char, len: usize) {
    for i in 0..len {
        // SAFETY: i < len, so the address lies in the array.
        let place = unsafe { start.add(i) };
        // SAFETY: an element of the array, by the caller's promise.
        let text = unsafe { place.read() };
        // SAFETY: null or from malloc, and not used any more, by the caller's promise.
        unsafe { libc::free(text.cast()) };
    }
}

/// Frees an array and its strings; nothing if it is null, whatever `len` says.
///
/// # Safety
/// `start` is null or came from [`CStrings::into_raw`] after `len` strings, some of which may have been freed and replaced
/// by null since; none of it is used any more.
pub(crate) unsafe fn free_strings(start: *mut *mut c_char, len: usize) {
    if start.is_null() {
        return;
    }
    // SAFETY: not null, so len strings or nulls.
    unsafe { free_elements(start, len) };
    // SAFETY: from calloc, by the caller's promise, and not used after this.
    unsafe { libc::free(start.cast()) };
}
