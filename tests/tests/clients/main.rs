//! The control API as stock gRPC clients see it over the unix socket: Python's, Node's, grpcurl, and one that knows nothing
//! but what the server's reflection tells.
//!
//! `.ci/clients` installs them; without them these tests fail and say so.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failed assumption fails the test"
)]

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use nrt_trace_tests::{Host, Running, artifacts};
use serde_json::{Value, json};

mod examples;
mod grpcurl;
mod large;
mod reflection;

/// Where `.ci/clients` puts what it installs.
fn installed(name: &str) -> PathBuf {
    let path = artifacts().workspace.join("target/clients").join(name);
    assert!(path.is_dir(), "no {}: run .ci/clients", path.display());
    path
}

/// All that the socket serves, by name.
const SERVICES: [&str; 4] = [
    "grpc.health.v1.Health",
    "grpc.reflection.v1.ServerReflection",
    "grpc.reflection.v1alpha.ServerReflection",
    "nrt.trace.v1.TraceControl",
];

fn script(name: &str) -> PathBuf {
    artifacts().workspace.join("tests/clients").join(name)
}

fn proto() -> PathBuf {
    artifacts().workspace.join("proto")
}

fn python(host: &Host, name: &str) -> Command {
    let mut command = host.command("python3");
    command.env("PYTHONPATH", installed("python"));
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    command.arg(script(name)).arg(host.control_socket());
    command
}

