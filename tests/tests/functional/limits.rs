//! Machines with little room: memory groups, address space, and what a process that gets no rings is told.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use nrt_trace_tests::{Host, PATIENT, Running, artifacts, run, until};

/// Events of a ring, and the memory that they take; the memory group has half of it.
const EVENTS: u64 = 512 << 10;
const RING: u64 = EVENTS * 128;
const GROUP: u64 = RING / 2;

/// A memory group of its own, gone with this.
#[derive(Debug)]
struct Group(PathBuf);

impl Group {
    /// One that may have `bytes`; `None`, and a loud word, where none can be made.
    #[expect(clippy::print_stderr, reason = "a test that did not run says so")]
    fn new(name: &str, bytes: u64) -> Option<Self> {
        let made = Self::v2(name, bytes).or_else(|second| {
            Self::v1(name, bytes)
                .map_err(|first| format!("version 2: {second}; version 1: {first}"))
        });
        match made {
            Ok(group) => Some(group),
            Err(why) => {
                eprintln!("NOT RUN: no memory group can be made here: {why}");
                None
            }
        }
    }

    fn v2(name: &str, bytes: u64) -> Result<Self, String> {
        let root = Path::new("/sys/fs/cgroup");
        let has = fs::read_to_string(root.join("cgroup.subtree_control")).map_err(text)?;
        if !has.split_whitespace().any(|one| one == "memory") {
            return Err("the root group controls no memory".to_owned());
        }
        Self::make(root, name, &[("memory.max", bytes), ("memory.swap.max", 0)])
    }

    fn v1(name: &str, bytes: u64) -> Result<Self, String> {
        let root = Path::new("/sys/fs/cgroup/memory");
        Self::make(root, name, &[("memory.limit_in_bytes", bytes)])
    }

    fn make(root: &Path, name: &str, limits: &[(&str, u64)]) -> Result<Self, String> {
        let folder = root.join(format!("nrt-test-{name}-{}", std::process::id()));
        fs::create_dir(&folder).map_err(text)?;
        let group = Self(folder);
        for (file, value) in limits {
            let written = fs::write(group.0.join(file), value.to_string());
            // A kernel without swap accounting has no file for it, and no swap that matters.
            if *file != "memory.swap.max" {
                written.map_err(text)?;
            }
        }
        Ok(group)
    }

    /// `program` inside the group.
    fn enter(&self, host: &Host, program: &Command) -> Command {
        let mut command = host.command("sh");
        command.args(["-c", "echo $$ > \"$0\" && exec \"$@\""]);
        command.arg(self.0.join("cgroup.procs"));
        command.arg(program.get_program()).args(program.get_args());
        command
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // It is in use for a moment after its last process has ended.
        until("the memory group to be empty", || {
            fs::remove_dir(&self.0).ok()
        });
    }
}

fn text(error: std::io::Error) -> String {
    error.to_string()
}

fn host_with(settings: &str) -> Host {
    let mut host = Host::new();
    fs::write(host.path("traced.toml"), settings).unwrap();
    host.start_daemon(&["--config", host.path("traced.toml").to_str().unwrap()]);
    host
}

fn ring(host: &Host, field: &str) -> u64 {
    let status = host.status();
    let rings = status["runs"][0]["accounts"].as_array().unwrap().iter();
    rings.map(|ring| ring[field].as_u64().unwrap()).sum()
}

fn started(host: &Host) {
    let events = EVENTS.to_string();
    host.tracectl(&["start", "--nc", "0", "--max-events-per-nc", &events])
        .ok();
}

/// A ring larger than its process's memory group does the process no harm: the daemon has taken the memory.
#[test]
fn a_process_in_a_memory_group_smaller_than_its_ring_is_not_killed() {
    let Some(group) = Group::new("all", GROUP) else {
        return;
    };
    let host = host_with("allocate = \"all\"");
    started(&host);
    let probe = host.probe_command(&["-n", &EVENTS.to_string()]);
    let ended = run(group.enter(&host, &probe)).ok();
    assert_eq!(ring(&host, "unread"), EVENTS, "{ended}");
}

