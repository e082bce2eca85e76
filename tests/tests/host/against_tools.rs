//! The monitor beside `/proc` read by hand, mpstat, pidstat and top, all over the same time under the same load.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use nrt_trace_tests::{Host, Running, artifacts, run};
use serde_json::Value;

use crate::load::{HalfBusy, cpus};
use crate::ticks::{Follow, Tick};

/// Seconds that everything looks at.
const SECONDS: &str = "8";
/// What two views of a core may differ by, percent points.
const POINTS: f64 = 2.0;
/// The kernel gathers changes of a process's size per CPU, up to this many pages, before all can see them.
const PAGE_BATCH: u64 = 64;

fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    u64::try_from(since.as_nanos()).unwrap()
}

/// Whether a tool is there. Without one nothing is compared with it, which is said.
fn is_there(tool: &str) -> bool {
    let there = Command::new(tool).arg("-V").output().is_ok();
    if !there {
        #[expect(clippy::print_stderr, reason = "what a test leaves out has to be seen")]
        {
            eprintln!("NOT RUN: no {tool} (Debian package sysstat or procps)");
        }
    }
    there
}

/// Times of each CPU by hand: user + nice + system, and idle.
fn by_hand() -> BTreeMap<u32, (u64, u64)> {
    let text = fs::read_to_string("/proc/stat").unwrap();
    let line = |line: &str| {
        let (label, rest) = line.split_once(' ')?;
        let cpu = label.strip_prefix("cpu")?.parse().ok()?;
        let n: Vec<u64> = rest
            .split_whitespace()
            .map(|n| n.parse().unwrap())
            .collect();
        Some((cpu, (n[0] + n[1] + n[2], n[3])))
    };
    text.lines().filter_map(line).collect()
}

#[expect(clippy::cast_precision_loss, reason = "clock ticks of seconds")]
fn util(before: (u64, u64), after: (u64, u64)) -> f64 {
    let (busy, idle) = (after.0 - before.0, after.1 - before.1);
    busy as f64 * 100.0 / (busy + idle) as f64
}

/// The monitor's mean over the ticks whose middle lies in a stretch of time.
#[expect(clippy::cast_precision_loss, reason = "a few ticks")]
fn mean(ticks: &[Tick], from: u64, to: u64) -> BTreeMap<u32, f64> {
    let mut sums = BTreeMap::<u32, (f64, u64)>::new();
    let middles = ticks
        .windows(2)
        .map(|pair| pair[0].timestamp().midpoint(pair[1].timestamp()));
    for (tick, _) in ticks[1..]
        .iter()
        .zip(middles)
        .filter(|(_, middle)| (from..to).contains(middle))
    {
        for (cpu, util) in tick.utils() {
            let sum = sums.entry(cpu).or_default();
            *sum = (sum.0 + util.unwrap(), sum.1 + 1);
        }
    }
    sums.into_iter()
        .map(|(cpu, (sum, n))| (cpu, sum / n as f64))
        .collect()
}

/// Busy shares that mpstat saw: the mean of its seconds.
fn of_mpstat(text: &str) -> BTreeMap<u32, f64> {
    let document: Value = serde_json::from_str(text).unwrap();
    let seconds = document["sysstat"]["hosts"][0]["statistics"]
        .as_array()
        .unwrap();
    let mut shares = BTreeMap::<u32, (f64, f64)>::new();
    for load in seconds
        .iter()
        .flat_map(|second| second["cpu-load"].as_array().unwrap())
    {
        let Ok(cpu) = load["cpu"].as_str().unwrap().parse() else {
            continue;
        };
        let of = |name: &str| load[name].as_f64().unwrap();
        let share = shares.entry(cpu).or_default();
        share.0 += of("usr") + of("nice") + of("sys") + of("guest") + of("gnice");
        share.1 += of("idle");
    }
    shares
        .into_iter()
        .map(|(cpu, (busy, idle))| (cpu, busy * 100.0 / (busy + idle)))
        .collect()
}

/// The last line of a process's figures, word by word.
fn words(text: &str, pid: u32) -> Vec<String> {
    let line = text
        .lines()
        .rev()
        .find(|line| line.split_whitespace().any(|word| word == pid.to_string()));
    line.unwrap_or_else(|| panic!("nothing of {pid} in {text}"))
        .split_whitespace()
        .map(str::to_owned)
        .collect()
}

fn tool(arguments: &[&str]) -> Running {
    let mut command = Command::new(arguments[0]);
    command
        .args(&arguments[1..])
        .env("LC_ALL", "C")
        .env("S_TIME_FORMAT", "ISO")
        .env("TERM", "dumb");
    Running::start(command)
}

#[expect(
    clippy::print_stdout,
    reason = "the figures, for whoever looks at them"
)]
fn compare(what: &str, cpu: u32, ours: f64, theirs: f64) {
    println!("cpu{cpu}: host monitor {ours:.2} %, {what} {theirs:.2} %");
    assert!(
        (ours - theirs).abs() <= POINTS,
        "cpu{cpu}: {ours:.2} %, {what} says {theirs:.2} %"
    );
}

