//! The programs of `docs/api.md`, run as they stand there.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use nrt_trace_tests::page::Page;
use nrt_trace_tests::{Host, Running, artifacts, run, until};

use crate::installed;

/// The blocks of a language, one after the other, with the host's socket in the place of an installed daemon's.
fn program(host: &Host, language: &str) -> String {
    let page = fs::read_to_string(artifacts().workspace.join("docs/api.md")).unwrap();
    let fence = format!("\n```{language}\n");
    let blocks = page.split(&fence).skip(1);
    let blocks: Vec<&str> = blocks
        .map(|rest| rest.split("\n```\n").next().unwrap())
        .collect();
    assert!(!blocks.is_empty());
    let socket = host.control_socket().display().to_string();
    blocks
        .join("\n\n")
        .replace("/run/nrt-trace/control.sock", &socket)
}

/// A command in the host's folder, which has the `.proto` files as a source tree has them.
fn in_tree(host: &Host, program: &str) -> Command {
    let proto = host.path("proto");
    if !proto.exists() {
        symlink(artifacts().workspace.join("proto"), proto).unwrap();
    }
    let mut command = host.command(program);
    command.env("PYTHONPATH", installed("python"));
    command.env("NODE_PATH", installed("node").join("node_modules"));
    command
}

/// Subscribers that the daemon has, as its metrics say.
fn subscribers(host: &Host) -> String {
    let metrics = host.tracectl(&["metrics"]).ok().text();
    let line = metrics
        .lines()
        .find_map(|line| line.strip_prefix("nrt_trace_subscribers "));
    line.unwrap().to_owned()
}

#[test]
fn the_python_of_the_page() {
    let host = Host::with_daemon();
    let page = Page::read(&artifacts().workspace.join("docs/api.md"));
    let generate = page.steps.iter().map(|step| &step.command);
    let generate = generate.into_iter().find(|step| step.contains("protoc"));
    let mut shell = in_tree(&host, "sh");
    shell.args(["-c", generate.unwrap()]);
    run(shell).ok();

    let mut python = in_tree(&host, "python3");
    python.args(["-u", "-c", &program(&host, "python")]);
    let mut python = Running::start(python);
    let mut parts = Vec::new();
    while parts.last().is_none_or(|part| part != "end\n") {
        parts.push(python.read_line());
    }
    assert_eq!(parts[0], "begin\n");
    // From now on it follows what comes.
    let none = ["0", "0.0"];
    until("it to subscribe", || {
        (!none.contains(&&*subscribers(&host))).then_some(())
    });
    host.probe(&["-n", "100", "--model", "model.neff"]).ok();
    let events = python.read_line();
    assert!(events.contains(" events of 1 0"), "{events}");
    host.tracectl(&["stop"]).ok();
    python.wait().ok();
}

#[test]
fn the_javascript_of_the_page() {
    let host = Host::with_daemon();
    host.tracectl(&["start"]).ok();
    let mut node = in_tree(&host, "node");
    node.args(["-e", &program(&host, "js")]);
    let mut node = Running::start(node);
    assert_eq!(node.read_line(), "begin\n");
    host.tracectl(&["stop"]).ok();
    let ended = node.wait().ok();
    assert!(ended.text().ends_with("\nend\n"), "{ended}");
    assert_eq!(ended.stderr, "");
}
