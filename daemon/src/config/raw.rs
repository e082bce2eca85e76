//! The configuration file as it is written. Each key is documented here, once.

use std::path::PathBuf;

use serde::Deserialize;

use super::group::Group;
use super::{Allocate, Config, ConfigError};
use crate::host::Retention;

/// The keys of a configuration file, all optional.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Raw {
    /// Path of the control socket. Default `/run/nrt-trace/control.sock`.
    control_socket: Option<PathBuf>,
    /// Path of the producer socket. Default `/run/nrt-trace/producer.sock`.
    producer_socket: Option<PathBuf>,
    /// Folder of lock and state. Default: the folder of the control socket.
    pub(super) state_dir: Option<PathBuf>,
    /// Permission bits of the control socket, as octal digits in a string. Default `"0660"`.
    control_mode: Option<String>,
    /// Group that may control the daemon: a name of `/etc/group`, or a number. Default: `nrt-trace` if there is such a
    /// group, else the daemon's own.
    control_group: Option<Group>,
    /// Permission bits of the producer socket. Default `"0666"`; with `producer_group`, `"0660"`.
    producer_mode: Option<String>,
    /// Group whose processes may attach. Default: everybody's.
    producer_group: Option<Group>,
    /// Events kept for each NC of each process when a start does not say. Default 1048576.
    default_max_events_per_nc: Option<u64>,
    /// NCs that get a ring in a process whose cores are not known. Default 8.
    default_cores: Option<u32>,
    /// How long a start waits for producers when it does not say, ms. Default 250.
    arm_timeout_ms: Option<u32>,
    /// How long a stop waits for producers, ms. Default 100.
    disarm_timeout_ms: Option<u32>,
    /// Whether runs go on when the daemon ends and starts again. Default true.
    resume: Option<bool>,
    /// Name of the machine in traces. Default: the cloud's instance id where known, else the host name.
    instance_id: Option<String>,
    /// Processes attached at a time. Default 1024.
    max_producers: Option<usize>,
    /// Processes of one user attached at a time. Default 512.
    max_producers_per_uid: Option<usize>,
    /// Bytes of one process's rings in one run. Default 64 GiB (memory is taken only as events come).
    max_segment_bytes: Option<u64>,
    /// Bytes of the rings of all processes of one user, ended ones with unread events included, taken or not. Default 1 TiB.
    max_segment_bytes_per_uid: Option<u64>,
    /// The same of all users. Default 4 TiB.
    max_segment_bytes_total: Option<u64>,
    /// Who takes the memory of rings: `"ahead"`, the daemon, some MiB ahead of each tail; `"all"`, the daemon, before a
    /// process is armed, so that no process's memory group is ever charged; `"producer"`, the process. Default `"ahead"`.
    allocate: Option<String>,
    /// Bytes of shared memory really taken, above which no process is armed. Default: half of the machine's memory.
    memory_budget_bytes: Option<u64>,
    /// Bytes of unread events of ended processes; beyond it the oldest are given up. Default: half of
    /// `memory_budget_bytes`, which it never exceeds.
    ended_budget_bytes: Option<u64>,
    /// Bytes of each process's table of names. Default 1048576.
    string_table_bytes: Option<u64>,
    /// Bytes of all names that the daemon remembers. Default 268435456.
    names_budget_bytes: Option<u64>,
    /// Seconds after which a token's run that nobody asks for and that has no process is given up; 0: never.
    /// Default 3600.
    forgotten_run_s: Option<u64>,
    /// Whether the host monitor samples from the daemon's start on. Default false: when somebody asks for it.
    host: Option<bool>,
    /// Time between two ticks of the host monitor, ms, 100 to 60000. Default 1000.
    host_period_ms: Option<u32>,
    /// Ticks that the host monitor keeps. Default 10000.
    host_max_samples: Option<u64>,
    /// What the host monitor does when it keeps so many: `"saturate"`, it stops and every answer says so, or `"ring"`,
    /// the oldest gives way. Default `"saturate"`.
    host_retention: Option<String>,
    /// Bytes that the kept ticks take at most; beyond it the same happens. Default 268435456.
    host_memory_bytes: Option<u64>,
    /// Where the host monitor finds the kernel's files. Default `/proc` and `/sys`.
    proc_root: Option<PathBuf>,
    sys_root: Option<PathBuf>,
    /// For tests only: rings below 1024 events.
    test_small_rings: Option<bool>,
}

