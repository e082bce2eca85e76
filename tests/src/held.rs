//! What a process holds, at two moments.

use std::fs;

/// Descriptors, mappings and memory of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    descriptors: usize,
    mappings: usize,
    kib: u64,
}

impl Held {
    /// As it is now.
    ///
    /// # Panics
    ///
    /// If the process has ended.
    #[must_use]
    pub fn of(pid: u32) -> Self {
        let count =
            |folder: &str| fs::read_dir(format!("/proc/{pid}/{folder}")).map(Iterator::count);
        let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it lives");
        let rss = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        Self {
            descriptors: count("fd").expect("it lives"),
            mappings: maps(pid).lines().count(),
            kib: rss
                .and_then(|rss| rss.trim().trim_end_matches(" kB").parse().ok())
                .expect("it says"),
        }
    }

    /// Whether it is no more than `base`, but for what an allocator or a thread's stack may take.
    #[must_use]
    pub fn is_flat(self, base: Self) -> bool {
        self.descriptors <= base.descriptors + 2
            && self.mappings <= base.mappings + 4
            && self.kib <= base.kib + (24 << 10)
    }
}

/// The mappings of a process, a line each.
///
/// # Panics
///
/// If it has ended.
#[must_use]
pub fn maps(pid: u32) -> String {
    fs::read_to_string(format!("/proc/{pid}/maps")).expect("it lives")
}
