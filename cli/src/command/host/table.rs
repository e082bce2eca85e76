//! Ticks for people.

use std::io::Write;
use std::time::Duration;

use nrt_trace_proto::v1;

use crate::error::Failure;
use crate::output::human;
use crate::output::table::{Align, Table, printable};

/// What stands where a value is not known.
const UNKNOWN: &str = "-";

/// The monitor in a line.
pub(super) fn state(state: &v1::HostState) -> String {
    let what = match (state.running, state.saturated) {
        (_, true) => "full, samples no more",
        (true, _) => "on",
        (false, _) => "off",
    };
    format!(
        "monitor    {what}; every {} ms, {} of {} ticks kept ({}), {} missed",
        state.period_ms,
        human::count(state.num_samples),
        human::count(state.max_samples),
        retention(state),
        human::count(state.missed),
    )
}

/// What happens when it is full.
pub(super) fn retention(state: &v1::HostState) -> &'static str {
    match state.retention() {
        v1::HostRetention::Ring => "ring",
        v1::HostRetention::Saturate => "saturate",
        v1::HostRetention::Unspecified => "unknown",
    }
}

fn percent(share: Option<f32>) -> String {
    share.map_or_else(|| UNKNOWN.to_owned(), |share| format!("{share:.1}"))
}

fn bytes(n: Option<u64>) -> String {
    n.map_or_else(|| UNKNOWN.to_owned(), human::bytes)
}

fn count(n: Option<u64>) -> String {
    n.map_or_else(|| UNKNOWN.to_owned(), human::count)
}

/// A tick with all that it has.
pub(super) fn write(
    monitor: &v1::HostState,
    info: &v1::HostInfo,
    sample: &v1::HostSample,
    out: &mut impl Write,
) -> Result<(), Failure> {
    writeln!(out, "{}", state(monitor))?;
    writeln!(
        out,
        "machine    {}: {} CPUs, {}, {}",
        printable(&info.instance_id),
        info.cpus,
        printable(&info.cpu_name),
        bytes(info.mem_capacity_bytes)
    )?;
    let moment = human::moment(sample.timestamp_ns);
    let interval = human::span(Duration::from_nanos(sample.interval_ns));
    writeln!(out, "tick       {moment}, over {interval}")?;
    let memory = sample.memory.unwrap_or_default();
    writeln!(
        out,
        "memory     {} used of {}, {} available; swap {} of {} free",
        bytes(memory.used_bytes),
        bytes(memory.total_bytes),
        bytes(memory.available_bytes),
        bytes(memory.swap_free_bytes),
        bytes(memory.swap_total_bytes)
    )?;
    if let Some(load) = sample.load {
        writeln!(
            out,
            "load       {:.2} {:.2} {:.2}; {} of {} tasks run",
            load.one, load.five, load.fifteen, load.running, load.tasks
        )?;
    }
    pressure(sample, out)?;
    if let Some(disk) = sample.disk {
        let (read, written) = (
            human::bytes(disk.read_bytes),
            human::bytes(disk.written_bytes),
        );
        writeln!(out, "disks      {read} read, {written} written since boot")?;
    }
    if let Some(net) = sample.network {
        let (got, sent) = (
            human::bytes(net.received_bytes),
            human::bytes(net.sent_bytes),
        );
        writeln!(out, "network    {got} received, {sent} sent since boot")?;
    }
    writeln!(out)?;
    cores(sample).write(out)?;
    if !sample.producers.is_empty() {
        writeln!(out)?;
        processes(sample).write(out)?;
    }
    Ok(())
}

fn pressure(sample: &v1::HostSample, out: &mut impl Write) -> Result<(), Failure> {
    let each = sample.pressure.iter().map(|pressure| {
        let name = match pressure.resource() {
            v1::HostResource::Cpu => "cpu",
            v1::HostResource::Memory => "memory",
            v1::HostResource::Io => "io",
            v1::HostResource::Unspecified => "unknown",
        };
        format!(
            "{name} {} %",
            percent(pressure.some.and_then(|stall| stall.avg10))
        )
    });
    let each: Vec<String> = each.collect();
    if !each.is_empty() {
        writeln!(out, "waiting    {} of the last 10 s", each.join(", "))?;
    }
    Ok(())
}

