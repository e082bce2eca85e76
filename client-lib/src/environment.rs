//! What the environment says of this process.

use std::env;
use std::path::PathBuf;
use std::time::Duration;

use nrt_trace_abi::MAX_NCS;
use nrt_trace_model::filter::parse_nc_list;

use crate::log;

const DEFAULT_SOCKET: &str = "/run/nrt-trace/producer.sock";

/// `NRT_TRACE_PRODUCER_SOCKET`, else what the program said, else the default.
pub(crate) fn producer_socket(program: Option<&PathBuf>) -> PathBuf {
    match env::var_os("NRT_TRACE_PRODUCER_SOCKET").filter(|path| !path.is_empty()) {
        Some(path) => path.into(),
        None => program.cloned().unwrap_or_else(|| DEFAULT_SOCKET.into()),
    }
}

/// Whether `name` is set to something other than nothing and 0.
pub(crate) fn is_on(name: &str) -> bool {
    env::var_os(name).is_some_and(|value| !value.is_empty() && value != "0")
}

/// `NRT_TRACE_WAIT_MS`.
pub(crate) fn wait_limit() -> Option<Duration> {
    let text = env::var("NRT_TRACE_WAIT_MS").ok()?;
    match text.parse() {
        Ok(ms) => Some(Duration::from_millis(ms)),
        Err(_) => {
            log::write(
                log::WARN,
                &format!("NRT_TRACE_WAIT_MS={text}: a number of milliseconds is allowed"),
            );
            None
        }
    }
}

/// `NEURON_RT_WORKER_GID`, else `RANK`, else -1.
pub(crate) fn worker_gid() -> i32 {
    for name in ["NEURON_RT_WORKER_GID", "RANK"] {
        if let Ok(text) = env::var(name) {
            match text.trim().parse() {
                Ok(gid) => return gid,
                Err(_) => log::write(
                    log::WARN,
                    &format!("{name}={text}: a 32-bit number is allowed"),
                ),
            }
        }
    }
    -1
}

/// Host cores of this process, its own index 0 first; empty when nothing says.
///
/// In this order: `NEURON_RT_VISIBLE_CORES`, `NEURON_RT_NUM_CORES`, what the program said, the devices in sysfs.
pub(crate) fn visible_cores(program: &[u16]) -> Vec<u16> {
    from_variables(&|name| env::var(name).ok()).unwrap_or_else(|| {
        if program.is_empty() {
            (0..device_cores()).collect()
        } else {
            program.to_vec()
        }
    })
}

/// Whether the variables that name the visible cores can be: what only becomes a warning when a process attaches is an error
/// for a capture that it starts itself.
pub(crate) fn check_cores() -> Result<(), String> {
    check(&|name| env::var(name).ok())
}

fn check(variable: &dyn Fn(&str) -> Option<String>) -> Result<(), String> {
    if let Some(text) = variable("NEURON_RT_VISIBLE_CORES") {
        let parsed = parse_nc_list(&text).map(drop);
        return parsed.map_err(|error| format!("NEURON_RT_VISIBLE_CORES={text}: {error}"));
    }
    let Some(text) = variable("NEURON_RT_NUM_CORES") else {
        return Ok(());
    };
    match text.trim().parse::<u64>() {
        Ok(1..=256) => Ok(()),
        Ok(count @ 257..) => Err(format!("visible cores {count} exceeds {MAX_NCS}")),
        _ => Err(format!(
            "NEURON_RT_NUM_CORES={text}: 1 to {MAX_NCS} is allowed"
        )),
    }
}

fn from_variables(variable: &dyn Fn(&str) -> Option<String>) -> Option<Vec<u16>> {
    if let Some(text) = variable("NEURON_RT_VISIBLE_CORES") {
        match parse_nc_list(&text) {
            Ok(cores) => {
                return Some(
                    cores
                        .into_iter()
                        .filter_map(|core| u16::try_from(core).ok())
                        .collect(),
                );
            }
            Err(error) => log::write(
                log::WARN,
                &format!("NEURON_RT_VISIBLE_CORES={text}: {error}"),
            ),
        }
    }
    let text = variable("NEURON_RT_NUM_CORES")?;
    match text.trim().parse::<u16>() {
        Ok(count) if (1..=MAX_NCS).contains(&usize::from(count)) => Some((0..count).collect()),
        _ => {
            log::write(
                log::WARN,
                &format!("NEURON_RT_NUM_CORES={text}: 1 to {MAX_NCS} is allowed"),
            );
            None
        }
    }
}

/// NeuronCores of the machine, as its driver shows them.
fn device_cores() -> u16 {
    let is_core = |entry: &std::fs::DirEntry| {
        entry
            .file_name()
            .to_string_lossy()
            .starts_with("neuron_core")
    };
    let Ok(devices) = std::fs::read_dir("/sys/class/neuron_device") else {
        return 0;
    };
    let cores = devices
        .filter_map(|device| std::fs::read_dir(device.ok()?.path()).ok())
        .flatten()
        .filter(|entry| entry.as_ref().is_ok_and(is_core))
        .count();
    u16::try_from(cores.min(MAX_NCS)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cores(visible: Option<&str>, number: Option<&str>) -> Option<Vec<u16>> {
        from_variables(&|name| match name {
            "NEURON_RT_VISIBLE_CORES" => visible.map(str::to_owned),
            _ => number.map(str::to_owned),
        })
    }

    #[test]
    fn visible_cores_win_over_a_number_and_bad_values_over_nothing() {
        assert_eq!(cores(Some("8-10"), Some("2")), Some(vec![8, 9, 10]));
        assert_eq!(cores(None, Some("2")), Some(vec![0, 1]));
        assert_eq!(cores(Some("x"), Some("2")), Some(vec![0, 1]));
        assert_eq!(cores(None, Some("0")), None);
        assert_eq!(cores(None, Some("257")), None);
        assert_eq!(cores(None, None), None);
    }

    #[test]
    fn more_cores_than_there_can_be_are_said_with_their_number() {
        let said = |name: &str, value: &str| {
            check(&|asked| (asked == name).then(|| value.to_owned())).unwrap_err()
        };
        assert_eq!(check(&|_| None), Ok(()));
        assert_eq!(check(&|_| Some("7".to_owned())), Ok(()));
        assert_eq!(
            said("NEURON_RT_NUM_CORES", "257"),
            "visible cores 257 exceeds 256"
        );
        assert!(said("NEURON_RT_NUM_CORES", "0").contains("1 to 256"));
        assert!(said("NEURON_RT_NUM_CORES", "two").contains("NEURON_RT_NUM_CORES=two"));
        assert!(said("NEURON_RT_VISIBLE_CORES", "0-256").contains("0 to 255"));
    }
}
