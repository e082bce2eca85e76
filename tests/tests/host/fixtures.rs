//! The daemon on a `/proc` of our own, which shows it what no test machine does.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use nrt_trace_tests::wait::until;
use nrt_trace_tests::{Host, Running, run};
use rustix::process::{Pid, Signal, kill_process};

use crate::ticks::Follow;

/// A host whose daemon reads `proc` and `sys` in the host's folder.
struct Fixture {
    host: Host,
    proc: PathBuf,
}

impl Fixture {
    fn start(stat: &str) -> Self {
        let mut host = Host::new();
        let (proc, sys) = (host.path("proc"), host.path("sys"));
        fs::create_dir_all(&proc).unwrap();
        fs::create_dir_all(&sys).unwrap();
        let fixture = |host, proc| Self { host, proc };
        fs::write(proc.join("stat"), stat).unwrap();
        fs::write(
            proc.join("meminfo"),
            "MemTotal: 1000 kB\nMemAvailable: 400 kB\n",
        )
        .unwrap();
        let (p, s) = (proc.display().to_string(), sys.display().to_string());
        host.start_daemon(&["--proc-root", &p, "--sys-root", &s]);
        fixture(host, proc)
    }

    /// Replaces the file at once, as a mount over it would.
    fn stat(&self, text: &str) {
        let new = self.proc.join("stat.new");
        fs::write(&new, text).unwrap();
        fs::rename(new, self.proc.join("stat")).unwrap();
    }

    /// Lines of the log that are more than news.
    fn complaints(&self) -> Vec<String> {
        let log = self.host.daemon_log();
        let bad = |line: &&str| line.contains("WARN") || line.contains("ERROR");
        log.lines().filter(bad).map(str::to_owned).collect()
    }
}

#[test]
fn p01_offline_cores_are_absent_and_numbered_as_the_kernel_does() {
    let _machine = crate::among_others();
    let fixture = Fixture::start("cpu 1 1 1 1\ncpu0 1 0 0 1\ncpu2 1 0 0 1\ncpu8 1 0 0 1\n");
    let mut follow = Follow::start(&fixture.host);
    let ids = |tick: &crate::ticks::Tick| tick.utils().into_keys().collect::<Vec<_>>();
    assert_eq!(ids(&follow.next()), [0, 2, 8]);
    fixture.stat("cpu0 2 0 0 2\ncpu8 2 0 0 2\n");
    let tick = follow.until(|tick| tick.utils().len() == 2);
    assert_eq!(ids(&tick), [0, 8]);
    assert_eq!(tick.utils()[&0], Some(50.0));
    fixture.stat("cpu0 3 0 0 3\ncpu2 90 0 0 90\ncpu8 3 0 0 3\n");
    let back = follow.until(|tick| tick.utils().len() == 3);
    assert_eq!(back.utils()[&2], None, "no spike");
}

#[test]
fn p02_nonsense_costs_its_own_field_and_one_line() {
    let _machine = crate::among_others();
    let fixture = Fixture::start("cpu0 1 0 0 1\n");
    let mut follow = Follow::start(&fixture.host);
    for text in [
        "cpu0 1 0 0 1\nprocs_blocked 18446744073709551615\n",
        "cpu  1234567890123456789012\ncpu0 1 0 0 1\n",
        "cpu0 1 -5 0 1\n",
        "cpu0 a b c d\n",
        "",
        "cpu0 1 0 0 1",
        &format!("cpu0 1 0 0 1\nintr {}\n", "1 ".repeat(1 << 19)),
    ] {
        fixture.stat(text);
        let tick = follow.fresh();
        assert_eq!(tick.0["mem_usage"]["usage"], 600 * 1024, "{text:.40}");
    }
    fixture.stat("cpu0 1000 0 0 1\n");
    follow.until(|tick| tick.utils().get(&0) == Some(&Some(100.0)));
    let _said = fixture.host.log_with("host monitor: stat");
    let complaints = fixture.complaints();
    assert_eq!(complaints.len(), 1, "{complaints:?}");
    assert!(fixture.host.metric("nrt_trace_host_bad_values_total") >= 4.0);
}

