//! From a connection to a welcomed producer, and what is refused on the way.

use nrt_trace_abi::layout::control;
use nrt_trace_abi::message::{self, Armed, Disarmed, Go, Hello, Message, Refuse, refuse};
use nrt_trace_proto::v1::ProducerState;
use nrt_trace_shm::{WriteMapping, memfd, socket};
use std::os::fd::AsFd;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{
    Answer, Apart, Fake, Host, connect, hello, host_run, receive, send, wait_for,
};

fn own_pid() -> i32 {
    i32::try_from(std::process::id()).unwrap()
}

#[test]
fn a_producer_is_described_by_the_kernel_and_by_its_own_word() {
    let mut host = Host::new();
    let mut said = hello("trainer", "", &[8, 9]);
    said.worker_gid = 3;
    said.claimed_pid = 1;
    let fake = Fake::attach_as(host.daemon.producer_socket(), &said, Answer::Honest);
    assert_eq!(fake.welcome.run_follows, 0);
    assert!(!fake.is_open());
    assert_eq!(
        fake.page.words()[control::PRODUCER_ID].get(),
        u64::from(fake.id)
    );
    let [producer] = <[_; 1]>::try_from(host.producers()).unwrap();
    assert_eq!(producer.producer_id, fake.id);
    assert_eq!(producer.state(), ProducerState::Attached);
    assert_eq!(
        producer.pid,
        Some(own_pid()),
        "the kernel's word, not the Hello's"
    );
    assert_eq!(producer.uid, rustix::process::geteuid().as_raw());
    assert_eq!(
        (producer.name.as_str(), producer.worker_gid),
        ("trainer", 3)
    );
    assert_eq!(producer.visible_cores, [8, 9]);
    assert_eq!(producer.cmdline, std::env::args().collect::<Vec<_>>());
    assert_eq!(
        producer.exe,
        std::env::current_exe().unwrap().to_str().unwrap()
    );
    assert!(!producer.exe_claimed && producer.ns_pid.is_some() && !producer.comm.is_empty());
}

/// Case Y04: whatever number a process claims, it is the kernel's that counts; the claimed one is neither signalled nor looked at.
#[test]
fn y04_a_claimed_pid_reaches_nobody() {
    let mut daemon = Apart::with("");
    let mut stranger = Command::new("cat");
    let mut stranger = stranger.stdin(Stdio::piped()).spawn().unwrap();
    for claimed in [1, daemon.pid(), stranger.id(), 0, 1 << 31, u32::MAX] {
        let mut said = hello("liar", "", &[]);
        said.claimed_pid = claimed;
        let fake = Fake::attach_as(&daemon.producer_socket(), &said, Answer::Honest);
        let listed = daemon.producers();
        let liar = listed.iter().find(|p| p.producer_id == fake.id).unwrap();
        assert_eq!(liar.pid, Some(own_pid()), "claimed {claimed}");
        assert_eq!(liar.cmdline, std::env::args().collect::<Vec<_>>());
        assert_eq!(Path::new(&liar.exe), std::env::current_exe().unwrap());
        let (id, packet) = (fake.id, [0xA5; 64]);
        // Cut off for what it says next: nobody is signalled for that either.
        fake.send_raw(&packet);
        wait_for("its end", || {
            (daemon.producers().iter())
                .all(|p| p.producer_id != id || p.state() != ProducerState::Attached)
        });
        assert!(daemon.is_alive() && stranger.try_wait().unwrap().is_none());
    }
    stranger.kill().unwrap();
    stranger.wait().unwrap();
}

#[test]
fn numbers_are_never_used_twice_and_a_name_is_found_for_the_nameless() {
    let mut host = Host::new();
    let first = Fake::attach(&host, "");
    let id = first.id;
    let name = host.producers()[0].name.clone();
    assert_eq!(name, host.producers()[0].comm);
    first.detach();
    host.wait_state(id, ProducerState::Detached);
    let second = Fake::attach(&host, "");
    assert_eq!(second.id, id + 1);
}

