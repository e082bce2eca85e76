//! Machines that are not the developer's own: namespaces, a tiny /dev/shm, forks, one busy CPU.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use nrt_trace_tests::payload::numbers;
use nrt_trace_tests::{Document, Host, Link, Running, artifacts, compile, run, until};
use serde_json::Value;

/// How long a test that wants a minute takes: the minute itself with `NRT_TRACE_LONG_TESTS=1`.
fn seconds() -> u64 {
    if std::env::var_os("NRT_TRACE_LONG_TESTS").is_some() {
        60
    } else {
        2
    }
}

/// `unshare` with the command of a program behind it; `None`, and a loud word, where it may not.
#[expect(clippy::print_stderr, reason = "a test that did not run says so")]
pub(crate) fn unshared(host: &Host, options: &[&str], program: &Command) -> Option<Command> {
    let mut probe = host.command("unshare");
    let allowed = run({
        probe.args(options).arg("true");
        probe
    });
    if allowed.code() != Some(0) {
        eprintln!("NOT RUN: unshare {options:?}: {}", allowed.text());
        return None;
    }
    let mut command = host.command("unshare");
    command.args(options).arg(program.get_program());
    command.args(program.get_args());
    Some(command)
}

/// Case C02: what sits in the process at a fork is the parent's alone. Python forks and spawns with the library loaded.
#[test]
fn c02_forks_and_children_of_python_repeat_nothing() {
    let host = Host::new();
    let script = host.path("forks.py");
    fs::write(
        &script,
        r"
import ctypes, os, subprocess, sys
library = ctypes.CDLL(sys.argv[1])
emit = library.nrt_sys_trace_new_event
emit.restype = ctypes.c_uint64
emit.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_void_p]
assert library.nrt_trace_wait_armed(30000)
for _ in range(500):
    assert emit(3, 2, 0, 0, None)
for _ in range(20):
    subprocess.run(['true'], check=True)
for _ in range(5):
    if os.fork() == 0:
        os._exit(0)
    os.wait()
for _ in range(500):
    assert emit(3, 2, 0, 0, None)
print(os.getpid())
",
    )
    .unwrap();
    let library = artifacts().library.to_str().unwrap();
    let ended = host
        .tracectl(&[
            "record",
            "-o",
            "t.json",
            "--",
            "python3",
            script.to_str().unwrap(),
            library,
        ])
        .ok();
    let document = Document::read(&host.path("t.json"));
    let numbers: Vec<u64> = document.events.iter().map(|e| e.nc_local_id).collect();
    assert_eq!(numbers, (1..=1000).collect::<Vec<_>>(), "{ended}");
}

/// A forked child's first event comes as soon as it is there; none is before its time.
#[test]
fn children_of_a_fork_are_recorded_from_their_first_event_on() {
    let host = Host::new();
    let script = host.path("children.py");
    fs::write(
        &script,
        r"
import ctypes, os, sys
library = ctypes.CDLL(sys.argv[1])
emit = library.nrt_sys_trace_new_event
emit.restype = ctypes.c_uint64
emit.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_void_p]
assert emit(3, 2, 0, 0, None)
for _ in range(10):
    if os.fork() == 0:
        os._exit(sum(emit(3, 2, 0, 0, None) != 0 for _ in range(10)))
    assert os.waitstatus_to_exitcode(os.wait()[1]) == 10
",
    )
    .unwrap();
    let library = artifacts().library.to_str().unwrap();
    let mut record = host.tracectl_command(&["record", "-o", "t.json", "--", "python3"]);
    record.arg(&script).arg(library);
    // Long enough for any machine.
    record.env("NRT_TRACE_WAIT_MS", "30000");
    run(record).ok();
    assert_eq!(Document::read(&host.path("t.json")).events.len(), 101);
}

/// Case R05: eight threads write one ring on two CPUs while it is read: no event is torn.
#[test]
fn r05_eight_writers_tear_nothing() {
    let host = Host::new();
    let events = (seconds() * 40_000).to_string();
    let ended = run(host.probe_recorded(&["-n", &events, "--threads", "8"])).ok();
    let document = Document::read(&host.path("t.json"));
    // `numbers` checks each event's checksum.
    for (thread, numbers) in numbers(&document.events) {
        let distinct: BTreeSet<_> = numbers.iter().collect();
        assert_eq!(distinct.len(), numbers.len(), "thread {thread}: {ended}");
        assert!(numbers.is_sorted(), "thread {thread}: {ended}");
    }
}

