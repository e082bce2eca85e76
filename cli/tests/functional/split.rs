//! A document for each process, and the options of JSON documents.

use std::ffi::OsString;
use std::fs;

use nrt_trace_proto::v1;
use nrt_trace_proto::v1::trace_part::Part;

use crate::fake::Fake;
use crate::tool::{Ended, run};

fn ask(fake: &Fake, more: &[&str]) -> Ended {
    let mut arguments: Vec<OsString> =
        vec!["--socket".into(), fake.socket().into(), "fetch".into()];
    arguments.extend(more.iter().map(OsString::from));
    run(arguments)
}

fn producer(producer_id: u32, pid: i32) -> Part {
    Part::Producer(v1::Producer {
        producer_id,
        pid: Some(pid),
        worker_gid: 2,
        visible_cores: vec![8],
        name: format!("worker {producer_id}"),
        ..v1::Producer::default()
    })
}

/// A `generic` event whose payload's first word and tracking id are `id`.
fn record(producer_id: u32, id: u64) -> Part {
    let words = [0, 7, 1, 1, id, 1_000, id, 0, 0, 0, 0, 2, 0, 0_u64];
    let packed: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    Part::Records(v1::Records {
        producer_id,
        nc_idx: 0,
        packed: packed.into(),
    })
}

/// A fetch of two processes, with an event each.
fn two(script: &mut crate::fake::Script) {
    let begin = v1::FetchBegin {
        format_version: 1,
        fetch_id: 31,
        producers: 2,
        ..v1::FetchBegin::default()
    };
    let names = v1::Strings {
        first: 0,
        entries: vec![v1::StringEntry {
            id: (1 << 50) - 1,
            text: "step".to_owned(),
        }],
    };
    script.parts = vec![
        Part::Begin(begin),
        Part::Strings(names),
        producer(1, 41),
        record(1, (1 << 50) - 1),
        producer(2, 42),
        record(2, u64::MAX),
        Part::End(v1::FetchEnd {
            fetch_id: 31,
            events: 2,
            ..v1::FetchEnd::default()
        }),
    ];
}

#[test]
fn each_process_has_a_file_of_neurons_keys_alone() {
    let fake = Fake::start(two);
    let place = fake.folder().join("trace.json");
    let ended = ask(&fake, &["-o", place.to_str().unwrap(), "--split"]);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    assert!(
        ended.stderr.contains("(a file for each process)"),
        "{ended:?}"
    );
    assert!(!place.exists(), "its name is varied and not used");
    for (pid, id) in [(41, (1 << 50) - 1), (42, u64::MAX)] {
        let text = fs::read_to_string(fake.folder().join(format!("trace.{pid}.json"))).unwrap();
        let expected = format!(
            "{{\"events\":[{{\"event_type\":\"generic\",\"phase\":\"instant\",\"id\":1,\"nc_idx\":0,\"nc_local_id\":1,\
             \"tracking_id\":{id},\"thread_id\":7,\"worker_gid\":2,\"data\":{{}},\"timestamp_ns\":1000}}],\
             \"data_version\":2}}"
        );
        assert_eq!(text, expected);
    }
    assert_eq!(
        fake.asked().len(),
        2,
        "fetched and committed: {:?}",
        fake.asked()
    );
}

#[test]
fn names_and_large_numbers_are_shown_as_asked() {
    let fake = Fake::start(two);
    let plain = ask(&fake, &["-o", "-"]).stdout;
    assert!(
        !plain.contains("step") && plain.contains(":18446744073709551615,"),
        "{plain}"
    );
    let asked = ask(&fake, &["-o", "-", "--names", "--large-as-strings"]).stdout;
    assert!(
        asked.contains(
            r#""timestamp_ns":1000,"name":"step","tracking_name":"step","process_id":41,"host_nc_idx":8"#
        ),
        "{asked}"
    );
    assert!(
        asked.contains(r#""tracking_id":"18446744073709551615","#),
        "{asked}"
    );
    assert!(
        asked.contains(r#""tracking_id":1125899906842623,"#),
        "{asked}"
    );
}

#[test]
fn what_makes_no_sense_together_is_refused_before_anything_is_asked() {
    let fake = Fake::start(two);
    ask(&fake, &["-o", "-", "--split"]).one_line(2, &["--split needs the name of a file"]);
    ask(&fake, &["-o", "/dev/null", "--split"]).one_line(2, &["--split needs"]);
    let native = fake.folder().join("t.nrtt");
    for flag in ["--split", "--names", "--large-as-strings"] {
        ask(&fake, &["-o", native.to_str().unwrap(), flag]).one_line(2, &["about JSON documents"]);
    }
    assert!(fake.asked().is_empty() && !native.exists());
}