/// A daemon that is stopped misses ticks, and they are counted; the next beginning of the monitor takes nothing back.
#[test]
fn ticks_that_did_not_happen_are_counted() {
    let _machine = crate::among_others();
    let fixture = Fixture::start("cpu0 1 0 0 1\n");
    let follow = Follow::start(&fixture.host);
    let metric = |what: &str| {
        fixture
            .host
            .metric(&format!("nrt_trace_host_{what}_ticks_total"))
    };
    until("some ticks", || (metric("sampled") >= 2.0).then_some(()));
    let daemon = Pid::from_raw(fixture.host.daemon_pid().try_into().unwrap()).unwrap();
    let stopped = Instant::now();
    kill_process(daemon, Signal::STOP).unwrap();
    // Three ticks are due in this time.
    until("three ticks' time", || {
        (stopped.elapsed() > Duration::from_millis(350)).then_some(())
    });
    kill_process(daemon, Signal::CONT).unwrap();
    until("them to be counted", || {
        (metric("missed") >= 2.0).then_some(())
    });
    let (sampled, missed) = (metric("sampled"), metric("missed"));
    drop(follow);
    let mut again = Follow::start(&fixture.host);
    again.next();
    assert!(metric("sampled") > sampled);
    assert!(metric("missed") >= missed);
}

#[test]
fn p06_no_share_is_impossible_whatever_the_counters_do() {
    let _machine = crate::among_others();
    let sequence = [
        "cpu0 100 0 50 1000 30 0 0 0 0 0\n",
        "cpu0 150 0 60 1040 27 0 0 0 0 0\n",
        "cpu0 160 0 60 1039 27 0 0 0 0 0\n",
        "cpu0 170 0 60 1129 27 0 0 18446744073709551611 0 0\n",
        "cpu0 170 0 60 1129 27 0 0 18446744073709551611 0 0\n",
        "cpu0 0 0 0 0 0 0 0 0 0 0\n",
        "cpu0 0 0 0 0 0 0 0 0 0 0\n",
    ];
    let fixture = Fixture::start(sequence[0]);
    let mut follow = Follow::start(&fixture.host);
    let mut seen = 0;
    for text in sequence {
        fixture.stat(text);
        for tick in [follow.fresh(), follow.next()] {
            for util in tick.utils().into_values().flatten() {
                assert!((0.0..=100.0).contains(&util), "{tick:?}");
                seen += 1;
            }
        }
        let all = fixture.host.tracectl(&["host", "--format", "json"]).ok();
        let all: serde_json::Value = serde_json::from_slice(&all.stdout).unwrap();
        for share in all["sample"]["cpus"][0]
            .as_object()
            .unwrap()
            .values()
            .filter_map(|v| v.as_f64())
        {
            assert!((0.0..=100.0).contains(&share), "{all:#}");
        }
    }
    assert!(seen > 0, "no share at all");
    assert!(
        fixture.complaints().len() <= 1,
        "{:?}",
        fixture.complaints()
    );
}

#[test]
fn p09_a_daemon_starts_on_a_machine_without_a_model_name() {
    let _machine = crate::among_others();
    let fixture = Fixture::start("cpu0 1 0 0 1\n");
    let name = |cpuinfo: &str| {
        fs::write(fixture.proc.join("cpuinfo"), cpuinfo).unwrap();
        run(fixture.host.tracectl_command(&["host", "start"])).ok();
        let shown = fixture.host.tracectl(&["host", "--format", "json"]).ok();
        run(fixture.host.tracectl_command(&["host", "stop"])).ok();
        let shown: serde_json::Value = serde_json::from_slice(&shown.stdout).unwrap();
        shown["cpu_name"].as_str().unwrap().to_owned()
    };
    let arm = "processor : 0\nCPU implementer : 0x41\nCPU part : 0xd40\n\n";
    assert_eq!(name(&arm.repeat(8)), "implementer 0x41 part 0xd40");
    assert_eq!(name("processor : 0\n\nHardware : BCM2835\n"), "BCM2835");
    assert_eq!(name(""), "unknown");
}

#[test]
fn p03_short_lived_processes_are_no_errors() {
    let _machine = crate::among_others();
    let mut host = Host::new();
    host.start_daemon(&["--host"]);
    run(host.tracectl_command(&["host", "stop"])).ok();
    let mut follow = Follow::start(&host);
    for _ in 0..40 {
        let mut probe = host.probe_command(&["-n", "1"]);
        probe.env_remove("NRT_TRACE_WAIT_MS");
        run(probe).ok();
    }
    // One that lives from one tick to another has an end that can be seen.
    let mut probe: Running = host.interactive_probe(&["-n", "1"]);
    let pid = probe.pid();
    follow.until(|tick| tick.producer(pid).is_some());
    probe.close_stdin();
    let last = follow.until(|tick| tick.producer(pid).is_some_and(|p| p["ended"] == true));
    assert!(last.producer(pid).unwrap().get("rss_bytes").is_none());
    assert!(follow.next().producer(pid).is_none());
    probe.wait().ok();
    let log = host.daemon_log();
    assert!(
        !log.contains("ERROR") && !log.contains("host monitor: PID"),
        "{log}"
    );
}
