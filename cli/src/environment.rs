//! Filters that the environment gives where an argument does not: the variables that users of Neuron's runtime know.

use std::fmt::Display;

use crate::cli::CaptureArgs;
use crate::error::Failure;
use crate::values;

/// NeuronCores to capture.
const NC: &str = "NEURON_RT_INSPECT_EVENT_FILTER_NC";
/// Event types to capture.
const TYPE: &str = "NEURON_RT_INSPECT_EVENT_FILTER_TYPE";
/// Events kept for each NeuronCore.
const MAX_EVENTS: &str = "NEURON_RT_INSPECT_SYS_TRACE_MAX_EVENTS_PER_NC";

impl CaptureArgs {
    /// These, and where they say nothing what the environment says. An argument wins, and then the variable may be anything.
    ///
    /// # Errors
    /// [`Failure::Usage`] with the variable, its value, and what is allowed.
    pub(crate) fn or_environment(self) -> Result<Self, Failure> {
        self.or(&|name| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned()))
    }

    fn or(self, variable: &dyn Fn(&str) -> Option<String>) -> Result<Self, Failure> {
        Ok(Self {
            max_events_per_nc: or(
                self.max_events_per_nc,
                variable,
                MAX_EVENTS,
                values::ring_size,
            )?,
            nc: or(self.nc, variable, NC, values::nc_list)?,
            events: or(self.events, variable, TYPE, values::event_terms)?,
        })
    }
}

/// The argument, else the variable if it holds anything.
fn or<T, E: Display>(
    argument: Option<T>,
    variable: &dyn Fn(&str) -> Option<String>,
    name: &str,
    parse: impl Fn(&str) -> Result<T, E>,
) -> Result<Option<T>, Failure> {
    if argument.is_some() {
        return Ok(argument);
    }
    let Some(value) = variable(name).filter(|value| !value.trim().is_empty()) else {
        return Ok(None);
    };
    let bad = |error| Failure::Usage(format!("{name}={value}: {error}"));
    parse(value.trim()).map(Some).map_err(bad)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::{EventTerms, NcList};

    fn all(name: &str) -> Option<String> {
        let value = match name {
            NC => "0-1,8",
            TYPE => "hardware,^cc_running",
            MAX_EVENTS => " 5000 ",
            _ => return None,
        };
        Some(value.to_owned())
    }

    #[test]
    fn the_environment_fills_what_arguments_leave_open() {
        let filled = CaptureArgs::default().or(&all).unwrap();
        assert_eq!(filled.max_events_per_nc, Some(5000));
        assert_eq!(filled.nc, Some(NcList(vec![0, 1, 8])));
        assert_eq!(
            filled.events,
            values::event_terms("hardware,^cc_running").ok()
        );
        let given = CaptureArgs {
            max_events_per_nc: Some(7),
            nc: Some(NcList(vec![3])),
            events: Some(EventTerms(vec!["software".to_owned()])),
        };
        let kept = given.clone().or(&all).unwrap();
        assert_eq!(
            (kept.max_events_per_nc, kept.nc, kept.events),
            (Some(7), given.nc, given.events)
        );
        let none = CaptureArgs::default()
            .or(&|_| Some(" ".to_owned()))
            .unwrap();
        assert!(none.nc.is_none() && none.events.is_none() && none.max_events_per_nc.is_none());
    }

    #[test]
    fn a_bad_value_is_told_with_its_variable_and_what_is_allowed() {
        for (name, value, allowed) in [
            (NC, "0-999", "0 to 255"),
            (TYPE, "nrt_exceute", "nrt_execute"),
            (MAX_EVENTS, "0", "at least 1"),
        ] {
            let bad = CaptureArgs::default().or(&|asked| (asked == name).then(|| value.to_owned()));
            let Err(Failure::Usage(text)) = bad else {
                panic!("{bad:?}")
            };
            assert!(
                text.starts_with(&format!("{name}={value}: ")) && text.contains(allowed),
                "{text}"
            );
        }
    }
}
