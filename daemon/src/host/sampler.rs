//! One tick: all files read, one after the other, under one time stamp.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nrt_trace_proto::v1::{HostInfo, HostResource};
use rustix::time::{ClockId, clock_gettime};

use super::cgroup::Cgroups;
use super::cpu::{self, Cores, Shares};
use super::frequency::Frequencies;
use super::grid::Due;
use super::members::{Member, Members};
use super::process::{Process, Units};
use super::reader::{Buffer, Kept, Shape};
use super::text::Bad;
use super::tick::{Core, Machine, Moment, Row, Tick};
use super::{facts, memory, pressure, traffic};

/// Where the kernel's files are. Other than `/proc` and `/sys` for tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Roots {
    pub(crate) proc: PathBuf,
    pub(crate) sys: PathBuf,
}

/// Reads everything.
#[derive(Debug)]
pub(crate) struct Sampler {
    roots: Roots,
    units: Units,
    members: Members,
    buffer: Buffer,
    complaints: Complaints,
    files: Files,
    frequencies: Frequencies,
    cgroups: Cgroups,
    processes: BTreeMap<u32, Sampled>,
    before: Option<Before>,
}

/// The files of the machine.
#[derive(Debug)]
struct Files {
    stat: Kept,
    memory: Kept,
    load: Kept,
    pressure: [(HostResource, Kept); 3],
    disks: Kept,
    network: Kept,
}

/// An attached process.
#[derive(Debug)]
struct Sampled {
    member: Arc<Member>,
    /// `None`: it could not be opened, or has ended, and that was told.
    process: Option<Process>,
    cpu_ns: Option<u64>,
}

/// What differences are taken to.
#[derive(Debug)]
struct Before {
    cores: Cores,
    monotonic: u64,
}

/// Counts values that make no sense, and tells of each file's first.
#[derive(Debug, Default)]
struct Complaints {
    count: u64,
    told: BTreeSet<&'static str>,
}

impl Complaints {
    fn watch<T>(&mut self, file: &'static str, read: impl FnOnce(&mut Bad) -> T) -> T {
        let mut bad = Bad::default();
        let value = read(&mut bad);
        self.count += bad.0;
        if bad.0 > 0 && self.told.insert(file) {
            tracing::warn!("host monitor: {file} has values that make no sense; they are left out");
        }
        value
    }
}

impl Files {
    fn new(proc: &Path) -> Self {
        let whole = |name: &str| Kept::new(proc.join(name), Shape::Whole);
        let pieces = |name: &str| Kept::new(proc.join(name), Shape::Pieces);
        Self {
            stat: whole("stat"),
            memory: whole("meminfo"),
            load: whole("loadavg"),
            pressure: [
                (HostResource::Cpu, whole("pressure/cpu")),
                (HostResource::Memory, whole("pressure/memory")),
                (HostResource::Io, whole("pressure/io")),
            ],
            disks: pieces("diskstats"),
            network: pieces("net/dev"),
        }
    }
}

impl Sampler {
    /// Nothing is read yet.
    pub(crate) fn new(roots: Roots, units: Units, members: Members) -> Self {
        Self {
            files: Files::new(&roots.proc),
            frequencies: Frequencies::new(&roots.sys),
            cgroups: Cgroups::new(&roots.sys.join("fs/cgroup")),
            roots,
            units,
            members,
            buffer: Buffer::new(),
            complaints: Complaints::default(),
            processes: BTreeMap::new(),
            before: None,
        }
    }

    /// What stays the same. `instance_id` is the caller's to fill in.
    pub(crate) fn info(&mut self) -> HostInfo {
        let mut cpuinfo = Kept::new(self.roots.proc.join("cpuinfo"), Shape::Pieces);
        let cpu_name = facts::cpu_name(cpuinfo.read(&mut self.buffer).unwrap_or_default());
        let mut bad = Bad::default();
        let stat = self.files.stat.read(&mut self.buffer).unwrap_or_default();
        let cores = cpu::parse(stat, &mut bad).len();
        let meminfo = self.files.memory.read(&mut self.buffer).unwrap_or_default();
        HostInfo {
            cpus: u32::try_from(cores).unwrap_or(u32::MAX),
            cpu_name,
            mem_capacity_bytes: memory::parse(meminfo, &mut bad).total_bytes,
            page_bytes: self.units.page_bytes,
            instance_id: String::new(),
        }
    }

    /// Values that made no sense so far.
    pub(crate) fn bad_values(&self) -> u64 {
        self.complaints.count
    }

