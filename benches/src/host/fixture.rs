//! A `/proc` and `/sys` of a large machine.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::Result;

/// Files of the real machine that are taken as they are.
const COPIED: [&str; 7] = [
    "meminfo",
    "loadavg",
    "diskstats",
    "net/dev",
    "pressure/cpu",
    "pressure/memory",
    "pressure/io",
];

/// The folders.
pub(super) struct Fixture(PathBuf);

impl Fixture {
    /// Writes the files of a machine with so many CPUs.
    pub(super) fn new(folder: &Path, cpus: u32) -> Result<Self> {
        let fixture = Self(folder.to_owned());
        let line = |name: &str| {
            format!("cpu{name} 21503920 1243702 6090750 762109000 32500 0 4994 41718 0 0\n")
        };
        let each = |i: u32| line(&i.to_string());
        let stat: String = std::iter::once(line(" "))
            .chain((0..cpus).map(each))
            .collect();
        write(
            &fixture.proc().join("stat"),
            format!("{stat}intr {}\n", "0 ".repeat(2000)),
        )?;
        for name in COPIED {
            // A kernel without pressure has nothing to copy, and nothing to read.
            if let Ok(text) = fs::read(Path::new("/proc").join(name)) {
                write(&fixture.proc().join(name), text)?;
            }
        }
        for cpu in 0..cpus {
            let path = format!("devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq");
            write(&fixture.sys().join(path), "2600000\n")?;
        }
        fs::create_dir_all(fixture.sys().join("fs"))?;
        // Real cgroups, where they are mounted.
        symlink("/sys/fs/cgroup", fixture.sys().join("fs/cgroup"))?;
        Ok(fixture)
    }

    /// In place of `/proc`.
    pub(super) fn proc(&self) -> PathBuf {
        self.0.join("proc")
    }

    /// In place of `/sys`.
    pub(super) fn sys(&self) -> PathBuf {
        self.0.join("sys")
    }

    /// Makes a real process visible in it.
    pub(super) fn link(&self, pid: u32) -> Result<()> {
        symlink(format!("/proc/{pid}"), self.proc().join(pid.to_string()))?;
        Ok(())
    }
}

fn write(path: &Path, text: impl AsRef<[u8]>) -> Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, text)?;
    Ok(())
}