/// The next line that a client writes.
fn line(client: &mut Running) -> Value {
    let text = client.read_line();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Case G01: stock clients need no option, whatever they send as `:authority`.
#[test]
fn g01_pythons_generated_stubs() {
    let host = Host::with_daemon();
    let stubs = host.path("stubs");
    std::fs::create_dir(&stubs).unwrap();
    let mut command = python(&host, "plain.py");
    command.arg(proto()).arg(stubs);
    let mut client = Running::start(command);
    // 1 is SERVING. FAILED_PRECONDITION of a stop is the runtime's NRT_FAILURE, a bad filter its NRT_INVALID.
    assert_eq!(line(&mut client), json!({"health": [1, 1]}));
    let stop = json!({"stop_of_nothing": ["FAILED_PRECONDITION", "1"]});
    assert_eq!(line(&mut client), stop);
    let filter = json!({"bad_filter": ["INVALID_ARGUMENT", "2"]});
    assert_eq!(line(&mut client), filter);
    assert_eq!(line(&mut client), json!({"run": 200_000}));
    // More than flow control lets through to one that stops reading.
    host.probe(&["-n", "100000"]).ok();
    client.tell("");
    let all = json!({"records": 100_000, "claimed": 100_000, "events": 100_000});
    assert_eq!(line(&mut client), all);
    let walked = line(&mut client);
    let walk = json!({
        "types": 46, "processes": ["probe"], "snapshot": 100_000, "metrics": true, "filters": 0, "host": false,
    });
    assert_eq!(walked, walk);
    let followed = json!({"followed": 100_000, "cancelled": ["CANCELLED", null]});
    assert_eq!(line(&mut client), followed);
    let late = json!({"late": ["DEADLINE_EXCEEDED", null]});
    assert_eq!(line(&mut client), late);
    assert_eq!(line(&mut client), json!({"cancelled": ["CANCELLED", null]}));
    let off = json!({"monitor_off": ["FAILED_PRECONDITION", "1"]});
    assert_eq!(line(&mut client), off);
    assert_eq!(
        line(&mut client),
        json!({"late": ["DEADLINE_EXCEEDED", null]})
    );
    let again = json!({"again": 100_000, "committed_twice": ["NOT_FOUND", "3"]});
    assert_eq!(line(&mut client), again);
    let pids = json!({"pids": [host.daemon_pid()], "answers": 16});
    assert_eq!(line(&mut client), pids);
    assert_eq!(line(&mut client), json!({"stopped": true}));
    client.wait().ok();
}

#[test]
fn pythons_reflection_in_its_version_v1alpha() {
    let host = Host::with_daemon();
    let mut client = Running::start(python(&host, "reflection.py"));
    assert_eq!(line(&mut client), json!({"services": SERVICES}));
    let methods = line(&mut client);
    let methods = methods["methods"].as_array().unwrap();
    assert!(methods.contains(&json!("Start")) && methods.contains(&json!("WatchHostStats")));
    assert_eq!(line(&mut client), json!({"types": 46}));
    assert_eq!(line(&mut client), json!({"status": host.daemon_pid()}));
    let parts = line(&mut client);
    let parts = parts["parts"].as_array().unwrap();
    assert!(
        parts.contains(&json!("begin")) && parts.contains(&json!("end")),
        "{parts:?}"
    );
    assert_eq!(line(&mut client), json!({"health": "SERVING"}));
    client.wait().ok();
}

/// The socket's mode keeps others away; where somebody has opened it by hand, every service looks for itself.
#[test]
fn every_service_refuses_who_may_not_control_the_daemon() {
    const NOBODYS: u32 = 61_004;
    if !rustix::process::geteuid().is_root() {
        eprintln!("NOT RUN: only root can be two users");
        return;
    }
    let mut host = Host::new();
    let open = |path, bits| std::fs::set_permissions(path, Permissions::from_mode(bits)).unwrap();
    open(host.path(""), 0o755);
    std::fs::write(host.path("traced.toml"), "control_group = 0").unwrap();
    host.start_daemon(&["--config", "traced.toml"]);
    open(host.control_socket(), 0o666);
    let ask = |user: u32| {
        let mut command = python(&host, "refused.py");
        command.uid(user).gid(user);
        Running::start(command)
    };
    let mut may = ask(0);
    let ok = json!(["OK", null]);
    let all = json!({"health": ok, "reflection": ok, "status": ok});
    assert_eq!(line(&mut may), all);
    may.wait().ok();
    let mut reach = host.command("ls");
    reach.arg(script("refused.py")).arg(installed("python"));
    let reached = reach.uid(NOBODYS).gid(NOBODYS).output();
    if !reached.is_ok_and(|output| output.status.success()) {
        eprintln!("NOT RUN: another user can't reach what .ci/clients installed");
        return;
    }
    let mut may_not = ask(NOBODYS);
    let none = ["health", "reflection", "status"]
        .map(|name| (name.to_owned(), json!(["PERMISSION_DENIED", "1"])));
    let none = Value::Object(none.into_iter().collect());
    assert_eq!(line(&mut may_not), none);
    may_not.wait().ok();
}

/// What the gRPC library answers by itself carries the runtime's code too; and case G01 with `grpc.default_authority` set.
#[test]
fn g01_calls_that_reach_no_method_and_any_authority() {
    let host = Host::with_daemon();
    let mut client = Running::start(python(&host, "wrong.py"));
    let ends = json!({
        "undecodable": ["INTERNAL", "2"],
        "too_large": ["OUT_OF_RANGE", "2"],
        "no_method": ["UNIMPLEMENTED", "1"],
        "no_service": ["UNIMPLEMENTED", "1"],
        "compressed": ["UNIMPLEMENTED", "1"],
        "no_health": ["NOT_FOUND", "3"],
    });
    assert_eq!(line(&mut client), ends);
    let ends = line(&mut client);
    let ends = ends.as_object().unwrap();
    assert_eq!(ends.len(), 12);
    for (name, end) in ends {
        if name.is_empty() {
            // As the documents say.
            assert_ne!(end[0], "OK", "an empty name is no longer refused");
        } else {
            assert_eq!(end, &json!(["OK", "OK"]), "{name}");
        }
    }
    client.wait().ok();
}

#[test]
fn nodes_client() {
    let host = Host::with_daemon();
    let mut command = host.command("node");
    command.env("NODE_PATH", installed("node").join("node_modules"));
    command
        .arg(script("walk.js"))
        .arg(host.control_socket())
        .arg(proto());
    let mut client = Running::start(command);
    let stop = json!({"stop_of_nothing": ["FAILED_PRECONDITION", "1"]});
    assert_eq!(line(&mut client), stop);
    assert_eq!(line(&mut client), json!({"run": "4096"}));
    host.probe(&["-n", "1500", "--name", "worker"]).ok();
    client.tell("");
    assert_eq!(
        line(&mut client),
        json!({"records": 1500, "events": "1500"})
    );
    let followed = json!({"followed": 1500, "ended": "CANCELLED"});
    assert_eq!(line(&mut client), followed);
    assert_eq!(line(&mut client), json!({"names": ["worker"]}));
    assert_eq!(
        line(&mut client),
        json!({"late": ["DEADLINE_EXCEEDED", null]})
    );
    assert_eq!(line(&mut client), json!({"stopped": true}));
    client.wait().ok();
}
