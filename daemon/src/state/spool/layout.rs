//! What is in a file: the events that could still be read of one process's rings, and the process's names.
//!
//! ```text
//!  40 bytes        112 bytes each                      protobuf
//! ┌──────────────┬──────────────────────────────────┬─────────────────────────────┐
//! │ header       │ records, ring by ring            │ whose, rings, names         │
//! └──────────────┴──────────────────────────────────┴─────────────────────────────┘
//!  "NRTSPOOL", version, bytes of records, bytes of the rest, SipHash of both
//! ```
//!
//! A record's number says which slot it had, so that the rings can be made again as they were, as far as anybody will
//! look at them: other slots stay empty and take no memory.

use std::fs::File;
use std::hash::Hasher;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;

use nrt_trace_abi::SEQ_MAX;
use nrt_trace_abi::layout::{SLOT_WORDS, SegmentLayout, ring, segment, slot};
use nrt_trace_abi::record::{RECORD_BYTES, Record};
use nrt_trace_abi::stamp;
use nrt_trace_ring::{Account, Cursor};
use nrt_trace_shm::{ShmError, memfd};
use prost::Message;
use siphasher::sip::SipHasher13;

use super::Left;
use crate::state::FileId;

const MAGIC: &[u8; 8] = b"NRTSPOOL";
/// Version of the file's layout.
const VERSION: u64 = 1;
const HEADER: usize = 40;
/// Records are read and written so many at a time.
const BATCH: usize = 8192;
/// More than names and rings can take.
const MAX_REST: u64 = 1 << 30;

/// Whose a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Label {
    /// The run.
    pub run: u64,
    /// The producer.
    pub producer: u32,
    /// The number that the rings' gates carried.
    pub generation: u64,
}

/// What is beside the rings in a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Loaded {
    /// The process's names.
    pub names: Vec<String>,
    /// Names that had found no room, and that were refused.
    pub counts: (u64, u64),
}

#[derive(Clone, PartialEq, prost::Message)]
struct Rest {
    #[prost(uint64, tag = "1")]
    run: u64,
    #[prost(uint32, tag = "2")]
    producer: u32,
    #[prost(uint64, tag = "3")]
    generation: u64,
    /// The random number in the rings' header.
    #[prost(uint64, tag = "4")]
    nonce: u64,
    #[prost(message, repeated, tag = "5")]
    rings: Vec<RingRest>,
    /// Events for NCs without a ring, and with an index out of range.
    #[prost(uint64, repeated, tag = "6")]
    unplaced: Vec<u64>,
    #[prost(string, repeated, tag = "7")]
    names: Vec<String>,
    #[prost(uint64, tag = "8")]
    names_full: u64,
    #[prost(uint64, tag = "9")]
    names_refused: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
struct RingRest {
    #[prost(uint32, tag = "1")]
    nc: u32,
    /// Events claimed.
    #[prost(uint64, tag = "2")]
    claimed: u64,
    #[prost(uint64, tag = "3")]
    dropped_in_flight: u64,
    #[prost(uint64, tag = "4")]
    dropped_lapped: u64,
    #[prost(uint64, tag = "5")]
    dropped_seq: u64,
    /// Its records in the file.
    #[prost(uint64, tag = "6")]
    records: u64,
}

/// Events that a reader could still get.
pub(super) fn unread(left: &Left) -> u64 {
    let account = |(nc, cursor): &(usize, Cursor)| {
        let reader = left.segment.reader(*nc)?;
        let account = reader.account(cursor).ok()?;
        Some(account.unread.min(left.segment.layout().geometry().cap()))
    };
    left.cursors.iter().filter_map(account).sum()
}

/// A file that is being written, record by record.
struct Writer<'a> {
    file: &'a File,
    hash: SipHasher13,
    at: u64,
    buffer: Vec<u8>,
    in_time: &'a dyn Fn() -> bool,
    failed: Option<io::Error>,
}

