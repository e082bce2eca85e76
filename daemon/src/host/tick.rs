//! One tick, as it is kept: compactly, because ten thousand of them are.
//!
//! A core takes 28 bytes and a process 96; shares are hundredths of a percent, and what is not known is a value that
//! nothing else has.

use std::sync::Arc;

use nrt_trace_proto::v1;

use super::cgroup::{Place, Values};
use super::cpu::Shares;
use super::members::Member;
use super::process::Usage;

/// A value of 16 bits, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Small(u16);

impl Small {
    fn new(value: Option<u16>) -> Self {
        Self(value.unwrap_or(u16::MAX))
    }

    fn get(self) -> Option<u16> {
        (self.0 != u16::MAX).then_some(self.0)
    }
}

/// A share of 0 to 100 percent in hundredths, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Share(Small);

impl Share {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share lies between 0 and 100"
    )]
    fn new(share: Option<f32>) -> Self {
        Self(Small::new(share.map(|share| {
            (share * 100.0).round().clamp(0.0, 10_000.0) as u16
        })))
    }

    fn get(self) -> Option<f32> {
        self.0.get().map(|hundredths| f32::from(hundredths) / 100.0)
    }
}

/// A counter, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Count(u64);

impl Count {
    fn new(value: Option<u64>) -> Self {
        Self(value.unwrap_or(u64::MAX))
    }

    fn get(self) -> Option<u64> {
        (self.0 != u64::MAX).then_some(self.0)
    }
}

/// A core.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Core {
    id: u16,
    mhz: Small,
    /// NaN: not known.
    util: f32,
    parts: [Share; 8],
    guest: Share,
}

impl Core {
    /// A core with its shares since the tick before, and its clock rate.
    pub(crate) fn new(id: u16, shares: &Shares, mhz: Option<u16>) -> Self {
        Self {
            id,
            mhz: Small::new(mhz),
            util: shares.util.unwrap_or(f32::NAN),
            parts: shares.parts.map(Share::new),
            guest: Share::new(shares.guest),
        }
    }

    /// Its number.
    pub(crate) fn id(&self) -> u16 {
        self.id
    }

    /// Its busy share in percent.
    pub(crate) fn util(&self) -> Option<f32> {
        (!self.util.is_nan()).then_some(self.util)
    }

    fn message(&self) -> v1::HostCpu {
        let [user, nice, system, idle, iowait, irq, softirq, steal] = self.parts.map(Share::get);
        v1::HostCpu {
            cpu_id: self.id.into(),
            util: self.util(),
            user,
            nice,
            system,
            idle,
            iowait,
            irq,
            softirq,
            steal,
            guest: self.guest.get(),
            mhz: self.mhz.get().map(u32::from),
        }
    }
}

/// A process.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    member: Arc<Member>,
    place: Option<Arc<Place>>,
    ended: bool,
    threads: u32,
    cpu_percent: f32,
    rss_bytes: Count,
    vm_size_bytes: Count,
    cpu_ns: Count,
    voluntary: Count,
    involuntary: Count,
    group_cpu_ns: Count,
    group_memory: Count,
    group_limit: Count,
}

impl Row {
    /// What a process uses, and its CPU time as percent of a core; `None` if it has ended.
    pub(crate) fn new(member: Arc<Member>, usage: Option<Usage>, cpu_percent: Option<f32>) -> Self {
        let ended = usage.is_none();
        let usage = usage.unwrap_or_default();
        let (place, values) = match usage.cgroup {
            Some((place, values)) => (Some(place), values),
            None => (None, Values::default()),
        };
        Self {
            member,
            place,
            ended,
            threads: usage.threads.unwrap_or(u32::MAX),
            cpu_percent: cpu_percent.unwrap_or(f32::NAN),
            rss_bytes: Count::new(usage.rss_bytes),
            vm_size_bytes: Count::new(usage.vm_size_bytes),
            cpu_ns: Count::new(usage.cpu_ns),
            voluntary: Count::new(usage.voluntary),
            involuntary: Count::new(usage.involuntary),
            group_cpu_ns: Count::new(values.cpu_ns),
            group_memory: Count::new(values.memory_bytes),
            group_limit: Count::new(values.memory_limit_bytes),
        }
    }

    /// Whose it is.
    pub(crate) fn member(&self) -> &Arc<Member> {
        &self.member
    }

    /// Resident memory.
    pub(crate) fn rss_bytes(&self) -> Option<u64> {
        self.rss_bytes.get()
    }

