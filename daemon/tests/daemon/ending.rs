//! Producers that go, with and without a word, and the daemon's own end.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use nrt_trace_abi::message::Go;
use nrt_trace_proto::v1::ProducerState;

use crate::support::{Answer, Apart, Client, Fake, Host, fetch, hello, host_run, wait_for};

/// Name of the test that is the child process.
const CHILD: &str = "ending::child_process";
/// Its socket and its number of events, by environment.
const SOCKET: &str = "NRT_TEST_PRODUCER_SOCKET";
const EVENTS: &str = "NRT_TEST_EVENTS";

/// Not a test: a process that attaches, emits, says so, and waits to be killed.
#[test]
#[ignore = "the other tests of this file run it"]
fn child_process() {
    let Ok(path) = std::env::var(SOCKET) else {
        return;
    };
    let events: u64 = std::env::var(EVENTS).unwrap().parse().unwrap();
    let fake = Fake::attach_as(path.as_ref(), &hello("child", "", &[]), Answer::Honest);
    fake.wait_heard::<Go>(1);
    fake.emit_many(0, events);
    fake.intern("child's name");
    println!("\nproducer {}", fake.id);
    std::io::stdout().flush().unwrap();
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
    // As a program ends that calls _exit: no destructor, no word to the daemon.
    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL)
        .unwrap();
}

struct Process {
    child: Child,
    output: BufReader<ChildStdout>,
    id: u32,
}

impl Process {
    fn start(host: &Host, events: u64) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                CHILD,
                "--exact",
                "--ignored",
                "--nocapture",
                "--test-threads=1",
            ])
            .env(SOCKET, host.daemon.producer_socket())
            .env(EVENTS, events.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        let id = loop {
            line.clear();
            assert_ne!(output.read_line(&mut line).unwrap(), 0, "the child ended");
            if let Some(id) = line.trim().strip_prefix("producer ") {
                break id.parse().unwrap();
            }
        };
        Self { child, output, id }
    }

    fn kill(mut self) -> (u32, i32) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        drop(self.output);
        (self.id, i32::try_from(self.child.id()).unwrap())
    }
}

/// Case F04: whatever was emitted before a process is killed is there.
#[test]
fn f04_a_killed_process_leaves_every_event_it_emitted() {
    let mut host = Host::new();
    host.start(host_run(4096)).unwrap();
    let survivor = Fake::attach(&host, "survivor");
    survivor.wait_heard::<Go>(1);
    let (id, pid) = Process::start(&host, 1000).kill();
    survivor.emit_many(0, 10);
    host.wait_state(id, ProducerState::Dead);
    let fetched = host.consume();
    assert_eq!(fetched.seqs(id, 0), (1..=1000).collect::<Vec<_>>());
    assert_eq!(fetched.seqs(survivor.id, 0).len(), 10);
    assert!(
        fetched.accounts[&(id, 0)].exact,
        "no claim is missing: it did not die inside an emit"
    );
    assert!(fetched.names.iter().any(|name| name.text == "child's name"));
    let producer = fetched
        .producers
        .iter()
        .find(|producer| producer.producer_id == id)
        .unwrap();
    assert_eq!(
        (producer.pid, producer.state()),
        (Some(pid), ProducerState::Dead)
    );
    assert!(producer.ended_ns.unwrap() >= producer.attached_ns);

    // All of it was consumed: it is not told of again, and its memory is free.
    let fetched = host.consume();
    assert_eq!(
        fetched
            .producers
            .iter()
            .map(|p| p.producer_id)
            .collect::<Vec<_>>(),
        [survivor.id]
    );
    assert!(
        host.producers()
            .iter()
            .any(|p| p.producer_id == id && p.state() == ProducerState::Dead)
    );
    let rings = survivor.rings();
    assert_eq!(host.status().reserved_bytes, rings.layout.bytes());
}