impl Writer<'_> {
    fn put(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= BATCH * RECORD_BYTES {
            self.flush();
        }
    }

    fn flush(&mut self) {
        if self.failed.is_some() {
            return self.buffer.clear();
        }
        self.hash.write(&self.buffer);
        let written = if (self.in_time)() {
            self.file.write_all_at(&self.buffer, self.at)
        } else {
            Err(io::Error::other("the daemon ends, and there is no time"))
        };
        self.at += self.buffer.len() as u64;
        self.buffer.clear();
        self.failed = written.err();
    }
}

/// Writes what a process left.
pub(super) fn write(file: &File, left: &Left, in_time: &dyn Fn() -> bool) -> io::Result<()> {
    let mut writer = Writer {
        file,
        hash: SipHasher13::new(),
        at: HEADER as u64,
        buffer: Vec::new(),
        in_time,
        failed: None,
    };
    let mut rings = Vec::new();
    for (nc, cursor) in &left.cursors {
        let impossible = || io::Error::other("its words can't be");
        let reader = left.segment.reader(*nc).ok_or_else(impossible)?;
        let (mut cursor, mut records) = (cursor.clone(), 0);
        let account: Account = reader.account(&cursor).map_err(|_| impossible())?;
        let _until = reader.begin(&mut cursor).map_err(|_| impossible())?;
        let _all = reader
            .read(&mut cursor, account.claimed, usize::MAX, &mut |record| {
                writer.put(&record.to_bytes());
                records += 1;
            })
            .map_err(|_| impossible())?;
        rings.push(RingRest {
            nc: u32::try_from(*nc).unwrap_or(u32::MAX),
            claimed: account.claimed,
            dropped_in_flight: account.dropped_in_flight,
            dropped_lapped: account.dropped_lapped,
            dropped_seq: account.dropped_seq,
            records,
        });
    }
    writer.flush();
    let records = writer.at - HEADER as u64;
    let (names_full, names_refused) = left.names.counts();
    let rest = Rest {
        run: left.label.run,
        producer: left.label.producer,
        generation: left.label.generation,
        nonce: left.segment.nonce(),
        rings,
        unplaced: left.segment.unplaced().to_vec(),
        names: left.names.texts(),
        names_full,
        names_refused,
    };
    let rest = rest.encode_to_vec();
    writer.put(&rest);
    writer.flush();
    if let Some(error) = writer.failed {
        return Err(error);
    }
    let mut header = MAGIC.to_vec();
    for word in [VERSION, records, rest.len() as u64, writer.hash.finish()] {
        header.extend_from_slice(&word.to_le_bytes());
    }
    file.write_all_at(&header, 0)
}

/// Makes the rings again that a file holds; `layout` and `id` are the record's.
pub(super) fn load(
    file: &File,
    label: &Label,
    layout: &SegmentLayout,
    id: &FileId,
) -> io::Result<(OwnedFd, Loaded)> {
    let bad = |why: &str| io::Error::other(why.to_owned());
    let torn = || bad("it is torn");
    let mut header = [0; HEADER];
    file.read_exact_at(&mut header, 0).map_err(|_| torn())?;
    let word =
        |at: usize| u64::from_le_bytes(header[at..].first_chunk().copied().unwrap_or([0; 8]));
    if header[..8] != *MAGIC {
        return Err(bad("it is no file of this daemon's"));
    }
    if word(8) != VERSION {
        return Err(bad(&format!(
            "it is of version {}, this daemon writes {VERSION}",
            word(8)
        )));
    }
    let (records, rest_bytes, hash) = (word(16), word(24), word(32));
    let whole = (records.checked_add(rest_bytes)).and_then(|body| body.checked_add(HEADER as u64));
    if whole != Some(file.metadata()?.len()) || rest_bytes > MAX_REST {
        return Err(torn());
    }
    let mut rest = vec![0; usize::try_from(rest_bytes).unwrap_or(0)];
    file.read_exact_at(&mut rest, HEADER as u64 + records)?;
    let encoded = rest;
    let rest = Rest::decode(&encoded[..]).map_err(|_| torn())?;
    let found = Label {
        run: rest.run,
        producer: rest.producer,
        generation: rest.generation,
    };
    let ncs = rest.rings.iter().map(|ring| ring.nc as usize);
    let expected: u64 = rest
        .rings
        .iter()
        .map(|ring| ring.records)
        .fold(0, u64::saturating_add);
    if found != *label
        || rest.nonce != id.nonce
        || !ncs.eq(layout.ncs())
        || expected.checked_mul(RECORD_BYTES as u64) != Some(records)
    {
        return Err(bad("it is not of what the record says"));
    }
    let fd = memfd::create("nrt-trace-segment", layout.bytes()).map_err(io::Error::other)?;
    let mut hasher = SipHasher13::new();
    fill(&fd, file, label, layout, &rest, id, &mut hasher)?;
    hasher.write(&encoded);
    if hasher.finish() != hash {
        return Err(torn());
    }
    memfd::seal_size(&fd).map_err(io::Error::other)?;
    let loaded = Loaded {
        names: rest.names,
        counts: (rest.names_full, rest.names_refused),
    };
    Ok((fd, loaded))
}