fn cores(sample: &v1::HostSample) -> Table {
    let names = [
        "CPU", "UTIL %", "USER", "NICE", "SYSTEM", "IDLE", "IOWAIT", "IRQ", "SOFTIRQ", "STEAL",
        "GUEST", "MHZ",
    ];
    let mut table = Table::new(&names.map(|name| (name, Align::Right)));
    for cpu in &sample.cpus {
        table.row(vec![
            cpu.cpu_id.to_string(),
            percent(cpu.util),
            percent(cpu.user),
            percent(cpu.nice),
            percent(cpu.system),
            percent(cpu.idle),
            percent(cpu.iowait),
            percent(cpu.irq),
            percent(cpu.softirq),
            percent(cpu.steal),
            percent(cpu.guest),
            cpu.mhz
                .map_or_else(|| UNKNOWN.to_owned(), |mhz| mhz.to_string()),
        ]);
    }
    table
}

fn processes(sample: &v1::HostSample) -> Table {
    let right = |name| (name, Align::Right);
    let mut table = Table::new(&[
        right("ID"),
        right("PID"),
        ("NAME", Align::Left),
        right("CPU %"),
        right("CPU TIME"),
        right("RESIDENT"),
        right("VIRTUAL"),
        right("THREADS"),
        right("WAITS"),
        right("PREEMPTED"),
        ("CGROUP", Align::Left),
        right("ITS MEMORY"),
    ]);
    for process in &sample.producers {
        let cgroup = process.cgroup.clone().unwrap_or_default();
        let time = |ns| human::span(Duration::from_nanos(ns));
        table.row(vec![
            process.producer_id.to_string(),
            process
                .pid
                .map_or_else(|| UNKNOWN.to_owned(), |pid| pid.to_string()),
            if process.ended {
                format!("{} (ended)", printable(&process.name))
            } else {
                printable(&process.name)
            },
            percent(process.cpu_percent),
            process.cpu_ns.map_or_else(|| UNKNOWN.to_owned(), time),
            bytes(process.rss_bytes),
            bytes(process.vm_size_bytes),
            count(process.threads.map(u64::from)),
            count(process.voluntary_switches),
            count(process.involuntary_switches),
            if cgroup.path.is_empty() {
                UNKNOWN.to_owned()
            } else {
                printable(&cgroup.path)
            },
            bytes(cgroup.memory_bytes),
        ]);
    }
    table
}

/// A tick in a line.
pub(super) fn line(
    sample: &v1::HostSample,
    heading: bool,
    out: &mut impl Write,
) -> Result<(), Failure> {
    if heading {
        writeln!(
            out,
            "{:<27}  {:>6}  {:>6}  {:>10}  {:>6}  {:>9}  {:>10}",
            "TIME", "CPU %", "MAX %", "MEMORY", "LOAD", "PROCESSES", "RESIDENT"
        )?;
    }
    let utils: Vec<f32> = sample.cpus.iter().filter_map(|cpu| cpu.util).collect();
    #[expect(clippy::cast_precision_loss, reason = "a number of CPUs")]
    let average = (!utils.is_empty()).then(|| utils.iter().sum::<f32>() / utils.len() as f32);
    let most = utils.iter().copied().reduce(f32::max);
    let resident: u64 = sample
        .producers
        .iter()
        .filter_map(|process| process.rss_bytes)
        .sum();
    writeln!(
        out,
        "{:<27}  {:>6}  {:>6}  {:>10}  {:>6}  {:>9}  {:>10}",
        human::moment(sample.timestamp_ns),
        percent(average),
        percent(most),
        bytes(sample.memory.and_then(|memory| memory.used_bytes)),
        sample
            .load
            .map_or_else(|| UNKNOWN.to_owned(), |load| format!("{:.2}", load.one)),
        sample
            .producers
            .iter()
            .filter(|process| !process.ended)
            .count(),
        human::bytes(resident)
    )?;
    Ok(())
}
