//! `doctor` from outside: its text, its JSON, its exit status.

use nrt_trace_proto::v1;

use crate::fake::Fake;
use crate::tool::run;

#[test]
fn without_a_daemon_it_says_so_and_what_to_do() {
    let ended = run(["--socket", "/nowhere/c.sock", "doctor"]);
    assert_eq!(
        (ended.status, ended.stderr.as_str()),
        (Some(1), ""),
        "{ended:?}"
    );
    assert_eq!(
        ended.stdout,
        "found    no_daemon: no daemon at /nowhere/c.sock: there is no such file\n  \
         do     start it: `systemctl start nrt-traced`, or `nrt-traced`. To record one program none is needed: \
         `nrt-tracectl record -- CMD`. If it runs with another socket, name that with --socket or NRT_TRACE_SOCKET\n\
         1 thing to do\n"
    );
}

#[test]
fn its_json_has_codes_for_programs() {
    let fake = Fake::start(|script| {
        script.producers = vec![v1::Producer {
            pid: Some(42),
            name: "a\x1b[31m".to_owned(),
            state: v1::ProducerState::Attached.into(),
            not_captured: "too large (max_segment_bytes)".to_owned(),
            ..v1::Producer::default()
        }];
    });
    let socket = fake.socket().to_str().unwrap();
    let ended = run(["--socket", socket, "doctor", "--format", "json"]);
    assert_eq!(ended.status, Some(1), "{ended:?}");
    let told: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(
        (&told["well"], &told["socket"]),
        (&false.into(), &socket.into())
    );
    let codes: Vec<&str> = (told["findings"].as_array().unwrap().iter())
        .map(|finding| finding["code"].as_str().unwrap())
        .collect();
    assert_eq!(
        codes,
        [
            "other_version",
            "producer_socket_gone",
            "nobody_attached",
            "over_budget",
            "not_capturing",
            "clocksource"
        ]
    );
    assert!(
        told["findings"][3]["do"]
            .as_str()
            .unwrap()
            .contains("raise max_segment_bytes")
    );
    let text = run(["--socket", socket, "doctor"]).stdout;
    assert!(
        text.contains("a\\u{1b}[31m") && text.ends_with("6 things to do\n"),
        "{text}"
    );
}
