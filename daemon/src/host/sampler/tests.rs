use std::fs;
use std::os::unix::fs::symlink;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nrt_trace_proto::v1::{HostCpu, HostProducer, HostSample};
use tempfile::TempDir;

use super::*;

/// A folder in place of `/proc` and `/sys`.
struct Fixture {
    folder: TempDir,
    members: Members,
}

impl Fixture {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self {
            folder,
            members: Members::default(),
        }
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn sampler(&self) -> Sampler {
        let roots = Roots {
            proc: self.folder.path().to_owned(),
            sys: self.folder.path().join("sys"),
        };
        Sampler::new(roots, Units::of_this_kernel(), self.members.clone())
    }
}

fn real(members: &Members) -> Sampler {
    let roots = Roots {
        proc: "/proc".into(),
        sys: "/sys".into(),
    };
    Sampler::new(roots, Units::of_this_kernel(), members.clone())
}

fn tick(sampler: &mut Sampler) -> HostSample {
    sampler.tick(Due::default()).message()
}

fn child(seconds: &str) -> Child {
    let mut sleep = Command::new("sleep");
    sleep.arg(seconds).stdin(Stdio::null()).spawn().unwrap()
}

fn member(producer_id: u32, child: &Child) -> Member {
    let pid = i32::try_from(child.id()).unwrap();
    let stat = fs::read(format!("/proc/{pid}/stat")).unwrap();
    Member {
        producer_id,
        pid,
        started: super::super::process::start_of(&stat),
        name: format!("child {producer_id}"),
    }
}

fn ids(sample: &HostSample) -> Vec<u32> {
    sample.cpus.iter().map(|cpu| cpu.cpu_id).collect()
}

#[test]
fn the_first_tick_has_no_shares_and_the_second_has() {
    let fixture = Fixture::new();
    fixture.write("stat", "cpu 1 1 1 1\ncpu0 10 0 0 10 0 0 0 0 0 0\n");
    let mut sampler = fixture.sampler();
    let first = tick(&mut sampler);
    assert_eq!((first.cpus[0].util, first.interval_ns), (None, 0));
    fixture.write("stat", "cpu 1 1 1 1\ncpu0 40 0 0 20 0 0 0 0 0 0\n");
    let second = tick(&mut sampler);
    assert_eq!(
        (second.cpus[0].util, second.cpus[0].user),
        (Some(75.0), Some(75.0))
    );
    assert!(second.interval_ns > 0 && second.monotonic_ns > first.monotonic_ns);
    assert!(second.memory.is_none() && second.load.is_none() && second.pressure.is_empty());
}

#[test]
fn p01_only_cores_that_are_online_are_there_and_one_that_comes_has_no_share_yet() {
    let fixture = Fixture::new();
    fixture.write("stat", "cpu0 1 1 1 1\ncpu2 1 1 1 1\ncpu8 1 1 1 1\n");
    let mut sampler = fixture.sampler();
    assert_eq!(ids(&tick(&mut sampler)), [0, 2, 8]);
    fixture.write("stat", "cpu0 2 1 1 2\ncpu3 900 900 900 900\ncpu8 2 1 1 2\n");
    let plugged = tick(&mut sampler);
    assert_eq!(ids(&plugged), [0, 3, 8]);
    let utils: Vec<Option<f32>> = plugged.cpus.iter().map(|cpu| cpu.util).collect();
    assert_eq!(utils, [Some(50.0), None, Some(50.0)]);
    // Back: its counters are compared with the last tick's, in which it was not.
    fixture.write(
        "stat",
        "cpu0 3 1 1 3\ncpu2 9 9 9 9\ncpu3 901 900 900 901\ncpu8 3 1 1 3\n",
    );
    let back = tick(&mut sampler);
    let utils: Vec<Option<f32>> = back.cpus.iter().map(|cpu| cpu.util).collect();
    assert_eq!(utils, [Some(50.0), None, Some(50.0), Some(50.0)]);
}