/// Reads the text of a configuration file.
pub(super) fn parse(text: &str) -> Result<Raw, ConfigError> {
    toml::from_str(text).map_err(|error| ConfigError::Syntax {
        line: error
            .span()
            .map(|span| text[..span.start.min(text.len())].matches('\n').count() + 1),
        problem: error.message().lines().collect::<Vec<_>>().join(" "),
    })
}

impl Raw {
    /// Writes the keys that are there over `config`.
    pub(super) fn apply(self, config: &mut Config) -> Result<(), ConfigError> {
        set(&mut config.control_socket, self.control_socket);
        set(&mut config.producer_socket, self.producer_socket);
        set(&mut config.state_dir, self.state_dir);
        set(
            &mut config.control_mode,
            mode("control_mode", self.control_mode)?,
        );
        if let Some(group) = self.control_group {
            config.control_group = Some(group.id("control_group")?);
        }
        if let Some(group) = self.producer_group {
            config.producer_group = Some(group.id("producer_group")?);
            config.producer_mode = 0o660;
        }
        set(
            &mut config.producer_mode,
            mode("producer_mode", self.producer_mode)?,
        );
        set(
            &mut config.default_max_events_per_nc,
            self.default_max_events_per_nc,
        );
        set(&mut config.default_cores, self.default_cores);
        set(&mut config.arm_timeout_ms, self.arm_timeout_ms);
        set(&mut config.disarm_timeout_ms, self.disarm_timeout_ms);
        set(&mut config.resume, self.resume);
        config.instance_id = self.instance_id.or_else(|| config.instance_id.take());
        let budgets = &mut config.budgets;
        set(&mut budgets.producers, self.max_producers);
        set(&mut budgets.producers_per_uid, self.max_producers_per_uid);
        set(&mut budgets.segment_bytes, self.max_segment_bytes);
        set(
            &mut budgets.segment_bytes_per_uid,
            self.max_segment_bytes_per_uid,
        );
        set(
            &mut budgets.segment_bytes_total,
            self.max_segment_bytes_total,
        );
        set(&mut budgets.memory_bytes, self.memory_budget_bytes);
        // What ended processes left counts as memory too: with more for them than there is in all, nobody could be armed.
        budgets.ended_bytes = self
            .ended_budget_bytes
            .unwrap_or(budgets.memory_bytes / 2)
            .min(budgets.memory_bytes);
        set(&mut budgets.string_table_bytes, self.string_table_bytes);
        set(&mut budgets.names_bytes, self.names_budget_bytes);
        set(&mut budgets.forgotten_run_s, self.forgotten_run_s);
        set(&mut config.allocate, allocate(self.allocate)?);
        let host = &mut config.host;
        set(&mut host.enabled, self.host);
        set(&mut host.period_ms, self.host_period_ms);
        set(&mut host.max_samples, self.host_max_samples);
        set(&mut host.retention, retention(self.host_retention)?);
        set(&mut host.memory_bytes, self.host_memory_bytes);
        set(&mut host.proc_root, self.proc_root);
        set(&mut host.sys_root, self.sys_root);
        set(&mut config.test_small_rings, self.test_small_rings);
        Ok(())
    }
}

fn set<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}

fn mode(key: &'static str, text: Option<String>) -> Result<Option<u32>, ConfigError> {
    text.map(|text| {
        u32::from_str_radix(&text, 8).map_err(|_| ConfigError::Value {
            key,
            value: format!("{text:?}"),
            allowed: "octal digits such as \"0660\", at most \"0777\"",
        })
    })
    .transpose()
}

fn allocate(text: Option<String>) -> Result<Option<Allocate>, ConfigError> {
    text.map(|text| {
        text.parse().map_err(|()| ConfigError::Value {
            key: "allocate",
            value: format!("{text:?}"),
            allowed: "\"ahead\", \"all\" or \"producer\"",
        })
    })
    .transpose()
}

fn retention(text: Option<String>) -> Result<Option<Retention>, ConfigError> {
    text.map(|text| {
        text.parse().map_err(|_| ConfigError::Value {
            key: "host_retention",
            value: format!("{text:?}"),
            allowed: "\"saturate\" or \"ring\"",
        })
    })
    .transpose()
}
