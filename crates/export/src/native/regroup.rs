//! The second pass over a recording: ring by ring, each in seq order.

use std::io::{Read, Seek};

use nrt_trace_abi::record::{RECORD_BYTES, Record};
use nrt_trace_proto::v1::{
    ClockAnchor, FetchBegin, FetchEnd, Records, Strings, TracePart, trace_part::Part,
};
use prost::bytes::Buf as _;

use super::NativeError;
use super::reader::next_of;
use super::spool::{Spool, is_late};

/// Bytes of a Records part that the merge makes: whole records below 1 MiB.
const PART_BYTES: usize = (1 << 20) / RECORD_BYTES * RECORD_BYTES;

/// Names in a Strings part.
const STRINGS: usize = 4096;

impl<R: Read + Seek> Spool<R> {
    /// Gives the whole recording as the parts of one fetch: producer by producer in attach order (which their numbers
    /// follow), NC by NC, each NC in seq order, with the last account of each ring. Where REALTIME was set between two of its
    /// fetches, the beginning comes again for each look at the clocks around that.
    ///
    /// # Errors
    /// The sink's; [`NativeError::Damaged`], or of the file.
    pub fn regroup<E: From<NativeError>>(
        &mut self,
        mut sink: impl FnMut(TracePart) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut give = |part| sink(TracePart { part: Some(part) });
        if let Some(begin) = self.begin() {
            // A clock that was set between two fetches shows in how they begin and end, and there is one of each from now on.
            let looks: Vec<FetchBegin> = self
                .index
                .set
                .iter()
                .map(|look| at(&begin, *look))
                .collect();
            give(Part::Begin(begin))?;
            looks.into_iter().map(Part::Begin).try_for_each(&mut give)?;
        }
        for first in (0..self.index.strings.len()).step_by(STRINGS) {
            let end = self.index.strings.len().min(first + STRINGS);
            let entries = self.index.strings[first..end].to_vec();
            give(Part::Strings(Strings {
                first: first as u64,
                entries,
            }))?;
        }
        self.host(&mut give)?;
        let producers: Vec<u32> = self.index.producers.keys().copied().collect();
        for id in producers {
            let producer = &self.index.producers[&id];
            if let Some(producer) = producer.producer.clone() {
                give(Part::Producer(producer))?;
            }
            let account = producer.account;
            let rings: Vec<u32> = producer.rings.keys().copied().collect();
            for nc in rings {
                self.ring((id, nc), &mut give)?;
                if let Some(account) = self.index.producers[&id].rings[&nc].account {
                    give(Part::Account(account))?;
                }
            }
            if let Some(account) = account {
                give(Part::ProducerAccount(account))?;
            }
        }
        give(Part::End(self.end()))
    }

    /// The host monitor's ticks, in their order.
    fn host<E: From<NativeError>>(
        &mut self,
        give: &mut impl FnMut(Part) -> Result<(), E>,
    ) -> Result<(), E> {
        if let Some(info) = self.index.host_info.clone() {
            give(Part::HostInfo(info))?;
        }
        let (mut at, mut offset) = (0, 0);
        while let Some((block, next)) = self.index.host_blocks.next(at, offset) {
            (at, offset) = (next, block);
            let mut parts = self.block_parts(block)?;
            while parts.has_remaining() {
                if let Some(part @ Part::HostSample(_)) =
                    next_of(&mut parts, block)?.and_then(|part| part.part)
                {
                    give(part)?;
                }
            }
        }
        Ok(())
    }

    fn begin(&self) -> Option<FetchBegin> {
        let known = self
            .index
            .producers
            .values()
            .filter(|p| p.producer.is_some())
            .count();
        let producers = u32::try_from(known).unwrap_or(u32::MAX);
        self.index
            .begin
            .clone()
            .map(|begin| FetchBegin { producers, ..begin })
    }

    fn end(&self) -> FetchEnd {
        let last = self.index.end.unwrap_or_default();
        let fetch_id = self
            .index
            .begin
            .as_ref()
            .map_or(last.fetch_id, |b| b.fetch_id);
        FetchEnd {
            fetch_id,
            events: self.events(),
            run_ended: last.run_ended && self.cut().is_none(),
            ..last
        }
    }