fn refusal(host: &Host, packet: &[u8], fds: &[std::os::fd::BorrowedFd<'_>]) -> (u32, String) {
    let connection = connect(host);
    socket::send(&connection, packet, fds).unwrap();
    let (answer, _) = receive(&connection).unwrap();
    let refuse: Refuse = message::parse(&answer).unwrap();
    assert_eq!(
        receive(&connection).map(drop),
        None,
        "closed after the refusal"
    );
    (refuse.code, refuse.text().unwrap().to_owned())
}

/// Case R07: another version or record size is refused by name, and the daemon goes on.
#[test]
fn r07_another_version_is_refused_by_name() {
    use zerocopy::IntoBytes;
    let mut host = Host::new();
    let mut other = hello("old", "", &[]);
    other.header.abi = 7;
    let (code, reason) = refusal(&host, other.as_bytes(), &[]);
    assert_eq!(code, refuse::VERSION);
    assert!(
        reason.contains("ABI version 7")
            && reason.contains(&format!("daemon {}", nrt_trace_abi::ABI_VERSION)),
        "{reason}"
    );
    let mut other = hello("fat", "", &[]);
    other.record_bytes = 120;
    assert_eq!(refusal(&host, other.as_bytes(), &[]).0, refuse::VERSION);
    assert_eq!(host.status().refused, 2);
    Fake::attach(&host, "fine");
}

#[test]
fn garbage_and_descriptors_are_refused() {
    use zerocopy::IntoBytes;
    let mut host = Host::new();
    assert_eq!(
        refusal(&host, b"GET / HTTP/1.1\r\n", &[]).0,
        refuse::PROTOCOL
    );
    assert_eq!(
        refusal(&host, &[0xFF; message::MAX_BYTES], &[]).0,
        refuse::PROTOCOL
    );
    assert_eq!(
        refusal(&host, &[7; 8 * message::MAX_BYTES], &[]).0,
        refuse::PROTOCOL
    );
    let go = Go {
        header: Go::header(),
        generation: 1,
    };
    assert_eq!(refusal(&host, go.as_bytes(), &[]).0, refuse::PROTOCOL);
    let file = memfd::create("test", 4096).unwrap();
    let good = hello("x", "", &[]);
    assert_eq!(
        refusal(&host, good.as_bytes(), &[file.as_fd(); 9]).0,
        refuse::PROTOCOL
    );
    assert_eq!(host.status().refused, 5);
    assert_eq!(host.producers(), []);
}

#[test]
fn an_attached_producer_that_talks_nonsense_is_cut_off() {
    let mut host = Host::new();
    let bystander = Fake::attach(&host, "bystander");
    for nonsense in [&b"nonsense"[..], &[0; 2000]] {
        let fake = Fake::attach(&host, "talker");
        fake.send_raw(nonsense);
        host.wait_state(fake.id, ProducerState::Detached);
    }
    // Its gates are closed: it would go on emitting for nobody.
    host.start(host_run(64)).unwrap();
    let fake = Fake::attach(&host, "talker");
    fake.wait_heard::<Go>(1);
    assert_ne!(fake.gate(0), 0);
    fake.send_raw(b"nonsense");
    host.wait_state(fake.id, ProducerState::Detached);
    assert!(fake.gate(0) == 0 && !fake.is_open());
    host.stop("", true).unwrap();
    // A second Hello is out of turn.
    let fake = Fake::attach(&host, "talker");
    assert!(fake.send(&Hello::new()));
    host.wait_state(fake.id, ProducerState::Detached);
    // Answers that nobody asked for: a few may cross, a flood is an attack.
    let fake = Fake::attach(&host, "flooder");
    let armed = Armed {
        header: Armed::header(),
        generation: 99,
        errno: 0,
        reserved: 0,
    };
    let disarmed = Disarmed {
        header: Disarmed::header(),
        generation: 99,
        quiescent: 1,
        reserved: 0,
    };
    while fake.send(&armed) && fake.send(&disarmed) {}
    host.wait_state(fake.id, ProducerState::Detached);
    host.wait_state(bystander.id, ProducerState::Attached);
}

#[test]
fn users_and_all_together_have_a_limit_of_processes() {
    use zerocopy::IntoBytes;
    let host = Host::with(|config| config.budgets.producers_per_uid = 2);
    let (_a, b) = (Fake::attach(&host, "a"), Fake::attach(&host, "b"));
    let (code, reason) = refusal(&host, hello("c", "", &[]).as_bytes(), &[]);
    assert_eq!(code, refuse::BUDGET);
    assert!(
        reason.contains('2') && reason.contains("max_producers_per_uid"),
        "{reason}"
    );
    b.detach();
    let path = host.daemon.producer_socket().to_owned();
    wait_for("room", || {
        let connection = socket::connect(&path).unwrap();
        send(&connection, &hello("c", "", &[]));
        receive(&connection)
            .is_some_and(|(packet, _)| message::parse::<message::Welcome>(&packet).is_ok())
    });
}

/// I8, over the real path: what the daemon sends cannot be written by the producer.
#[test]
fn i8_the_control_page_is_read_only_for_its_producer() {
    let host = Host::new();
    let connection = connect(&host);
    send(&connection, &hello("x", "", &[]));
    let (_, fds) = receive(&connection).unwrap();
    let [page, strings] = <[OwnedFd; 2]>::try_from(fds).unwrap();
    WriteMapping::map(&page, 4096).unwrap_err();
    memfd::write_words(&page, &[1]).unwrap_err();
    rustix::fs::ftruncate(&page, 0).unwrap_err();
    rustix::fs::ftruncate(&strings, 0).unwrap_err();
    WriteMapping::map(&strings, 4096).unwrap();
}

#[test]
fn connections_that_say_nothing_hold_nobody_up() {
    let host = Host::new();
    let silent: Vec<_> = (0..50).map(|_| connect(&host)).collect();
    let fake = Fake::attach(&host, "talker");
    assert!(fake.id > 0);
    drop(silent);
}
