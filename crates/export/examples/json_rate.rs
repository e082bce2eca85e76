//! How fast the documents are written: `cargo run --release -p nrt-trace-export --example json_rate [MILLIONS]`.
//!
//! The trace is a training step's mix of events in 8 rings, 512 KiB a part, made before the clock starts. Output goes
//! to a sink, so that the figures are those of this crate. One thread; its CPU time counts, so that whatever else the
//! machine does blurs them less.
#![expect(clippy::print_stdout, reason = "a program for people")]

use std::io::{self, Cursor};

use nrt_trace_abi::record::{Draft, Record};
use nrt_trace_export::{
    JsonOptions, JsonWriter, NativeError, NativeReader, NativeWriter, Spool, Summary,
};
use nrt_trace_model::payload::{
    DeviceExecStart, DeviceExecStop, DmemBufCopyin, ExecPost, ExecPre, ExecWait, ExecuteApi,
    TensorRead, TimestampSync,
};
use nrt_trace_model::{EventType, strings};
use nrt_trace_proto::v1::{
    FetchBegin, Producer, Records, StringEntry, Strings, TracePart, trace_part::Part,
};
use rustix::time::{ClockId, clock_gettime};

const MODEL: &str = "resnet50_bf16_tp4.neff";
const PER_PART: usize = 512 * 1024 / 112;

/// A ring's events: steps of twelve events each.
struct Ring {
    nc: u32,
    seq: u64,
    now: u64,
}

impl Ring {
    fn push(
        &mut self,
        out: &mut Vec<u8>,
        kind: EventType,
        phase: u32,
        tracking_id: u64,
        data: [u64; 5],
    ) -> u64 {
        self.seq += 1;
        self.now += 1_357;
        let draft = Draft {
            trace_type: kind.value(),
            phase,
            nc_idx: self.nc,
            thread_id: 123_456,
            tracking_id,
            timestamp_ns: self.now,
            data,
            nrta_seq_id: None,
        };
        let record: Record = draft.finish(self.seq);
        out.extend_from_slice(&record.to_bytes());
        record.tracking_id()
    }

    fn step(&mut self, out: &mut Vec<u8>, exec_id: u64) {
        let model_id = strings::get_id(MODEL.as_bytes());
        let nc = self.now - 1_700_000_000_000_000_000;
        let execute = self.push(
            out,
            EventType::ExecuteApi,
            0,
            0,
            ExecuteApi { model_id }.to_data(),
        );
        let pre = self.push(
            out,
            EventType::ExecPre,
            0,
            0,
            ExecPre { exec_id, model_id }.to_data(),
        );
        self.push(
            out,
            EventType::ExecPre,
            1,
            pre,
            ExecPre { exec_id, model_id }.to_data(),
        );
        let sync = TimestampSync {
            exec_id,
            nc_timestamp_ns: nc,
            cpu_timestamp_ns: self.now,
        };
        self.push(out, EventType::TimestampSync, 2, 0, sync.to_data());
        let start = DeviceExecStart {
            device_core_idx: self.nc,
            exec_id: u32::try_from(exec_id).unwrap_or(0),
            nc_timestamp_ns: nc + 5_000,
            cpu_timestamp_ns: self.now,
        };
        let device = self.push(out, EventType::DeviceExec, 0, 0, start.to_data());
        let stop = DeviceExecStop {
            nc_timestamp_ns: nc + 9_000,
            cpu_timestamp_ns: self.now,
        };
        self.push(out, EventType::DeviceExec, 1, device, stop.to_data());
        let wait = self.push(
            out,
            EventType::ExecWait,
            0,
            0,
            ExecWait { exec_id, model_id }.to_data(),
        );
        self.push(
            out,
            EventType::ExecWait,
            1,
            wait,
            ExecWait { exec_id, model_id }.to_data(),
        );
        self.push(
            out,
            EventType::ExecPost,
            2,
            0,
            ExecPost { exec_id, model_id }.to_data(),
        );
        self.push(
            out,
            EventType::TensorRead,
            2,
            0,
            TensorRead {
                tensor_id: exec_id * 7,
                size: 4_194_304,
            }
            .to_data(),
        );
        let copy = DmemBufCopyin {
            mem_type: 2,
            mem_handle: 0x7F00_1234_5678,
            offset: 4_096,
            size: 1 << 20,
        };
        self.push(out, EventType::DmemBufCopyin, 2, 0, copy.to_data());
        self.push(
            out,
            EventType::ExecuteApi,
            1,
            execute,
            ExecuteApi { model_id }.to_data(),
        );
    }
}