#[test]
fn busy_shares_and_memory_are_those_of_the_systems_tools() {
    let _machine = crate::alone();
    let mut host = Host::new();
    host.start_daemon(&["--host"]);
    let (busy, half) = cpus();
    let _half = HalfBusy::start(half);
    // Pinned, without an end, and recorded by nobody: all it does is run.
    let mut pinned = host.command("taskset");
    let (cpu, probe) = (busy.to_string(), &artifacts().probe);
    pinned
        .args(["-c", &cpu])
        .arg(probe)
        .args(["-n", "0"])
        .env_remove("NRT_TRACE_WAIT_MS");
    let worker = Running::start(pinned);
    let pid = worker.pid();
    // The daemon's own second is too long for the edges: ten ticks a second for this.
    host.tracectl(&["host", "stop"]).ok();
    let mut follow = Follow::start(&host);
    follow.until(|tick| {
        tick.producer(pid)
            .is_some_and(|process| process.get("cpu_percent").is_some())
    });

    let mut ticks = vec![follow.next()];
    let (before, from) = (by_hand(), now_ns());
    let pid_text = pid.to_string();
    let mpstat =
        is_there("mpstat").then(|| tool(&["mpstat", "-P", "ALL", "-o", "JSON", "1", SECONDS]));
    let pidstat = is_there("pidstat")
        .then(|| tool(&["pidstat", "-h", "-u", "-r", "-p", &pid_text, SECONDS, "1"]));
    let top =
        is_there("top").then(|| tool(&["top", "-b", "-d", SECONDS, "-n", "2", "-p", &pid_text]));
    let mpstat = mpstat.map(|tool| (tool.wait().ok().text(), now_ns()));
    let pidstat = pidstat.map(|tool| tool.wait().ok().text());
    let top = top.map(|tool| tool.wait().ok().text());
    let (after, to) = (by_hand(), now_ns());
    let statm = fs::read_to_string(format!("/proc/{pid}/statm")).unwrap();
    while ticks.last().unwrap().timestamp() <= to {
        ticks.push(follow.next());
    }

    let ours = mean(&ticks, from, to);
    assert_eq!(
        ours.keys().collect::<Vec<_>>(),
        before.keys().collect::<Vec<_>>()
    );
    for (cpu, ours) in &ours {
        compare("/proc/stat", *cpu, *ours, util(before[cpu], after[cpu]));
    }
    assert!(ours[&u32::try_from(busy).unwrap()] > 90.0, "{ours:?}");
    if let Some((text, end)) = mpstat {
        let ours = mean(&ticks, from, end);
        for (cpu, theirs) in of_mpstat(&text) {
            compare("mpstat", cpu, ours[&cpu], theirs);
        }
    }

    let last = ticks.last().unwrap().producer(pid).unwrap();
    let figure = |name: &str| last[name].as_u64().unwrap();
    let rss = figure("rss_bytes");
    let page = u64::try_from(rustix::param::page_size()).unwrap();
    let near = |what: &str, theirs: u64| {
        assert!(
            rss.abs_diff(theirs) <= PAGE_BATCH * page,
            "{rss} bytes, {what} says {theirs}"
        );
    };
    let pages: Vec<u64> = statm
        .split_whitespace()
        .map(|n| n.parse().unwrap())
        .collect();
    near("statm", pages[1] * page);
    assert_eq!(figure("vm_size_bytes"), pages[0] * page);
    // CPU time of the process, over the same seconds.
    let inside = |tick: &&Tick| (from..to).contains(&tick.timestamp());
    let (first, last) = (
        ticks.iter().find(inside).unwrap(),
        ticks.iter().rfind(inside).unwrap(),
    );
    let cpu_ns = |tick: &Tick| tick.producer(pid).unwrap()["cpu_ns"].as_u64().unwrap();
    #[expect(clippy::cast_precision_loss, reason = "seconds")]
    let percent = (cpu_ns(last) - cpu_ns(first)) as f64 * 100.0
        / (last.timestamp() - first.timestamp()) as f64;
    if let Some(text) = pidstat {
        let heading = text.lines().find(|line| line.starts_with('#')).unwrap();
        let names: Vec<&str> = heading.split_whitespace().skip(1).collect();
        let words = words(&text, pid);
        let at = |name: &str| &words[names.iter().position(|n| *n == name).unwrap()];
        compare("pidstat's process", 0, percent, at("%CPU").parse().unwrap());
        near("pidstat", at("RSS").parse::<u64>().unwrap() * 1024);
    }
    if let Some(text) = top {
        let words = words(&text, pid);
        compare("top's process", 0, percent, words[8].parse().unwrap());
        near("top", words[5].parse::<u64>().unwrap() * 1024);
    }
    drop(worker);
    let _stopped = run(host.tracectl_command(&["host", "stop"])).ok();
}
