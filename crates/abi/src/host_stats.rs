//! The host monitor's ticks, for programs that have the producer socket and no gRPC.
//!
//! ```text
//!  process                                     daemon
//!     │ HostStatsAsk ─────────────────────────▶ │   the first packet, in place of a Hello
//!     │ ◀────────────────────── HostStatsHead   │   or Refuse
//!     │ ◀──── packets of bytes, DATA_BYTES each │   the last may be shorter; then the connection closes
//! ```
//!
//! The bytes are the ticks, oldest first, one after the other without regard to packets. A tick is its time stamp (u64,
//! `CLOCK_REALTIME` ns), the asking process's resident memory (i64 bytes, -1 where not known), and for each CPU from
//! number 0 on its busy share in percent (f32, NaN where not known), all little-endian. A process learns nothing of others
//! by this: the busy shares of CPUs are in `/proc/stat` for everybody.

use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use crate::message::{Header, Message};

/// Bytes of a packet of ticks.
pub const DATA_BYTES: usize = 32 << 10;

/// Bytes of a tick in front of the CPUs.
pub const TICK_HEAD_BYTES: usize = 16;

/// CPUs at most.
pub const MAX_CPUS: u32 = 1 << 16;

/// Bytes of a tick on a machine with this many CPUs.
#[must_use]
pub const fn tick_bytes(cpus: u32) -> usize {
    TICK_HEAD_BYTES + cpus as usize * 4
}

/// Process to daemon: the ticks, please.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct HostStatsAsk {
    /// Kind 32.
    pub header: Header,
}

/// Daemon to process: what stays the same, and how much follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct HostStatsHead {
    /// Kind 33.
    pub header: Header,
    /// Highest number of a CPU, plus 1; at most [`MAX_CPUS`].
    pub cpus: u32,
    /// Time between two ticks, ms.
    pub period_ms: u32,
    /// Total memory, bytes; 0 where not known.
    pub mem_capacity: u64,
    /// Ticks that follow.
    pub samples: u64,
    /// Ticks that are kept at most.
    pub max_samples: u64,
    /// 1 if no more are taken.
    pub saturated: u32,
    /// Bytes of `cpu_name` that hold.
    pub name_len: u32,
    /// Name of the CPU, UTF-8.
    pub cpu_name: [u8; 256],
}

impl Message for HostStatsAsk {
    const KIND: u16 = 32;
    const FDS: usize = 0;
}

impl Message for HostStatsHead {
    const KIND: u16 = 33;
    const FDS: usize = 0;
}

impl HostStatsAsk {
    /// The question.
    #[must_use]
    pub fn new() -> Self {
        Self {
            header: Self::header(),
        }
    }
}

impl Default for HostStatsAsk {
    fn default() -> Self {
        Self::new()
    }
}

impl HostStatsHead {
    /// A head with nothing filled in but the CPU's name, cut to 255 bytes at a character boundary.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "at most 255")]
    pub fn new(cpu_name: &str) -> Self {
        let mut head = Self::new_zeroed();
        head.header = Self::header();
        let end = cpu_name.floor_char_boundary(head.cpu_name.len() - 1);
        head.cpu_name[..end].copy_from_slice(&cpu_name.as_bytes()[..end]);
        head.name_len = end as u32;
        head
    }

    /// The CPU's name, if it is UTF-8.
    #[must_use]
    pub fn cpu_name(&self) -> Option<&str> {
        let bytes = self.cpu_name.get(..self.name_len as usize)?;
        core::str::from_utf8(bytes).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{self, BadMessage, Hello};

    #[test]
    fn question_and_answer_read_back_and_are_no_other_message() {
        let ask: HostStatsAsk = message::parse(HostStatsAsk::new().as_bytes()).unwrap();
        assert_eq!(ask, HostStatsAsk::new());
        let head = HostStatsHead::new(&"é".repeat(200));
        let back: HostStatsHead = message::parse(head.as_bytes()).unwrap();
        assert_eq!(back.cpu_name().map(str::len), Some(254));
        assert!(size_of::<HostStatsHead>() <= message::MAX_BYTES);
        assert_eq!(
            message::parse::<Hello>(head.as_bytes()).err(),
            Some(BadMessage::Kind { kind: 33 })
        );
        let mut lying = head;
        lying.name_len = 300;
        assert_eq!(lying.cpu_name(), None);
    }
}
