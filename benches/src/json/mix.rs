//! A trace that has every event type in every phase in which it has a payload.

use nrt_trace_abi::record::{Draft, RECORD_BYTES, Record};
use nrt_trace_model::payload::{self, ExecPre, PayloadLayout, TimestampSync};
use nrt_trace_model::{EventType, Phase, strings};
use nrt_trace_proto::v1::{
    FetchBegin, Producer, Records, StringEntry, Strings, TracePart, trace_part::Part,
};

use super::derived::{self, Event, Known};

/// Models that have names. One in four model ids has none.
const MODELS: [&str; 3] = ["resnet50_bf16_tp4.neff", "llama-3-8b/\"decode\".neff", "x"];

/// Processes, and rings of each.
const PROCESSES: u32 = 2;
const RINGS: u32 = 4;

/// Records of a part: what the daemon sends in one message.
const PER_PART: usize = (1 << 20) / RECORD_BYTES;

/// The trace twice: as a fetch delivers it, and as structs with everything worked out.
#[derive(Debug, Default)]
pub(crate) struct Mix {
    pub(crate) parts: Vec<TracePart>,
    pub(crate) events: Vec<Event>,
}

/// The name of a model.
pub(crate) fn model_name(id: u64) -> Option<&'static str> {
    MODELS
        .into_iter()
        .find(|name| strings::get_id(name.as_bytes()) == id)
}

/// A trace of about this many events.
pub(crate) fn trace(events: usize) -> Mix {
    let mut mix = Mix::default();
    let entries = MODELS.map(|name| StringEntry {
        id: strings::get_id(name.as_bytes()),
        text: name.to_owned(),
    });
    mix.part(Part::Begin(FetchBegin {
        format_version: nrt_trace_proto::FORMAT_VERSION,
        producers: PROCESSES,
        ..FetchBegin::default()
    }));
    mix.part(Part::Strings(Strings {
        first: 0,
        entries: entries.into(),
    }));
    let per_ring = events / (PROCESSES * RINGS) as usize;
    for process in 1..=PROCESSES {
        let pid = i32::try_from(40_000 + process).unwrap_or(0);
        mix.part(Part::Producer(Producer {
            producer_id: process,
            pid: Some(pid),
            worker_gid: -1,
            ..Producer::default()
        }));
        for nc in 0..RINGS {
            Ring::new(process, pid, nc).fill(&mut mix, per_ring);
        }
    }
    mix
}

impl Mix {
    fn part(&mut self, part: Part) {
        self.parts.push(TracePart { part: Some(part) });
    }
}

/// One ring's events: round after round of all kinds, each round an execution.
struct Ring {
    producer_id: u32,
    process_id: i32,
    nc: u32,
    seq: u64,
    now: u64,
    random: u64,
    packed: Vec<u8>,
}

impl Ring {
    fn new(producer_id: u32, process_id: i32, nc: u32) -> Self {
        Self {
            producer_id,
            process_id,
            nc,
            seq: 0,
            now: 1_796_000_000_000_000_000,
            random: u64::from(producer_id * 100 + nc + 1),
            packed: Vec::new(),
        }
    }

    fn fill(mut self, mix: &mut Mix, events: usize) {
        let kinds: Vec<(EventType, Phase)> = EventType::ALL
            .into_iter()
            .flat_map(|kind| Phase::ALL.map(|phase| (kind, phase)))
            .filter(|(kind, phase)| {
                *kind == EventType::Generic || payload::layout(*kind, *phase).is_some()
            })
            .collect();
        let mut left = events;
        for exec in 1u32.. {
            let round = self.round(mix, exec, &kinds, left);
            left -= round;
            if left == 0 {
                break;
            }
        }
        self.send(mix);
    }

    /// All kinds once, at most `limit` events.
    fn round(
        &mut self,
        mix: &mut Mix,
        exec: u32,
        kinds: &[(EventType, Phase)],
        limit: usize,
    ) -> usize {
        let exec_id = exec.into();
        let model_id = self.model();
        let sync = TimestampSync {
            exec_id,
            nc_timestamp_ns: self.now - 1_700_000_000_000_000_000,
            cpu_timestamp_ns: self.now,
        };
        let host = Some((sync.nc_timestamp_ns, sync.cpu_timestamp_ns));
        let pre = ExecPre { exec_id, model_id }.to_data();
        self.push(mix, EventType::ExecPre, Phase::Start, pre, None, None);
        self.push(
            mix,
            EventType::TimestampSync,
            Phase::Instant,
            sync.to_data(),
            None,
            host,
        );
        let mut made = 2;
        for (kind, phase) in kinds {
            if made >= limit {
                break;
            }
            // These two tell facts of the execution, and stand above.
            if matches!(kind, EventType::TimestampSync) || (17..=20).contains(&kind.value()) {
                continue;
            }
            let data = payload::layout(*kind, *phase).map_or([0; 5], |layout| {
                self.fields(layout, exec, sync.nc_timestamp_ns)
            });
            self.push(mix, *kind, *phase, data, Some(model_id), host);
            made += 1;
        }
        made.min(limit)
    }

