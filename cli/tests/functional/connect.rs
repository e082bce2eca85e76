//! What may be at the socket's path: nothing, nobody, somebody else.

use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::thread;

use rustix::net::{AddressFamily, SocketAddrUnix, SocketType};
use tonic::Status;

use crate::fake::Fake;
use crate::tool::{Ended, run};

fn status_of(socket: &Path) -> Ended {
    run(["--socket".as_ref(), socket.as_os_str(), "status".as_ref()])
}

#[test]
fn no_daemon_is_said_with_the_path() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("control.sock");
    let path = socket.display().to_string();
    status_of(&socket).one_line(
        1,
        &[&path, "there is no such file", "Is nrt-traced running?"],
    );
    drop(UnixListener::bind(&socket).unwrap());
    status_of(&socket).one_line(1, &[&path, "nobody listens", "Is nrt-traced running?"]);
    for verb in ["start", "stop", "producers", "events"] {
        let ended = run(["--socket".as_ref(), socket.as_os_str(), verb.as_ref()]);
        ended.one_line(1, &[&path, "Is nrt-traced running?"]);
    }
}

#[test]
fn the_environment_names_the_socket_too() {
    let mut command = crate::tool::tool();
    command
        .env("NRT_TRACE_SOCKET", "/nowhere/c.sock")
        .arg("status");
    crate::tool::finish(&mut command).one_line(1, &["/nowhere/c.sock"]);
    command.env("NRT_TRACE_SOCKET", "");
    crate::tool::finish(&mut command).one_line(2, &["NRT_TRACE_SOCKET"]);
}

#[test]
fn what_is_no_socket_is_not_taken_for_one() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "x").unwrap();
    status_of(&file).one_line(1, &["it is no socket"]);
}

#[test]
fn the_producer_socket_is_told_from_the_control_socket() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("producer.sock");
    let socket = rustix::net::socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
    rustix::net::bind(&socket, &SocketAddrUnix::new(&path).unwrap()).unwrap();
    rustix::net::listen(&socket, 8).unwrap();
    status_of(&path).one_line(1, &["socket of another kind (the producer socket?)"]);
}

#[test]
fn a_path_that_is_too_long_is_said_with_both_lengths() {
    let long = format!("/tmp/{}", "x".repeat(103));
    status_of(Path::new(&long)).one_line(1, &[&long, "108 bytes", "107"]);
    let fits = format!("/tmp/{}", "x".repeat(102));
    status_of(Path::new(&fits)).one_line(1, &["there is no such file"]);
}

#[test]
fn a_service_that_speaks_something_else_is_not_ours() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("web.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut asked = [0; 24];
        stream.read_exact(&mut asked).unwrap();
        stream
            .write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
            .unwrap();
    });
    let path = socket.display().to_string();
    status_of(&socket).one_line(1, &[&path, "is not the control socket of nrt-traced"]);
    server.join().unwrap();
}

#[test]
fn a_service_that_hangs_up_or_never_answers_is_not_ours() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("mute.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let server = thread::spawn(move || {
        drop(listener.accept().unwrap());
        let (mut stream, _) = listener.accept().unwrap();
        // Read until the client gives up, and never say a word.
        let mut rest = Vec::new();
        let _ended_somehow = stream.read_to_end(&mut rest);
    });
    status_of(&socket).one_line(1, &["is not the control socket of nrt-traced"]);
    status_of(&socket).one_line(
        1,
        &["the daemon at", "did not answer within 5 s: it is stopped"],
    );
    server.join().unwrap();
}

#[test]
fn another_grpc_service_is_not_ours() {
    let fake = Fake::start(|script| script.status = Some(Status::unimplemented("")));
    status_of(fake.socket()).one_line(1, &["it offers another gRPC service"]);
}

#[test]
fn a_refusal_by_the_daemon_is_a_matter_of_permission() {
    let fake = Fake::start(|script| script.status = Some(Status::permission_denied("")));
    status_of(fake.socket()).one_line(1, &["no permission to use the daemon at"]);
}
