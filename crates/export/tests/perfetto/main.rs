//! What Perfetto's Trace Processor makes of a `.pftrace`: exact counts, times, names and tracks.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod cases;
mod engine;
mod make;
#[path = "../export/parts.rs"]
#[expect(dead_code, reason = "the other tests use the rest")]
mod parts;
mod random;

use nrt_trace_export::{PftraceOptions, PftraceWriter};
use nrt_trace_proto::v1::TracePart;

/// The trace of these parts.
pub(crate) fn pftrace(parts: &[TracePart]) -> Vec<u8> {
    pftrace_with(parts, PftraceOptions::default())
}

pub(crate) fn pftrace_with(parts: &[TracePart], options: PftraceOptions) -> Vec<u8> {
    let mut writer = PftraceWriter::new(Vec::new(), options).unwrap();
    for part in parts {
        writer.part(part).unwrap();
    }
    writer.finish().unwrap()
}

/// Where the packets of a trace stand.
pub(crate) fn packets(trace: &[u8]) -> Vec<std::ops::Range<usize>> {
    let mut packets = Vec::new();
    let mut at = 0;
    while at < trace.len() {
        let start = at;
        assert_eq!(trace[at], 0x0A, "a packet begins at {at}");
        at += 1;
        let mut length = 0;
        for shift in 0.. {
            let byte = trace[at];
            at += 1;
            length |= usize::from(byte & 0x7F) << (7 * shift);
            if byte < 0x80 {
                break;
            }
        }
        at += length;
        packets.push(start..at);
    }
    packets
}
