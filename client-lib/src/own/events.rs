//! Reading the rings of a capture: NC by NC, each in the order of its numbers.

use std::collections::{BTreeMap, BTreeSet};

use nrt_trace_abi::record::Record;
use nrt_trace_model::Status as Code;
use nrt_trace_ring::{Cursor, Impossible, Progress};

use super::rings::{Consumed, Rings};
use super::{Memo, OwnConfig};
use crate::log;

/// Which events to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Which {
    /// Of this NeuronCore only.
    pub nc: Option<u32>,
    /// At most so many of each NeuronCore, the oldest.
    pub max_per_nc: u64,
}

impl Which {
    /// All events.
    pub const ALL: Self = Self {
        nc: None,
        max_per_nc: u64::MAX,
    };
}

/// The events of a capture, while they are read.
#[derive(Debug)]
pub struct Events<'a> {
    rings: &'a Rings,
    config: &'a OwnConfig,
    which: Which,
    /// NCs that are still to be read, the current one first.
    ncs: Vec<usize>,
    cursors: Consumed,
    /// Part that is being read of the current NC, and up to where.
    part: usize,
    until: Option<u64>,
    /// Events of the current NC that were given.
    given: u64,
    stored: u64,
    impossible: Option<Impossible>,
    /// What the last reading left, for this one and the next.
    pub memo: &'a mut Memo,
}

impl<'a> Events<'a> {
    pub(super) fn new(
        rings: &'a Rings,
        config: &'a OwnConfig,
        which: Which,
        memo: &'a mut Memo,
    ) -> Self {
        let all: BTreeSet<usize> = (rings.parts.iter())
            .flat_map(|part| part.cursors.keys().copied())
            .collect();
        let chosen = |nc: &usize| {
            let one = which.nc.is_none_or(|one| usize::try_from(one) == Ok(*nc));
            one && config.wants_nc(*nc)
        };
        Self {
            rings,
            config,
            which,
            ncs: all.into_iter().filter(chosen).rev().collect(),
            cursors: rings
                .parts
                .iter()
                .map(|part| part.cursors.clone())
                .collect(),
            part: 0,
            until: None,
            given: 0,
            stored: 0,
            impossible: None,
            memo,
        }
    }

    /// The next events, `most` at most, all of the NeuronCore in the answer; `None` when there are no more. What is in
    /// `chunk` is replaced.
    pub fn next_chunk(&mut self, most: usize, chunk: &mut Vec<Record>) -> Option<u32> {
        chunk.clear();
        while let Some(&nc) = self.ncs.last() {
            let left = self.which.max_per_nc - self.given;
            let room = usize::try_from(left).unwrap_or(usize::MAX).min(most);
            let progress = if left == 0 || self.part == self.rings.parts.len() {
                None
            } else {
                Some(self.read(nc, room, chunk))
            };
            match progress {
                Some(Progress::Done) => {
                    self.part += 1;
                    self.until = None;
                }
                Some(Progress::More) => {}
                None => {
                    self.ncs.pop();
                    (self.part, self.until, self.given) = (0, None, 0);
                }
            }
            if !chunk.is_empty() {
                return u32::try_from(nc).ok();
            }
        }
        None
    }

    /// Reads the current part of `nc` on.
    fn read(&mut self, nc: usize, room: usize, chunk: &mut Vec<Record>) -> Progress {
        let reader = self.rings.parts[self.part].reader(nc);
        let (Some(reader), Some(cursor)) = (reader, self.cursors[self.part].get_mut(&nc)) else {
            return Progress::Done;
        };
        let until = match self.until {
            Some(until) => Ok(until),
            None => reader.begin(cursor),
        };
        let config = self.config;
        let read = until.and_then(|until| {
            self.until = Some(until);
            reader.read(cursor, until, room, &mut |record| {
                // In shared rings there is what others asked for.
                if config.wants_type(record.trace_type()) {
                    chunk.push(*record);
                }
            })
        });
        self.given += chunk.len() as u64;
        self.stored += chunk.len() as u64;
        match read {
            Ok(progress) => progress,
            Err(impossible) => {
                self.impossible = Some(impossible);
                Progress::Done
            }
        }
    }

    /// The cursors behind what was read; says in the log what was lost on the way.
    pub(super) fn end(self) -> Result<Consumed, Code> {
        if let Some(impossible) = self.impossible {
            log::write(
                log::ERROR,
                &format!("the memory of the system trace was overwritten: {impossible}"),
            );
            return Err(Code::Failure);
        }
        let lost =
            |cursors: &BTreeMap<usize, Cursor>| cursors.values().map(Cursor::lost).sum::<u64>();
        let before: u64 = self
            .rings
            .parts
            .iter()
            .map(|part| lost(&part.cursors))
            .sum();
        let dropped = self.cursors.iter().map(lost).sum::<u64>() - before;
        if dropped > 0 {
            let (stored, total) = (self.stored, self.stored + dropped);
            log::write(
                log::WARN,
                &format!(
                    "Warning: {dropped} trace events were dropped during capture (stored {stored} out of {total} total \
                     events). Consider increasing buffer size, reducing trace duration, or filtering events."
                ),
            );
        }
        Ok(self.cursors)
    }
}
