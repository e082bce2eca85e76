//! grpcurl, which knows nothing but the socket: it sends what it likes as `:authority` and asks reflection for the rest.

use std::collections::BTreeSet;
use std::process::Command;

use nrt_trace_tests::{Ended, Host, Running, artifacts, run};
use serde_json::{Value, json};

use crate::SERVICES;

const CONTROL: &str = "nrt.trace.v1.TraceControl";
/// What grpcurl adds to the number of a gRPC status for its own.
const STATUS: i32 = 64;

/// grpcurl before its verb: with a request, if there is one.
fn command(host: &Host, request: Option<&Value>, words: &[&str]) -> Command {
    let path = artifacts().workspace.join("target/clients/bin/grpcurl");
    assert!(path.exists(), "no {}: run .ci/clients", path.display());
    let mut command = host.command(path);
    command.args(["-plaintext", "-unix"]);
    if let Some(request) = request {
        command.args(["-d", &request.to_string()]);
    }
    command.arg(host.control_socket()).args(words);
    command
}

fn told(host: &Host, words: &[&str]) -> String {
    run(command(host, None, words)).ok().text()
}

/// The messages of an answer, in order.
fn messages(ended: &Ended) -> Vec<Value> {
    let all = serde_json::Deserializer::from_slice(&ended.stdout).into_iter();
    all.collect::<Result<_, _>>()
        .unwrap_or_else(|error| panic!("{error}: {ended}"))
}

/// Calls of methods, and which were called.
struct Calls<'a> {
    host: &'a Host,
    called: BTreeSet<String>,
}

impl Calls<'_> {
    fn command(&mut self, method: &str, request: &Value) -> Command {
        self.called.insert(format!("{CONTROL}.{method}"));
        command(self.host, Some(request), &[&format!("{CONTROL}/{method}")])
    }

    fn stream(&mut self, method: &str, request: &Value) -> Vec<Value> {
        messages(&run(self.command(method, request)).ok())
    }

    fn one(&mut self, method: &str, request: &Value) -> Value {
        let mut all = self.stream(method, request);
        assert_eq!(all.len(), 1, "{method}: {all:?}");
        all.remove(0)
    }
}

/// Reads what a stream prints until a line has `text`.
fn read_until(stream: &mut Running, text: &str) {
    while !stream.read_line().contains(text) {}
}

#[test]
fn g01_grpcurl_lists_and_describes() {
    let host = Host::with_daemon();
    let listed = told(&host, &["list"]);
    assert_eq!(listed.lines().collect::<Vec<_>>(), SERVICES);
    for service in SERVICES {
        let described = told(&host, &["describe", service]);
        assert!(
            described.contains(&format!("{service} is a service")),
            "{described}"
        );
    }
    // A message with a field whose type is in another file, and an enum.
    let message = told(&host, &["describe", "nrt.trace.v1.StartResponse"]);
    assert!(message.contains(".nrt.trace.v1.Run run = 1"), "{message}");
    let from = told(&host, &["describe", "nrt.trace.v1.SubscribeFrom"]);
    assert!(from.contains("SUBSCRIBE_FROM_OLDEST = 2"), "{from}");
}

/// Case G01: every method of the service, without an option and without a `.proto` file.
#[test]
fn g01_grpcurl_calls_every_method() {
    let host = Host::with_daemon();
    let mut calls = Calls {
        host: &host,
        called: BTreeSet::new(),
    };
    let started = calls.one("Start", &json!({"max_events_per_nc": 2048, "nc": [0]}));
    assert_eq!(started["run"]["maxEventsPerNc"], "2048");
    let filter = json!({"events": {"events": ["hardware", "software", "^nrt_execute"]}});
    let filtered = calls.one("SetFilter", &filter);
    assert_eq!(filtered["run"]["filterChanges"], 1, "{filtered}");

    let oldest = json!({"from": "SUBSCRIBE_FROM_OLDEST"});
    let mut subscriber = Running::start(calls.command("Subscribe", &oldest));
    read_until(&mut subscriber, "\"begin\"");
    host.probe(&["-n", "100"]).ok();
    read_until(&mut subscriber, "\"records\"");

    let status = calls.one("GetStatus", &json!({}));
    assert_eq!(status["pid"], host.daemon_pid());
    let producers = calls.one("ListProducers", &json!({"token": ""}));
    assert_eq!(producers["producers"].as_array().unwrap().len(), 1);
    let types = calls.one("ListEventTypes", &json!({}));
    assert_eq!(types["types"].as_array().unwrap().len(), 46);
    let names = calls.one("GetStrings", &json!({"from": 0}));
    assert_eq!(names["next"], names["total"]);
    let metrics = calls.stream("GetMetrics", &json!({}));
    let text: String = metrics
        .iter()
        .map(|piece| piece["text"].as_str().unwrap())
        .collect();
    assert!(text.ends_with("# EOF\n"));

    let fetched = calls.stream("Fetch", &json!({}));
    let end = &fetched.last().unwrap()["end"];
    let snapshot = calls.stream("Snapshot", &json!({}));
    assert_eq!(snapshot.last().unwrap()["end"]["events"], end["events"]);
    // An empty message is an empty object.
    let commit = json!({"fetch_id": end["fetchId"]});
    assert_eq!(calls.one("Commit", &commit), json!({}));
    let again = run(calls.command("Commit", &commit));
    assert_eq!(again.code(), Some(STATUS + 5), "{again}");
    assert!(again.stderr.contains("Code: NotFound"), "{again}");

    let host_on = calls.one("StartHost", &json!({"period_ms": 100}));
    assert_eq!(host_on["state"]["running"], true, "{host_on}");
    let mut watcher = Running::start(calls.command("WatchHostStats", &json!({})));
    read_until(&mut watcher, "\"sample\"");
    drop(watcher);
    let stats = calls.one("GetHostStats", &json!({}));
    assert_eq!(stats["state"]["running"], true, "{stats}");
    calls.one("StopHost", &json!({}));

    let stopped = calls.one("Stop", &json!({}));
    assert_eq!(stopped["run"]["runId"], started["run"]["runId"]);
    // With the run ends the subscription.
    read_until(&mut subscriber, "\"end\"");
    subscriber.wait().ok();

    let methods = told(&host, &["list", CONTROL]);
    let methods: BTreeSet<String> = methods.lines().map(str::to_owned).collect();
    assert_eq!(calls.called, methods, "each of them was called");
    let health = command(
        &host,
        Some(&json!({"service": CONTROL})),
        &["grpc.health.v1.Health/Check"],
    );
    assert_eq!(messages(&run(health).ok()), [json!({"status": "SERVING"})]);
}