    fn model(&mut self) -> u64 {
        let pick = usize::try_from(self.next() % 4).unwrap_or(0);
        MODELS
            .get(pick)
            .map_or(4_242, |name| strings::get_id(name.as_bytes()))
    }

    /// Values as they come in practice: small numbers, sizes, ids, handles.
    fn fields(&mut self, layout: &PayloadLayout, exec: u32, nc_now: u64) -> [u64; 5] {
        let mut data = [0u64; 5];
        for field in layout.fields {
            let random = self.next();
            let value = match field.name {
                "exec_id" => u64::from(exec),
                "model_id" => self.model(),
                "nc_timestamp_ns" => nc_now + random % 100_000,
                "cpu_timestamp_ns" => self.now,
                "algo" => random % 13,
                "usage_type" => random % 24,
                "mem_type" => random % 4,
                "physical_address" | "mem_handle" => random >> 16,
                _ => random >> (random % 64),
            };
            let bits = match field.kind {
                payload::FieldKind::Bool => 1,
                payload::FieldKind::U8 => 8,
                payload::FieldKind::U16 => 16,
                payload::FieldKind::U32 | payload::FieldKind::I32 => 32,
                payload::FieldKind::U64 => 64,
            };
            data[field.offset / 8] |= (value & (u64::MAX >> (64 - bits))) << (field.offset % 8 * 8);
        }
        data
    }

    /// xorshift: fast, and the same every time.
    fn next(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }

    fn push(
        &mut self,
        mix: &mut Mix,
        kind: EventType,
        phase: Phase,
        data: [u64; 5],
        model: Option<u64>,
        host: Option<(u64, u64)>,
    ) {
        self.seq += 1;
        self.now += 1_357;
        // Each event ties to nothing else, so a device span's stop knows no execution and keeps its own time.
        let draft = Draft {
            trace_type: kind.value(),
            phase: phase.value(),
            nc_idx: self.nc,
            thread_id: 123_456 + u64::from(self.nc),
            tracking_id: 0,
            timestamp_ns: self.now,
            data,
            nrta_seq_id: self.seq.is_multiple_of(5).then_some(self.seq * 3),
        };
        let record = draft.finish(self.seq);
        let on_device = nrt_trace_model::correlation::on_device(kind.value(), phase.value(), &data);
        let moved = on_device.filter(|on| on.exec_id.is_some()).and_then(|on| {
            let (nc, cpu) = host?;
            Some(cpu + on.nc_timestamp_ns - nc)
        });
        let known = Known {
            model,
            timestamp_ns: moved.unwrap_or(self.now),
        };
        self.packed.extend_from_slice(&record.to_bytes());
        mix.events.push(self.event(&record, known));
        if self.packed.len() >= PER_PART * RECORD_BYTES {
            self.send(mix);
        }
    }

    fn send(&mut self, mix: &mut Mix) {
        let packed = std::mem::take(&mut self.packed).into();
        mix.part(Part::Records(Records {
            producer_id: self.producer_id,
            nc_idx: self.nc,
            packed,
        }));
    }

    fn event(&self, record: &Record, known: Known) -> Event {
        let mut data = [0; 40];
        for (chunk, word) in data.chunks_exact_mut(8).zip(record.data()) {
            chunk.copy_from_slice(&word.to_le_bytes());
        }
        let kind = record.trace_type();
        Event {
            event_type: derived::NAMES[kind as usize],
            phase: ["start", "stop", "instant"][record.phase() as usize],
            id: record.id(),
            nc_idx: self.nc,
            nc_local_id: record.seq(),
            tracking_id: record.tracking_id(),
            thread_id: record.thread_id(),
            worker_gid: -1,
            data: derived::decode(kind, record.phase(), &data, known),
            timestamp_ns: known.timestamp_ns,
            nrta_seq_id: record.nrta_seq_id(),
            process_id: self.process_id.into(),
        }
    }
}
