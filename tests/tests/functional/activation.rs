//! Sockets that the service manager listens on for the daemon: adopted as they are, left as they were, and refused where
//! they are something else.

use std::fs;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::path::Path;

use nrt_trace_shm::{memfd, socket};
use nrt_trace_tests::artifacts::artifacts;
use nrt_trace_tests::manager::Manager;
use nrt_trace_tests::wait::until;
use nrt_trace_tests::{Host, Running};
use rustix::process::{Pid, Signal, kill_process};

use crate::fd_store::numbers_of;
use crate::restart::{emit, kill_daemon, range};

/// Room for everything.
const ROOM: usize = 1000;
/// Restarts in a row.
const RESTARTS: u64 = 20;

/// A socket as a unit with `SocketMode=0660` makes it.
fn control_socket(path: &Path) -> OwnedFd {
    let listener = UnixListener::bind(path).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o660)).unwrap();
    listener.into()
}

/// A host whose service manager listens on both sockets, handed over in the order that is not the documented one.
fn listened_on() -> (Host, Manager) {
    let host = Host::new();
    let manager = Manager::new(&host, ROOM);
    let producer = socket::listen(&host.producer_socket(), 0o666).unwrap();
    manager.plant("producer", producer);
    manager.plant("control", control_socket(&host.control_socket()));
    (host, manager)
}

/// What tells a file from another one at its place, and what a unit decides.
fn file(path: &Path) -> (u64, u64, u32, u32) {
    let meta = fs::symlink_metadata(path).unwrap();
    (meta.dev(), meta.ino(), meta.mode(), meta.gid())
}

/// Both sockets are used and stay as they are: no other file at their place, no lock beside them, nothing removed.
#[test]
fn both_sockets_are_adopted_and_left_alone() {
    let (mut host, manager) = listened_on();
    let sockets = [host.control_socket(), host.producer_socket()];
    let before = sockets.each_ref().map(|path| file(path));
    // Whoever comes before the daemon waits for it.
    let early = UnixStream::connect(host.control_socket()).unwrap();
    manager.start_daemon(&mut host, &[]);
    until("the daemon to be ready", || {
        manager.was_told("READY=1").then_some(())
    });
    drop(early);
    host.tracectl(&["start", "--max-events-per-nc", "2048", "--nc", "0"])
        .ok();
    let mut probe = host.interactive_probe(&["-n", "100"]);
    emit(&mut probe, 100);
    assert_eq!(numbers_of(&host.fetch(), probe.pid()), range(1..=100));
    for path in &sockets {
        let lock = format!("{}.lock", path.display());
        assert!(!Path::new(&lock).exists(), "{lock}");
    }
    let _said = host.log_with("control");
    assert_eq!(host.stop_daemon(), Some(0));
    assert_eq!(sockets.each_ref().map(|path| file(path)), before);
}

/// Case Y01: after each of many restarts the sockets are there, the daemon answers, and a process that ran all the time
/// goes on delivering.
#[test]
fn y01_sockets_outlive_many_restarts() {
    let (mut host, manager) = listened_on();
    manager.start_daemon(&mut host, &[]);
    host.tracectl(&["start", "--max-events-per-nc", "2048", "--nc", "0"])
        .ok();
    let mut probe = host.interactive_probe(&["-n", "10"]);
    let (folder, socket) = (file(&host.path(".")), file(&host.control_socket()));
    for restart in 0..RESTARTS {
        if restart % 2 == 0 {
            assert_eq!(host.stop_daemon(), Some(0));
        } else {
            kill_daemon(&mut host);
        }
        manager.start_daemon(&mut host, &[]);
        assert_eq!(host.status()["runs"][0]["capturing"], true);
        host.until_state(probe.pid(), "capturing");
        emit(&mut probe, 10);
        let first = restart * 10 + 1;
        assert_eq!(
            numbers_of(&host.fetch(), probe.pid()),
            range(first..=first + 9),
            "restart {restart}"
        );
    }
    assert_eq!(file(&host.path(".")), folder);
    assert_eq!(file(&host.control_socket()), socket);
}

/// A descriptor under a socket's name that is no such socket ends the daemon, with a line that says which and what it
/// should be; the file at its path stays.
#[test]
fn what_is_no_such_socket_is_refused() {
    type Make = fn(&Path) -> OwnedFd;
    let cases: [(&str, Make, &str); 8] = [
        (
            "control",
            |_| memfd::create("no", 4096).unwrap(),
            "no socket",
        ),
        (
            "control",
            |_| TcpListener::bind("127.0.0.1:0").unwrap().into(),
            "address family",
        ),
        (
            "control",
            |path| socket::listen(path, 0o600).unwrap(),
            "of type SOCK_SEQPACKET",
        ),
        (
            "control",
            |path| UnixDatagram::bind(path).unwrap().into(),
            "of type SOCK_DGRAM",
        ),
        (
            "control",
            |_| UnixStream::pair().unwrap().0.into(),
            "not listened on",
        ),
        ("producer", control_socket, "of type SOCK_STREAM"),
        (
            "metrics",
            |path| socket::listen(path, 0o600).unwrap(),
            "of type SOCK_SEQPACKET",
        ),
        // A unit without FileDescriptorName=.
        ("nrt-traced-control.socket", control_socket, "allowed"),
    ];
    for (name, make, found) in cases {
        let host = Host::new();
        let manager = Manager::new(&host, ROOM);
        let path = host.path("wrong.sock");
        manager.plant(name, make(&path));
        let there = path.exists();
        let (status, said) = manager.refused_daemon(&host);
        assert_eq!(status, Some(1), "{name}: {said}");
        let told: Vec<_> = said.lines().collect();
        let [line] = told[..] else {
            panic!("one line: {said}")
        };
        assert!(line.contains(&format!("\"{name}\"")), "{line}");
        assert!(line.contains(found), "{found}: {line}");
        assert_eq!(
            path.exists(),
            there,
            "its file is not the daemon's to remove"
        );
        assert!(!host.producer_socket().exists(), "nothing was begun");
    }
}