    fn ring<E: From<NativeError>>(
        &mut self,
        key: (u32, u32),
        give: &mut impl FnMut(Part) -> Result<(), E>,
    ) -> Result<(), E> {
        let late = std::mem::take(&mut self.ring_index(key).late);
        let mut merge = Merge::new(key, late);
        let (mut at, mut offset) = (0, 0);
        while let Some((block, next)) = self.ring_index(key).blocks.next(at, offset) {
            (at, offset) = (next, block);
            let mut parts = self.block_parts(block)?;
            while parts.has_remaining() {
                match next_of(&mut parts, block)?.and_then(|p| p.part) {
                    Some(Part::Records(records)) => merge.records(records, give)?,
                    Some(other) => {
                        merge.flush(give)?;
                        give(other)?;
                    }
                    None => {}
                }
            }
        }
        merge.rest(give)?;
        // Kept for another pass over the same recording.
        self.ring_index(key).late = merge.late;
        Ok(())
    }

    fn ring_index(&mut self, (producer, nc): (u32, u32)) -> &mut super::spool::RingIndex {
        self.index
            .producers
            .entry(producer)
            .or_default()
            .rings
            .entry(nc)
            .or_default()
    }
}

/// The same beginning, with another look at the clocks.
fn at(begin: &FetchBegin, clock: ClockAnchor) -> FetchBegin {
    FetchBegin {
        clock: Some(clock),
        ..begin.clone()
    }
}

/// Puts a ring's late events between the others.
pub(crate) struct Merge {
    key: (u32, u32),
    late: Vec<Record>,
    /// The next late event to give.
    next: usize,
    /// Late events met where they came, and left out there.
    met: usize,
    highest: Option<u64>,
    packed: Vec<u8>,
}

impl Merge {
    pub(crate) const fn new(key: (u32, u32), late: Vec<Record>) -> Self {
        Self {
            key,
            late,
            next: 0,
            met: 0,
            highest: None,
            packed: Vec::new(),
        }
    }

    pub(crate) fn records<E>(
        &mut self,
        records: Records,
        give: &mut impl FnMut(Part) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.late.is_empty() {
            return give(Part::Records(records));
        }
        for bytes in records.packed.as_chunks::<RECORD_BYTES>().0 {
            let seq = Record::from_bytes(bytes).seq();
            let late = is_late(&mut self.highest, seq);
            if late && self.met < self.late.len() {
                self.met += 1;
                continue;
            }
            while let Some(first) = self.late.get(self.next).filter(|r| r.seq() < seq) {
                let first = first.to_bytes();
                self.next += 1;
                self.push(&first, give)?;
            }
            self.push(bytes, give)?;
        }
        Ok(())
    }

    /// Gives the late events that come after all others.
    pub(crate) fn rest<E>(
        &mut self,
        give: &mut impl FnMut(Part) -> Result<(), E>,
    ) -> Result<(), E> {
        while let Some(record) = self.late.get(self.next) {
            let bytes = record.to_bytes();
            self.next += 1;
            self.push(&bytes, give)?;
        }
        self.flush(give)
    }

    fn push<E>(
        &mut self,
        record: &[u8; RECORD_BYTES],
        give: &mut impl FnMut(Part) -> Result<(), E>,
    ) -> Result<(), E> {
        self.packed.extend_from_slice(record);
        if self.packed.len() >= PART_BYTES {
            self.flush(give)
        } else {
            Ok(())
        }
    }

    fn flush<E>(&mut self, give: &mut impl FnMut(Part) -> Result<(), E>) -> Result<(), E> {
        if self.packed.is_empty() {
            return Ok(());
        }
        let (producer_id, nc_idx) = self.key;
        let packed = std::mem::take(&mut self.packed).into();
        give(Part::Records(Records {
            producer_id,
            nc_idx,
            packed,
        }))
    }
}
