//! What a capture of this process records.

use std::ffi::{c_char, c_int};
use std::mem::offset_of;

use nrt_trace_model::{EventType, Status};

use crate::boundary::{end, guarded, make, status, text};
use crate::event_types::give_names;

/// NeuronCores that a process can have.
pub(crate) const NEURON_CORES: usize = 256;

/// The least number of events that a NeuronCore keeps.
const LEAST_EVENTS: u64 = 1024;

/// `nrt_sys_trace_config_t`, which is opaque in C but has Neuron's layout, since some programs look into it. And write:
/// the switches are bytes, of which any but 0 is "on", where a `bool` of Rust could be no other than 0 or 1.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Config {
    /// How many events of a NeuronCore are kept.
    pub max_events_per_nc: u64,
    /// Which NeuronCores are captured.
    pub capture_enabled_for_nc: [u8; NEURON_CORES],
    /// Which types are captured, by value.
    pub capture_enabled_for_event_type: [u8; EventType::ALL.len()],
}

const _: () = assert!(
    size_of::<Config>() == 312
        && offset_of!(Config, max_events_per_nc) == 0
        && offset_of!(Config, capture_enabled_for_nc) == 8
        && offset_of!(Config, capture_enabled_for_event_type) == 264
);

impl Config {
    /// What counts when nobody chose.
    pub const DEFAULT: Self = Self {
        max_events_per_nc: 0x10_0000,
        capture_enabled_for_nc: [1; NEURON_CORES],
        capture_enabled_for_event_type: [1; EventType::ALL.len()],
    };
}

/// Changes a configuration; nothing if it is null.
///
/// # Safety
/// `options` is null or came from `nrt_sys_trace_config_allocate`, and no other thread uses it during the call.
unsafe fn change(options: *mut Config, with: impl FnOnce(&mut Config)) {
    // SAFETY: null or a Config, and nobody else's during the call, by the caller's promise.
    if let Some(config) = unsafe { options.as_mut() } {
        guarded((), || with(config));
    }
}

/// Makes a configuration with the defaults.
///
/// # Safety
/// `options` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrt_sys_trace_config_allocate(options: *mut *mut Config) -> c_int {
    // SAFETY: the caller's promise.
    status(|| unsafe { make(options, Config::DEFAULT) })
}

/// Back to the defaults.
///
/// # Safety
/// `options` is null or came from `nrt_sys_trace_config_allocate`, and no other thread uses it during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrt_sys_trace_config_set_defaults(options: *mut Config) {
    // SAFETY: the caller's promise.
    unsafe { change(options, |config| *config = Config::DEFAULT) };
}

/// Ends a configuration.
///
/// # Safety
/// `options` is null or came from `nrt_sys_trace_config_allocate`, and is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrt_sys_trace_config_free(options: *mut Config) {
    // SAFETY: `make` made it; the rest is the caller's promise.
    guarded((), || unsafe { end(options) });
}

/// How many events of a NeuronCore are kept.
///
/// # Safety
/// `options` is null or came from `nrt_sys_trace_config_allocate`, and no other thread uses it during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrt_sys_trace_config_set_max_events_per_nc(
    options: *mut Config,
    max_events_per_nc: u64,
) {
    let with = |config: &mut Config| {
        config.max_events_per_nc = max_events_per_nc.max(LEAST_EVENTS);
    };
    // SAFETY: the caller's promise.
    unsafe { change(options, with) };
}

/// Whether a NeuronCore is captured.
///
/// # Safety
/// `options` is null or came from `nrt_sys_trace_config_allocate`, and no other thread uses it during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrt_sys_trace_config_set_capture_enabled_for_nc(
    options: *mut Config,
    nc_idx: u32,
    enabled: bool,
) {
    let with = |config: &mut Config| {
        let index = usize::try_from(nc_idx).unwrap_or(NEURON_CORES);
        if let Some(nc) = config.capture_enabled_for_nc.get_mut(index) {
            *nc = u8::from(enabled);
        }
    };
    // SAFETY: the caller's promise.
    unsafe { change(options, with) };
}

/// Whether a type of events is captured.
///
/// # Safety
/// `options` is null or came from `nrt_sys_trace_config_allocate`, and no other thread uses it during the call;
/// `event_type` is null or points to a string that ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrt_sys_trace_config_set_capture_enabled_for_event_type(
    options: *mut Config,
    event_type: *const c_char,
    enabled: bool,
) -> c_int {
    status(|| {
        // SAFETY: the caller's promise; it is only read during this call.
        let name = unsafe { text(event_type) }?;
        let kind = EventType::from_name(name).ok_or(Status::Invalid)?;
        // SAFETY: null or a Config, and nobody else's during the call, by the caller's promise.
        let config = unsafe { options.as_mut() }.ok_or(Status::Invalid)?;
        config.capture_enabled_for_event_type[kind.index()] = u8::from(enabled);
        Ok(())
    })
}

/// The names of the types that a configuration captures; those of the defaults if it is null.
///
/// # Safety
/// `options` is null or came from `nrt_sys_trace_config_allocate`, and no other thread changes it during the call;
/// `event_types` and `count` are null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrt_sys_trace_config_get_enabled_event_types(
    options: *const Config,
    event_types: *mut *mut *const c_char,
    count: *mut usize,
) -> c_int {
    status(|| {
        // SAFETY: null or a Config that nobody changes during the call, by the caller's promise.
        let config = unsafe { options.as_ref() }.unwrap_or(&Config::DEFAULT);
        let enabled = |kind: EventType| config.capture_enabled_for_event_type[kind.index()] != 0;
        // SAFETY: the caller's promise.
        unsafe { give_names(enabled, event_types, count) }
    })
}
