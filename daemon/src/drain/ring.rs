//! One ring's turn in a fetch.

use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use nrt_trace_abi::record::{RECORD_BYTES, Record};
use nrt_trace_model::correlation::told_by;
use nrt_trace_model::filter::TypeSet;
use nrt_trace_proto::v1;
use nrt_trace_ring::{Cursor, Impossible, LoadWord, Progress, Reader};

use super::asked::Asked;
use super::correlations::{Correlations, Known, referred_by};

/// Records of a full chunk: 256 KiB. A message may have 1 MiB, but a chunk is copied twice on its way to the socket, and a
/// core's own cache, which holds this much, is several times as fast as what is behind it.
pub(crate) const CHUNK_RECORDS: usize = (256 << 10) / RECORD_BYTES;

/// What the events of one ring told of executions, over all its fetches.
#[derive(Debug, Default)]
pub(crate) struct Learned(Mutex<Layers>);

/// What was learned up to the last commit.
#[derive(Debug, Default)]
struct Layers {
    table: Correlations,
    /// Committed tables that are not merged yet: the next fetch does that, in its own time.
    fresh: Vec<Correlations>,
}

impl Learned {
    /// Adds what a committed fetch learned.
    pub(crate) fn add(&self, later: Correlations) {
        self.lock().fresh.push(later);
    }

    /// What is known now, for a reader that goes its own way; nothing, if a fetch is reading this ring. It is then known
    /// from the events that are in the ring, mostly all the same.
    pub(crate) fn copy(&self) -> Self {
        let Ok(layers) = self.0.try_lock() else {
            return Self::default();
        };
        let mut table = layers.table.clone();
        layers.fresh.iter().for_each(|later| table.absorb(later));
        Self(Mutex::new(Layers {
            table,
            fresh: Vec::new(),
        }))
    }

    fn lock(&self) -> MutexGuard<'_, Layers> {
        // A table is valid between any two of its changes.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A chunk on its way: its records, and what must go before them.
#[derive(Debug)]
pub(crate) struct Chunk {
    /// What earlier chunks and fetches said about executions that these records refer to.
    pub correlations: Vec<v1::Correlation>,
    /// Packed records.
    pub records: Vec<u8>,
}

/// How a ring's turn ended.
#[derive(Debug)]
pub(crate) struct Turn {
    /// The cursor after it.
    pub cursor: Cursor,
    /// What the records told.
    pub learned: Correlations,
    /// Records delivered.
    pub delivered: u64,
    /// Records passed by, which the run had not asked for.
    pub skipped: u64,
    /// Events below the tail, as it was when the turn began, that `max` left.
    pub left: u64,
    /// Words that can't be, if the turn ended because of them.
    pub impossible: Option<Impossible>,
}

/// Reads at most `max` events up to the tail as it stands now, oldest first, chunk by chunk; `sink` may break off.
///
/// Types that `asked` leaves out are in a ring while the process also captures itself: they are passed by. Numbers that are no
/// type of ours are nobody else's business either, and are delivered.
///
/// # Errors
/// The sink's.
pub(crate) fn read<W: LoadWord, E>(
    reader: &Reader<'_, W>,
    producer_id: u32,
    cursor: &Cursor,
    known: &Learned,
    asked: &Asked,
    max: u64,
    mut sink: impl FnMut(Chunk) -> Result<(), E>,
) -> Result<Turn, E> {
    let mut known = known.lock();
    let Layers { table, fresh } = &mut *known;
    fresh.drain(..).for_each(|later| table.absorb(&later));

    let mut turn = Turn {
        cursor: cursor.clone(),
        learned: Correlations::default(),
        delivered: 0,
        skipped: 0,
        left: 0,
        impossible: None,
    };
    let (mut unasked, mut held) = passed_by(asked, cursor.next());
    let until = match reader.begin(&mut turn.cursor) {
        Ok(until) => until,
        Err(impossible) => {
            return Ok(Turn {
                impossible: Some(impossible),
                ..turn
            });
        }
    };
    let mut notes = Notes::default();
    loop {
        let room = usize::try_from(max - turn.delivered)
            .unwrap_or(usize::MAX)
            .min(CHUNK_RECORDS);
        let mut records = Vec::new();
        let progress = reader.read(&mut turn.cursor, until, room, &mut |record| {
            let claim = record.seq().wrapping_sub(1);
            if !held.contains(&claim) {
                (unasked, held) = passed_by(asked, claim);
            }
            if unasked >> record.trace_type().min(63) & 1 != 0 {
                turn.skipped += 1;
                return;
            }
            if records.is_empty() {
                records.reserve_exact(expected(until, cursor, turn.delivered, room) * RECORD_BYTES);
            }
            notes.take(record);
            let mut record = *record;
            record.set_producer_id(producer_id);
            records.extend_from_slice(&record.to_bytes());
        });
        turn.delivered += (records.len() / RECORD_BYTES) as u64;
        if !records.is_empty() {
            let correlations = turn.learned.entries(table, notes.referred());
            sink(Chunk {
                correlations,
                records,
            })?;
            notes.learn_into(&mut turn.learned);
        }
        match progress {
            Ok(Progress::More) if turn.delivered < max => {}
            Ok(Progress::More) => {
                turn.left = until - turn.cursor.next();
                return Ok(turn);
            }
            Ok(Progress::Done) => return Ok(turn),
            Err(impossible) => {
                return Ok(Turn {
                    impossible: Some(impossible),
                    ..turn
                });
            }
        }
    }
}

/// Types that are passed by at claim `n`, a bit each, and the claims for which that holds.
fn passed_by(asked: &Asked, n: u64) -> (u64, Range<u64>) {
    let (types, held) = asked.at(n);
    (TypeSet::ALL.without(types).bits(), held)
}

/// Records that a chunk will hold at most, so that a small fetch takes little memory.
fn expected(until: u64, start: &Cursor, delivered: u64, room: usize) -> usize {
    let ahead = until - start.next() + start.pending().len() as u64;
    usize::try_from(ahead.saturating_sub(delivered))
        .unwrap_or(usize::MAX)
        .clamp(1, room)
}

/// What a chunk's records told, and which executions they refer to.
#[derive(Debug, Default)]
struct Notes {
    told: Vec<(u32, Known)>,
    refers: Vec<u32>,
}

impl Notes {
    #[inline]
    fn take(&mut self, record: &Record) {
        if let Some((exec, fact)) = told_by(record.trace_type(), record.phase(), &record.data()) {
            let known = Known::from(fact);
            match self.told.last_mut() {
                // What an execution's events tell stands together, and mostly tells the same.
                Some((last, so_far)) if *last == exec => *so_far = known.or(*so_far),
                _ => self.told.push((exec, known)),
            }
        } else if let Some(exec) = referred_by(record)
            && self.refers.last() != Some(&exec)
        {
            self.refers.push(exec);
        }
    }

    /// Executions referred to, each once; forgets them with the next [`Notes::learn_into`].
    fn referred(&mut self) -> &[u32] {
        self.refers.sort_unstable();
        self.refers.dedup();
        &self.refers
    }

    fn learn_into(&mut self, table: &mut Correlations) {
        self.refers.clear();
        for (exec, known) in self.told.drain(..) {
            table.note(exec, known);
        }
    }
}

#[cfg(test)]
mod tests;
