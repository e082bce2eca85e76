//! What a daemon is told: where its sockets are, what it gives by default, what it never exceeds.
//!
//! A value comes from the command line, else the environment, else the configuration file, else the default here.

mod current;
mod error;
mod flags;
mod group;
mod host;
mod keys;
mod level;
mod origin;
mod sample;
mod settings;
mod value;

use std::path::{Path, PathBuf};

pub(crate) use current::Current;
pub use error::{ConfigError, Problem, Wrong};
pub use flags::{Checked, Command, CommandLine, DEFAULT_FILE, Flags, check_file, one_line};
pub use host::HostSettings;
pub use level::LogLevel;
pub use origin::Origin;
pub use sample::sample;
pub(crate) use settings::Change;
pub use settings::Settings;

/// Folder of the sockets when nothing else is said.
pub const DEFAULT_FOLDER: &str = "/run/nrt-trace";
/// File name of the control socket inside its folder.
pub const CONTROL_SOCKET: &str = "control.sock";
/// File name of the producer socket inside its folder.
pub const PRODUCER_SOCKET: &str = "producer.sock";
/// Smallest ring that a run may have, in events.
pub const MIN_EVENTS_PER_NC: u64 = 1024;
/// Longest that a start waits for producers, ms, whatever is asked for.
pub const MAX_ARM_TIMEOUT_MS: u32 = 10_000;

/// A daemon's settings, valid once [`Config::validate`] has passed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Config {
    /// Unix socket of the control API.
    pub control_socket: PathBuf,
    /// Unix socket that programs attach to.
    pub producer_socket: PathBuf,
    /// Unix socket where metrics are read over HTTP; absent: nowhere.
    pub metrics_socket: Option<PathBuf>,
    /// Permission bits of the metrics socket.
    pub metrics_mode: u32,
    /// Group of the metrics socket; absent: the daemon's own.
    pub metrics_group: Option<u32>,
    /// Folder of the daemon's lock and state; no two daemons share one.
    pub state_dir: PathBuf,
    /// Permission bits of the control socket.
    pub control_mode: u32,
    /// Group of the control socket; absent: the daemon's own.
    pub control_group: Option<u32>,
    /// Permission bits of the producer socket.
    pub producer_mode: u32,
    /// Group of the producer socket; absent: the daemon's own.
    pub producer_group: Option<u32>,
    /// Events kept for each NC when a start does not say.
    pub default_max_events_per_nc: u64,
    /// NCs that get a ring in a process whose cores are not known.
    pub default_cores: u32,
    /// How long a start waits for producers when it does not say, ms.
    pub arm_timeout_ms: u32,
    /// How long a stop waits for producers, ms.
    pub disarm_timeout_ms: u32,
    /// Whether runs go on after the daemon has ended, when one starts again with the same `state_dir`.
    pub resume: bool,
    /// Whether the daemon lives inside another command; such a one has no successor.
    pub embedded: bool,
    /// Name of the machine in traces; absent: the cloud's instance id, else the host name.
    pub instance_id: Option<String>,
    /// Who takes the memory of the rings, and when.
    pub allocate: Allocate,
    /// How the host monitor samples.
    pub host: HostSettings,
    /// What the daemon never exceeds.
    pub budgets: Budgets,
    /// What the log of a service holds at least.
    pub log_level: LogLevel,
    /// Lets runs have rings of fewer than [`MIN_EVENTS_PER_NC`] events. For tests, where a ring has to wrap soon.
    pub test_small_rings: bool,
}

/// Who takes the memory of the rings, and when. Memory is charged to the memory group of whoever takes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Allocate {
    /// The daemon, a few MiB ahead of each ring's tail. A process that is faster than that for a while takes some itself.
    #[default]
    Ahead,
    /// The daemon, all of it before a process is armed: whatever the process does, its memory group is charged nothing.
    All,
    /// The process, as it writes.
    Producer,
}

impl std::fmt::Display for Allocate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Ahead => "ahead",
            Self::All => "all",
            Self::Producer => "producer",
        })
    }
}

impl std::str::FromStr for Allocate {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "ahead" => Ok(Self::Ahead),
            "all" => Ok(Self::All),
            "producer" => Ok(Self::Producer),
            _ => Err(()),
        }
    }
}

