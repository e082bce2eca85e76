//! Start, stop, and the listings.

use std::ffi::OsString;

use nrt_trace_proto::v1;
use serde_json::{Value, json};
use tonic::Status;

use crate::fake::Fake;
use crate::tool::{Ended, run};

fn ask(fake: &Fake, more: &[&str]) -> Ended {
    let mut arguments: Vec<OsString> = vec!["--socket".into(), fake.socket().into()];
    arguments.extend(more.iter().map(OsString::from));
    run(arguments)
}

#[test]
fn every_option_of_start_reaches_the_daemon() {
    let fake = Fake::start(|script| {
        script.started.warnings = vec!["512 events became 1024".to_owned()];
    });
    let ended = ask(
        &fake,
        &[
            "start",
            "--max-events-per-nc",
            "512",
            "--nc",
            "0-1",
            "--events",
            "hardware,^cc_running",
            "--keep",
            "--arm-timeout",
            "99",
        ],
    );
    assert_eq!(ended.status, Some(0), "{ended:?}");
    assert_eq!(
        ended.stderr,
        "nrt-tracectl: Warning: 512 events became 1024\n"
    );
    assert_eq!(
        fake.asked(),
        [
            r#"start token="" max=Some(512) nc=[0, 1] events=["hardware", "^cc_running"] keep=true wait=Some(99)"#
        ]
    );
    assert_eq!(ask(&fake, &["start", "--token", "t-1"]).status, Some(0));
    assert_eq!(
        fake.asked()[1],
        r#"start token="t-1" max=None nc=[] events=[] keep=false wait=None"#
    );
}

/// What the API answers, with its keys; what doesn't fit a number of JavaScript is text.
#[test]
fn answers_are_json_for_programs() {
    let fake = Fake::start(|script| {
        let run = v1::Run {
            run_id: u64::MAX,
            started_ns: 1_796_005_265_123_456_789,
            nc: vec![0, 1],
            past_filters: vec![v1::PastFilter {
                until_ns: 1_796_005_265_123_456_790,
                events: vec!["cc_running".to_owned()],
                ..v1::PastFilter::default()
            }],
            ..v1::Run::default()
        };
        let armed = v1::ArmedProducer {
            producer_id: 1,
            pid: Some(42),
            name: "trainer".to_owned(),
            armed: true,
            segment_bytes: 1 << 20,
            ..v1::ArmedProducer::default()
        };
        script.started = v1::StartResponse {
            run: Some(run.clone()),
            warnings: vec!["512 events became 1024".to_owned()],
            producers: vec![armed.clone()],
            abandoned: 7,
        };
        script.filtered = v1::SetFilterResponse {
            run: Some(run.clone()),
            producers: 3,
            rearmed: vec![v1::ArmedProducer {
                refused: "no room".to_owned(),
                armed: false,
                ..armed
            }],
            ..v1::SetFilterResponse::default()
        };
        script.producers = vec![v1::Producer {
            producer_id: 1,
            run_id: u64::MAX,
            name: "trainer".to_owned(),
            ..v1::Producer::default()
        }];
        script.stopped = v1::StopResponse {
            run: Some(run),
            not_quiescent: vec![9],
            accounts: vec![v1::RingAccount {
                producer_id: 1,
                nc_idx: 4,
                claimed: 10,
                delivered: 8,
                lost: 2,
                ..v1::RingAccount::default()
            }],
            away: vec![2],
        };
    });
    let answer = |arguments: &[&str]| -> Value {
        let ended = ask(&fake, &[arguments, &["--format", "json"]].concat());
        assert_eq!(ended.status, Some(0), "{ended:?}");
        let value: Value = serde_json::from_str(&ended.stdout).unwrap();
        assert_eq!(value["run"]["run_id"], "ffffffffffffffff");
        assert_eq!(value["run"]["started_ns"], "1796005265123456789");
        value
    };
    let started = answer(&["start"]);
    assert_eq!(
        started["producers"],
        json!([{
            "producer_id": 1, "pid": 42, "name": "trainer", "armed": true, "segment_bytes": 1 << 20, "refused": null,
        }])
    );
    assert_eq!(started["abandoned"], 7);
    assert_eq!(started["warnings"], json!(["512 events became 1024"]));

    let filtered = answer(&["set-filter", "--nc", "0-1"]);
    assert_eq!(filtered["producer_count"], 3);
    assert_eq!(filtered["rearmed"][0]["refused"], "no room");
    assert_eq!(
        filtered["run"]["past_filters"],
        json!([{ "until_ns": "1796005265123456790", "nc": [], "events": ["cc_running"] }])
    );

    let stopped = answer(&["stop"]);
    assert_eq!(stopped["producers"][0]["name"], "trainer");
    let ring = &stopped["accounts"][0];
    assert_eq!(
        (&ring["nc_idx"], &ring["claimed"], &ring["lost"]),
        (&json!(4), &json!(10), &json!(2))
    );
    assert_eq!(
        (
            &stopped["not_quiescent_producer_ids"],
            &stopped["away_producer_ids"],
            &stopped["away_count"]
        ),
        (&json!([9]), &json!([2]), &json!(1))
    );
}