/// Case R06: one slow writer, a reader, and a program that takes all of their one CPU: nothing is lost.
#[test]
fn r06_one_busy_cpu_loses_nothing() {
    let host = Host::new();
    let mut busy = host.command("taskset");
    busy.args(["-c", "0", "sh", "-c", "while :; do :; done"]);
    let busy = Running::start(busy);
    let (events, program) = ((seconds() * 100).to_string(), &artifacts().probe);
    let mut record = host.command("taskset");
    record.args(["-c", "0"]).arg(&artifacts().tracectl);
    record.args([
        "record",
        "-o",
        "t.json",
        "--max-events-per-nc",
        "1024",
        "--",
    ]);
    record.arg(program).args(["-n", &events, "--rate", "100"]);
    let ended = run(record).ok();
    drop(busy);
    let document = Document::read(&host.path("t.json"));
    let all: Vec<u64> = (1..=seconds() * 100).collect();
    assert_eq!(numbers(&document.events).remove(&0), Some(all), "{ended}");
}

/// Case S01: rings need no room in /dev/shm.
#[test]
fn s01_a_small_dev_shm_does_not_matter() {
    let host = Host::new();
    let record = host.probe_recorded(&["-n", "300000"]);
    let mount = "mount -t tmpfs -o size=1m tmpfs /dev/shm && exec \"$@\"";
    let mut shell = host.command("sh");
    shell.args(["-c", mount, "sh"]).arg(record.get_program());
    shell.args(record.get_args());
    let Some(command) = unshared(&host, &["-m"], &shell) else {
        return;
    };
    let ended = run(command).ok();
    let document = Document::read(&host.path("t.json"));
    assert_eq!(document.events.len(), 300_000, "{ended}");
}

/// Case S06: nothing of ours has a name that somebody could remove.
#[test]
fn s06_nothing_has_a_name_in_dev_shm() {
    let names = || -> BTreeSet<_> {
        let entries = fs::read_dir("/dev/shm").unwrap();
        entries.map(|entry| entry.unwrap().file_name()).collect()
    };
    let before = names();
    let host = Host::with_daemon();
    host.tracectl(&["start"]).ok();
    let probe = host.interactive_probe(&[]);
    let maps = fs::read_to_string(format!("/proc/{}/maps", probe.pid())).unwrap();
    let ours: Vec<_> = maps
        .lines()
        .filter(|line| line.contains("nrt-trace-"))
        .collect();
    assert!(ours.len() >= 3, "{maps}");
    for line in ours {
        assert!(
            line.contains("/memfd:nrt-trace-") && line.ends_with("(deleted)"),
            "{line}"
        );
    }
    let new: Vec<_> = names().difference(&before).cloned().collect();
    assert!(
        !new.iter()
            .any(|name| name.to_string_lossy().contains("nrt")),
        "{new:?}"
    );
}

/// Case G08: two processes that are both pid 1, each in a namespace of its own, are two processes.
#[test]
fn g08_pid_one_in_two_namespaces() {
    let host = Host::with_daemon();
    host.tracectl(&["start"]).ok();
    for events in ["1000", "2000"] {
        let probe = host.probe_command(&["-n", events]);
        let Some(command) = unshared(&host, &["-p", "-f", "--mount-proc"], &probe) else {
            return;
        };
        run(command).ok();
    }
    let document = host.fetch();
    let mut counts: Vec<_> = document.by_process().values().map(Vec::len).collect();
    counts.sort_unstable();
    assert_eq!(counts, [1000, 2000]);
    assert!(document.by_process().keys().all(|pid| *pid > 1));
    // Both numbers are told: the one that the daemon sees, and the one that the process sees.
    let listed = host.producers();
    let seen: BTreeSet<_> = listed.iter().map(|p| p["pid"].as_u64().unwrap()).collect();
    assert_eq!(seen.len(), 2, "{listed:?}");
    assert!(listed.iter().all(|p| p["ns_pid"] == 1), "{listed:?}");
}