#[test]
fn death_during_a_start_or_a_stop_holds_nobody_up() {
    let mut host = Host::new();
    host.start(host_run(64)).unwrap();
    let processes: Vec<_> = (0..3).map(|_| Process::start(&host, 5)).collect();
    for process in &processes {
        let pid = rustix::process::Pid::from_child(&process.child);
        rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    }
    // Stopped processes don't answer; killed while the stop waits, they are waited for no more. The stop's own
    // timeout here is 10 s and the test's deadlines are above that: it is the deaths that end the wait.
    let began = Instant::now();
    let ids: Vec<_> = std::thread::scope(|scope| {
        let stopping = scope.spawn(|| {
            let answer = host.stop("", false).unwrap();
            (answer, host)
        });
        let ids: Vec<_> = processes
            .into_iter()
            .map(|process| process.kill().0)
            .collect();
        let (answer, mut back) = stopping.join().unwrap();
        assert!(answer.not_quiescent.is_empty(), "dead, and so not running");
        assert!(
            began.elapsed() < Duration::from_secs(10),
            "the timeout was not waited for"
        );
        let fetched = back.consume();
        ids.iter()
            .for_each(|id| assert_eq!(fetched.seqs(*id, 0).len(), 5));
        assert!(fetched.end().run_ended);
        ids
    });
    assert_eq!(ids.len(), 3);
}

#[test]
fn what_ended_processes_leave_has_a_budget_and_the_oldest_gives_way() {
    let mut host = Host::with(|config| config.budgets.ended_bytes = 600 << 10);
    host.start(host_run(1024)).unwrap();
    // Two rings of 128 KiB each: two producers fit the budget, three don't.
    let mut ids = Vec::new();
    for _ in 0..3 {
        let fake = Fake::attach(&host, "x");
        fake.wait_heard::<Go>(1);
        fake.emit_many(0, 10);
        ids.push(fake.id);
        fake.detach();
    }
    wait_for("the budget to be kept", || {
        host.status().reserved_bytes < 3 * 260 * 1024
    });
    let fetched = host.consume();
    assert_eq!(
        fetched.accounts[&(ids[0], 0)].abandoned,
        10,
        "told, not silent"
    );
    assert_eq!(fetched.seqs(ids[0], 0), [0; 0]);
    assert_eq!(fetched.seqs(ids[1], 0).len(), 10);
    assert_eq!(fetched.seqs(ids[2], 0).len(), 10);
}

/// Case G03: neither a stream that nobody reads nor a silent connection keeps the daemon from ending.
#[test]
fn g03_a_shutdown_waits_for_nobody() {
    let mut host = Host::new();
    let fake = Fake::attach(&host, "x");
    host.start(host_run(100_000)).unwrap();
    fake.emit_many(0, 100_000);
    let silent = UnixStream::connect(host.daemon.control_socket()).unwrap();
    let Client { rpc, runtime } = &mut *host;
    let stream = runtime.block_on(rpc.fetch(fetch())).unwrap();
    let (control, producer) = (
        host.daemon.control_socket().to_owned(),
        host.daemon.producer_socket().to_owned(),
    );
    let Host { daemon, client, .. } = host;
    let began = Instant::now();
    daemon.shutdown();
    assert!(
        began.elapsed() < Duration::from_secs(10),
        "it ended by itself: {:?}",
        began.elapsed()
    );
    assert!(!control.exists() && !producer.exists());
    assert!(!fake.is_open(), "programs go on, with closed gates");
    drop((silent, stream, client));
}

#[test]
fn a_daemon_can_follow_another_and_stand_beside_another() {
    let folder = tempfile::tempdir().unwrap();
    let config = || nrt_traced::Config::embedded_in(folder.path());
    let first = nrt_traced::Daemon::start(config()).unwrap();
    let error = nrt_traced::Daemon::start(config()).unwrap_err();
    assert!(error.to_string().contains("already running on"), "{error}");
    assert!(
        error
            .to_string()
            .contains(first.control_socket().to_str().unwrap()),
        "{error}"
    );
    let beside = Host::new();
    drop(first);
    let second = nrt_traced::Daemon::start(config()).unwrap();
    drop((second, beside));
}

#[test]
fn a_run_of_many_short_processes_leaves_nothing_behind() {
    let mut daemon = Apart::with("default_cores = 2");
    let path = daemon.producer_socket();
    daemon.start(host_run(64)).unwrap();
    daemon.consume();
    let before = daemon.descriptors();
    for _ in 0..30 {
        let fake = Fake::attach_as(&path, &hello("short", "", &[]), Answer::Honest);
        fake.wait_heard::<Go>(1);
        fake.emit_many(0, 3);
        let id = fake.id;
        fake.detach();
        daemon.wait_state(id, ProducerState::Detached);
        assert_eq!(daemon.consume().end().events, 3);
    }
    assert_eq!(daemon.status().reserved_bytes, 0);
    assert_eq!(daemon.consume().producers, []);
    wait_for("the descriptors to be closed", || {
        daemon.descriptors() <= before + 2
    });
}