fn fill(
    fd: &OwnedFd,
    file: &File,
    label: &Label,
    layout: &SegmentLayout,
    rest: &Rest,
    id: &FileId,
    hasher: &mut SipHasher13,
) -> io::Result<()> {
    let put = |at: usize, words: &[u64]| -> io::Result<()> {
        memfd::write_words_at(fd, at, words).map_err(|error: ShmError| io::Error::other(error))
    };
    let mut head = layout.header([label.run, id.nonce], id.generation, label.producer);
    for (at, count) in [segment::NO_RING, segment::NC_OUT_OF_RANGE]
        .into_iter()
        .zip(&rest.unplaced)
    {
        head[at] = *count;
    }
    put(0, &head)?;
    let mut at = HEADER as u64;
    let mut bytes = vec![0; BATCH * RECORD_BYTES];
    for of in &rest.rings {
        let first = layout.ring_word(of.nc as usize).unwrap_or_default();
        put(first + ring::TAIL, &[of.claimed])?;
        let dropped = [of.dropped_in_flight, of.dropped_lapped, of.dropped_seq];
        put(first + ring::DROPPED_IN_FLIGHT, &dropped)?;
        let mut left = of.records;
        while left > 0 {
            let count = left.min(BATCH as u64);
            left -= count;
            let chunk = &mut bytes[..usize::try_from(count).unwrap_or(0) * RECORD_BYTES];
            file.read_exact_at(chunk, at)?;
            hasher.write(chunk);
            at += chunk.len() as u64;
            let (records, _) = chunk.as_chunks::<RECORD_BYTES>();
            put_slots(records, layout, first, &put)?;
        }
    }
    Ok(())
}

/// Puts records into the slots that they came from, neighbours together.
fn put_slots(
    records: &[[u8; RECORD_BYTES]],
    layout: &SegmentLayout,
    first: usize,
    put: &dyn Fn(usize, &[u64]) -> io::Result<()>,
) -> io::Result<()> {
    let (mut start, mut next, mut words) = (0, u64::MAX, Vec::new());
    for record in records {
        let record = Record::from_bytes(record);
        // A number that can't be is a hostile process's, and its own loss.
        let number = record.seq().wrapping_sub(1);
        if number >= SEQ_MAX {
            continue;
        }
        let place = layout.geometry().place(number);
        if place.slot != next {
            put(start, &words)?;
            words.clear();
            let slot = usize::try_from(place.slot).unwrap_or(usize::MAX);
            start = first + ring::SLOTS + slot * SLOT_WORDS;
        }
        next = place.slot + 1;
        let at = words.len();
        words.resize(at + SLOT_WORDS, 0);
        words[at + slot::STAMP] = stamp::published(place.index);
        words[at + slot::RECORD..at + SLOT_WORDS].copy_from_slice(&record.words);
    }
    put(start, &words)
}