#[test]
fn what_the_daemon_refuses_has_its_words_and_status() {
    let refuse = |status: Status| Fake::start(|script| script.start = Some(status));
    let fake = refuse(Status::failed_precondition(
        "a run of the host is on since 02:21",
    ));
    ask(&fake, &["start"]).one_line(1, &["a run of the host is on since 02:21"]);
    let fake = refuse(Status::invalid_argument(
        "max_events_per_nc is above 4294967296",
    ));
    ask(&fake, &["start"]).one_line(2, &["above 4294967296"]);
}

#[test]
fn a_filter_that_is_not_given_stays_and_all_takes_one_away() {
    let fake = Fake::start(|_| {});
    let asked = |arguments: &[&str]| {
        let before = fake.asked().len();
        assert_eq!(ask(&fake, arguments).status, Some(0), "{arguments:?}");
        fake.asked()[before].clone()
    };
    assert_eq!(
        asked(&["set-filter", "--nc", "0-1", "--token", "t"]),
        r#"set_filter token="t" nc=Some([0, 1]) events=None"#
    );
    assert_eq!(
        asked(&[
            "set-filter",
            "--nc",
            "all",
            "--events",
            "hardware,^cc_running"
        ]),
        r#"set_filter token="" nc=Some([]) events=Some(["hardware", "^cc_running"])"#
    );
    ask(&fake, &["set-filter"]).one_line(2, &["--nc", "--events"]);
    ask(&fake, &["set-filter", "--nc", "256"]).one_line(2, &["0 to 255", "or all"]);
    let fake = Fake::start(|script| script.start = Some(Status::not_found("nothing captures")));
    ask(&fake, &["set-filter", "--nc", "all"]).one_line(1, &["nothing captures"]);
}

#[test]
fn stop_tells_what_each_core_recorded() {
    let producer = |producer_id, run_id, name: &str| v1::Producer {
        producer_id,
        run_id,
        name: name.to_owned(),
        pid: Some(100),
        rings: vec![0],
        armed_from_ns: Some(1),
        ..v1::Producer::default()
    };
    let fake = Fake::start(|script| {
        script.producers = vec![producer(1, 7, "trainer"), producer(2, 8, "of another run")];
        let run = v1::Run {
            run_id: 7,
            started_ns: 1_000_000_000,
            stopped_ns: Some(3_500_000_000),
            forgotten: Some(v1::RingAccount {
                claimed: 30,
                delivered: 23,
                lost: 7,
                abandoned: 2,
                ..v1::RingAccount::default()
            }),
            forgotten_processes: 2,
            ..v1::Run::default()
        };
        let account = v1::RingAccount {
            producer_id: 1,
            claimed: 1500,
            delivered: 1000,
            unread: 500,
            exact: true,
            ..v1::RingAccount::default()
        };
        script.stopped = v1::StopResponse {
            run: Some(run),
            not_quiescent: vec![],
            accounts: vec![account],
            away: vec![2],
        };
    });
    let ended = ask(&fake, &["stop", "--discard"]);
    assert_eq!(
        ended.stdout,
        "run      0000000000000007 of the host, lasted 2.5 s\n\
         recorded 100 trainer: 1,500 events (nc 0: 1,500)\n\
         recorded by 2 processes that ended and were fetched: 30 events\n\
         in all   1,530 events recorded, 1,023 fetched, 500 unread, 5 lost, 2 given up\n"
    );
    assert!(
        ended.stderr.contains("1 process has not come back yet"),
        "{ended:?}"
    );
    assert_eq!(fake.asked(), [r#"stop token="" discard=true"#]);
}

#[test]
fn the_listings_are_tables_and_json() {
    let fake = Fake::start(|script| {
        script.producers = vec![v1::Producer {
            producer_id: 1,
            pid: Some(100),
            name: "a\x1b[31m".to_owned(),
            worker_gid: -1,
            visible_cores: vec![4, 5],
            run_id: u64::MAX,
            state: v1::ProducerState::Capturing.into(),
            ..v1::Producer::default()
        }];
        let run = v1::Run {
            run_id: 1,
            token: "tok".to_owned(),
            ..v1::Run::default()
        };
        script.runs = vec![v1::RunStatus {
            run: Some(run),
            capturing: true,
            ..v1::RunStatus::default()
        }];
    });
    let json = |verb: &str| -> Value {
        serde_json::from_str(&ask(&fake, &[verb, "--format", "json"]).stdout).unwrap()
    };
    let producers = &json("producers")["producers"];
    assert_eq!(producers[0]["run_id"], "ffffffffffffffff");
    assert_eq!(producers[0]["state"], "capturing");
    let status = json("status");
    assert_eq!(
        status["started_ns"], "1796005265123456789",
        "exact for every reader of JSON"
    );
    assert_eq!(status["runs"][0]["token"], "tok");
    assert_eq!(
        json("events")["event_types"][0]["name"],
        "from_a_newer_daemon"
    );

    let table = ask(&fake, &["producers"]).stdout;
    assert!(
        table.contains("a\\u{1b}[31m") && table.contains("4-5") && table.contains("capturing"),
        "{table}"
    );
    let table = ask(&fake, &["status"]).stdout;
    assert!(
        table.contains("9.9.9 (ABI 1), pid 4711") && table.contains("token tok: capturing"),
        "{table}"
    );
    assert!(
        ask(&fake, &["events"])
            .stdout
            .contains("99  from_a_newer_daemon  software  new")
    );
}
