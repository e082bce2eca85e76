//! `libnrt_trace_prefixed`: everything of `libnrt_trace`, under names that start with `nrt_trace_`.
//!
//! For programs that also load Neuron's own libnrt, which has functions of the same names: with both in a process a call
//! would go to whichever the loader finds first. `nrt_x` is `nrt_trace_x` here; `include/nrt_trace_prefixed.h` says so to
//! the compiler. Nothing but that header and the names differs.

#![expect(
    unsafe_code,
    reason = "a C ABI: exported symbols that pass raw pointers on"
)]

use std::ffi::{c_char, c_int, c_void};

use nrt_trace::config::Config;
use nrt_trace::drain::Event;
use nrt_trace::fetch_options::FetchOptions;
use nrt_trace::host_stats::HostStats;
use nrt_trace::log_callback::LogCallback;
use nrt_trace::shard::Shard;
use nrt_trace::{
    EventData, buffer, config, drain, event_types, fetch_options, host_stats, log_callback,
    session, strings_db,
};

/// Exports functions under other names.
macro_rules! forward {
    ($($name:ident = $function:path: ($($argument:ident: $kind:ty),*) $(-> $result:ty)?;)*) => {$(
        #[doc = concat!("[`", stringify!($function), "`].")]
        ///
        /// # Safety
        /// As for that one.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $kind),*) $(-> $result)? {
            // SAFETY: the caller's promise is the same.
            unsafe { $function($($argument),*) }
        }
    )*};
}

/// The same, for those that can be called with anything.
macro_rules! forward_safe {
    ($($name:ident = $function:path: ($($argument:ident: $kind:ty),*) $(-> $result:ty)?;)*) => {$(
        #[doc = concat!("[`", stringify!($function), "`].")]
        #[unsafe(no_mangle)]
        pub extern "C" fn $name($($argument: $kind),*) $(-> $result)? {
            $function($($argument),*)
        }
    )*};
}

