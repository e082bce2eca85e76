//! A trace for the browser.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::process::Stdio;

use crate::convert::Folder;
use crate::tool::{run, tool};

fn ask(address: &str, request: &str) -> (String, Vec<u8>) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let end = answer
        .windows(4)
        .position(|four| four == b"\r\n\r\n")
        .unwrap();
    (
        String::from_utf8(answer[..end].to_vec()).unwrap(),
        answer[end + 4..].to_vec(),
    )
}

fn view(file: &Path) -> (std::process::Child, String, String) {
    let mut command = tool();
    command
        .arg("view")
        .arg(file)
        .args(["--port", "0", "--ui", "http://ui.test/x/"]);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut link = String::new();
    BufReader::new(child.stdout.as_mut().unwrap())
        .read_line(&mut link)
        .unwrap();
    let url = link
        .trim()
        .strip_prefix("http://ui.test/x/#!/?url=http://")
        .unwrap()
        .to_owned();
    let (address, path) = url.split_once('/').unwrap();
    (child, address.to_owned(), format!("/{path}"))
}

#[test]
fn a_trace_is_served_once_to_whoever_knows_the_link() {
    let folder = Folder::new();
    let expected = folder.convert("t.nrtt", "t.pftrace", &[]);
    for name in ["t.pftrace", "t.nrtt"] {
        let (child, address, path) = view(&folder.path(name));
        assert!(address.starts_with("127.0.0.1:"), "{address}");
        // A connection that says nothing keeps nobody waiting.
        let _silent = TcpStream::connect(&address).unwrap();
        let (head, _) = ask(&address, "GET /trace.pftrace HTTP/1.1\r\n\r\n");
        assert!(head.starts_with("HTTP/1.1 404"), "{head}");
        let (head, _) = ask(
            &address,
            &format!("OPTIONS {path} HTTP/1.1\r\nOrigin: http://ui.test\r\n\r\n"),
        );
        assert!(
            head.starts_with("HTTP/1.1 204")
                && head.contains("Access-Control-Allow-Origin: http://ui.test\r\n"),
            "{head}"
        );
        let (head, body) = ask(&address, &format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n"));
        assert!(
            head.starts_with("HTTP/1.1 200 OK\r\nAccess-Control-Allow-Origin: http://ui.test\r\n"),
            "{head}"
        );
        assert!(body == expected, "{name}");
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert!(TcpStream::connect(&address).is_err(), "served once");
    }
}

#[test]
fn a_port_that_is_in_use_is_told_with_a_way_out() {
    let folder = Folder::new();
    let held = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = held.local_addr().unwrap().port().to_string();
    let ended = run([
        "view".as_ref(),
        folder.path("t.nrtt").as_os_str(),
        "--port".as_ref(),
        port.as_ref(),
    ]);
    ended.one_line(
        1,
        &[
            &format!("cannot listen on 127.0.0.1:{port}: Address already in use"),
            "convert -o FILE.pftrace",
        ],
    );
}

/// A file whose name begins with a dash: clap would name its first letter, and as what it is not.
#[test]
fn a_file_that_looks_like_options_is_told_how_to_be_written() {
    let ended = run(["summary", "-x.nrtt"]);
    ended.one_line(
        2,
        &["unexpected argument '-x' found; if it is a file: ./-x.nrtt (try --help)"],
    );
}