/// What the test above would see if the memory were charged to the process.
#[test]
fn it_would_be_killed_if_it_had_to_take_the_memory_itself() {
    let Some(group) = Group::new("producer", GROUP) else {
        return;
    };
    let host = host_with("allocate = \"producer\"");
    started(&host);
    let probe = host.probe_command(&["-n", &EVENTS.to_string()]);
    let ended = run(group.enter(&host, &probe));
    assert_eq!(ended.signal(), Some(9), "{ended}");
    // Whatever it had emitted is there.
    let unread = ring(&host, "unread");
    assert!((1..EVENTS).contains(&unread), "{unread}");
}

/// The default: the daemon stays ahead of a process that is not faster than it takes memory.
#[test]
fn memory_taken_ahead_is_not_charged_to_the_process() {
    const BATCH: u64 = 16 << 10;
    let Some(group) = Group::new("ahead", GROUP) else {
        return;
    };
    let host = host_with("allocate = \"ahead\"");
    started(&host);
    let probe = host.probe_command(&["--interactive", "-n", &BATCH.to_string()]);
    let mut probe = Running::start(group.enter(&host, &probe));
    assert_eq!(probe.read_line(), "ready\n");
    for batch in 1..=EVENTS / BATCH {
        let answer = probe.ask("go");
        assert!(
            answer.contains(&format!("\"recorded\":{BATCH}")),
            "{answer}"
        );
        let next = (batch * BATCH * 128 + (3 << 20)).min(RING);
        until("the daemon to be ahead", || {
            (host.status()["resident_bytes"].as_u64() >= Some(next)).then_some(())
        });
    }
    probe.wait().ok();
    assert_eq!(ring(&host, "unread"), EVENTS);
}

/// Too little address space for the rings: the program runs on, unrecorded, and everybody is told why.
#[test]
fn a_process_without_address_space_is_not_captured_and_runs_on() {
    let host = Host::with_daemon();
    let probe = host.probe_command(&["--interactive", "-n", "100"]);
    let mut limited = host.command("sh");
    limited.args(["-c", "ulimit -v 700000 && exec \"$@\" 2>told", "sh"]);
    limited.arg(probe.get_program()).args(probe.get_args());
    limited.env("NRT_TRACE_LOG", "warn");
    let mut limited = Running::start(limited);
    assert_eq!(limited.read_line(), "ready\n");
    until("it to attach", || {
        host.attached().contains(&limited.pid()).then_some(())
    });
    let mut other = host.interactive_probe(&["-n", "100"]);
    let started = host.tracectl(&["start"]).ok().text();
    let refused: Vec<_> = (started.lines())
        .filter(|line| line.starts_with("refused"))
        .collect();
    assert_eq!(refused.len(), 1, "{started}");
    for word in [
        &*limited.pid().to_string(),
        "can't map its rings",
        "ulimit -v",
    ] {
        assert!(refused[0].contains(word), "{word}: {started}");
    }
    assert!(limited.ask("go").contains("\"recorded\":0"));
    assert!(other.ask("go").contains("\"recorded\":100"));
    until("the program to be told", || {
        let told = fs::read_to_string(host.path("told")).unwrap();
        told.contains("can't map its rings").then_some(())
    });
    limited.wait().ok();
    assert_eq!(host.fetch().events.len(), 100);
}

/// A command that may have so many descriptors.
fn with_descriptors(host: &Host, most: u32, command: &Command) -> Command {
    let mut limited = host.command("sh");
    let script = format!("ulimit -n {most} && exec \"$@\"");
    limited.args(["-c", &script, "sh"]);
    limited.arg(command.get_program()).args(command.get_args());
    limited
}

