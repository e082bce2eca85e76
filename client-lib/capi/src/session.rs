//! Start, stop and fetch of this process's own capture.

use std::ffi::{c_char, c_int};

use nrt_trace_client::log;
use nrt_trace_client::own::{self, OwnConfig, Which};
use nrt_trace_model::{EventType, Status};

use crate::boundary::{put, status};
use crate::config::{Config, NEURON_CORES};
use crate::document;
use crate::fetch_options::FetchOptions;

/// The level of what only somebody who looks for a mistake wants to see.
const DEBUG: u8 = 2;

/// Runs the body of a call that logs its begin and its end; `more` is what a success adds to the line.
fn logged<T>(
    call: &str,
    body: impl FnOnce() -> Result<T, Status>,
    done: impl FnOnce(T),
    more: impl Fn(&T) -> String,
) -> c_int {
    if log::is_on(DEBUG) {
        log::say(DEBUG, &format!("API:IN {call}"));
    }
    let mut said = String::new();
    let code = status(|| {
        let value = body()?;
        if log::is_on(DEBUG) {
            said = more(&value);
        }
        done(value);
        Ok(())
    });
    if log::is_on(DEBUG) {
        let name = nrt_trace_model::status::name(code);
        log::say(DEBUG, &format!("API:OUT {call} {name}{said}"));
    }
    code
}

impl Config {
    /// This configuration, as the capture takes it.
    fn own(&self) -> OwnConfig {
        let mut own = OwnConfig {
            max_events_per_nc: self.max_events_per_nc,
            types: 0,
            ncs: [0; NEURON_CORES / 64],
        };
        for (nc, _) in self
            .capture_enabled_for_nc
            .iter()
            .enumerate()
            .filter(|(_, on)| **on != 0)
        {
            own.ncs[nc / 64] |= 1 << (nc % 64);
        }
        for kind in EventType::ALL {
            own.types |=
                u64::from(self.capture_enabled_for_event_type[kind.index()] != 0) << kind.value();
        }
        own
    }
}

impl FetchOptions {
    /// Which events they choose.
    fn which(&self) -> Result<Which, Status> {
        Ok(Which {
            nc: chosen_nc(self.nc_idx)?,
            max_per_nc: match self.max_events_per_nc {
                0 => u64::MAX,
                max => max,
            },
        })
    }
}

/// The NeuronCore that C's number chooses; `None` for all.
pub(crate) fn chosen_nc(number: i32) -> Result<Option<u32>, Status> {
    match u32::try_from(number) {
        Ok(nc) if (nc as usize) < NEURON_CORES => Ok(Some(nc)),
        Err(_) if number == -1 => Ok(None),
        _ => Err(Status::Invalid),
    }
}

/// Starts a capture of this process.
///
/// # Safety
/// `options` is null or came from `nrt_sys_trace_config_allocate`, and no other thread changes it during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrt_sys_trace_start(options: *const Config) -> c_int {
    let body = || {
        // SAFETY: null or a Config that nobody changes during the call, by the caller's promise.
        let config = match unsafe { options.as_ref() } {
            Some(config) => config.own(),
            None => OwnConfig::from_environment().map_err(|bad| {
                log::say(1, &bad);
                Status::Invalid
            })?,
        };
        own::start(&config)
    };
    logged("nrt_sys_trace_start", body, drop, |()| String::new())
}

/// Stops it; what was not fetched is lost.
#[unsafe(no_mangle)]
pub extern "C" fn nrt_sys_trace_stop() -> c_int {
    status(own::stop)
}

/// Stops it if there is one.
#[unsafe(no_mangle)]
pub extern "C" fn nrt_sys_trace_capture_close() -> c_int {
    // Whatever came of it, it is closed for this process.
    let _code = status(own::stop);
    Status::Success.code()
}

/// Fetches events as a JSON document.
///
/// # Safety
/// `buffer` and `written_size` are null or may be read and written; `options` is null or came from
/// `nrt_sys_trace_fetch_options_allocate`, and no other thread changes it during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrt_sys_trace_fetch_events(
    buffer: *mut *mut c_char,
    written_size: *mut usize,
    options: *const FetchOptions,
) -> c_int {
    let body = || {
        // SAFETY: the caller's promise.
        unsafe { put(written_size, 0) };
        // SAFETY: null or readable, by the caller's promise; a pointer is copied.
        let before = unsafe { buffer.as_ref() }.copied().ok_or(Status::Invalid)?;
        if written_size.is_null() || !before.is_null() {
            return Err(Status::Invalid);
        }
        // SAFETY: null or FetchOptions that nobody changes during the call, by the caller's promise.
        let options = unsafe { options.as_ref() }.unwrap_or(&FetchOptions::DEFAULT);
        let which = options.which()?;
        let text = own::read(which, document::write)?;
        let length = text.length();
        Ok((text, length))
    };
    let done = |(text, length): (crate::buffer::Text, usize)| {
        // SAFETY: neither is null, as `body` saw, and both may be written, by the caller's promise.
        unsafe { put(buffer, text.give()) };
        // SAFETY: as above.
        unsafe { put(written_size, length) };
    };
    logged("nrt_sys_trace_fetch_events", body, done, |(_, length)| {
        format!(" written_size={length}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_chooses_one_neuron_core_or_all_or_is_refused() {
        assert_eq!(chosen_nc(-1), Ok(None));
        assert_eq!(chosen_nc(0), Ok(Some(0)));
        assert_eq!(chosen_nc(255), Ok(Some(255)));
        for number in [256, 300, i32::MAX, -2, i32::MIN] {
            assert_eq!(chosen_nc(number), Err(Status::Invalid), "{number}");
        }
    }

    #[test]
    fn a_configuration_becomes_bits() {
        let mut config = Config::DEFAULT;
        assert_eq!(config.own(), OwnConfig::DEFAULT);
        config.capture_enabled_for_nc = [0; 256];
        config.capture_enabled_for_nc[3] = 1;
        config.capture_enabled_for_nc[255] = 7; // a program may write any byte
        config.capture_enabled_for_event_type = [0; 46];
        config.capture_enabled_for_event_type[45] = 1;
        let own = config.own();
        assert_eq!((own.ncs, own.types), ([8, 0, 0, 1 << 63], 1 << 45));
    }
}