    /// Reads everything. The first time there is nothing to take differences from: shares are absent.
    pub(crate) fn tick(&mut self, due: Due) -> Tick {
        let moment = now();
        let cores = self.cores();
        let interval_ns = self.before.as_ref().map_or(0, |before| {
            moment.monotonic.saturating_sub(before.monotonic)
        });
        let rates = {
            let (buffer, frequencies) = (&mut self.buffer, &mut self.frequencies);
            self.complaints
                .watch("cpufreq", |bad| frequencies.read(&cores, buffer, bad))
        };
        let before = self.before.as_ref().map(|before| &before.cores);
        let core = |(id, times): (&u16, &cpu::Times)| {
            // A core that was not there before has no shares yet.
            let earlier = before.and_then(|before| before.get(id));
            let shares =
                earlier.map_or_else(Shares::default, |earlier| Shares::between(earlier, times));
            Core::new(*id, &shares, rates.get(id).copied())
        };
        let tick = Tick {
            seq: 0,
            moment,
            interval_ns,
            late_ns: due.late_ns,
            missed: due.missed,
            cores: cores.iter().map(core).collect(),
            machine: self.machine(),
            rows: self.rows(interval_ns),
        };
        self.before = Some(Before {
            cores,
            monotonic: moment.monotonic,
        });
        tick
    }

    fn cores(&mut self) -> Cores {
        let text = self.files.stat.read(&mut self.buffer).unwrap_or_default();
        self.complaints.watch("stat", |bad| cpu::parse(text, bad))
    }

    fn machine(&mut self) -> Machine {
        let Self {
            files,
            buffer,
            complaints,
            ..
        } = self;
        let mut machine = Machine::default();
        if let Some(text) = files.memory.read(buffer) {
            machine.memory = Some(complaints.watch("meminfo", |bad| memory::parse(text, bad)));
        }
        if let Some(text) = files.load.read(buffer) {
            machine.load = complaints.watch("loadavg", |bad| pressure::load(text, bad));
        }
        let mut stalls = Vec::new();
        for (resource, file) in &mut files.pressure {
            if let Some(text) = file.read(buffer) {
                stalls.push(
                    complaints.watch("pressure", |bad| pressure::parse(*resource, text, bad)),
                );
            }
        }
        machine.pressure = stalls.into();
        if let Some(text) = files.disks.read(buffer) {
            machine.disk = complaints.watch("diskstats", |bad| traffic::disks(text, bad));
        }
        if let Some(text) = files.network.read(buffer) {
            machine.network = complaints.watch("net/dev", |bad| traffic::network(text, bad));
        }
        machine
    }

    fn rows(&mut self, interval_ns: u64) -> Box<[Row]> {
        let members = self.members.now();
        let mut rows = Vec::with_capacity(members.len());
        let here: BTreeSet<u32> = members.iter().map(|member| member.producer_id).collect();
        self.processes.retain(|id, sampled| {
            let stays = here.contains(id);
            // It has detached or ended since.
            if !stays && sampled.process.is_some() {
                rows.push(Row::new(sampled.member.clone(), None, None));
            }
            stays
        });
        for member in members.iter() {
            let sampled = self
                .processes
                .entry(member.producer_id)
                .or_insert_with(|| Sampled {
                    member: member.clone(),
                    process: Process::open(&self.roots.proc, member, &mut self.buffer),
                    cpu_ns: None,
                });
            let Some(process) = &mut sampled.process else {
                continue;
            };
            let (cgroups, buffer) = (&mut self.cgroups, &mut self.buffer);
            let usage = self
                .complaints
                .watch("PID", |bad| process.read(self.units, cgroups, buffer, bad));
            let cpu_ns = usage.as_ref().and_then(|usage| usage.cpu_ns);
            let percent = percent_of(sampled.cpu_ns, cpu_ns, interval_ns);
            sampled.cpu_ns = cpu_ns;
            if usage.is_none() {
                sampled.process = None;
            }
            rows.push(Row::new(member.clone(), usage, percent));
        }
        self.cgroups.end_tick();
        rows.into()
    }
}

/// CPU time between two ticks as percent of one core.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "a percentage, of counters that are exact to a hundredth of a second"
)]
fn percent_of(before: Option<u64>, now: Option<u64>, interval_ns: u64) -> Option<f32> {
    let passed = now?.checked_sub(before?)?;
    (interval_ns > 0).then(|| (passed as f64 * 100.0 / interval_ns as f64) as f32)
}

/// The monotonic clock, ns.
pub(crate) fn monotonic_ns() -> u64 {
    nanoseconds(ClockId::Monotonic)
}

fn now() -> Moment {
    Moment {
        realtime: nanoseconds(ClockId::Realtime),
        monotonic: monotonic_ns(),
        boottime: nanoseconds(ClockId::Boottime),
    }
}

fn nanoseconds(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    let (s, ns) = (u64::try_from(time.tv_sec), u64::try_from(time.tv_nsec));
    s.unwrap_or(0) * 1_000_000_000 + ns.unwrap_or(0)
}

#[cfg(test)]
mod tests;
