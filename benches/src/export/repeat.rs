//! A recording, repeated.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use anyhow::{Result, ensure};
use nrt_trace_abi::record::{RECORD_BYTES, Record, event_id};
use nrt_trace_export::{NativeError, NativeWriter, Spool};
use nrt_trace_model::EventType;
use nrt_trace_proto::v1::{Records, RingAccount, TracePart, trace_part::Part};

/// Records of a part.
const PER_PART: usize = (1 << 20) / RECORD_BYTES;

/// Words of a record.
const ID: usize = 2;
const SEQ: usize = 3;
const TRACKING: usize = 4;
const TIME: usize = 5;
const DATA: usize = 6;

/// Writes the trace in `from` to `to`, each ring's events over and over, until there are at least `events`. Times go on: a
/// repetition follows the one before.
pub(super) fn write(from: &Path, to: &Path, events: u64) -> Result<()> {
    let mut rings: BTreeMap<(u32, u32), Vec<Record>> = BTreeMap::new();
    let mut others = Vec::new();
    Spool::open(File::open(from)?)?.regroup(|part| {
        match part.part {
            Some(Part::Records(records)) => {
                let ring = rings
                    .entry((records.producer_id, records.nc_idx))
                    .or_default();
                let packed = records.packed.as_chunks::<RECORD_BYTES>().0;
                ring.extend(packed.iter().map(Record::from_bytes));
            }
            Some(Part::Account(_) | Part::End(_) | Part::Correlations(_)) | None => {}
            Some(other) => others.push(other),
        }
        Ok::<(), NativeError>(())
    })?;
    let once: u64 = rings.values().map(|ring| ring.len() as u64).sum();
    ensure!(once > 0, "{} holds no event", from.display());
    let times = || rings.values().flatten().map(Record::timestamp_ns);
    let span = times().max().unwrap_or(0) - times().min().unwrap_or(0) + 1_000_000;
    let mut writer = NativeWriter::new(BufWriter::new(File::create(to)?))?;
    for part in others {
        writer.part(&TracePart { part: Some(part) })?;
    }
    let repetitions = events.div_ceil(once);
    for ((producer_id, nc_idx), ring) in &rings {
        let length = ring.len() as u64;
        let all = (0..repetitions)
            .flat_map(|again| {
                ring.iter()
                    .map(move |record| later(record, again, span, length))
            })
            .zip(1..);
        let mut packed = Vec::with_capacity(PER_PART * RECORD_BYTES);
        let mut last = 0;
        for (mut record, seq) in all {
            record.words[SEQ] = seq;
            record.words[ID] = event_id(*nc_idx, seq);
            packed.extend_from_slice(&record.to_bytes());
            if packed.len() >= PER_PART * RECORD_BYTES {
                send(&mut writer, *producer_id, *nc_idx, &mut packed)?;
            }
            last = seq;
        }
        send(&mut writer, *producer_id, *nc_idx, &mut packed)?;
        let account = RingAccount {
            producer_id: *producer_id,
            nc_idx: *nc_idx,
            claimed: last,
            delivered: last,
            exact: true,
            ..RingAccount::default()
        };
        let part = Some(Part::Account(account));
        writer.part(&TracePart { part })?;
    }
    writer.finish()?;
    Ok(())
}

/// The event of a later repetition. A tracking id is mostly the id of the start, which has the start's number in it: it moves
/// on by as many numbers as a repetition takes.
fn later(record: &Record, again: u64, span: u64, length: u64) -> Record {
    let mut record = *record;
    record.words[TIME] += again * span;
    record.words[TRACKING] += again * length;
    if record.trace_type() == EventType::TimestampSync.value() {
        record.words[DATA + 2] += again * span;
    }
    record
}

fn send<W: std::io::Write>(
    writer: &mut NativeWriter<W>,
    producer_id: u32,
    nc_idx: u32,
    packed: &mut Vec<u8>,
) -> Result<()> {
    if packed.is_empty() {
        return Ok(());
    }
    let packed = std::mem::take(packed).into();
    let part = Some(Part::Records(Records {
        producer_id,
        nc_idx,
        packed,
    }));
    writer.part(&TracePart { part })?;
    Ok(())
}
