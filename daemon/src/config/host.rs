//! Settings of the host monitor.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use crate::host::Retention;

/// How the host monitor samples.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HostSettings {
    /// Whether it samples from the daemon's start on.
    pub enabled: bool,
    /// Time between two ticks, ms.
    pub period_ms: u32,
    /// Ticks that are kept.
    pub max_samples: u64,
    /// What happens when so many are.
    pub retention: Retention,
    /// Bytes that the kept ticks take at most; beyond it the same happens.
    pub memory_bytes: u64,
    /// Where the kernel's process file system is mounted.
    pub proc_root: PathBuf,
    /// Where the kernel's device file system is mounted, with the cgroups in `fs/cgroup`.
    pub sys_root: PathBuf,
}

impl HostSettings {
    /// Periods that are allowed, ms.
    pub const PERIODS_MS: RangeInclusive<u32> = 100..=60_000;
}

impl Default for HostSettings {
    fn default() -> Self {
        Self {
            enabled: false,
            period_ms: 1000,
            max_samples: 10_000,
            retention: Retention::Saturate,
            memory_bytes: 256 << 20,
            proc_root: "/proc".into(),
            sys_root: "/sys".into(),
        }
    }
}
