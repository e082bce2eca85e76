//! Objects with the keys that are known.

use nrt_trace_proto::v1::{
    HostCpu, HostMemory, HostPressure, HostProducer, HostResource, HostSample, HostStall,
};
use serde::Serialize;

/// The share of memory that is in use, percent.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "a percentage"
)]
pub(super) fn percent(memory: &HostMemory) -> Option<f32> {
    let (used, total) = (memory.used_bytes?, memory.total_bytes?);
    (total > 0).then(|| (used as f64 * 100.0 / total as f64) as f32)
}

/// The machine's memory, bytes, under the names that Neuron's objects have, and more.
#[derive(Debug, Default, Serialize)]
pub(super) struct Memory {
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    percent_usage: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    available: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    free: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    buffers: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cached: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    swap_total: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    swap_free: Option<u64>,
}

impl Memory {
    pub(super) fn of(sample: &HostSample) -> Self {
        let memory = sample.memory.unwrap_or_default();
        Self {
            usage: memory.used_bytes,
            percent_usage: percent(&memory),
            total: memory.total_bytes,
            available: memory.available_bytes,
            free: memory.free_bytes,
            buffers: memory.buffers_bytes,
            cached: memory.cached_bytes,
            swap_total: memory.swap_total_bytes,
            swap_free: memory.swap_free_bytes,
        }
    }
}

/// A process.
#[derive(Debug, Serialize)]
pub(super) struct Producer {
    producer_id: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<i32>,
    name: String,
    ended: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    rss_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    vm_size_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_percent: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    threads: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    voluntary_switches: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    involuntary_switches: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cgroup: Option<Cgroup>,
}

/// Its cgroup.
#[derive(Debug, Serialize)]
struct Cgroup {
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_limit_bytes: Option<u64>,
}

impl Producer {
    pub(super) fn of(producer: &HostProducer) -> Self {
        let producer = producer.clone();
        Self {
            producer_id: producer.producer_id,
            pid: producer.pid,
            name: producer.name,
            ended: producer.ended,
            rss_bytes: producer.rss_bytes,
            vm_size_bytes: producer.vm_size_bytes,
            cpu_ns: producer.cpu_ns,
            cpu_percent: producer.cpu_percent,
            threads: producer.threads,
            voluntary_switches: producer.voluntary_switches,
            involuntary_switches: producer.involuntary_switches,
            cgroup: producer.cgroup.map(|cgroup| Cgroup {
                path: cgroup.path,
                cpu_ns: cgroup.cpu_ns,
                memory_bytes: cgroup.memory_bytes,
                memory_limit_bytes: cgroup.memory_limit_bytes,
            }),
        }
    }
}

/// A core, with all its shares.
#[derive(Debug, Serialize)]
struct Cpu {
    cpu_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    util: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    nice: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    idle: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    iowait: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    irq: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    softirq: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    steal: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    guest: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mhz: Option<u32>,
}

impl Cpu {
    fn of(cpu: &HostCpu) -> Self {
        Self {
            cpu_id: cpu.cpu_id.to_string(),
            util: cpu.util,
            user: cpu.user,
            nice: cpu.nice,
            system: cpu.system,
            idle: cpu.idle,
            iowait: cpu.iowait,
            irq: cpu.irq,
            softirq: cpu.softirq,
            steal: cpu.steal,
            guest: cpu.guest,
            mhz: cpu.mhz,
        }
    }
}

#[derive(Debug, Serialize)]
struct Load {
    one: f32,
    five: f32,
    fifteen: f32,
    #[serde(rename = "running_count")]
    running: u32,
    #[serde(rename = "task_count")]
    tasks: u32,
}

#[derive(Debug, Serialize)]
struct Stall {
    #[serde(skip_serializing_if = "Option::is_none")]
    avg10: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    avg60: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    avg300: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    total_us: Option<u64>,
}

impl Stall {
    fn of(stall: HostStall) -> Self {
        Self {
            avg10: stall.avg10,
            avg60: stall.avg60,
            avg300: stall.avg300,
            total_us: stall.total_us,
        }
    }
}

#[derive(Debug, Serialize)]
struct Pressure {
    resource: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    some: Option<Stall>,
    #[serde(skip_serializing_if = "Option::is_none")]
    full: Option<Stall>,
}

impl Pressure {
    fn of(pressure: &HostPressure) -> Self {
        Self {
            resource: match pressure.resource() {
                HostResource::Cpu => "cpu",
                HostResource::Memory => "memory",
                HostResource::Io => "io",
                HostResource::Unspecified => "unknown",
            },
            some: pressure.some.map(Stall::of),
            full: pressure.full.map(Stall::of),
        }
    }
}

#[derive(Debug, Serialize)]
struct Disk {
    reads: u64,
    read_bytes: u64,
    writes: u64,
    written_bytes: u64,
    busy_ms: u64,
}

#[derive(Debug, Serialize)]
struct Network {
    received_bytes: u64,
    received_packets: u64,
    received_errors: u64,
    sent_bytes: u64,
    sent_packets: u64,
    sent_errors: u64,
}

/// A tick with all that it has. Times and counters that may pass 2^53 are numbers all the same, as in the lines.
#[derive(Debug, Serialize)]
pub(super) struct Sample {
    seq: u64,
    timestamp: u64,
    monotonic_ns: u64,
    boottime_ns: u64,
    interval_ns: u64,
    late_ns: u64,
    missed: u64,
    cpus: Vec<Cpu>,
    mem_usage: Memory,
    #[serde(skip_serializing_if = "Option::is_none")]
    load: Option<Load>,
    pressure: Vec<Pressure>,
    #[serde(skip_serializing_if = "Option::is_none")]
    disk: Option<Disk>,
    #[serde(skip_serializing_if = "Option::is_none")]
    network: Option<Network>,
    producers: Vec<Producer>,
}

impl Sample {
    pub(super) fn of(sample: &HostSample) -> Self {
        Self {
            seq: sample.seq,
            timestamp: sample.timestamp_ns,
            monotonic_ns: sample.monotonic_ns,
            boottime_ns: sample.boottime_ns,
            interval_ns: sample.interval_ns,
            late_ns: sample.late_ns,
            missed: sample.missed,
            cpus: sample.cpus.iter().map(Cpu::of).collect(),
            mem_usage: Memory::of(sample),
            load: sample.load.map(|load| Load {
                one: load.one,
                five: load.five,
                fifteen: load.fifteen,
                running: load.running,
                tasks: load.tasks,
            }),
            pressure: sample.pressure.iter().map(Pressure::of).collect(),
            disk: sample.disk.map(|disk| Disk {
                reads: disk.reads,
                read_bytes: disk.read_bytes,
                writes: disk.writes,
                written_bytes: disk.written_bytes,
                busy_ms: disk.busy_ms,
            }),
            network: sample.network.map(|network| Network {
                received_bytes: network.received_bytes,
                received_packets: network.received_packets,
                received_errors: network.received_errors,
                sent_bytes: network.sent_bytes,
                sent_packets: network.sent_packets,
                sent_errors: network.sent_errors,
            }),
            producers: sample.producers.iter().map(Producer::of).collect(),
        }
    }
}