fn trace(events: usize) -> Vec<TracePart> {
    let part = |part| TracePart { part: Some(part) };
    let entry = StringEntry {
        id: strings::get_id(MODEL.as_bytes()),
        text: MODEL.to_owned(),
    };
    let mut parts = vec![
        part(Part::Begin(FetchBegin {
            format_version: 1,
            producers: 2,
            ..FetchBegin::default()
        })),
        part(Part::Strings(Strings {
            first: 0,
            entries: vec![entry],
        })),
        part(Part::Producer(Producer {
            producer_id: 1,
            pid: Some(4_711),
            ..Producer::default()
        })),
    ];
    for nc in 0..8 {
        let mut ring = Ring {
            nc,
            seq: 0,
            now: 1_796_000_000_000_000_000,
        };
        let mut packed = Vec::new();
        for exec_id in 1..=events as u64 / 8 / 12 {
            ring.step(&mut packed, exec_id);
            if packed.len() >= PER_PART * 112 {
                let packed = std::mem::take(&mut packed).into();
                parts.push(part(Part::Records(Records {
                    producer_id: 1,
                    nc_idx: nc,
                    packed,
                })));
            }
        }
        parts.push(part(Part::Records(Records {
            producer_id: 1,
            nc_idx: nc,
            packed: packed.into(),
        })));
    }
    parts
}

/// Counts bytes.
#[derive(Default)]
struct Sink(u64);

impl io::Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[expect(clippy::cast_precision_loss, reason = "shown with three digits")]
fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

#[expect(clippy::cast_precision_loss, reason = "shown with three digits")]
fn timed<T>(
    what: &str,
    events: u64,
    bytes: impl Fn(&T) -> u64,
    run: impl Fn() -> io::Result<T>,
) -> io::Result<T> {
    let mut best = f64::INFINITY;
    let mut result = None;
    for _ in 0..5 {
        let begin = cpu_seconds();
        result = Some(run()?);
        best = best.min(cpu_seconds() - begin);
    }
    let result = result.expect("it ran");
    let (n, size) = (events as f64, bytes(&result) as f64);
    println!(
        "{what:<16} {:6.2} M events/s  {:6.1} ns/event  {:6.1} bytes/event",
        n / best / 1e6,
        best / n * 1e9,
        size / n
    );
    Ok(result)
}

fn main() -> io::Result<()> {
    let millions: usize = std::env::args()
        .nth(1)
        .and_then(|n| n.parse().ok())
        .unwrap_or(2);
    let parts = trace(millions * 1_000_000);
    let mut summary = Summary::new();
    parts.iter().for_each(|p| summary.part(p));
    let events = summary.events();
    println!("{events} events, best of 5 runs");
    timed(
        "JSON",
        events,
        |sink: &Sink| sink.0,
        || {
            let mut writer = JsonWriter::new(Sink::default(), JsonOptions::default());
            parts.iter().try_for_each(|p| writer.part(p))?;
            writer.finish()
        },
    )?;
    timed(
        "summary",
        events,
        |_| 0,
        || {
            let mut summary = Summary::new();
            parts.iter().for_each(|p| summary.part(p));
            Ok(summary.events())
        },
    )?;
    let file = timed(
        "native write",
        events,
        |file: &Vec<u8>| file.len() as u64,
        || {
            let mut writer = NativeWriter::new(Vec::new())?;
            parts.iter().try_for_each(|p| writer.part(p))?;
            writer.finish()
        },
    )?;
    timed(
        "native read",
        events,
        |_| file.len() as u64,
        || {
            let read: Result<usize, NativeError> =
                NativeReader::new(file.as_slice())?.try_fold(0, |n, part| part.map(|_| n + 1));
            Ok(read?)
        },
    )?;
    timed(
        "native regroup",
        events,
        |_| file.len() as u64,
        || {
            let mut spool = Spool::open(Cursor::new(&file))?;
            spool.regroup(|_| Ok::<(), io::Error>(()))
        },
    )?;
    Ok(())
}