#[test]
fn p02_a_bad_file_loses_its_values_and_nothing_else() {
    let fixture = Fixture::new();
    fixture.write("meminfo", "MemTotal: 100 kB\nMemAvailable: 40 kB\n");
    fixture.write("loadavg", "0.5 0.5 0.5 1/2 3\n");
    let good = "cpu0 10 0 0 10\ncpu1 10 0 0 10\n";
    let bad = [
        "cpu0 10 0 0 10 18446744073709551615\ncpu1 10 0 0 10",
        "cpu  1234567890123456789012\ncpu0 10 0 0 10\ncpu1 -1 0 0 10\n",
        "cpu0 x y z w\ncpu1 10 0 0 10\nprocs_blocked 18446744073709551615\n",
        "",
        "cpu0",
    ];
    let mut sampler = fixture.sampler();
    for text in bad {
        fixture.write("stat", good);
        tick(&mut sampler);
        fixture.write("stat", text);
        let sample = tick(&mut sampler);
        assert_eq!(
            sample.memory.unwrap().used_bytes,
            Some(60 * 1024),
            "{text:?}"
        );
        assert!(sample.load.is_some(), "{text:?}");
        fixture.write("stat", format!("{good}intr {}\n", "1 ".repeat(1 << 19)));
        tick(&mut sampler);
        fixture.write("stat", "cpu0 20 0 0 20\ncpu1 20 0 0 20\n");
        assert_eq!(
            tick(&mut sampler).cpus[1].util,
            Some(50.0),
            "after {text:?}"
        );
    }
    assert!(sampler.bad_values() >= 6);
    assert_eq!(sampler.complaints.told.len(), 1, "one line for the file");
}

#[test]
fn p03_a_process_that_ends_has_a_last_entry_and_another_with_its_number_has_none() {
    let members = Members::default();
    let mut sampler = real(&members);
    let (mut short, mut long) = (child("1000"), child("1000"));
    members.add(member(1, &short));
    members.add(member(2, &long));
    let producer = |sample: &HostSample, id: u32| -> Option<HostProducer> {
        sample
            .producers
            .iter()
            .find(|producer| producer.producer_id == id)
            .cloned()
    };
    let first = tick(&mut sampler);
    assert!(producer(&first, 1).unwrap().rss_bytes > Some(0));
    short.kill().unwrap();
    // A zombie, whose files still are there: it has ended all the same.
    let deadline = Instant::now() + Duration::from_secs(20);
    let last = loop {
        assert!(Instant::now() < deadline);
        let sample = tick(&mut sampler);
        if producer(&sample, 1).unwrap().ended {
            break sample;
        }
    };
    let ended = producer(&last, 1).unwrap();
    assert_eq!(
        (ended.rss_bytes, ended.cpu_ns, ended.threads),
        (None, None, None)
    );
    assert!(!producer(&last, 2).unwrap().ended);
    short.wait().unwrap();
    assert_eq!(producer(&tick(&mut sampler), 1), None, "told once");
    // The registry may say so before the sampler sees it.
    members.remove(1);
    members.remove(2);
    assert!(producer(&tick(&mut sampler), 2).unwrap().ended);
    assert!(tick(&mut sampler).producers.is_empty());
    let mut reused = member(3, &long);
    reused.started = reused.started.map(|ticks| ticks - 1);
    members.add(reused);
    assert!(tick(&mut sampler).producers.is_empty());
    long.kill().unwrap();
    long.wait().unwrap();
    assert_eq!(sampler.bad_values(), 0);
}

/// Case P03: processes that end while they are read. Ten minutes of it are the case's; this is enough to have met every
/// kind of end, and fails when the parsers or the opening do not expect one.
#[test]
fn p03_processes_that_end_while_they_are_read_do_no_harm() {
    let members = Members::default();
    let mut sampler = real(&members);
    let (mut ended, mut seen) = (0, 0);
    for round in 0..200 {
        let mut children: Vec<Child> = (0..4).map(|_| child("0.005")).collect();
        for (i, child) in children.iter().enumerate() {
            members.add(member(round * 4 + u32::try_from(i).unwrap(), child));
        }
        let mut alive = children.len();
        while alive > 0 {
            let sample = tick(&mut sampler);
            seen += sample.producers.len();
            ended += sample
                .producers
                .iter()
                .filter(|producer| producer.ended)
                .count();
            alive = children
                .iter_mut()
                .filter_map(|child| child.try_wait().unwrap())
                .count();
            alive = children.len() - alive;
        }
        (0..4).for_each(|i| members.remove(round * 4 + i));
    }
    assert_eq!(sampler.bad_values(), 0);
    let last = tick(&mut sampler);
    ended += last
        .producers
        .iter()
        .filter(|producer| producer.ended)
        .count();
    assert!(seen > 800 && ended > 0 && ended <= 800, "{seen} {ended}");
    assert!(sampler.processes.is_empty());
}