forward! {
    nrt_trace_sys_trace_new_event = nrt_trace::nrt_sys_trace_new_event: (event_type: c_int, phase: c_int, nc_idx: u32, tracking_id: u64, data: *const EventData) -> u64;
    nrt_trace_sys_trace_new_event_with_seq = nrt_trace::nrt_sys_trace_new_event_with_seq: (event_type: c_int, phase: c_int, nc_idx: u32, tracking_id: u64, data: *const EventData, nrta_seq_id: u64) -> u64;
    nrt_trace_sys_trace_capture_intern_string = nrt_trace::nrt_sys_trace_capture_intern_string: (nc_idx: u32, name: *const c_char) -> u64;
    nrt_trace_trace_host_stats_get = host_stats::nrt_trace_host_stats_get: (stats: *mut HostStats) -> c_int;
    nrt_trace_trace_host_stats_free = host_stats::nrt_trace_host_stats_free: (stats: *mut HostStats);
    nrt_trace_sys_trace_buffer_free = buffer::nrt_sys_trace_buffer_free: (buffer: *mut c_char);
    nrt_trace_sys_trace_config_allocate = config::nrt_sys_trace_config_allocate: (options: *mut *mut Config) -> c_int;
    nrt_trace_sys_trace_config_set_defaults = config::nrt_sys_trace_config_set_defaults: (options: *mut Config);
    nrt_trace_sys_trace_config_free = config::nrt_sys_trace_config_free: (options: *mut Config);
    nrt_trace_sys_trace_config_set_max_events_per_nc = config::nrt_sys_trace_config_set_max_events_per_nc: (options: *mut Config, max_events_per_nc: u64);
    nrt_trace_sys_trace_config_set_capture_enabled_for_nc = config::nrt_sys_trace_config_set_capture_enabled_for_nc: (options: *mut Config, nc_idx: u32, enabled: bool);
    nrt_trace_sys_trace_config_set_capture_enabled_for_event_type = config::nrt_sys_trace_config_set_capture_enabled_for_event_type: (options: *mut Config, event_type: *const c_char, enabled: bool) -> c_int;
    nrt_trace_sys_trace_config_get_enabled_event_types = config::nrt_sys_trace_config_get_enabled_event_types: (options: *const Config, event_types: *mut *mut *const c_char, count: *mut usize) -> c_int;
    nrt_trace_sys_trace_capture_drain_events = drain::nrt_sys_trace_capture_drain_events: (nc_idx: i32, out: *mut Event, cap: usize, n: *mut usize) -> c_int;
    nrt_trace_sys_trace_get_event_types = event_types::nrt_sys_trace_get_event_types: (event_types: *mut *mut *const c_char, count: *mut usize) -> c_int;
    nrt_trace_sys_trace_free_event_types = event_types::nrt_sys_trace_free_event_types: (event_types: *mut *const c_char, count: usize);
    nrt_trace_sys_trace_fetch_options_allocate = fetch_options::nrt_sys_trace_fetch_options_allocate: (options: *mut *mut FetchOptions) -> c_int;
    nrt_trace_sys_trace_fetch_options_set_defaults = fetch_options::nrt_sys_trace_fetch_options_set_defaults: (options: *mut FetchOptions);
    nrt_trace_sys_trace_fetch_options_free = fetch_options::nrt_sys_trace_fetch_options_free: (options: *mut FetchOptions);
    nrt_trace_sys_trace_fetch_options_set_max_events_per_nc = fetch_options::nrt_sys_trace_fetch_options_set_max_events_per_nc: (options: *mut FetchOptions, max_events_per_nc: u64);
    nrt_trace_sys_trace_fetch_options_set_nc_idx = fetch_options::nrt_sys_trace_fetch_options_set_nc_idx: (options: *mut FetchOptions, number: u64);
    nrt_trace_trace_set_log_callback = log_callback::nrt_trace_set_log_callback: (callback: Option<LogCallback>, user: *mut c_void);
    nrt_trace_sys_trace_start = session::nrt_sys_trace_start: (options: *const Config) -> c_int;
    nrt_trace_sys_trace_fetch_events = session::nrt_sys_trace_fetch_events: (buffer: *mut *mut c_char, written_size: *mut usize, options: *const FetchOptions) -> c_int;
    nrt_trace_interned_string_db_get_id = strings_db::nrt_interned_string_db_get_id: (name: *const c_char) -> u64;
    nrt_trace_interned_string_db_shard_free = strings_db::nrt_interned_string_db_shard_free: (shard: *mut Shard);
    nrt_trace_interned_string_db_register_entry = strings_db::nrt_interned_string_db_register_entry: (name: *const c_char, id: u64, shard: *mut Shard) -> c_int;
    nrt_trace_interned_string_db_get_entries = strings_db::nrt_interned_string_db_get_entries: (shard: *const Shard, ids: *mut *mut u64, names: *mut *mut *mut c_char, count: *mut usize) -> c_int;
    nrt_trace_interned_string_db_free_entries = strings_db::nrt_interned_string_db_free_entries: (ids: *mut u64, names: *mut *mut c_char, count: usize);
    nrt_trace_interned_string_db_combine_shards = strings_db::nrt_interned_string_db_combine_shards: (from: *const Shard, into: *mut Shard) -> c_int;
}

forward_safe! {
    nrt_trace_trace_page = nrt_trace::nrt_trace_page: () -> *const *const u64;
    nrt_trace_trace_wait_armed = nrt_trace::nrt_trace_wait_armed: (timeout_ms: u32) -> bool;
    nrt_trace_sys_trace_ring_size = drain::nrt_sys_trace_ring_size: () -> usize;
    nrt_trace_sys_trace_total_event_count = drain::nrt_sys_trace_total_event_count: () -> u64;
    nrt_trace_sys_trace_get_event_type_category = event_types::nrt_sys_trace_get_event_type_category: (event_type: c_int) -> u32;
    nrt_trace_sys_trace_stop = session::nrt_sys_trace_stop: () -> c_int;
    nrt_trace_sys_trace_capture_close = session::nrt_sys_trace_capture_close: () -> c_int;
    nrt_trace_interned_string_db_shard_alloc = strings_db::nrt_interned_string_db_shard_alloc: () -> *mut Shard;
}
