//! Peers of the producer socket that say anything, nothing, or too much, and send descriptors of every kind.

use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use nrt_trace_abi::ABI_VERSION;
use nrt_trace_abi::message::{
    self, Arm, Armed, Disarm, Disarmed, Go, Header, Hello, Message, Refuse, Welcome, refuse,
};
use nrt_trace_proto::v1::ProducerState;
use nrt_trace_shm::{memfd, socket};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use zerocopy::IntoBytes;

use crate::support::{Answer, Apart, Fake, fetch, hello, host_run, receive, send, wait_for};

/// Most descriptors that the kernel takes with one message.
const MOST: usize = 253;

/// Sends a packet with any number of descriptors.
fn send_with(socket: &OwnedFd, packet: &[u8], fds: &[BorrowedFd<'_>]) -> rustix::io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(300))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    assert!(fds.is_empty() || control.push(SendAncillaryMessage::ScmRights(fds)));
    let packet = [IoSlice::new(packet)];
    rustix::net::sendmsg(socket, &packet, &mut control, SendFlags::NOSIGNAL).map(drop)
}

/// What a visitor gets: a refusal with its code, or nothing but the end.
fn answer(socket: &OwnedFd) -> Option<u32> {
    let (packet, fds) = receive(socket)?;
    let refuse: Refuse = message::parse(&packet).unwrap();
    assert!(
        fds.is_empty() && receive(socket).is_none(),
        "closed after it"
    );
    Some(refuse.code)
}

/// A good Hello with some bytes changed.
fn changed(change: impl FnOnce(&mut Hello)) -> Vec<u8> {
    let mut hello = hello("visitor", "", &[]);
    change(&mut hello);
    hello.as_bytes().to_vec()
}

/// Descriptors of every kind that a peer may have at hand.
fn descriptors(connection: &OwnedFd) -> Vec<(&'static str, OwnedFd)> {
    let sealed = memfd::create("sealed", 4096).unwrap();
    memfd::seal_size(&sealed).unwrap();
    let (read, write) = std::io::pipe().unwrap();
    vec![
        ("an unsealed file", memfd::create("test", 4096).unwrap()),
        ("a sealed file", sealed),
        ("a device", std::fs::File::open("/dev/zero").unwrap().into()),
        ("a folder", std::fs::File::open("/").unwrap().into()),
        ("a pipe's ends", read.into()),
        ("a pipe's ends", write.into()),
        ("a socket", socket::pair().unwrap().0),
        ("its own connection", connection.try_clone().unwrap()),
    ]
}

/// First packets that are no Hello: each is refused or dropped, and leaves nothing behind.
#[test]
fn first_packets_that_are_no_hello() {
    let mut daemon = Apart::with("");
    let path = daemon.producer_socket();
    let base = daemon.descriptors();
    let whole = changed(|_| {});
    let long = [&whole[..], &[0; 70_000]].concat();
    let (protocol, version) = (Some(refuse::PROTOCOL), Some(refuse::VERSION));
    let mut table: Vec<(String, Vec<u8>, Option<u32>)> = vec![
        ("nothing".into(), Vec::new(), None),
        ("noise".into(), vec![0xA5; 200], protocol),
        (
            "another magic".into(),
            changed(|h| h.header.magic ^= 1),
            protocol,
        ),
        (
            "a length of its own".into(),
            changed(|h| h.header.bytes -= 1),
            protocol,
        ),
        (
            "a record of 120 bytes".into(),
            changed(|h| h.record_bytes = 120),
            version,
        ),
        (
            "words of 4 bytes".into(),
            changed(|h| h.word_bytes = 4),
            version,
        ),
        (
            "slots of 64 bytes".into(),
            changed(|h| h.slot_bytes = 64),
            version,
        ),
        (
            "257 cores".into(),
            changed(|h| h.visible_len = 257),
            protocol,
        ),
        (
            "a name beyond its field".into(),
            changed(|h| h.name_len = 129),
            protocol,
        ),
        (
            "a token beyond its field".into(),
            changed(|h| h.token_len = u16::MAX),
            protocol,
        ),
        (
            "a path that is no text".into(),
            changed(|h| (h.exe[0], h.exe_len) = (0xFF, 1)),
            protocol,
        ),
    ];
    for bytes in [1, 15, 16, 17, whole.len() - 1, whole.len() + 1, long.len()] {
        table.push((format!("{bytes} bytes"), long[..bytes].to_vec(), protocol));
    }
    for abi in [0, ABI_VERSION + 1, u16::MAX] {
        table.push((
            format!("version {abi}"),
            changed(|h| h.header.abi = abi),
            version,
        ));
    }
    for kind in [0, 2, 3, 4, 5, 6, 7, 8, 9, u16::MAX] {
        table.push((
            format!("kind {kind}"),
            changed(|h| h.header.kind = kind),
            protocol,
        ));
    }
    let mut refused = 0;
    for (what, packet, expected) in &table {
        let connection = socket::connect(&path).unwrap();
        socket::send(&connection, packet, &[]).unwrap();
        assert_eq!(answer(&connection), *expected, "{what}");
        refused += u64::from(expected.is_some());
    }
    assert_eq!(daemon.status().refused, refused);
    let lines = daemon.logged("refused to attach").len();
    assert!(lines <= 1 + refused.ilog2() as usize, "{lines} lines");
    wait_for("every descriptor to be closed", || {
        daemon.descriptors() <= base
    });
    Fake::attach_as(&path, &hello("fine", "", &[]), Answer::Honest);
}

/// Descriptors come with no message of a producer: a Hello with some is refused, an attached producer's end is its own
/// fault, and none stays open in the daemon, however many they are.
#[test]
fn descriptors_of_every_kind_and_number_are_closed() {
    let mut daemon = Apart::with("");
    let path = daemon.producer_socket();
    let base = daemon.descriptors();
    let whole = changed(|_| {});
    let mut refused = 0;
    let mut visit = |fds: &[BorrowedFd<'_>], connection: OwnedFd, what: &str| {
        send_with(&connection, &whole, fds).unwrap();
        assert_eq!(answer(&connection), Some(refuse::PROTOCOL), "{what}");
        refused += 1;
    };
    let file = memfd::create("test", 4096).unwrap();
    for count in [9, 10, 100, MOST] {
        let connection = socket::connect(&path).unwrap();
        visit(
            &vec![file.as_fd(); count],
            connection,
            &format!("{count} descriptors"),
        );
    }
    // A few may be rings of an earlier daemon's; what is none of those is closed, and the process is a new one.
    let welcome = |fds: &[BorrowedFd<'_>], connection: &OwnedFd, what: &str| {
        send_with(connection, &whole, fds).unwrap();
        let (packet, _) = receive(connection).expect(what);
        assert!(message::parse::<Welcome>(&packet).is_ok(), "{what}");
    };
    for at in 0..8 {
        let connection = socket::connect(&path).unwrap();
        let (what, fd) = descriptors(&connection).swap_remove(at);
        welcome(&[fd.as_fd()], &connection, what);
    }
    for count in 1..=8 {
        let connection = socket::connect(&path).unwrap();
        welcome(&vec![file.as_fd(); count], &connection, "descriptors");
    }
    let connection = socket::connect(&path).unwrap();
    let three_hundred = vec![file.as_fd(); 300];
    assert!(
        send_with(&connection, &whole, &three_hundred).is_err(),
        "the kernel's own limit"
    );
    // The rest of them waits in the socket when the daemon closes it.
    send_with(&connection, &whole, &three_hundred[..MOST]).unwrap();
    let _ = send_with(&connection, &whole, &three_hundred[MOST..]);
    // What waits unread is told to its sender as a reset, in place of the refusal or before it.
    wait_for("the end of the connection", || {
        receive(&connection).is_none()
    });
    wait_for("the refusal", || daemon.status().refused == refused + 1);
    for count in [1, MOST] {
        let fake = Fake::attach_as(&path, &hello("attached", "", &[]), Answer::Honest);
        let armed = Armed {
            header: Armed::header(),
            generation: 1,
            errno: 0,
            reserved: 0,
        };
        send_with(&fake.socket, armed.as_bytes(), &vec![file.as_fd(); count]).unwrap();
        daemon.wait_state(fake.id, ProducerState::Detached);
    }
    // A process that is only detached is watched by a descriptor until it ends; this one is both of them.
    wait_for("every descriptor to be closed", || {
        daemon.descriptors() <= base + 2
    });
}

fn armed(generation: u64, errno: u32) -> Armed {
    Armed {
        header: Armed::header(),
        generation,
        errno,
        reserved: 0,
    }
}

fn disarmed(generation: u64, quiescent: u32) -> Disarmed {
    Disarmed {
        header: Disarmed::header(),
        generation,
        quiescent,
        reserved: 0,
    }
}

/// Sends `packet` until the daemon closes the connection.
fn flood(fake: &Fake, packet: &[u8]) {
    let mut sent = 0;
    while socket::send(&*fake.socket, packet, &[]).is_ok() {
        sent += 1;
        // Far more than the daemon puts up with and the socket holds.
        assert!(sent < 100_000, "still listened to");
    }
}

/// Answers to nothing, in each state: the connection is closed after a bounded number of them.
#[test]
fn answers_that_nobody_asked_for_end_a_connection_in_every_state() {
    let mut daemon = Apart::with("disarm_timeout_ms = 10000");
    let path = daemon.producer_socket();
    let attach = |answer| Fake::attach_as(&path, &hello("talker", "", &[]), answer);
    let ends = |daemon: &mut Apart, fake: &Fake, packet: &[u8]| {
        flood(fake, packet);
        daemon.wait_state(fake.id, ProducerState::Detached);
        assert!(fake.gate(0) == 0 && !fake.is_open());
    };
    for packet in [
        armed(0, 0).as_bytes(),
        armed(7, 12).as_bytes(),
        disarmed(0, 1).as_bytes(),
    ] {
        let idle = attach(Answer::Honest);
        ends(&mut daemon, &idle, packet);
    }
    daemon.start(host_run(64)).unwrap();
    // Arming: only the Arm's own generation counts.
    let arming = attach(Answer::Mute);
    arming.wait_heard::<Arm>(1);
    let generation = arming.rings().generation;
    ends(&mut daemon, &arming, armed(generation + 1, 0).as_bytes());
    assert_eq!(arming.heard::<Go>(), 0);
    let arming = attach(Answer::Mute);
    arming.wait_heard::<Arm>(1);
    ends(
        &mut daemon,
        &arming,
        disarmed(arming.rings().generation, 1).as_bytes(),
    );
    // Open: the right answer once, and not again.
    let open = attach(Answer::Honest);
    open.wait_heard::<Go>(1);
    ends(
        &mut daemon,
        &open,
        armed(open.rings().generation, 0).as_bytes(),
    );
    // Closing: the answer to the Arm may cross the Disarm; one does, not a stream of them.
    let closing = [attach(Answer::Mute), attach(Answer::Honest)];
    closing[0].wait_heard::<Arm>(1);
    closing[1].wait_heard::<Go>(1);
    closing[1].answer(Answer::Mute);
    let bystander = attach(Answer::Honest);
    bystander.wait_heard::<Go>(1);
    bystander.emit_many(0, 5);
    std::thread::scope(|scope| {
        let stop = scope.spawn(|| daemon.stop("", false).unwrap());
        for fake in &closing {
            fake.wait_heard::<Disarm>(1);
            flood(fake, armed(fake.rings().generation, 0).as_bytes());
        }
        let stopped = stop.join().unwrap();
        assert_eq!(
            stopped.not_quiescent, [0; 0],
            "whoever was cut off is not waited for"
        );
    });
    for fake in &closing {
        daemon.wait_state(fake.id, ProducerState::Detached);
    }
    assert_eq!(
        daemon.fetch(fetch()).unwrap().seqs(bystander.id, 0).len(),
        5
    );
    daemon.wait_state(bystander.id, ProducerState::Attached);
}

/// Packets that are no answers at all end a connection at once, whatever comes after them.
#[test]
fn packets_that_are_no_answers_end_a_connection() {
    let mut daemon = Apart::with("");
    let path = daemon.producer_socket();
    let header = |kind| Header {
        kind,
        ..Armed::header()
    };
    let good = armed(1, 0);
    let mut table: Vec<Vec<u8>> = vec![
        b"noise".to_vec(),
        Hello::new().as_bytes().to_vec(),
        good.as_bytes()[..31].to_vec(),
        [good.as_bytes(), &[0]].concat(),
        vec![0; message::MAX_BYTES + 2],
    ];
    for kind in [0, 2, 3, 4, 6, 7, 9, 10, 11, 12, u16::MAX] {
        let other = Armed {
            header: header(kind),
            ..good
        };
        table.push(other.as_bytes().to_vec());
    }
    for packet in table {
        let fake = Fake::attach_as(&path, &hello("talker", "", &[]), Answer::Honest);
        fake.send_raw(&packet);
        daemon.wait_state(fake.id, ProducerState::Detached);
        let closed = || {
            let told = daemon.logged(&format!("producer={} ", fake.id));
            told.iter().filter(|line| line.contains("closing")).count()
        };
        // The log is written by a thread of its own.
        wait_for("a line on it", || closed() > 0);
        assert_eq!(closed(), 1);
    }
}

/// Case S02: connections that say nothing, and processes that vanish in the middle of an attach, leave nothing behind;
/// hundreds of them keep nobody else out.
#[test]
fn s02_silence_and_half_an_attach_leave_nothing_behind() {
    let daemon = Apart::with("");
    let path = daemon.producer_socket();
    let base = daemon.descriptors();
    let silent: Vec<_> = (0..300).map(|_| socket::connect(&path).unwrap()).collect();
    let fine = Fake::attach_as(&path, &hello("fine", "", &[]), Answer::Honest);
    assert!(
        daemon.descriptors() <= base + 2 * 256 + 16,
        "silence has a limit"
    );
    drop(fine);
    // Said Hello, and were gone before the answer.
    for _ in 0..100 {
        send(&socket::connect(&path).unwrap(), &hello("gone", "", &[]));
    }
    // The silent ones are still there: it is the daemon that closes.
    let first = |path: &Path| (path.exists() && receive(&silent[0]).is_none()).then_some(());
    assert_eq!(first(&path), Some(()));
    assert!(
        silent
            .iter()
            .all(|connection| receive(connection).is_none())
    );
    // Whoever said Hello is watched until the process ends, and this process lives.
    wait_for("their descriptors to be closed", || {
        daemon.descriptors() <= base + 101
    });
}

/// Case S04: a flood of attaches and refusals beside a producer that records: nothing of it is lost.
#[test]
fn s04_a_flood_of_visitors_disturbs_nobody() {
    let mut daemon = Apart::with("");
    let path = daemon.producer_socket();
    daemon.start(host_run(4096)).unwrap();
    let honest = Fake::attach_as(&path, &hello("honest", "", &[]), Answer::Honest);
    honest.wait_heard::<Go>(1);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for round in 0..400 {
                    let connection = socket::connect(&path).unwrap();
                    let noise = [0x5A; 64];
                    drop(socket::send(&connection, &noise[..round % 64], &[]));
                }
            });
        }
        for _ in 0..100 {
            honest.emit_many(0, 20);
            drop(Fake::attach_as(
                &path,
                &hello("guest", "", &[]),
                Answer::Honest,
            ));
        }
    });
    daemon.stop("", false).unwrap();
    let account = daemon.fetch(fetch()).unwrap().accounts[&(honest.id, 0)];
    assert_eq!(
        (account.claimed, account.delivered, account.lost),
        (2000, 2000, 0)
    );
    assert!(account.exact && daemon.is_alive());
    assert!(daemon.logged("refused to attach").len() <= 10);
}