/// No descriptor for what the daemon sends: the program is told once, and runs on. With one more it is captured.
#[test]
fn a_process_without_descriptors_is_not_captured_and_runs_on() {
    let host = Host::with_daemon();
    host.tracectl(&["start", "--max-events-per-nc", "1024"])
        .ok();
    let probe = host.probe_command(&["--interactive", "-n", "100"]);
    let mut limited = with_descriptors(&host, 5, &probe);
    limited.env("NRT_TRACE_LOG", "warn");
    let mut limited = Running::start(limited);
    assert_eq!(limited.read_line(), "ready\n");
    until("the daemon to be asked, and asked again", || {
        let log = host.daemon_log();
        (log.matches("attached").count() >= 2).then_some(())
    });
    assert!(limited.ask("go").contains("\"recorded\":0"));
    let ended = limited.wait().ok();
    let told = ended.stderr.matches("ulimit -n").count();
    assert_eq!((told, ended.stderr.lines().count()), (1, 1), "{ended}");

    let probe = host.probe_command(&["-n", "100"]);
    run(with_descriptors(&host, 6, &probe)).ok();
    assert_eq!(host.fetch().events.len(), 100);
}

/// Our own programs say what they need before anything fails for want of it.
#[test]
fn commands_and_daemon_say_how_many_descriptors_they_need() {
    let host = Host::new();
    let mut status = host.command(&artifacts().tracectl);
    status.arg("status");
    for command in [status, host.daemon_command(&[])] {
        let ended = run(with_descriptors(&host, 8, &command)).with_code(1);
        for words in ["8 open files are allowed", "64", "ulimit -n"] {
            assert!(ended.stderr.contains(words), "{words}: {ended}");
        }
        assert_eq!(ended.stderr.lines().count(), 1, "{ended}");
    }
}

/// A program that is recorded and gets no rings is not recorded in silence.
#[test]
fn a_refusal_is_told_by_start_by_record_by_status_and_by_the_program() {
    let host = host_with("max_segment_bytes = 1000000");
    let program = host.probe_command(&["--interactive", "-n", "10"]);
    let mut probe = host.command("sh");
    probe.args(["-c", "exec \"$@\" 2>told", "sh"]);
    probe.arg(program.get_program()).args(program.get_args());
    probe.env("NRT_TRACE_LOG", "warn");
    let probe = Running::start(probe);
    until("it to attach", || {
        host.attached().contains(&probe.pid()).then_some(())
    });
    let words = ["1048576 events", "1000000 bytes", "max_segment_bytes"];
    let all = |text: &str| {
        for word in words {
            assert!(text.contains(word), "no {word:?} in {text}");
        }
    };
    let started = host.tracectl(&["start"]).ok().text();
    all(started.lines().find(|l| l.starts_with("refused")).unwrap());
    let producers = host.tracectl(&["producers", "--format", "json"]).ok();
    all(&producers.text());
    all(&host.tracectl(&["status"]).ok().text());
    // The program hears of it on a thread of its own.
    let told = until("the program to be told", || {
        let told = fs::read_to_string(host.path("told")).unwrap();
        told.ends_with('\n').then_some(told)
    });
    all(&told);
    probe.wait().ok();
    host.tracectl(&["stop"]).ok();
    let recorded = run(host.probe_recorded(&["-n", "10"])).ok();
    let warned = (recorded.stderr.lines()).find(|l| l.contains("is not captured"));
    all(warned.unwrap_or_else(|| panic!("{recorded}")));
    let log = host.log_with("not captured");
    assert_eq!(log.matches("not captured").count(), 1, "{log}");
}

/// A process that is not even attached is in no account and no list: a word of the recording's is all that tells of it.
#[test]
fn a_recording_tells_of_processes_that_were_refused() {
    let mut host = Host::new();
    let config = host.path("config.toml");
    fs::write(&config, format!("{PATIENT}max_producers = 1\n")).unwrap();
    host.start_daemon(&["--config", config.to_str().unwrap()]);
    let mut probe = host.interactive_probe(&["-n", "1"]);
    let told = "refused meanwhile, and is in no account: 1 processes are attached";
    let mut record = host.probe_recorded(&["-n", "10"]);
    record.env("NRT_TRACE_WAIT_MS", "100");
    let recorded = run(record).ok();
    assert!(recorded.stderr.contains(told), "{recorded}");
    // What was refused before is no news.
    let later = host
        .tracectl(&["record", "-o", "t.json", "--", "true"])
        .ok();
    assert!(!later.stderr.contains("refused meanwhile"), "{later}");
    probe.close_stdin();
    probe.wait().ok();
}
