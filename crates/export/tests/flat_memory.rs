//! Memory does not grow with the events of a document, neither for its writer nor for its reader.
//!
//! A test binary with a single test: what it measures is the process's peak.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::io::{self, Read};

use nrt_trace_abi::record::Draft;
use nrt_trace_export::{JsonOptions, JsonWriter, read_json};
use nrt_trace_proto::v1::{Records, TracePart, trace_part::Part};

/// Events of a part.
const EVENTS: u64 = 4_000;

/// The most that the peak may grow while three times as much passes as before: noise of the allocator.
const SLACK_KIB: u64 = 4 * 1024;

/// Peak resident memory of this process, KiB.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|l| l.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Starts of device spans without a sync point: the worst case, all of them are held as long as they may be.
fn part(number: u64) -> TracePart {
    let record = |seq| {
        let draft = Draft {
            trace_type: if seq % 2 == 0 { 7 } else { 3 },
            timestamp_ns: seq,
            data: [(seq % (1 << 32)) << 32, 0, 0, 0, 0],
            ..Draft::default()
        };
        draft.finish(seq).to_bytes()
    };
    let packed: Vec<u8> = (1..=EVENTS)
        .flat_map(|n| record(number * EVENTS + n))
        .collect();
    TracePart {
        part: Some(Part::Records(Records {
            producer_id: 1,
            nc_idx: 0,
            packed: packed.into(),
        })),
    }
}

/// A document of as many events as one wants, made as it is read.
struct Endless {
    left: u64,
    piece: Vec<u8>,
    at: usize,
}

impl Read for Endless {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if self.at == self.piece.len() && self.left > 0 {
            self.left -= 1;
            self.at = 0;
            self.piece = match self.left {
                0 => b"],\"data_version\":2}".to_vec(),
                n => format!(
                    "{}{{\"event_type\":\"nrt_load\",\"phase\":\"stop\",\"nc_idx\":1,\"tracking_id\":{n},\"timestamp_ns\":2,\"data\":{{\"model_id\":1,\"new\":\"{n}\"}}}}",
                    if self.piece.len() == 11 { "" } else { "," }
                )
                .into_bytes(),
            };
        }
        let n = (&self.piece[self.at..]).read(bytes)?;
        self.at += n;
        Ok(n)
    }
}

#[test]
fn the_peak_stays_where_it_was_after_the_first_quarter() {
    let mut writer = JsonWriter::new(io::sink(), JsonOptions::default());
    let mut write = |parts: std::ops::Range<u64>| {
        for number in parts {
            writer.part(&part(number)).unwrap();
        }
        peak_kib()
    };
    let (warm, all) = (write(0..40), write(40..160));
    assert!(all - warm < SLACK_KIB, "writer: {warm} KiB, then {all}");

    let document = Endless {
        left: 40_001,
        piece: b"{\"events\":[".to_vec(),
        at: 0,
    };
    let (mut seen, mut warm) = (0u64, 0);
    let read = read_json(document, |event| {
        seen += 1;
        assert_eq!(event.number("model_id"), Some(1));
        if seen == 10_000 {
            warm = peak_kib();
        }
        Ok(())
    });
    assert_eq!(read.unwrap(), 40_000);
    let all = peak_kib();
    assert!(all - warm < SLACK_KIB, "reader: {warm} KiB, then {all}");
}
