//! What anybody may have, and how a refusal is told.

use std::time::Instant;

use nrt_trace_abi::message::{self, Arm, Disarm, Go, Refuse, refuse};
use nrt_trace_proto::v1;
use nrt_trace_shm::socket;
use nrt_traced::{Allocate, Config};

use crate::support::{Answer, Apart, Fake, Host, fetch, hello, host_run, receive, send, wait_for};

/// Bytes of two rings of 1024 events: what a producer of these tests needs.
const TWO_RINGS: u64 = 4096 + 2 * (132 << 10);

/// A key, what sets it, and words of the refusal.
type TooSmall = (&'static str, fn(&mut Config), &'static [&'static str]);

/// Hosts where the third producer gets no rings, and the words that it and everybody else must be told.
fn too_small() -> [TooSmall; 3] {
    [
        (
            "max_segment_bytes_per_uid",
            |config| config.budgets.segment_bytes_per_uid = 3 * TWO_RINGS - 1,
            &["274432 bytes", "823295 bytes", "548864 bytes"],
        ),
        (
            "max_segment_bytes_total",
            |config| config.budgets.segment_bytes_total = 3 * TWO_RINGS - 1,
            &["274432 bytes", "823295 bytes"],
        ),
        (
            "memory_budget_bytes",
            |config| {
                config.budgets.memory_bytes = 3 * TWO_RINGS - 1;
                config.allocate = Allocate::All;
            },
            &["274432 bytes", "823295 bytes", "allocate"],
        ),
    ]
}

#[test]
fn whoever_gets_no_rings_is_told_what_is_needed_what_is_allowed_and_which_key_it_is() {
    for (key, change, words) in too_small() {
        let mut host = Host::with(change);
        let fakes = ["a", "b", "c"].map(|name| Fake::attach(&host, name));
        let answer = host.start(host_run(1024)).unwrap();
        let armed: Vec<bool> = answer.producers.iter().map(|p| p.armed).collect();
        assert_eq!(armed, [true, true, false], "{answer:?}");
        let (code, told) = fakes[2].refusal();
        assert_eq!(code, refuse::BUDGET);
        for word in words.iter().copied().chain([key, "2 rings of 1024 events"]) {
            assert!(told.contains(word), "{word}: {told}");
        }
        assert_eq!(answer.producers[2].refused, told);
        let listed = host.producers();
        assert_eq!(listed[2].not_captured, told);
        assert_eq!(listed[0].not_captured, "");
        let status = host.status();
        let refusal = &status.refusals[0];
        assert_eq!((refusal.cause.as_str(), refusal.count), (key, 1));
        assert_eq!(refusal.text, told);
        assert_eq!(status.reserved_bytes, 2 * TWO_RINGS);
        // The others are captured, and when one of them has left and was fetched, there is room again.
        let [a, b, c] = fakes;
        a.emit_many(0, 10);
        assert_eq!(host.fetch(fetch()).unwrap().seqs(a.id, 0).len(), 10);
        host.stop("", true).unwrap();
        let left = b.id;
        b.detach();
        host.wait_state(left, v1::ProducerState::Detached);
        let answer = host.start(host_run(1024)).unwrap();
        assert!(answer.producers.iter().all(|p| p.armed), "{answer:?}");
        c.wait_heard::<Go>(1);
        assert_eq!(host.producers().last().unwrap().not_captured, "");
    }
}

#[test]
fn a_process_that_cannot_map_its_rings_is_told_of_with_the_reason() {
    let mut host = Host::new();
    let path = host.daemon.producer_socket().to_owned();
    let fake = Fake::attach_as(&path, &hello("small", "", &[]), Answer::CannotMap);
    let answer = host.start(host_run(1024)).unwrap();
    let told = &answer.producers[0].refused;
    assert!(
        told.contains("can't map its rings of 274432 bytes") && told.contains("memory"),
        "{told}"
    );
    assert_eq!(fake.refusal().1, *told);
    assert_eq!(host.status().reserved_bytes, 0);
}

#[test]
fn a_process_that_sees_no_captured_core_is_told_of() {
    let mut host = Host::new();
    let fake = Fake::attach_as(
        host.daemon.producer_socket(),
        &hello("elsewhere", "", &[8, 9]),
        Answer::Honest,
    );
    let request = v1::StartRequest {
        nc: vec![3],
        ..host_run(1024)
    };
    let answer = host.start(request).unwrap();
    assert!(
        answer.producers[0]
            .refused
            .contains("none of the NeuronCores")
    );
    assert_eq!(fake.heard::<Arm>(), 0);
}

/// All memory is there before a process hears of its rings, and a run that is stopped meanwhile leaves nothing.
#[test]
fn all_memory_is_taken_before_a_process_is_armed() {
    let mut host = Host::with(|config| config.allocate = Allocate::All);
    let fake = Fake::attach(&host, "x");
    host.start(host_run(64 << 10)).unwrap();
    fake.wait_heard::<Go>(1);
    let status = host.status();
    assert!(
        status.resident_bytes + 8192 >= status.reserved_bytes,
        "{status:?}"
    );
    host.stop("", true).unwrap();
    for round in 2..6 {
        let request = v1::StartRequest {
            arm_timeout_ms: Some(0),
            ..host_run(64 << 10)
        };
        host.start(request).unwrap();
        host.stop("", true).unwrap();
        fake.wait_heard::<Disarm>(round);
    }
    wait_for("memory to be given back", || {
        let status = host.status();
        (status.reserved_bytes, status.resident_bytes) == (0, 0)
    });
}

#[test]
fn a_loop_of_refused_attaches_has_one_line_in_the_log() {
    let mut daemon = Apart::with("max_producers_per_uid = 1");
    let path = daemon.producer_socket();
    let _first = Fake::attach_as(&path, &hello("first", "", &[]), Answer::Honest);
    for _ in 0..300 {
        let connection = socket::connect(&path).unwrap();
        assert!(send(&connection, &hello("more", "", &[])));
        let (packet, _) = receive(&connection).unwrap();
        let refuse: Refuse = message::parse(&packet).unwrap();
        assert!(refuse.text().unwrap().contains("max_producers_per_uid"));
    }
    let lines = || daemon.logged("refused to attach").len();
    // The log is written by a thread of its own.
    wait_for("the line", || lines() > 0);
    assert_eq!(lines(), 1);
    let status = daemon.status();
    assert_eq!((status.refused, status.refusals[0].count), (300, 300));
}

#[test]
fn a_loop_of_attaches_does_not_fill_the_log() {
    const ROUNDS: usize = 1500;
    let mut daemon = Apart::with("");
    let path = daemon.producer_socket();
    let base = daemon.descriptors();
    for _ in 0..ROUNDS {
        drop(Fake::attach_as(
            &path,
            &hello("guest", "", &[]),
            Answer::Honest,
        ));
    }
    wait_for("their connections to be closed", || {
        daemon.status().producers == 0
    });
    // A burst, and a few more each second that it took.
    let lines = daemon.logged("guest").len() + daemon.logged("connection closed").len();
    assert!(lines < ROUNDS, "{lines} lines");
    // One each time that somebody looks; a slow machine may need several looks for all of them.
    wait_for("a word on what was left out", || {
        !daemon.logged("were left out").is_empty()
    });
    let kept = daemon.producers();
    assert!(kept.len() <= 256 + ROUNDS, "{}", kept.len());
    assert!(daemon.descriptors() <= base + ROUNDS + 1);
}

/// Descriptors that run out: processes are refused in words, clients are served, and nobody is busy for nothing.
#[test]
fn without_descriptors_attaches_are_refused_and_clients_served() {
    let mut daemon = Apart::with_descriptors(160, "");
    let path = daemon.producer_socket();
    let mut attached = Vec::new();
    let told = loop {
        let connection = socket::connect(&path).unwrap();
        assert!(send(&connection, &hello("many", "", &[])));
        let (packet, _) = receive(&connection).unwrap();
        match message::parse::<Refuse>(&packet) {
            Ok(refuse) => break refuse.text().unwrap().to_owned(),
            Err(_) => attached.push(connection),
        }
    };
    assert!(told.contains("160 are allowed (LimitNOFILE"), "{told}");
    assert!(attached.len() > 20, "{}", attached.len());
    let files = daemon.status().budgets;
    let files = files.iter().find(|b| b.key == "LimitNOFILE").unwrap();
    assert!(files.used > 100 && files.allowed == 160, "{files:?}");
    // Connections that say nothing take the rest.
    let silent: Vec<_> = (0..100)
        .map_while(|_| socket::connect(&path).ok())
        .collect();
    let began = (Instant::now(), daemon.cpu());
    wait_for("the silent ones to be sent away", || {
        daemon.logged("can't take producers").is_empty() || silent.iter().all(is_closed)
    });
    let (elapsed, cpu) = (began.0.elapsed(), daemon.cpu() - began.1);
    assert!(
        cpu < elapsed.as_secs_f64() / 2.0 + 0.5,
        "{cpu} s of CPU time in {elapsed:?}"
    );
    assert!(daemon.logged("can't take producers").len() <= 1);
    drop((attached, silent));
    wait_for("room", || {
        let connection = socket::connect(&path).unwrap();
        send(&connection, &hello("late", "", &[]))
            && receive(&connection)
                .is_some_and(|(packet, _)| message::parse::<message::Welcome>(&packet).is_ok())
    });
    assert!(daemon.is_alive());
}

fn is_closed(connection: &std::os::fd::OwnedFd) -> bool {
    use rustix::event::{PollFd, PollFlags, poll};
    let mut fds = [PollFd::new(connection, PollFlags::IN)];
    let now = rustix::time::Timespec::default();
    poll(&mut fds, Some(&now)).is_ok_and(|ready| ready > 0)
}
