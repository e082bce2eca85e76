//! Rings full of a training step's events.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};
use nrt_trace_client::payload::{
    DeviceExecStart, DeviceExecStop, DmemBufCopyin, ExecPost, ExecPre, ExecWait, ExecuteApi,
    TensorRead, TimestampSync,
};
use nrt_trace_client::{EventType, Options, Phase, Tracer, emit_raw};

const MODEL: &str = "resnet50_bf16_tp4.neff";

/// This process's rings.
pub(crate) struct Rings {
    tracer: Tracer,
    rings: u32,
}

impl Rings {
    /// Attaches this process to the daemon, with so many rings.
    pub(crate) fn attach(socket: &Path, rings: u32) -> Result<Self> {
        let cores: Vec<u16> = (0..u16::try_from(rings)?).collect();
        let tracer = Tracer::attach(Options::named("bench").cores(&cores).socket(socket));
        ensure!(
            tracer.wait_armed(Duration::from_secs(10)),
            "the daemon did not arm this process"
        );
        Ok(Self { tracer, rings })
    }

    /// Emits `per_ring` events into each ring.
    pub(crate) fn fill(&self, per_ring: u64) {
        let model_id = self.tracer.intern(0, MODEL).0;
        for nc in 0..self.rings {
            let mut left = per_ring;
            let mut exec_id = 1;
            while left > 0 {
                step(nc, exec_id, model_id, &mut left);
                exec_id += 1;
            }
        }
    }
}

/// One step's twelve events, as long as some are left.
fn step(nc: u32, exec_id: u64, model_id: u64, left: &mut u64) {
    let exec = u32::try_from(exec_id).unwrap_or(0);
    let now = 1_000_000 * exec_id;
    let mut push = |kind: EventType, phase: Phase, tracking: u64, data: [u64; 5]| {
        if *left == 0 {
            return 0;
        }
        *left -= 1;
        emit_raw(kind.value(), phase.value(), nc, tracking, &data)
    };
    let execute = ExecuteApi { model_id }.to_data();
    let pre = ExecPre { exec_id, model_id }.to_data();
    let wait = ExecWait { exec_id, model_id }.to_data();
    let outer = push(EventType::ExecuteApi, Phase::Start, 0, execute);
    let inner = push(EventType::ExecPre, Phase::Start, 0, pre);
    push(EventType::ExecPre, Phase::Stop, inner, pre);
    let sync = TimestampSync {
        exec_id,
        nc_timestamp_ns: now,
        cpu_timestamp_ns: 1_796_000_000_000_000_000 + now,
    };
    push(EventType::TimestampSync, Phase::Instant, 0, sync.to_data());
    let start = DeviceExecStart {
        device_core_idx: nc,
        exec_id: exec,
        nc_timestamp_ns: now + 5_000,
        cpu_timestamp_ns: 0,
    };
    let device = push(EventType::DeviceExec, Phase::Start, 0, start.to_data());
    let stop = DeviceExecStop {
        nc_timestamp_ns: now + 9_000,
        cpu_timestamp_ns: 0,
    };
    push(EventType::DeviceExec, Phase::Stop, device, stop.to_data());
    let waiting = push(EventType::ExecWait, Phase::Start, 0, wait);
    push(EventType::ExecWait, Phase::Stop, waiting, wait);
    let post = ExecPost { exec_id, model_id }.to_data();
    push(EventType::ExecPost, Phase::Instant, 0, post);
    let read = TensorRead {
        tensor_id: exec_id * 7,
        size: 4_194_304,
    };
    push(EventType::TensorRead, Phase::Instant, 0, read.to_data());
    let copy = DmemBufCopyin {
        mem_type: 2,
        mem_handle: 0x7F00_1234_5678,
        offset: 4_096,
        size: 1 << 20,
    };
    push(EventType::DmemBufCopyin, Phase::Instant, 0, copy.to_data());
    push(EventType::ExecuteApi, Phase::Stop, outer, execute);
}