/// Limits that hold whatever users do.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Budgets {
    /// Processes attached at a time.
    pub producers: usize,
    /// Processes of one user attached at a time.
    pub producers_per_uid: usize,
    /// Bytes of one process's rings in one run.
    pub segment_bytes: u64,
    /// Bytes of the rings of all of one user's processes, those that ended included, taken or not.
    pub segment_bytes_per_uid: u64,
    /// The same of all users.
    pub segment_bytes_total: u64,
    /// Bytes of shared memory really taken. Above it no process is armed, and rings get no memory ahead of time.
    pub memory_bytes: u64,
    /// Of those, bytes of processes that have ended: the oldest gives way to the newer.
    pub ended_bytes: u64,
    /// Bytes of each process's table of names.
    pub string_table_bytes: u64,
    /// Bytes of all names together that the daemon remembers.
    pub names_bytes: u64,
    /// Bytes of the names of one user's processes.
    pub names_bytes_per_uid: u64,
    /// A token's run that nobody asks for, and none of whose processes is attached, is given up after this time, s;
    /// 0: never.
    pub forgotten_run_s: u64,
}

impl Default for Budgets {
    fn default() -> Self {
        Self {
            producers: 1024,
            producers_per_uid: 512,
            segment_bytes: 64 << 30,
            segment_bytes_per_uid: 1 << 40,
            segment_bytes_total: 4 << 40,
            memory_bytes: half_of_memory(),
            ended_bytes: half_of_memory() / 2,
            string_table_bytes: nrt_trace_abi::layout::strings::DEFAULT_BYTES,
            names_bytes: 256 << 20,
            names_bytes_per_uid: 64 << 20,
            forgotten_run_s: 3600,
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self::in_folder(Path::new(DEFAULT_FOLDER))
    }
}

impl Config {
    fn in_folder(folder: &Path) -> Self {
        Self {
            control_socket: folder.join(CONTROL_SOCKET),
            producer_socket: folder.join(PRODUCER_SOCKET),
            metrics_socket: None,
            metrics_mode: 0o660,
            metrics_group: None,
            state_dir: folder.to_owned(),
            control_mode: 0o660,
            control_group: None,
            producer_mode: 0o666,
            producer_group: None,
            default_max_events_per_nc: 0x10_0000,
            default_cores: 8,
            arm_timeout_ms: 250,
            disarm_timeout_ms: 100,
            resume: true,
            embedded: false,
            instance_id: None,
            allocate: Allocate::default(),
            host: HostSettings::default(),
            budgets: Budgets::default(),
            log_level: LogLevel::default(),
            test_small_rings: false,
        }
    }

    /// The settings of a daemon inside another command, with its sockets in `folder`, which only its user may enter.
    #[must_use]
    pub fn embedded_in(folder: &Path) -> Self {
        Self {
            control_mode: 0o600,
            embedded: true,
            ..Self::in_folder(folder)
        }
    }

    /// The defaults, changed by the keys of a configuration file's text.
    ///
    /// # Errors
    /// [`ConfigError::Wrong`] with everything that is wrong.
    pub fn from_toml(text: &str) -> Result<Self, ConfigError> {
        let mut sayings = settings::Sayings::default();
        sayings.add_file(text, None);
        Ok(sayings.over(Self::default())?.config().clone())
    }

    /// Folder of the control socket, the state's place when nothing else is said.
    #[must_use]
    pub fn folder(&self) -> PathBuf {
        match self.control_socket.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
            _ => PathBuf::from("."),
        }
    }

    /// Checks every value.
    ///
    /// # Errors
    /// [`ConfigError::Wrong`] with each key that is wrong, its value, and what is allowed.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let mut copy = self.clone();
        let wrong: Vec<Wrong> = (keys::KEYS.iter())
            .filter_map(|key| {
                let value = (key.get)(self)?;
                (!(key.set)(&mut copy, &value)).then(|| Wrong {
                    at: Origin::Default,
                    problem: settings::not_allowed(key, &value),
                })
            })
            .collect();
        if wrong.is_empty() {
            Ok(())
        } else {
            Err(ConfigError::Wrong(wrong))
        }
    }
}

/// Half of the machine's memory, bytes.
fn half_of_memory() -> u64 {
    let info = rustix::system::sysinfo();
    info.totalram.saturating_mul(u64::from(info.mem_unit)) / 2
}

#[cfg(test)]
mod tests;