/// Case G08 the other way round: a daemon in a namespace of its own, which can't see the numbers of processes outside, one of
/// them in yet another namespace. Each is a process by itself all the same, under a number that no process has.
#[test]
fn g08_a_daemon_that_sees_no_pid_of_its_processes() {
    let mut host = Host::new();
    let daemon = host.daemon_command(&[]);
    let options = ["-p", "-f", "--mount-proc", "--kill-child"];
    let Some(command) = unshared(&host, &options, &daemon) else {
        return;
    };
    host.start_daemon_as(command);
    host.tracectl(&["start"]).ok();
    host.probe(&["-n", "1000", "--name", "outside"]).ok();
    let probe = host.probe_command(&["-n", "2000", "--name", "elsewhere"]);
    run(unshared(&host, &options, &probe).unwrap()).ok();

    let fetched = host.tracectl(&["fetch", "-o", "-"]).ok();
    let document: Value = serde_json::from_slice(&fetched.stdout).unwrap();
    let mut counts = BTreeMap::<i64, usize>::new();
    for event in document["events"].as_array().unwrap() {
        *counts
            .entry(event["process_id"].as_i64().unwrap())
            .or_default() += 1;
    }
    assert_eq!(counts, BTreeMap::from([(-1, 1000), (-2, 2000)]));
    let listed = host.producers();
    let told: Vec<_> = (listed.iter())
        .map(|p| (p["producer_id"].as_u64(), p["name"].as_str(), &p["pid"]))
        .collect();
    let none = &Value::Null;
    let (outside, elsewhere) = (Some("outside"), Some("elsewhere"));
    assert_eq!(told, [(Some(1), outside, none), (Some(2), elsewhere, none)]);
    // They are gone, and the daemon knows it, although it can't look at them.
    assert!(listed.iter().all(|p| p["state"] == "dead"), "{listed:?}");
}

/// Two processes of one number, one after the other and a daemon's death between them, are two processes.
#[test]
fn a_number_that_is_used_again_is_another_process() {
    let host = Host::new();
    let daemon = host.daemon_command(&[]);
    let script = r#"
start() {
    "$@" & daemon=$!
    until "$TRACECTL" status >/dev/null 2>&1; do :; done
}
start "$@"
"$TRACECTL" start --nc 0 >/dev/null
"$PROBE" -n 10 --name first >/dev/null & first=$!
wait $first
until ls ended/segment-*[0-9] >/dev/null 2>&1; do :; done
kill -9 $daemon
wait $daemon
start "$@"
for try in 1 2 3 4 5 6 7 8 9 10; do
    echo $((first - 1)) > /proc/sys/kernel/ns_last_pid || exit 3
    "$PROBE" -n 20 --name second >/dev/null & second=$!
    wait $second
    [ $second = $first ] && break
done
echo $first $second $try
read line
"#;
    let mut shell = host.command("sh");
    shell.args(["-c", script, "sh"]).arg(daemon.get_program());
    shell.args(daemon.get_args());
    let Some(mut command) = unshared(&host, &["-p", "-f", "--mount-proc"], &shell) else {
        return;
    };
    command.env("TRACECTL", &artifacts().tracectl);
    command.env("PROBE", &artifacts().probe);
    let mut running = Running::start(command);
    let line = running.read_line();
    let numbers: Vec<usize> = (line.split_whitespace())
        .map(|number| number.parse().unwrap())
        .collect();
    let [first, second, tries] = numbers[..] else {
        panic!("{line}");
    };
    assert_eq!(first, second, "the number came again within {tries} tries");
    let listed = until("all of them to be seen dead", || {
        let listed = host.producers();
        let dead = listed.iter().all(|p| p["state"] == "dead");
        (dead && listed.len() == 1 + tries).then_some(listed)
    });
    let named = |name: &str| listed.iter().rfind(|p| p["name"] == name).unwrap();
    let (old, new) = (named("first"), named("second"));
    assert_eq!(old["pid"], new["pid"]);
    assert_ne!(old["producer_id"], new["producer_id"]);
    assert_eq!(host.fetch().events.len(), 10 + 20 * tries);
    running.tell("end");
}

/// A control group of its own for a test, with a limit on memory; removed when dropped.
struct Confined {
    folder: std::path::PathBuf,
    counter: &'static str,
}

impl Confined {
    /// `None`, and a loud word, where none can be made.
    #[expect(clippy::print_stderr, reason = "a test that did not run says so")]
    fn to(bytes: u64) -> Option<Self> {
        let name = format!("nrt-test-{}", std::process::id());
        let places = [
            (
                "/sys/fs/cgroup/memory",
                "memory.limit_in_bytes",
                "memory.oom_control",
            ),
            ("/sys/fs/cgroup", "memory.max", "memory.events"),
        ];
        for (root, limit, counter) in places {
            let folder = std::path::Path::new(root).join(&name);
            if fs::create_dir(&folder).is_err() {
                continue;
            }
            let confined = Self { folder, counter };
            if fs::write(confined.folder.join(limit), bytes.to_string()).is_ok() {
                // Else a machine with swap would swap for a while.
                let _no_swap = fs::write(confined.folder.join("memory.swap.max"), "0");
                return Some(confined);
            }
        }
        eprintln!("NOT RUN: no control group with a limit on memory can be made here");
        None
    }

