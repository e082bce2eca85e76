//! What a capture of this process records when the program does not say: the variables that users know.

use nrt_trace_abi::MAX_NCS;
use nrt_trace_model::filter::{parse_nc_list, parse_types};

use super::{LEAST_EVENTS, MOST_EVENTS, OwnConfig};

/// NeuronCores to capture.
const FILTER_NC: &str = "NEURON_RT_INSPECT_EVENT_FILTER_NC";
/// Event types to capture.
const FILTER_TYPE: &str = "NEURON_RT_INSPECT_EVENT_FILTER_TYPE";
/// Events that each NeuronCore keeps.
const MAX_EVENTS: &str = "NEURON_RT_INSPECT_SYS_TRACE_MAX_EVENTS_PER_NC";

impl OwnConfig {
    /// The defaults as the environment changes them: `NEURON_RT_INSPECT_EVENT_FILTER_NC` (of the process's own indices),
    /// `NEURON_RT_INSPECT_EVENT_FILTER_TYPE`, `NEURON_RT_INSPECT_SYS_TRACE_MAX_EVENTS_PER_NC`. One that is empty counts as
    /// not set.
    ///
    /// # Errors
    /// The variable, its value, and what is allowed.
    pub fn from_environment() -> Result<Self, String> {
        Self::from_variables(&|name| {
            std::env::var_os(name).map(|value| value.to_string_lossy().into_owned())
        })
    }

    fn from_variables(variable: &dyn Fn(&str) -> Option<String>) -> Result<Self, String> {
        let mut config = Self::DEFAULT;
        let set = |name| variable(name).filter(|value| !value.trim().is_empty());
        if let Some(value) = set(FILTER_NC) {
            let ncs =
                parse_nc_list(&value).map_err(|error| format!("{FILTER_NC}={value}: {error}"))?;
            config.ncs = [0; MAX_NCS / 64];
            for nc in ncs {
                config.ncs[nc as usize / 64] |= 1 << (nc % 64);
            }
        }
        if let Some(value) = set(FILTER_TYPE) {
            let types = parse_types(&[&value])
                .map_err(|error| format!("{FILTER_TYPE}={value}: {error}"))?;
            config.types = types.bits();
        }
        if let Some(value) = set(MAX_EVENTS) {
            let events = value
                .trim()
                .parse()
                .ok()
                .filter(|events| (1..=MOST_EVENTS).contains(events));
            config.max_events_per_nc = events.ok_or_else(|| {
                format!(
                    "{MAX_EVENTS}={value}: allowed is a number from {LEAST_EVENTS} to {MOST_EVENTS} (1 to {} become {LEAST_EVENTS})",
                    LEAST_EVENTS - 1
                )
            })?;
        }
        Ok(config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, value: &str) -> Result<OwnConfig, String> {
        OwnConfig::from_variables(&|asked| (asked == name).then(|| value.to_owned()))
    }

    #[test]
    fn each_variable_changes_its_part_of_the_defaults() {
        assert_eq!(OwnConfig::from_variables(&|_| None), Ok(OwnConfig::DEFAULT));
        assert_eq!(
            read(FILTER_NC, " "),
            Ok(OwnConfig::DEFAULT),
            "as good as not set"
        );
        let ncs = read(FILTER_NC, "0-2,255").unwrap();
        assert_eq!(
            ncs,
            OwnConfig {
                ncs: [0b111, 0, 0, 1 << 63],
                ..OwnConfig::DEFAULT
            }
        );
        let types = read(FILTER_TYPE, "hardware,^cc_running").unwrap();
        assert_eq!(types.types, 0x70_021C0 & !(1 << 8), "{:x}", types.types);
        let events = read(MAX_EVENTS, "4000000").unwrap();
        assert_eq!(
            events,
            OwnConfig {
                max_events_per_nc: 4_000_000,
                ..OwnConfig::DEFAULT
            }
        );
    }

    /// A bad value is told with its variable, and what is allowed; it is never taken for no value.
    #[test]
    fn a_bad_value_is_an_error_that_names_it() {
        for (name, value, allowed) in [
            (FILTER_NC, "0-256", "0 to 255"),
            (FILTER_NC, "3-1", "ends before it begins"),
            (FILTER_TYPE, "nrt_exceute", "nrt_execute"),
            (FILTER_TYPE, "hardware,^hardware", "selects nothing"),
            (MAX_EVENTS, "0", "1024 to 4294967296"),
            (MAX_EVENTS, "many", "1024 to 4294967296"),
            (MAX_EVENTS, "4294967297", "1024 to 4294967296"),
        ] {
            let error = read(name, value).unwrap_err();
            assert!(error.starts_with(&format!("{name}={value}: ")), "{error}");
            assert!(error.contains(allowed), "{error}");
        }
    }
}
