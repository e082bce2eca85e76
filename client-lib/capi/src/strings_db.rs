//! The string database: ids of names, and tables of names that belong to the caller.

use std::ffi::{c_char, c_int};
use std::ptr;

use nrt_trace_model::{Status, strings};

use crate::boundary::{end, guarded, object, put, status, text};
use crate::c_array::{CArray, CStrings, free_strings};
use crate::shard::Shard;

/// The id of a name; 0 if it is null or not UTF-8.
///
/// # Safety
/// `name` is null or points to a string that ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrt_interned_string_db_get_id(name: *const c_char) -> u64 {
    guarded(strings::INVALID_ID, || {
        // SAFETY: the caller's promise; it is only read during this call.
        let name = unsafe { text(name) };
        name.map_or(strings::INVALID_ID, |name| strings::get_id(name.as_bytes()))
    })
}

/// Makes an empty shard; null when memory ran out.
#[unsafe(no_mangle)]
pub extern "C" fn nrt_interned_string_db_shard_alloc() -> *mut Shard {
    guarded(ptr::null_mut(), || {
        object(Shard::default()).unwrap_or(ptr::null_mut())
    })
}

/// Ends a shard.
///
/// # Safety
/// `shard` is null or came from `nrt_interned_string_db_shard_alloc`, and is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrt_interned_string_db_shard_free(shard: *mut Shard) {
    // SAFETY: `object` made it; the rest is the caller's promise.
    guarded((), || unsafe { end(shard) });
}

/// Enters a name under an id.
///
/// # Safety
/// `name` is null or points to a string that ends with a zero byte; `shard` is null or came from
/// `nrt_interned_string_db_shard_alloc`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrt_interned_string_db_register_entry(
    name: *const c_char,
    id: u64,
    shard: *mut Shard,
) -> c_int {
    status(|| {
        // SAFETY: the caller's promise; it is only read during this call.
        let name = unsafe { text(name) }?;
        // SAFETY: null or a Shard, which nobody has a unique reference to: all that C can do goes through its lock.
        let shard = unsafe { shard.as_ref() }.ok_or(Status::Invalid)?;
        if id == strings::INVALID_ID {
            return Err(Status::Invalid);
        }
        shard.register(id, name).map_err(|_| Status::Resource)
    })
}

/// A copy of a shard's entries, by id.
///
/// # Safety
/// `shard` is null or came from `nrt_interned_string_db_shard_alloc`; `ids`, `names` and `count` are null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrt_interned_string_db_get_entries(
    shard: *const Shard,
    ids: *mut *mut u64,
    names: *mut *mut *mut c_char,
    count: *mut usize,
) -> c_int {
    status(|| {
        // SAFETY: the caller's promise.
        unsafe { put(ids, ptr::null_mut()) };
        // SAFETY: the caller's promise.
        unsafe { put(names, ptr::null_mut()) };
        // SAFETY: the caller's promise.
        unsafe { put(count, 0) };
        // SAFETY: null or a Shard, which nobody has a unique reference to: all that C can do goes through its lock.
        let shard = unsafe { shard.as_ref() }.ok_or(Status::Invalid)?;
        if ids.is_null() || names.is_null() || count.is_null() {
            return Err(Status::Invalid);
        }
        let entries = shard.entries().map_err(|_| Status::Resource)?;
        let mut numbers = CArray::with_room(entries.len())?;
        let mut texts = CStrings::with_room(entries.len())?;
        for (id, name) in &entries {
            numbers.push(*id);
            texts.push(name)?;
        }
        // SAFETY: the caller's promise.
        unsafe { put(ids, numbers.into_raw()) };
        // SAFETY: the caller's promise.
        unsafe { put(names, texts.into_raw()) };
        // SAFETY: the caller's promise.
        unsafe { put(count, entries.len()) };
        Ok(())
    })
}

/// Frees what `nrt_interned_string_db_get_entries` gave.
///
/// # Safety
/// `ids` and `names` are null or came with `count` from `nrt_interned_string_db_get_entries`, and are not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrt_interned_string_db_free_entries(
    ids: *mut u64,
    names: *mut *mut c_char,
    count: usize,
) {
    // SAFETY: made from `count` strings; the rest is the caller's promise.
    guarded((), || unsafe { free_strings(names, count) });
    // SAFETY: null or from calloc, and not used any more, by the caller's promise.
    unsafe { libc::free(ids.cast()) };
}

/// Enters the entries of one shard into another.
///
/// # Safety
/// `from` and `into` are null or came from `nrt_interned_string_db_shard_alloc`; they may be the same.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrt_interned_string_db_combine_shards(
    from: *const Shard,
    into: *mut Shard,
) -> c_int {
    status(|| {
        // SAFETY: null or a Shard, which nobody has a unique reference to: all that C can do goes through its lock.
        let from = unsafe { from.as_ref() }.ok_or(Status::Invalid)?;
        // SAFETY: as for `from`; two shared references to one shard are allowed.
        let into = unsafe { into.as_ref() }.ok_or(Status::Invalid)?;
        into.merge(from).map_err(|_| Status::Resource)
    })
}