    fn message(&self) -> v1::HostProducer {
        v1::HostProducer {
            producer_id: self.member.producer_id,
            pid: Some(self.member.pid),
            name: self.member.name.clone(),
            ended: self.ended,
            rss_bytes: self.rss_bytes.get(),
            vm_size_bytes: self.vm_size_bytes.get(),
            cpu_ns: self.cpu_ns.get(),
            cpu_percent: (!self.cpu_percent.is_nan()).then_some(self.cpu_percent),
            threads: (self.threads != u32::MAX).then_some(self.threads),
            voluntary_switches: self.voluntary.get(),
            involuntary_switches: self.involuntary.get(),
            cgroup: self.place.as_ref().map(|place| v1::HostCgroup {
                path: place.path().to_owned(),
                cpu_ns: self.group_cpu_ns.get(),
                memory_bytes: self.group_memory.get(),
                memory_limit_bytes: self.group_limit.get(),
            }),
        }
    }
}

/// Three clocks, read together, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Moment {
    pub(crate) realtime: u64,
    pub(crate) monotonic: u64,
    pub(crate) boottime: u64,
}

/// The machine as a whole.
#[derive(Clone, Debug, Default)]
pub(crate) struct Machine {
    pub(crate) memory: Option<v1::HostMemory>,
    pub(crate) load: Option<v1::HostLoad>,
    pub(crate) pressure: Box<[v1::HostPressure]>,
    pub(crate) disk: Option<v1::HostDisk>,
    pub(crate) network: Option<v1::HostNetwork>,
}

/// All that was read at one moment.
#[derive(Clone, Debug)]
pub(crate) struct Tick {
    /// Its number, which the history gives.
    pub(crate) seq: u64,
    pub(crate) moment: Moment,
    pub(crate) interval_ns: u64,
    pub(crate) late_ns: u64,
    pub(crate) missed: u64,
    pub(crate) machine: Machine,
    pub(crate) cores: Box<[Core]>,
    pub(crate) rows: Box<[Row]>,
}

impl Tick {
    /// Memory that it takes. Names and cgroup paths are shared by all ticks, and not counted.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>()
            + size_of_val(&*self.cores)
            + size_of_val(&*self.rows)
            + size_of_val(&*self.machine.pressure)
    }

    /// As the API gives it.
    pub(crate) fn message(&self) -> v1::HostSample {
        let machine = self.machine.clone();
        v1::HostSample {
            seq: self.seq,
            timestamp_ns: self.moment.realtime,
            monotonic_ns: self.moment.monotonic,
            boottime_ns: self.moment.boottime,
            interval_ns: self.interval_ns,
            late_ns: self.late_ns,
            missed: self.missed,
            cpus: self.cores.iter().map(Core::message).collect(),
            memory: machine.memory,
            load: machine.load,
            pressure: machine.pressure.into_vec(),
            disk: machine.disk,
            network: machine.network,
            producers: self.rows.iter().map(Row::message).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_and_a_process_are_small() {
        assert_eq!(size_of::<Core>(), 28);
        assert_eq!(size_of::<Row>(), 96);
        assert!(size_of::<Tick>() <= 512, "{}", size_of::<Tick>());
    }

    #[test]
    fn what_is_not_known_stays_unknown_and_nothing_else_does() {
        let shares = Shares {
            util: Some(0.0),
            parts: [
                Some(0.0),
                None,
                Some(33.333),
                None,
                None,
                None,
                None,
                Some(100.0),
            ],
            guest: None,
        };
        let core = Core::new(7, &shares, Some(0)).message();
        assert_eq!(
            (core.util, core.user, core.nice),
            (Some(0.0), Some(0.0), None)
        );
        assert_eq!((core.system, core.steal), (Some(33.33), Some(100.0)));
        assert_eq!((core.guest, core.mhz, core.cpu_id), (None, Some(0), 7));
        let unknown = Core::new(7, &Shares::default(), None).message();
        assert_eq!(
            (unknown.util, unknown.steal, unknown.mhz),
            (None, None, None)
        );

        let member = Arc::new(Member {
            producer_id: 3,
            pid: 9,
            started: None,
            name: "x".to_owned(),
        });
        let usage = Usage {
            rss_bytes: Some(0),
            threads: Some(0),
            ..Usage::default()
        };
        let row = Row::new(member.clone(), Some(usage), Some(0.0)).message();
        assert_eq!(
            (row.rss_bytes, row.vm_size_bytes, row.threads),
            (Some(0), None, Some(0))
        );
        assert_eq!(
            (row.cpu_percent, row.cgroup, row.ended),
            (Some(0.0), None, false)
        );
        let row = Row::new(member, None, None).message();
        assert_eq!(
            (row.rss_bytes, row.cpu_percent, row.ended),
            (None, None, true)
        );
    }
}