    /// Processes that the kernel killed in it.
    fn killed(&self) -> u64 {
        let text = fs::read_to_string(self.folder.join(self.counter)).unwrap();
        let mut lines = text.lines();
        let count = lines.find_map(|line| line.strip_prefix("oom_kill "));
        count.map_or(0, |count| count.parse().unwrap())
    }
}

impl Drop for Confined {
    fn drop(&mut self) {
        // A process that is about to be gone may still be in it; then it stays, empty.
        drop(fs::remove_dir(&self.folder));
    }
}

/// A process that the kernel kills because its memory is used up leaves what it emitted, also to a next daemon.
#[test]
fn a_process_killed_for_want_of_memory_leaves_its_events() {
    let Some(confined) = Confined::to(64 << 20) else {
        return;
    };
    let mut host = Host::with_daemon();
    host.tracectl(&["start", "--max-events-per-nc", "2048", "--nc", "0"])
        .ok();
    let script = host.path("eats.py");
    fs::write(
        &script,
        r"
import ctypes, os, sys
open(os.path.join(sys.argv[2], 'cgroup.procs'), 'w').write(str(os.getpid()))
library = ctypes.CDLL(sys.argv[1])
emit = library.nrt_sys_trace_new_event
emit.restype = ctypes.c_uint64
emit.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_void_p]
assert library.nrt_trace_wait_armed(30000)
for _ in range(1000):
    assert emit(3, 2, 0, 0, None)
eaten = []
while True:
    eaten.append(bytearray(os.urandom(1 << 20)))
",
    )
    .unwrap();
    let mut python = host.command("python3");
    python.arg(&script).arg(&artifacts().library);
    python.arg(&confined.folder);
    let running = Running::start(python);
    let pid = running.pid();
    let ended = running.wait();
    assert_eq!(ended.signal(), Some(9), "{ended}");
    assert!(confined.killed() > 0);
    host.until_state(pid, "dead");
    assert_eq!(host.stop_daemon(), Some(0));
    host.start_daemon(&[]);
    assert_eq!(host.state_of(pid).as_deref(), Some("dead"));
    let document = host.fetch();
    let numbers: Vec<u64> = document.events.iter().map(|e| e.nc_local_id).collect();
    assert_eq!(numbers, (1..=1000).collect::<Vec<_>>());
}

/// Case T02: in a time namespace the clock of events is still the host's.
#[test]
fn t02_a_time_namespace_shifts_no_event() {
    let host = Host::with_daemon();
    host.tracectl(&["start"]).ok();
    let probe = host.probe_command(&["-n", "1000"]);
    let options = ["-T", "--boottime", "86400", "--monotonic", "86400", "-f"];
    let Some(command) = unshared(&host, &options, &probe) else {
        return;
    };
    let now = || {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        u64::try_from(since.as_nanos()).unwrap()
    };
    let before = now();
    run(command).ok();
    let between = before - 1_000_000..now() + 1_000_000;
    let document = host.fetch();
    assert_eq!(document.events.len(), 1000);
    for event in &document.events {
        assert!(
            between.contains(&event.timestamp_ns),
            "{event:?} {between:?}"
        );
    }
}

/// The library's thread has a stack of its own size, whatever programs get by default.
#[test]
fn a_small_default_stack_is_enough() {
    let host = Host::new();
    let program = compile(&host, "tests/c/forks.c", Link::Linked);
    let limited = format!("ulimit -s 128; exec {} 1000", program.display());
    let ended = host
        .tracectl(&["record", "-o", "t.json", "--", "sh", "-c", &limited])
        .ok();
    assert!(ended.text().contains(" 2000\n"), "{ended}");
}

/// A segment that a limit on file sizes forbids is not made; the daemon goes on.
#[test]
fn a_file_size_limit_does_not_end_the_daemon() {
    let mut host = Host::new();
    let daemon = host.daemon_command(&[]);
    let mut limited = host.command("sh");
    limited.args(["-c", "ulimit -f 2000; exec \"$@\"", "sh"]);
    limited.arg(daemon.get_program()).args(daemon.get_args());
    host.start_daemon_as(limited);
    host.tracectl(&["start"]).ok();
    let mut probe = host.probe_command(&["-n", "10"]);
    probe.env("NRT_TRACE_WAIT_MS", "1000");
    run(probe).ok();
    host.tracectl(&["stop"]).ok();
    assert_eq!(host.stop_daemon(), Some(0));
}