/// A socket whose file was removed, as `systemctl clean` does under a unit that goes on listening, is one that nobody can
/// connect to: the daemon says so in place of being ready.
#[test]
fn a_socket_whose_file_is_gone_is_refused() {
    for name in ["control", "producer"] {
        let (host, manager) = listened_on();
        let path = host.path(format!("{name}.sock"));
        fs::remove_file(&path).unwrap();
        let (status, said) = manager.refused_daemon(&host);
        assert_eq!(status, Some(1), "{said}");
        for part in [&format!("\"{name}\""), &path.display().to_string()] {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert!(!manager.was_told("READY=1"));
    }
}

/// The settings don't move a socket that was handed over, and the log says which path holds.
#[test]
fn a_path_of_the_settings_that_is_not_used_is_told() {
    let (mut host, manager) = listened_on();
    let other = host.path("other.sock").display().to_string();
    manager.start_daemon(&mut host, &["--producer-socket", &other]);
    let log = host.log_with("is used, and not");
    let mut lines = log.lines();
    let warning = lines
        .find(|line| line.contains("is used, and not"))
        .unwrap();
    let used = host.producer_socket().display().to_string();
    for part in ["producer_socket", &other, &used] {
        assert!(warning.contains(part), "{part}: {warning}");
    }
    assert_eq!(host.stop_daemon(), Some(0));
}

/// As for the other two, where metrics are read: at a path, or at an address of this machine.
#[test]
fn a_metrics_socket_of_the_settings_that_is_not_used_is_told() {
    for loopback in [false, true] {
        let (mut host, manager) = listened_on();
        let (metrics, used) = if loopback {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap().to_string();
            (listener.into(), address)
        } else {
            let path = host.path("metrics.sock");
            (control_socket(&path), path.display().to_string())
        };
        manager.plant("metrics", metrics);
        let other = host.path("other.sock").display().to_string();
        let settings = format!("metrics_socket = \"{other}\"\n");
        fs::write(host.path("c.toml"), settings).unwrap();
        manager.start_daemon(&mut host, &["--config", "c.toml"]);
        let log = host.log_with("is used, and not");
        let mut lines = log.lines();
        let warning = lines
            .find(|line| line.contains("is used, and not"))
            .unwrap();
        for part in ["metrics_socket", &other, &used] {
            assert!(warning.contains(part), "{part}: {warning}");
        }
        assert_eq!(host.stop_daemon(), Some(0));
    }
}

/// Two descriptors under one name can't both be the socket.
#[test]
fn two_sockets_of_one_name_are_refused() {
    let (host, manager) = listened_on();
    manager.plant("control", control_socket(&host.path("second.sock")));
    let (status, said) = manager.refused_daemon(&host);
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains("several descriptors"), "{said}");
}

/// As systemd itself hands over one socket; the daemon binds the other.
#[test]
fn the_control_socket_alone_comes_from_systemd_socket_activate() {
    const TOOL: &str = "systemd-socket-activate";
    let host = Host::new();
    let mut command = host.command(TOOL);
    command.arg("--listen").arg(host.control_socket());
    command.args(["--fdname", "control"]);
    // It passes on no variable of its own accord.
    command.arg(&artifacts().traced);
    command.arg("--socket").arg(host.path("not-this.sock"));
    command.arg("--producer-socket").arg(host.producer_socket());
    command.arg("--state-dir").arg(host.path("state"));
    if std::process::Command::new(TOOL)
        .arg("--version")
        .output()
        .is_err()
    {
        eprintln!("NOT RUN: there is no {TOOL} here (package systemd)");
        return;
    }
    let daemon = Running::start(command);
    until("the socket", || {
        host.control_socket().exists().then_some(())
    });
    let before = file(&host.control_socket());
    assert!(
        !host.producer_socket().exists(),
        "it begins with the first client"
    );
    until("an answer", || {
        let answer = host.tracectl(&["status"]);
        (answer.code() == Some(0)).then_some(())
    });
    assert!(host.producer_socket().exists());
    assert!(!host.path("not-this.sock").exists());
    let probe = host.interactive_probe(&["-n", "1"]);
    drop(probe);
    let pid = Pid::from_raw(daemon.pid().cast_signed()).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    daemon.wait().ok();
    assert!(!host.producer_socket().exists(), "what it made it removes");
    assert_eq!(file(&host.control_socket()), before);
}
