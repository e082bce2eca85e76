//! One event of each of the 52 payloads, byte for byte.
//!
//! `golden/payloads.jsonl` was made from `events.toml` by another program than this crate. `golden/types.jsonl` has every
//! type in every phase, phases without a payload among them; `NRT_TRACE_BLESS=1 cargo test -p nrt-trace-export` writes it
//! anew.

use nrt_trace_abi::record::{Draft, Record};
use nrt_trace_model::{EventType, Phase, payload};
use nrt_trace_proto::v1::{Correlation, SyncPoint};

use crate::parts::{begin, correlations, json, names, part, process, records};

const NC: u32 = 3;

/// The union's bytes are 1, 2, 3, …; fields that are shown by name hold a small number instead.
fn record(number: u64, layout: &payload::PayloadLayout) -> Record {
    let mut bytes: [u8; 40] = std::array::from_fn(|i| u8::try_from(i + 1).unwrap());
    for (name, value) in [("algo", 6u32), ("usage_type", 21)] {
        if let Some(field) = layout.field(name) {
            bytes[field.offset..field.offset + 4].copy_from_slice(&value.to_le_bytes());
        }
    }
    let words = bytes
        .as_chunks::<8>()
        .0
        .iter()
        .map(|b| u64::from_le_bytes(*b))
        .collect::<Vec<_>>();
    let draft = Draft {
        trace_type: layout.event.value(),
        phase: layout.phases[0].value(),
        nc_idx: NC,
        thread_id: 4_000 + number,
        tracking_id: 1_000 + u64::from(layout.event.value()),
        timestamp_ns: 1_800_000_000_000_000_000 + number,
        data: words.try_into().unwrap(),
        nrta_seq_id: number.is_multiple_of(2).then_some(number),
    };
    draft.finish(number)
}

#[test]
fn each_payload_is_written_as_the_table_says() {
    let sync = SyncPoint {
        nc_timestamp_ns: 1 << 60,
        cpu_timestamp_ns: 1_800_000_000_000_000_000,
    };
    // The numbers that the hardware payloads' exec_id fields have with these bytes.
    let known = [0x0807_0605, 0x0C0B_0A09, 0x1413_1211].map(|exec_id| Correlation {
        exec_id,
        model_id: Some(0x0807_0605_0403_0201),
        sync: Some(sync),
    });
    let all: Vec<Record> = (1..)
        .zip(&payload::ALL)
        .map(|(number, layout)| record(number, layout))
        .collect();
    let mut producer = process(5, 4242);
    producer.worker_gid = 12;
    let document = json(&[
        begin(1, 1),
        part(nrt_trace_proto::v1::trace_part::Part::Producer(producer)),
        names(
            0,
            &[
                (0x0807_0605_0403_0201, "model \"at\" 0"),
                (0x100F_0E0D_0C0B_0A09, "modèle\n8"),
            ],
        ),
        correlations(5, NC, known.to_vec()),
        records(5, NC, &all),
    ]);
    let expected: Vec<&str> = include_str!("../golden/payloads.jsonl").lines().collect();
    assert_eq!(expected.len(), 52);
    let written = document
        .strip_prefix("{\"events\":[")
        .and_then(|d| d.strip_suffix("],\"data_version\":2}"))
        .unwrap();
    let mut rest = written;
    for (number, line) in expected.iter().enumerate() {
        let tail = rest.strip_prefix(line);
        assert!(
            tail.is_some(),
            "event {}:\n{line}\nis not how this begins:\n{}",
            number + 1,
            &rest[..rest.len().min(700)]
        );
        rest = tail.unwrap().strip_prefix(',').unwrap_or_default();
    }
    assert_eq!(written, expected.join(","));
}

#[test]
fn each_type_is_written_in_each_phase_as_it_always_was() {
    let all: Vec<Record> = EventType::ALL
        .into_iter()
        .flat_map(|kind| Phase::ALL.map(|phase| (kind, phase)))
        .zip(1..)
        .map(|((kind, phase), number)| {
            let draft = Draft {
                trace_type: kind.value(),
                phase: phase.value(),
                nc_idx: NC,
                thread_id: 42,
                timestamp_ns: 1_800_000_000_000_000_000 + number,
                // Small numbers, so that names are shown too; the highest bits set, so that signs are.
                data: [0x8000_0001_0000_0002, 5, 0xFF00_0000_0000_0003, 4, u64::MAX],
                ..Draft::default()
            };
            draft.finish(number)
        })
        .collect();
    let document = json(&[
        begin(1, 1),
        part(nrt_trace_proto::v1::trace_part::Part::Producer(process(
            5, 4242,
        ))),
        names(0, &[(0x8000_0001_0000_0002, "first.neff"), (5, "second")]),
        records(5, NC, &all),
    ]);
    let lines = document
        .strip_prefix("{\"events\":[")
        .and_then(|d| d.strip_suffix("],\"data_version\":2}"))
        .unwrap()
        .replace("},{\"event_type\"", "}\n{\"event_type\"")
        + "\n";
    assert_eq!(lines.lines().count(), 46 * 3);
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/types.jsonl");
    if std::env::var_os("NRT_TRACE_BLESS").is_some() {
        std::fs::write(golden, &lines).unwrap();
    }
    let expected = std::fs::read_to_string(golden).unwrap();
    for (line, expected) in lines.lines().zip(expected.lines()) {
        assert_eq!(line, expected, "NRT_TRACE_BLESS=1 writes it anew");
    }
    assert_eq!(lines.len(), expected.len());
}
