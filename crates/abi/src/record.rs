//! The 112-byte event record, as fourteen little-endian 64-bit words.
//!
//! ```text
//!  word  byte  63                            32 31                             0
//!    0   0x00  producer_id (written by reader) | trace_type
//!    1   0x08  thread_id
//!    2   0x10  id            = seq | nc_idx << 50
//!    3   0x18  nc_local_id   = seq
//!    4   0x20  tracking_id
//!    5   0x28  timestamp_ns  (CLOCK_REALTIME)
//!    6   0x30  data[0]                                  40-byte union
//!   ...
//!   10   0x50  data[4]
//!   11   0x58  nc_idx                          | phase
//!   12   0x60  nrta_seq_id
//!   13   0x68  zero                                 | has_nrta_seq_id (bit 0)
//! ```
//!
//! The offsets are those of Neuron's record; the half word at 0x04 is padding there. A producer leaves it zero and
//! the daemon fills in its own number for the producer when it reads the record, so identity never comes out of
//! memory that a producer can write.

use crate::{SEQ_BITS, SEQ_MAX};

/// Bytes of a record.
pub const RECORD_BYTES: usize = 112;
/// Words of a record.
pub const RECORD_WORDS: usize = RECORD_BYTES / 8;
/// Words of the payload union.
pub const DATA_WORDS: usize = 5;
/// First word of the payload union.
pub const DATA_WORD: usize = 6;

/// Phase of an event whose span begins.
pub const PHASE_START: u32 = 0;
/// Phase of an event whose span ends.
pub const PHASE_STOP: u32 = 1;
/// Phase of an event without duration.
pub const PHASE_INSTANT: u32 = 2;

/// An event as fourteen words; any bit pattern is a value, so records of untrusted origin need no validation to exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// The words in memory order.
    pub words: [u64; RECORD_WORDS],
}

/// What an emitter knows of an event before the ring gives it a sequence number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Draft {
    /// Event type, `0..46`.
    pub trace_type: u32,
    /// Phase: [`PHASE_START`], [`PHASE_STOP`] or [`PHASE_INSTANT`].
    pub phase: u32,
    /// NeuronCore index as the process sees it, `0..256`.
    pub nc_idx: u32,
    /// Kernel thread id of the emitter.
    pub thread_id: u64,
    /// The caller's tracking id, or 0 for "make one from the sequence number".
    pub tracking_id: u64,
    /// Nanoseconds of `CLOCK_REALTIME`.
    pub timestamp_ns: u64,
    /// Payload union.
    pub data: [u64; DATA_WORDS],
    /// Async sequence id, if the event has one.
    pub nrta_seq_id: Option<u64>,
}

impl Draft {
    /// The finished record of this event as number `seq` of its ring (1 for the first), and its tracking id.
    ///
    /// `seq` must be at most [`SEQ_MAX`]; the ring drops an event whose number is larger.
    #[inline]
    #[must_use]
    pub fn finish(&self, seq: u64) -> Record {
        let id = event_id(self.nc_idx, seq);
        let [d0, d1, d2, d3, d4] = self.data;
        Record {
            words: [
                u64::from(self.trace_type),
                self.thread_id,
                id,
                seq,
                if self.tracking_id == 0 {
                    id
                } else {
                    self.tracking_id
                },
                self.timestamp_ns,
                d0,
                d1,
                d2,
                d3,
                d4,
                u64::from(self.phase) | u64::from(self.nc_idx) << 32,
                self.nrta_seq_id.unwrap_or(0),
                u64::from(self.nrta_seq_id.is_some()),
            ],
        }
    }
}

/// The id of event `seq` of NeuronCore `nc_idx`: unique in its process.
#[inline]
#[must_use]
pub const fn event_id(nc_idx: u32, seq: u64) -> u64 {
    (seq & SEQ_MAX) | (nc_idx as u64) << SEQ_BITS
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "each accessor takes one half of a word on purpose"
)]
impl Record {
    /// Event type; values above 45 are unknown to this version.
    #[must_use]
    pub const fn trace_type(&self) -> u32 {
        self.words[0] as u32
    }

    /// The daemon's number for the producer; 0 in a record that no daemon has read.
    #[must_use]
    pub const fn producer_id(&self) -> u32 {
        (self.words[0] >> 32) as u32
    }

    /// Sets the producer number (the reader's privilege).
    pub const fn set_producer_id(&mut self, id: u32) {
        self.words[0] = self.words[0] & 0xFFFF_FFFF | (id as u64) << 32;
    }

