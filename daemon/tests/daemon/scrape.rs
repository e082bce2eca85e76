//! Metrics over HTTP, on a socket of their own.

use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use crate::support::{Host, wait_for};

/// A daemon with a metrics socket, and its path.
fn host() -> (Host, PathBuf) {
    let mut path = PathBuf::new();
    let host = Host::with(|config| {
        path = config.control_socket.with_file_name("m.sock");
        config.metrics_socket = Some(path.clone());
        config.metrics_mode = 0o600;
    });
    (host, path)
}

/// The head and the body of the answer to a request.
fn ask(path: &PathBuf, request: &str) -> (String, String) {
    let mut socket = UnixStream::connect(path).unwrap();
    // A daemon that refuses early may close before it has heard all.
    let _partly = socket.write_all(request.as_bytes());
    let mut answer = Vec::new();
    let _until_reset = socket.read_to_end(&mut answer);
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    (head.to_ascii_lowercase(), body.to_owned())
}

fn get(path: &PathBuf, page: &str) -> (String, String) {
    ask(path, &format!("GET {page} HTTP/1.1\r\nHost: x\r\n\r\n"))
}

fn names(text: &str) -> Vec<&str> {
    text.lines()
        .filter(|line| line.starts_with("# TYPE "))
        .collect()
}

#[test]
fn the_page_is_what_the_api_gives() {
    let (mut host, path) = host();
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let (head, body) = get(&path, "/metrics");
    assert!(head.starts_with("http/1.1 200 "), "{head}");
    let kind = "content-type: application/openmetrics-text; version=1.0.0; charset=utf-8";
    assert!(head.contains(kind), "{head}");
    assert!(body.ends_with("# EOF\n"));
    let text = crate::metrics::text(&mut host);
    assert_eq!(names(&body), names(&text));
    host.daemon.shutdown();
    assert!(!path.exists());
}

#[test]
fn everything_else_is_refused() {
    let (_host, path) = host();
    assert!(get(&path, "/").0.starts_with("http/1.1 404 "));
    assert!(get(&path, "/metrics/x").0.starts_with("http/1.1 404 "));
    assert!(get(&path, "/metrics?x=1").0.starts_with("http/1.1 200 "));
    let (head, _) = ask(
        &path,
        "POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
    );
    assert!(
        head.starts_with("http/1.1 405 ") && head.contains("allow: get"),
        "{head}"
    );
    let long = format!(
        "GET /metrics HTTP/1.1\r\nHost: x\r\nX: {}\r\n\r\n",
        "y".repeat(64 << 10)
    );
    let (head, _) = ask(&path, &long);
    assert!(head.is_empty() || head.starts_with("http/1.1 4"), "{head}");
    assert!(
        !ask(&path, "what is this\r\n\r\n")
            .0
            .starts_with("http/1.1 200")
    );
}

/// Who says nothing keeps nobody waiting.
#[test]
fn silent_connections_are_let_go() {
    let (_host, path) = host();
    let mut silent: Vec<_> = (0..16)
        .map(|_| UnixStream::connect(&path).unwrap())
        .collect();
    wait_for("an answer", || {
        get(&path, "/metrics").0.starts_with("http/1.1 200 ")
    });
    // Their time is over: the daemon has closed them.
    for socket in &mut silent {
        let mut rest = Vec::new();
        let _whatever = socket.read_to_end(&mut rest);
        assert!(!rest.starts_with(b"HTTP/1.1 200"));
    }
}
