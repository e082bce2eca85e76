//! The daemon's side of a control page.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use nrt_trace_abi::clock::ClockParams;
use nrt_trace_abi::layout::control;
use nrt_trace_abi::{ABI_VERSION, MAX_NCS};

use crate::clock::realtime_ns;
use crate::{ShmError, WriteMapping, memfd};

/// How far the ring of `nc` has memory, bytes, as the words of a control page say.
#[must_use]
pub fn ahead(words: &[crate::ReadWord], nc: usize) -> u64 {
    let word = words.get(control::AHEAD + nc / 2).filter(|_| nc < MAX_NCS);
    let units = word.map_or(0, |word| word.get() >> (nc % 2 * 32) & u64::from(u32::MAX));
    units * control::AHEAD_UNIT
}

/// Bytes of a control page.
pub const BYTES: u64 = control::WORDS as u64 * 8;

/// A control page that this process writes and nobody else can (I8).
///
/// It belongs to one life of the daemon: once sealed, not even its owner can map it for writing again.
#[derive(Debug)]
pub struct ControlPage {
    mapping: WriteMapping,
}

impl ControlPage {
    /// Makes a page, closed and without a clock, and gives the sealed descriptor to send to the producer.
    ///
    /// # Errors
    /// Out of descriptors, memory or address space.
    pub fn create(producer_id: u32) -> Result<(Self, OwnedFd), ShmError> {
        let fd = memfd::create("nrt-trace-control", BYTES)?;
        let mapping = WriteMapping::map(&fd, BYTES)?;
        memfd::seal_writes(&fd)?;
        let page = Self { mapping };
        page.word(control::MAGIC)
            .store(control::MAGIC_VALUE, Ordering::Relaxed);
        page.word(control::ABI)
            .store(u64::from(ABI_VERSION), Ordering::Relaxed);
        page.word(control::PRODUCER_ID)
            .store(u64::from(producer_id), Ordering::Relaxed);
        // A producer may swap pages between two looks at the selector; a start that no other page shares keeps it
        // from taking half of one page's clock for the other's.
        page.word(control::CLOCK_SELECT)
            .store(control::first_selector(realtime_ns()), Ordering::Relaxed);
        Ok((page, fd))
    }

    /// Sets the gate of every NC, by the process's own index.
    ///
    /// Relaxed: a gate opens only after the producer said that its segment is in place, over the socket.
    pub fn set_gates(&self, gates: &[u64; MAX_NCS]) {
        for (word, gate) in self.mapping.words()[control::GATES..].iter().zip(gates) {
            word.store(*gate, Ordering::Relaxed);
        }
    }

    /// Sets the state word, for people and for `is_capturing`.
    pub fn set_state(&self, capturing: bool, generation: u64) {
        self.word(control::STATE)
            .store(u64::from(capturing) | generation << 1, Ordering::Relaxed);
    }

    /// Says that the ring of `nc` has memory for its first `bytes` bytes, or that its process shall take it itself
    /// (`u64::MAX`). One thread at a time.
    ///
    /// Relaxed: a hint, which orders nothing.
    pub fn set_ahead(&self, nc: usize, bytes: u64) {
        if nc >= MAX_NCS {
            return;
        }
        let units = u32::try_from(bytes / control::AHEAD_UNIT).unwrap_or(u32::MAX);
        let (word, shift) = (self.word(control::AHEAD + nc / 2), nc % 2 * 32);
        let others = word.load(Ordering::Relaxed) & !(u64::from(u32::MAX) << shift);
        word.store(others | u64::from(units) << shift, Ordering::Relaxed);
    }

    /// Sets the clock: a line for the time stamp counter, or `None` for "call `clock_gettime`".
    ///
    /// A latch: the copy that nobody is directed to is filled in, then the selector points to it. A reader that finds
    /// the selector changed after it read a copy looks once more, and then makes do with what it had: no state that
    /// this process can be stopped or killed in makes a reader wait.
    pub fn set_clock(&self, params: Option<ClockParams>) {
        let next = self
            .word(control::CLOCK_SELECT)
            .load(Ordering::Relaxed)
            .wrapping_add(1);
        let Some(params) = params else {
            self.word(control::CLOCK_MODE)
                .store(control::CLOCK_MODE_SYSTEM, Ordering::Relaxed);
            // SYNC(clock): threads that keep a line under the old selector look at the mode again.
            self.word(control::CLOCK_SELECT)
                .store(next, Ordering::Release);
            return;
        };
        let copy = control::CLOCK_COPY[usize::from(next & 1 == 1)];
        // SYNC(clock-reuse): whoever sees a word of this copy's next contents also sees that the selector had left it.
        fence(Ordering::Release);
        for (offset, value) in [params.base_tsc, params.base_ns, params.mult]
            .into_iter()
            .enumerate()
        {
            self.word(copy + offset).store(value, Ordering::Relaxed);
        }
        // SYNC(clock): publishes the copy.
        self.word(control::CLOCK_SELECT)
            .store(next, Ordering::Release);
        // SYNC(clock-mode): last; whoever sees that the counter is to be used also sees a selector with a line.
        self.word(control::CLOCK_MODE)
            .store(control::CLOCK_MODE_TSC, Ordering::Release);
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        &self.mapping.words()[at]
    }
}