    /// Kernel thread id of the emitter.
    #[must_use]
    pub const fn thread_id(&self) -> u64 {
        self.words[1]
    }

    /// `seq | nc_idx << 50`.
    #[must_use]
    pub const fn id(&self) -> u64 {
        self.words[2]
    }

    /// The NC's sequence number of this event, 1 for its first.
    #[must_use]
    pub const fn seq(&self) -> u64 {
        self.words[3]
    }

    /// Ties a stop to its start.
    #[must_use]
    pub const fn tracking_id(&self) -> u64 {
        self.words[4]
    }

    /// Nanoseconds of `CLOCK_REALTIME`.
    #[must_use]
    pub const fn timestamp_ns(&self) -> u64 {
        self.words[5]
    }

    /// The payload union, five words.
    #[must_use]
    pub const fn data(&self) -> [u64; DATA_WORDS] {
        let w = &self.words;
        [w[6], w[7], w[8], w[9], w[10]]
    }

    /// Phase; values above 2 are unknown.
    #[must_use]
    pub const fn phase(&self) -> u32 {
        self.words[11] as u32
    }

    /// NeuronCore index as the process sees it.
    #[must_use]
    pub const fn nc_idx(&self) -> u32 {
        (self.words[11] >> 32) as u32
    }

    /// Async sequence id, if set.
    #[must_use]
    pub const fn nrta_seq_id(&self) -> Option<u64> {
        if self.words[13] & 0xFF == 0 {
            None
        } else {
            Some(self.words[12])
        }
    }

    /// The record's 112 bytes, little-endian.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; RECORD_BYTES] {
        let mut out = [0; RECORD_BYTES];
        for (chunk, word) in out.chunks_exact_mut(8).zip(self.words) {
            chunk.copy_from_slice(&word.to_le_bytes());
        }
        out
    }

    /// Reads a record from its 112 bytes.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; RECORD_BYTES]) -> Self {
        let mut words = [0; RECORD_WORDS];
        for (word, chunk) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
            *word = u64::from_le_bytes(*chunk);
        }
        Self { words }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every field at the byte offset of Neuron's record (neuron facts, section 1).
    #[test]
    fn fields_sit_at_neurons_offsets() {
        let draft = Draft {
            trace_type: 7,
            phase: PHASE_STOP,
            nc_idx: 200,
            thread_id: 0x1111,
            tracking_id: 0x2222,
            timestamp_ns: 0x3333,
            data: [0xA0, 0xA1, 0xA2, 0xA3, 0xA4],
            nrta_seq_id: Some(0x4444),
        };
        let mut record = draft.finish(5);
        record.set_producer_id(9);
        let bytes = record.to_bytes();
        let u32_at = |o: usize| u32::from_le_bytes(bytes[o..o + 4].try_into().unwrap());
        let u64_at = |o: usize| u64::from_le_bytes(bytes[o..o + 8].try_into().unwrap());
        assert_eq!((u32_at(0x00), u32_at(0x04)), (7, 9));
        assert_eq!(u64_at(0x08), 0x1111);
        assert_eq!(u64_at(0x10), 5 | 200 << 50);
        assert_eq!(u64_at(0x18), 5);
        assert_eq!(u64_at(0x20), 0x2222);
        assert_eq!(u64_at(0x28), 0x3333);
        assert_eq!((u64_at(0x30), u64_at(0x50)), (0xA0, 0xA4));
        assert_eq!((u32_at(0x58), u32_at(0x5c)), (1, 200));
        assert_eq!((u64_at(0x60), bytes[0x68]), (0x4444, 1));
        assert_eq!(bytes[0x69..], [0; 7]);
        assert_eq!(Record::from_bytes(&bytes), record);
    }

    #[test]
    fn a_tracking_id_of_zero_becomes_the_events_own_id() {
        let draft = Draft {
            nc_idx: 3,
            ..Draft::default()
        };
        assert_eq!(draft.finish(1).tracking_id(), 1 | 3 << 50);
        assert_ne!(
            draft.finish(1).tracking_id(),
            0,
            "the first event's id is never 0"
        );
        assert_eq!(
            Draft {
                tracking_id: 8,
                ..draft
            }
            .finish(1)
            .tracking_id(),
            8
        );
    }

    #[test]
    fn an_absent_async_id_differs_from_zero() {
        assert_eq!(Draft::default().finish(1).nrta_seq_id(), None);
        assert_eq!(
            Draft {
                nrta_seq_id: Some(0),
                ..Draft::default()
            }
            .finish(1)
            .nrta_seq_id(),
            Some(0)
        );
    }
}
