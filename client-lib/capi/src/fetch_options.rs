//! What a fetch of this process's events returns.

use std::ffi::c_int;
use std::mem::offset_of;

use crate::boundary::{end, guarded, make, status};
use crate::config::NEURON_CORES;

/// Stands for all NeuronCores.
const ALL_NEURON_CORES: i32 = -1;

/// `nrt_sys_trace_fetch_options_t`, which is opaque in C but has Neuron's layout, since some programs look into it.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct FetchOptions {
    /// How many events of a NeuronCore are fetched at most; 0 for all.
    pub max_events_per_nc: u64,
    /// Which NeuronCore is fetched; -1 for all.
    pub nc_idx: i32,
}

const _: () = assert!(
    size_of::<FetchOptions>() == 16
        && offset_of!(FetchOptions, max_events_per_nc) == 0
        && offset_of!(FetchOptions, nc_idx) == 8
);

impl FetchOptions {
    /// What counts when nobody chose.
    pub const DEFAULT: Self = Self {
        max_events_per_nc: 0,
        nc_idx: ALL_NEURON_CORES,
    };
}

/// The `nc_idx` that C's number means; `None` if it is no NeuronCore's.
fn nc_idx(number: u64) -> Option<i32> {
    if number == u64::MAX {
        return Some(ALL_NEURON_CORES);
    }
    let nc = i32::try_from(number).ok()?;
    usize::try_from(nc)
        .is_ok_and(|nc| nc < NEURON_CORES)
        .then_some(nc)
}

/// Changes options; nothing if they are null.
///
/// # Safety
/// `options` is null or came from `nrt_sys_trace_fetch_options_allocate`, and no other thread uses it during the call.
unsafe fn change(options: *mut FetchOptions, with: impl FnOnce(&mut FetchOptions)) {
    // SAFETY: null or a FetchOptions, and nobody else's during the call, by the caller's promise.
    if let Some(options) = unsafe { options.as_mut() } {
        guarded((), || with(options));
    }
}

/// Makes options with the defaults.
///
/// # Safety
/// `options` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrt_sys_trace_fetch_options_allocate(
    options: *mut *mut FetchOptions,
) -> c_int {
    // SAFETY: the caller's promise.
    status(|| unsafe { make(options, FetchOptions::DEFAULT) })
}

/// Back to the defaults.
///
/// # Safety
/// `options` is null or came from `nrt_sys_trace_fetch_options_allocate`, and no other thread uses it during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrt_sys_trace_fetch_options_set_defaults(options: *mut FetchOptions) {
    // SAFETY: the caller's promise.
    unsafe { change(options, |options| *options = FetchOptions::DEFAULT) };
}

/// Ends options.
///
/// # Safety
/// `options` is null or came from `nrt_sys_trace_fetch_options_allocate`, and is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrt_sys_trace_fetch_options_free(options: *mut FetchOptions) {
    // SAFETY: `make` made it; the rest is the caller's promise.
    guarded((), || unsafe { end(options) });
}

/// How many events of a NeuronCore are fetched at most.
///
/// # Safety
/// `options` is null or came from `nrt_sys_trace_fetch_options_allocate`, and no other thread uses it during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrt_sys_trace_fetch_options_set_max_events_per_nc(
    options: *mut FetchOptions,
    max_events_per_nc: u64,
) {
    let with = |options: &mut FetchOptions| options.max_events_per_nc = max_events_per_nc;
    // SAFETY: the caller's promise.
    unsafe { change(options, with) };
}

/// Which NeuronCore is fetched.
///
/// # Safety
/// `options` is null or came from `nrt_sys_trace_fetch_options_allocate`, and no other thread uses it during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrt_sys_trace_fetch_options_set_nc_idx(
    options: *mut FetchOptions,
    number: u64,
) {
    let with = |options: &mut FetchOptions| {
        if let Some(nc) = nc_idx(number) {
            options.nc_idx = nc;
        }
    };
    // SAFETY: the caller's promise.
    unsafe { change(options, with) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_neuron_cores_and_all_of_them_can_be_chosen() {
        assert_eq!(nc_idx(0), Some(0));
        assert_eq!(nc_idx(255), Some(255));
        assert_eq!(nc_idx(u64::MAX), Some(-1));
        // What an int of -1 becomes on its way through uint32_t is no NeuronCore, nor are its neighbours.
        for number in [256, 300, 0xFFFF_FFFF, 1 << 32, u64::MAX - 1] {
            assert_eq!(nc_idx(number), None, "{number}");
        }
    }
}
