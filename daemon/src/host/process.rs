//! One attached process: `/proc/PID/{stat,statm,status,cgroup}`.
//!
//! Its files are opened once, and read through those descriptors: they are its own as long as it lives, and give nothing
//! when it has ended, whoever has its number then.
//!
//! `stat` and `status` not by `procfs`: it breaks off at a `stat` that is cut behind the name, and makes a map of all lines of
//! `status`, of which two are wanted.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use procfs::FromRead;
use procfs::process::StatM;
use rustix::fs::{Mode, OFlags};

use super::cgroup::{Cgroups, Place, Values};
use super::members::Member;
use super::reader::{Buffer, OfProcess};
use super::text::{Bad, lines, words};

/// Ticks after which it is looked whether a process is in another cgroup now.
const CGROUP_AGE: u32 = 32;

/// Units of the kernel that this daemon runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Units {
    /// Bytes of a page: 4 KiB is only the most usual size.
    pub page_bytes: u64,
    /// Clock ticks in a second.
    pub ticks_per_s: u64,
}

impl Units {
    /// As the kernel says.
    pub(crate) fn of_this_kernel() -> Self {
        Self {
            page_bytes: procfs::page_size(),
            ticks_per_s: procfs::ticks_per_second().max(1),
        }
    }
}

/// What a process uses; `None` for what is not known.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Usage {
    pub(crate) rss_bytes: Option<u64>,
    pub(crate) vm_size_bytes: Option<u64>,
    pub(crate) cpu_ns: Option<u64>,
    pub(crate) threads: Option<u32>,
    pub(crate) voluntary: Option<u64>,
    pub(crate) involuntary: Option<u64>,
    pub(crate) cgroup: Option<(Arc<Place>, Values)>,
}

/// A process that is sampled.
#[derive(Debug)]
pub(crate) struct Process {
    files: Files,
    place: Option<Arc<Place>>,
    /// Ticks until its cgroup is looked up again.
    place_age: u32,
}

#[derive(Debug)]
struct Files {
    stat: OfProcess,
    statm: Option<OfProcess>,
    status: Option<OfProcess>,
    cgroup: Option<OfProcess>,
}

impl Process {
    /// Opens the files of a member; `None` if it has ended, and its number may be another's.
    pub(crate) fn open(proc_root: &Path, member: &Member, buffer: &mut Buffer) -> Option<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let path = proc_root.join(member.pid.to_string());
        let folder: File = rustix::fs::open(&path, flags, Mode::empty()).ok()?.into();
        let stat = OfProcess::open(&folder, "stat")?;
        let started = start_of(stat.read(buffer)?);
        if started.is_none()
            || member
                .started
                .is_some_and(|expected| started != Some(expected))
        {
            return None;
        }
        let of = |name| OfProcess::open(&folder, name);
        Some(Self {
            files: Files {
                stat,
                statm: of("statm"),
                status: of("status"),
                cgroup: of("cgroup"),
            },
            place: None,
            place_age: 0,
        })
    }

    /// What it uses now; `None` if it has ended.
    pub(crate) fn read(
        &mut self,
        units: Units,
        cgroups: &mut Cgroups,
        buffer: &mut Buffer,
        bad: &mut Bad,
    ) -> Option<Usage> {
        let stat = parse_stat(self.files.stat.read(buffer)?, bad)?;
        let mut usage = Usage {
            cpu_ns: stat.cpu_ticks.map(|ticks| nanoseconds(ticks, units)),
            threads: stat.threads,
            ..Usage::default()
        };
        if let Some(text) = read(self.files.statm.as_ref(), buffer) {
            (usage.vm_size_bytes, usage.rss_bytes) = parse_statm(text, units, bad);
        }
        if let Some(text) = read(self.files.status.as_ref(), buffer) {
            (usage.voluntary, usage.involuntary) = parse_switches(text, bad);
        }
        if self.place_age == 0 {
            self.place_age = CGROUP_AGE;
            let text = read(self.files.cgroup.as_ref(), buffer);
            self.place = text.and_then(|text| cgroups.place(text));
        }
        self.place_age -= 1;
        usage.cgroup = self.place.as_ref().map(|place| {
            let values = cgroups.read(place, buffer, bad);
            (place.clone(), values)
        });
        Some(usage)
    }
}

fn read<'b>(file: Option<&OfProcess>, buffer: &'b mut Buffer) -> Option<&'b [u8]> {
    file?.read(buffer)
}

/// What is wanted of `stat`.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    cpu_ticks: Option<u64>,
    threads: Option<u32>,
}

/// Fields of `stat` behind the name, which may hold blanks and parentheses itself. The first of them has number 3.
fn fields(text: &[u8]) -> Option<impl Iterator<Item = &[u8]>> {
    let end = text.iter().rposition(|byte| *byte == b')')?;
    Some(words(&text[end + 1..]))
}

/// `None`: it has ended, or the text is cut, which it is when a process ends while it is read.
fn parse_stat(text: &[u8], bad: &mut Bad) -> Option<Stat> {
    let mut fields = fields(text)?;
    if matches!(fields.next()?, b"Z" | b"X" | b"x") {
        return None;
    }
    // 14 and 15: utime, stime; 20: num_threads; 22 only shows that the ones before are whole.
    let (user, system) = (fields.nth(10)?, fields.next()?);
    let threads = fields.nth(4)?;
    fields.nth(1)?;
    let cpu_ticks = (|| bad.number(user)?.checked_add(bad.number(system)?))();
    let threads = bad.number(threads).and_then(|n| u32::try_from(n).ok());
    Some(Stat { cpu_ticks, threads })
}

/// When a process began, clock ticks after boot: field 22.
pub(crate) fn start_of(stat: &[u8]) -> Option<u64> {
    let word = fields(stat)?.nth(19)?;
    str::from_utf8(word).ok()?.parse().ok()
}

/// Size and resident size.
fn parse_statm(text: &[u8], units: Units, bad: &mut Bad) -> (Option<u64>, Option<u64>) {
    let Some(pages) = bad.expect(StatM::from_read(text).ok()) else {
        return (None, None);
    };
    let bytes = |pages: u64| pages.checked_mul(units.page_bytes);
    (bytes(pages.size), bytes(pages.resident))
}

/// Voluntary and involuntary context switches, which stand at the end.
fn parse_switches(text: &[u8], bad: &mut Bad) -> (Option<u64>, Option<u64>) {
    let (mut voluntary, mut involuntary) = (None, None);
    let last = text.len().saturating_sub(128);
    for line in lines(&text[last..]) {
        let mut words = words(line);
        let place = match words.next() {
            Some(b"voluntary_ctxt_switches:") => &mut voluntary,
            Some(b"nonvoluntary_ctxt_switches:") => &mut involuntary,
            _ => continue,
        };
        *place = bad.number(words.next().unwrap_or_default());
    }
    (voluntary, involuntary)
}

fn nanoseconds(ticks: u64, units: Units) -> u64 {
    let ns = u128::from(ticks) * 1_000_000_000 / u128::from(units.ticks_per_s);
    u64::try_from(ns).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