#[test]
fn p07_a_host_of_virtual_machines_counts_their_time_once() {
    let fixture = Fixture::new();
    fixture.write("stat", "cpu0 0 0 0 0 0 0 0 0 0 0\n");
    let mut sampler = fixture.sampler();
    tick(&mut sampler);
    fixture.write("stat", "cpu0 100 0 0 100 0 0 0 0 80 0\n");
    let cpu: HostCpu = tick(&mut sampler).cpus[0];
    assert_eq!(
        (cpu.util, cpu.user, cpu.guest),
        (Some(50.0), Some(50.0), Some(40.0))
    );
}

#[test]
fn p09_a_large_machine_is_read_in_few_calls_and_has_a_name() {
    let fixture = Fixture::new();
    let stat: String = (0..512)
        .map(|i| format!("cpu{i} 1 2 3 4 5 6 7 8 9 10\n"))
        .collect();
    fixture.write("stat", stat);
    let block =
        "processor\t: 0\nBogoMIPS\t: 2100.00\nCPU implementer\t: 0x41\nCPU part\t: 0xd4f\n\n";
    fixture.write("cpuinfo", block.repeat(512));
    for core in 0..512 {
        let name = format!("sys/devices/system/cpu/cpu{core}/cpufreq/scaling_cur_freq");
        fixture.write(&name, "2600000\n");
    }
    let mut sampler = fixture.sampler();
    let info = sampler.info();
    assert_eq!(
        (info.cpus, info.cpu_name.as_str()),
        (512, "implementer 0x41 part 0xd4f")
    );
    tick(&mut sampler);
    let before = reads();
    let sample = tick(&mut sampler);
    // Of this thread alone.
    assert!(reads() - before < 50, "{} reads", reads() - before);
    assert_eq!(sample.cpus.len(), 512);
    assert_eq!(
        sample
            .cpus
            .iter()
            .filter(|cpu| cpu.mhz == Some(2600))
            .count(),
        16
    );
}

/// Reading calls of this thread so far, as the kernel counts them.
fn reads() -> u64 {
    let io = fs::read_to_string("/proc/thread-self/io").unwrap();
    let count = io
        .lines()
        .find_map(|line| line.strip_prefix("syscr: "))
        .unwrap();
    count.parse().unwrap()
}

#[test]
fn processes_of_a_fixture_may_be_real_ones() {
    let fixture = Fixture::new();
    let mut one = child("1000");
    symlink(
        format!("/proc/{}", one.id()),
        fixture.folder.path().join(one.id().to_string()),
    )
    .unwrap();
    fixture.members.add(member(1, &one));
    let mut sampler = fixture.sampler();
    let sample = tick(&mut sampler);
    assert!(sample.producers[0].rss_bytes > Some(0), "{sample:?}");
    assert_eq!(sample.producers[0].name, "child 1");
    assert!(sample.producers[0].cpu_percent.is_none(), "the first tick");
    assert!(tick(&mut sampler).producers[0].cpu_percent.is_some());
    one.kill().unwrap();
    one.wait().unwrap();
}

#[test]
fn this_machine_is_read_whole() {
    let mut sampler = real(&Members::default());
    let info = sampler.info();
    assert!(info.cpus > 0 && !info.cpu_name.is_empty() && info.mem_capacity_bytes > Some(0));
    let sample = tick(&mut sampler);
    let memory = sample.memory.unwrap();
    assert!(memory.used_bytes < memory.total_bytes && memory.used_bytes > Some(0));
    assert!(sample.load.is_some() && !sample.cpus.is_empty());
    assert!(sample.timestamp_ns > 1 << 60 && sample.boottime_ns >= sample.monotonic_ns);
    assert_eq!(sampler.bad_values(), 0);
}
