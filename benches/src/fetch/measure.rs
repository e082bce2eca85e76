//! What a run of the command line takes.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

/// How often memory is looked at; the tool's own peak is the kernel's.
const LOOK: Duration = Duration::from_millis(5);

/// Clock ticks a second in /proc, everywhere on Linux.
const TICKS: f64 = 100.0;

/// One run's figures.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    pub(crate) seconds: f64,
    /// CPU time of this process, the daemon, s.
    pub(crate) daemon_cpu: f64,
    /// CPU time of the tool, s.
    pub(crate) tool_cpu: f64,
    /// Peaks, KiB. The daemon's without shared memory.
    pub(crate) tool_peak: u64,
    pub(crate) daemon_peak: u64,
}

/// Watches a run.
pub(crate) struct Watch;

impl Watch {
    /// Runs the command to its end.
    pub(crate) fn run(command: &mut Command) -> Result<Run> {
        let (own, children) = cpu()?;
        let begin = Instant::now();
        let mut child = command.spawn().context("start the command line")?;
        let path = format!("/proc/{}/status", child.id());
        let (mut tool_peak, mut daemon_peak) = (0, 0);
        let watching = std::thread::spawn(move || {
            let mut peaks = (0, 0);
            while let Some(peak) = kib(&path, "VmHWM:") {
                peaks = (
                    peaks.0.max(peak),
                    peaks
                        .1
                        .max(kib("/proc/self/status", "RssAnon:").unwrap_or(0)),
                );
                std::thread::sleep(LOOK);
            }
            peaks
        });
        let status = child.wait()?;
        let seconds = begin.elapsed().as_secs_f64();
        if let Ok(peaks) = watching.join() {
            (tool_peak, daemon_peak) = peaks;
        }
        ensure!(status.success(), "the command line failed: {status}");
        let (own_after, children_after) = cpu()?;
        Ok(Run {
            seconds,
            daemon_cpu: own_after - own,
            tool_cpu: children_after - children,
            tool_peak,
            daemon_peak,
        })
    }
}

/// CPU time of this process and of its children that ended, s.
fn cpu() -> Result<(f64, f64)> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let (_, fields) = stat.rsplit_once(')').context("/proc/self/stat")?;
    let ticks: Vec<f64> = fields
        .split_whitespace()
        .skip(11)
        .take(4)
        .filter_map(|field| field.parse().ok())
        .collect();
    let [user, system, child_user, child_system] = ticks[..] else {
        anyhow::bail!("/proc/self/stat has no times");
    };
    Ok(((user + system) / TICKS, (child_user + child_system) / TICKS))
}

/// A line of a status file, in KiB; `None` when the process is gone.
fn kib(path: &str, key: &str) -> Option<u64> {
    let status = fs::read_to_string(path).ok()?;
    let line = status.lines().find(|line| line.starts_with(key))?;
    line.split_whitespace().nth(1)?.parse().ok()
}
