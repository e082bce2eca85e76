//! Many at once, and some that do as they like: nobody else notices.

use std::os::unix::net::UnixStream;

use nrt_trace_abi::message::Go;
use nrt_trace_proto::v1;
use nrt_trace_shm::socket;

use crate::support::{Answer, Apart, Fake, hello, host_run, wait_for};

/// Processes at once.
const MANY: usize = 200;
/// Attaches and ends meanwhile. The daemon watches each until this process ends, so that they add up.
const ROUNDS: u32 = 100;
/// Most that the daemon's own memory may grow by over them, bytes: what is kept of each is bounded.
const MORE: u64 = 32 << 20;

/// Two hundred processes, one of which never answers (as one that is stopped), half-open connections on both sockets, a client
/// that reads nothing of what it asked for, and a hundred processes that come and go: every event of the others is delivered.
#[test]
fn two_hundred_processes_and_a_hundred_visitors_disturb_nobody() {
    let mut daemon = Apart::with("default_cores = 1");
    let path = daemon.producer_socket();
    let attach = |name: &str, answer| Fake::attach_as(&path, &hello(name, "", &[]), answer);
    let mute = attach("mute", Answer::Mute);
    let honest: Vec<_> = (0..MANY)
        .map(|number| attach(&format!("worker-{number}"), Answer::Honest))
        .collect();
    let request = v1::StartRequest {
        arm_timeout_ms: Some(0),
        ..host_run(1024)
    };
    daemon.start(request).unwrap();
    for fake in &honest {
        fake.wait_heard::<Go>(1);
    }
    let half_open: Vec<_> = (0..50)
        .map(|_| {
            (
                socket::connect(&path).unwrap(),
                UnixStream::connect(daemon.control_socket()).unwrap(),
            )
        })
        .collect();
    honest.iter().for_each(|fake| fake.emit_many(0, 100));
    // It asks for far more than the connection holds by itself, and takes nothing of it.
    let mut idle = daemon.another();
    let unread = (idle
        .runtime
        .block_on(idle.rpc.snapshot(v1::SnapshotRequest::default())))
    .unwrap();
    let memory = daemon.own_memory();
    let used = daemon.cpu();
    for _ in 0..ROUNDS {
        drop(attach("visitor", Answer::Honest));
    }
    let each = (daemon.cpu() - used) * 1e3 / f64::from(ROUNDS);
    let grown = daemon.own_memory().saturating_sub(memory);
    println!("{each:.1} ms of CPU an attach, {memory} bytes of its own, {grown} more after them");
    assert!(grown < MORE, "{grown} bytes after {memory}");
    honest.iter().for_each(|fake| fake.emit_many(0, 100));
    let fetched = daemon.consume();
    for fake in &honest {
        assert_eq!(fetched.seqs(fake.id, 0), (1..=200).collect::<Vec<_>>());
        let account = fetched.accounts[&(fake.id, 0)];
        assert_eq!((account.claimed, account.lost), (200, 0));
    }
    wait_for("the visitors to be gone", || {
        daemon.status().producers as usize == MANY + 1
    });
    assert!(mute.heard::<Go>() == 0 && daemon.is_alive());
    drop((half_open, unread));
}
