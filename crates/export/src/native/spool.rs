//! The index of a recording: one pass over a native file that holds many fetches.

use std::collections::BTreeMap;
use std::io::{BufReader, Read, Seek, SeekFrom};

use hashbrown::HashSet;
use nrt_trace_abi::record::{RECORD_BYTES, Record};
use nrt_trace_proto::v1::{
    ClockAnchor, FetchBegin, FetchEnd, HostInfo, Producer, ProducerAccount, RingAccount,
    StringEntry, TracePart, trace_part::Part,
};
use prost::bytes::{Buf as _, Bytes};

use super::NativeError;
use super::block::{self, Content, HEADER_BYTES, Next, RingLabel};
use super::reader::{Frames, cut_at, next_of};
use crate::clock::{Clock, STEPS_MAX, Step};

/// Late events that are kept in memory to be put in order (28 MiB), over all rings. What is late beyond that stays
/// where it came.
pub(crate) const LATE_MAX: usize = 262_144;

/// A recording whose parts can be read again as one ordered fetch.
///
/// While a program runs, its rings are fetched over and over, and each fetch is appended to one native file. `open`
/// reads that file's general blocks and the labels of the others; [`Spool::regroup`] then goes from ring to ring.
///
/// Memory: the names, and for each ring its last account, about three bytes for each of its blocks, and the events
/// that came in a later fetch than their successors (at most 262,144 in all), which the second pass puts in place.
///
/// A fetch that was begun and not ended, with another one after it, was broken off and delivered again: its records
/// are left out. At the end of the file there is no other one: its records stay.
#[derive(Debug)]
pub struct Spool<R> {
    pub(crate) input: BufReader<R>,
    pub(crate) frames: Frames,
    pub(crate) index: Index,
    cut: Option<NativeError>,
}

/// What the first pass keeps.
#[derive(Debug, Default)]
pub(crate) struct Index {
    pub(crate) begin: Option<FetchBegin>,
    pub(crate) end: Option<FetchEnd>,
    clock: Clock,
    /// Looks at the clocks before and after each time that REALTIME was set, between the first and the last of all.
    pub(crate) set: Vec<ClockAnchor>,
    pub(crate) strings: Vec<StringEntry>,
    known: HashSet<u64>,
    pub(crate) producers: BTreeMap<u32, ProducerIndex>,
    pub(crate) host_info: Option<HostInfo>,
    /// Where the blocks with ticks of the host monitor begin.
    pub(crate) host_blocks: Offsets,
    pub(crate) events: u64,
    fetches: u64,
    late: usize,
}

