//! What a daemon is told: where its sockets are, what it gives by default, what it never exceeds.
//!
//! A value comes from the command line, else the environment, else the configuration file, else the default here.

mod error;
mod flags;
mod group;
mod host;
mod raw;

use std::path::{Path, PathBuf};

pub use error::ConfigError;
pub use flags::{Flags, one_line};
pub use host::HostSettings;

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
    /// [`ConfigError::Syntax`] for what is no TOML, an unknown key or a wrong type; otherwise as
    /// [`Config::validate`].
    pub fn from_toml(text: &str) -> Result<Self, ConfigError> {
        let mut config = Self::default();
        let raw = raw::parse(text)?;
        let state_dir_given = raw.state_dir.is_some();
        raw.apply(&mut config)?;
        if !state_dir_given {
            config.state_dir = config.folder();
        }
        config.validate()?;
        Ok(config)
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
    /// [`ConfigError::Value`] with the key, the value, and what is allowed.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let bad = |key, value: &dyn std::fmt::Display, allowed| {
            Err(ConfigError::Value {
                key,
                value: value.to_string(),
                allowed,
            })
        };
        let b = &self.budgets;
        if self.control_socket == self.producer_socket {
            return bad(
                "producer_socket",
                &self.producer_socket.display(),
                "another path than control_socket",
            );
        }
        for (key, path) in [
            ("control_socket", &self.control_socket),
            ("producer_socket", &self.producer_socket),
        ] {
            if path.file_name().is_none() {
                return bad(key, &path.display(), "the path of a socket");
            }
        }
        let least = if self.test_small_rings {
            1
        } else {
            MIN_EVENTS_PER_NC
        };
        if !(least..=1 << 32).contains(&self.default_max_events_per_nc) {
            return bad(
                "default_max_events_per_nc",
                &self.default_max_events_per_nc,
                "1024 to 4294967296",
            );
        }
        if !(1..=256).contains(&self.default_cores) {
            return bad("default_cores", &self.default_cores, "1 to 256");
        }
        if self.arm_timeout_ms > MAX_ARM_TIMEOUT_MS {
            return bad("arm_timeout_ms", &self.arm_timeout_ms, "0 to 10000");
        }
        if !(1..=MAX_ARM_TIMEOUT_MS).contains(&self.disarm_timeout_ms) {
            return bad("disarm_timeout_ms", &self.disarm_timeout_ms, "1 to 10000");
        }
        self.host.validate()?;
        if b.producers == 0 {
            return bad("max_producers", &b.producers, "at least 1");
        }
        if b.producers_per_uid == 0 {
            return bad("max_producers_per_uid", &b.producers_per_uid, "at least 1");
        }
        if nrt_trace_abi::layout::StringTableLayout::new(b.string_table_bytes).is_none() {
            return bad(
                "string_table_bytes",
                &b.string_table_bytes,
                "multiples of 4096 from 4096 to 4294967296",
            );
        }
        for (key, bytes) in [
            ("max_segment_bytes", b.segment_bytes),
            ("max_segment_bytes_per_uid", b.segment_bytes_per_uid),
            ("max_segment_bytes_total", b.segment_bytes_total),
        ] {
            if bytes == 0 {
                return bad(key, &bytes, "at least 1");
            }
        }
        for (key, mode) in [
            ("control_mode", self.control_mode),
            ("producer_mode", self.producer_mode),
        ] {
            if mode > 0o777 {
                return bad(
                    key,
                    &format_args!("{mode:o}"),
                    "octal digits such as \"0660\", at most \"0777\"",
                );
            }
        }
        Ok(())
    }
}

/// Half of the machine's memory, bytes.
fn half_of_memory() -> u64 {
    let info = rustix::system::sysinfo();
    info.totalram.saturating_mul(u64::from(info.mem_unit)) / 2
}

#[cfg(test)]
mod tests;