impl Index {
    /// Looks at the clocks as a fetch saw them.
    fn look(&mut self, anchor: Option<ClockAnchor>) {
        let step = anchor.and_then(|anchor| self.clock.look(anchor));
        if let Some(Step { before, after, .. }) = step
            && self.set.len() < 2 * STEPS_MAX
        {
            self.set.extend([before, after]);
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct ProducerIndex {
    pub(crate) producer: Option<Producer>,
    pub(crate) account: Option<ProducerAccount>,
    pub(crate) rings: BTreeMap<u32, RingIndex>,
}

#[derive(Debug, Default)]
pub(crate) struct RingIndex {
    /// Where the ring's blocks begin.
    pub(crate) blocks: Offsets,
    pub(crate) account: Option<RingAccount>,
    highest: Option<u64>,
    /// Events that came after one of higher seq, in seq order once the pass is over.
    pub(crate) late: Vec<Record>,
}

/// File offsets in ascending order, as varint differences: rings are visited many times a second for hours, so the
/// blocks of a recording may be many.
#[derive(Clone, Debug, Default)]
pub(crate) struct Offsets {
    differences: Vec<u8>,
    last: u64,
}

impl Offsets {
    fn push(&mut self, offset: u64) {
        prost::encoding::encode_varint(offset - self.last, &mut self.differences);
        self.last = offset;
    }

    /// The offset at position `at` of the differences, counted from `before`, and the next position.
    pub(crate) fn next(&self, at: usize, before: u64) -> Option<(u64, usize)> {
        let mut rest = self.differences.get(at..).filter(|r| !r.is_empty())?;
        let difference = prost::encoding::decode_varint(&mut rest).expect("this type wrote it");
        Some((before + difference, self.differences.len() - rest.len()))
    }
}

/// What a fetch brought that counts only when it is known to be whole.
#[derive(Debug, Default)]
struct Staged {
    blocks: Vec<(u64, RingLabel)>,
    accounts: Vec<RingAccount>,
    producer_accounts: Vec<ProducerAccount>,
}

impl<R: Read + Seek> Spool<R> {
    /// Reads the index. A cut file gives what stands before the cut; see [`Spool::cut`].
    ///
    /// # Errors
    /// [`NativeError::Foreign`], [`NativeError::Version`], [`NativeError::Damaged`], or of the file.
    pub fn open(mut file: R) -> Result<Self, NativeError> {
        let bytes = file.seek(SeekFrom::End(0))?;
        file.seek(SeekFrom::Start(0))?;
        let mut input = BufReader::new(file);
        block::read_header(&mut input)?;
        let mut spool = Self {
            input,
            frames: Frames::new()?,
            index: Index::default(),
            cut: None,
        };
        let mut staged = Staged::default();
        let mut offset = HEADER_BYTES;
        loop {
            match spool
                .block(offset, bytes, &mut staged)
                .map_err(|e| cut_at(offset, e))
            {
                Ok(Some(next)) => offset = next,
                Ok(None) => break,
                Err(cut @ NativeError::Cut { .. }) => {
                    spool.cut = Some(cut);
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        spool.keep(&mut staged)?;
        for ring in spool
            .index
            .producers
            .values_mut()
            .flat_map(|p| p.rings.values_mut())
        {
            ring.late.sort_by_key(Record::seq);
        }
        Ok(spool)
    }

    /// Where the file is cut, if its writer did not get to the end.
    pub const fn cut(&self) -> Option<&NativeError> {
        self.cut.as_ref()
    }

    /// Fetches that the recording holds, without those that were broken off.
    pub const fn fetches(&self) -> u64 {
        self.index.fetches
    }

    /// Records that [`Spool::regroup`] gives.
    pub const fn events(&self) -> u64 {
        self.index.events
    }

    /// Looks at the block at `offset`, where the input stands; says where the next one begins, or that this was the
    /// end mark.
    fn block(
        &mut self,
        offset: u64,
        bytes: u64,
        staged: &mut Staged,
    ) -> Result<Option<u64>, NativeError> {
        let (next, taken) = block::read_next(&mut self.input, offset)?;
        let label = match next {
            Next::End => return Ok(None),
            Next::Unknown => return Ok(Some(offset + taken)),
            Next::Block(label) => label,
        };
        let following = offset + taken + u64::from(label.frame);
        if following > bytes {
            return Err(NativeError::Cut { offset });
        }
        match label.content {
            Content::Ring(ring) => {
                self.input.seek_relative(label.frame.into())?;
                staged.blocks.push((offset, ring));
            }
            Content::General => {
                let mut parts = self.frames.read(&mut self.input, &label, offset)?;
                let mut ticks = false;
                while parts.has_remaining() {
                    if let Some(part) = next_of(&mut parts, offset)? {
                        ticks |= matches!(part.part, Some(Part::HostSample(_)));
                        self.general(part, staged)?;
                    }
                }
                if ticks {
                    self.index.host_blocks.push(offset);
                }
                self.input.seek(SeekFrom::Start(following))?;
            }
        }
        Ok(Some(following))
    }

    fn general(&mut self, part: TracePart, staged: &mut Staged) -> Result<(), NativeError> {
        let index = &mut self.index;
        match part.part {
            Some(Part::Begin(begin)) => {
                // Whatever is still staged was broken off: it comes again.
                *staged = Staged::default();
                index.look(begin.clock);
                let first = index.begin.get_or_insert_with(|| begin.clone());
                (first.run, first.fetch_id) = (begin.run, begin.fetch_id);
            }
            Some(Part::Producer(producer)) => {
                let id = producer.producer_id;
                index.producers.entry(id).or_default().producer = Some(producer);
            }
            Some(Part::Strings(strings)) => {
                let new = strings
                    .entries
                    .into_iter()
                    .filter(|e| index.known.insert(e.id));
                index.strings.extend(new);
            }
            Some(Part::Account(account)) => staged.accounts.push(account),
            Some(Part::ProducerAccount(account)) => staged.producer_accounts.push(account),
            Some(Part::End(end)) => {
                index.end = Some(end);
                index.look(end.clock);
                self.keep(staged)?;
            }
            Some(Part::HostInfo(info)) => index.host_info = Some(info),
            Some(Part::Records(_) | Part::Correlations(_) | Part::HostSample(_)) | None => {}
        }
        Ok(())
    }

    /// Takes what is staged into the index.
    fn keep(&mut self, staged: &mut Staged) -> Result<(), NativeError> {
        let Staged {
            blocks,
            accounts,
            producer_accounts,
        } = std::mem::take(staged);
        let anything = !(blocks.is_empty() && accounts.is_empty());
        self.index.fetches += u64::from(anything);
        for (offset, label) in blocks {
            let (producer, nc) = label.key;
            let ring = self
                .index
                .producers
                .entry(producer)
                .or_default()
                .rings
                .entry(nc)
                .or_default();
            ring.blocks.push(offset);
            self.index.events += u64::from(label.records);
            if label.records == 0 {
                continue;
            }
            if label.ascending && ring.highest.is_none_or(|h| label.seqs.0 > h) {
                ring.highest = Some(label.seqs.1);
            } else {
                self.find_late(offset, label.key)?;
            }
        }
        for account in accounts {
            let producer = self.index.producers.entry(account.producer_id).or_default();
            producer.rings.entry(account.nc_idx).or_default().account = Some(account);
        }
        for account in producer_accounts {
            self.index
                .producers
                .entry(account.producer_id)
                .or_default()
                .account = Some(account);
        }
        Ok(())
    }

    /// Collects the late events of a block.
    fn find_late(&mut self, offset: u64, (producer, nc): (u32, u32)) -> Result<(), NativeError> {
        let mut parts = self.block_parts(offset)?;
        let Self {
            index: Index {
                producers, late, ..
            },
            ..
        } = self;
        let ring = producers
            .entry(producer)
            .or_default()
            .rings
            .entry(nc)
            .or_default();
        while parts.has_remaining() {
            let Some(TracePart {
                part: Some(Part::Records(records)),
            }) = next_of(&mut parts, offset)?
            else {
                continue;
            };
            for bytes in records.packed.as_chunks::<RECORD_BYTES>().0 {
                let record = Record::from_bytes(bytes);
                if is_late(&mut ring.highest, record.seq()) && *late < LATE_MAX {
                    ring.late.push(record);
                    *late += 1;
                }
            }
        }
        Ok(())
    }

    /// The parts of the block at `offset`.
    pub(crate) fn block_parts(&mut self, offset: u64) -> Result<Bytes, NativeError> {
        self.input.seek(SeekFrom::Start(offset))?;
        match block::read_next(&mut self.input, offset)? {
            (Next::Block(label), _) => self.frames.read(&mut self.input, &label, offset),
            _ => Err(NativeError::Damaged {
                offset,
                what: "the block has changed since it was looked at".to_owned(),
            }),
        }
    }
}

/// Whether the event of this seq comes after one of a higher seq; else it is the highest now.
pub(crate) fn is_late(highest: &mut Option<u64>, seq: u64) -> bool {
    let late = highest.is_some_and(|h| seq <= h);
    if !late {
        *highest = Some(seq);
    }
    late
}
