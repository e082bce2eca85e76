//! Interned names: a table of the process's own that is always there, and the daemon's, when there is one.
//!
//! The process's table is the same bounded, append-only format in zeroed memory of the program's image (untouched pages
//! cost nothing). It keeps what was interned before the daemon came, and gives it again to each later daemon: a program
//! that interns its model names at start and is captured an hour later has its names. Interning takes no lock and
//! allocates nothing.

use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use nrt_trace_abi::layout::{StringTableLayout, strings};
use nrt_trace_model::strings::get_id;
use nrt_trace_ring::strings::{StringCursor, append};
use nrt_trace_shm::threads;
use nrt_trace_shm::{ShmError, WriteMapping, memfd};

use crate::process;

const LOCAL_BYTES: u64 = strings::DEFAULT_BYTES;
const LOCAL_WORDS: usize = (LOCAL_BYTES / 8) as usize;

/// The process's own table.
static LOCAL: [AtomicU64; LOCAL_WORDS] = [const { AtomicU64::new(0) }; LOCAL_WORDS];

/// Ids that were seen: open addressing, at twice the number of entries.
static KNOWN: [AtomicU64; 2 * 8192] = [const { AtomicU64::new(0) }; 2 * 8192];

/// A bit for each place of `KNOWN`: the name is in the tables, or found no room.
static TOLD: [AtomicU64; KNOWN.len() / 64] = [const { AtomicU64::new(0) }; KNOWN.len() / 64];

/// Looks at so many places before the set counts as full.
const PROBES: usize = 64;

/// The string table that the daemon reads.
#[derive(Debug)]
pub(crate) struct SharedNames {
    mapping: WriteMapping,
    layout: StringTableLayout,
}

impl SharedNames {
    /// Checks and maps a received table.
    pub(crate) fn map(fd: BorrowedFd<'_>, bytes: u64) -> Result<Self, ShmError> {
        let layout = StringTableLayout::new(bytes).ok_or(ShmError::BadSize { bytes })?;
        memfd::check(fd, bytes)?;
        Ok(Self {
            mapping: WriteMapping::map(fd, bytes)?.not_for_children(),
            layout,
        })
    }

    fn append(&self, id: u64, bytes: &[u8], nc: u32) {
        // A full table has counted it; the id stays unresolved.
        let _full = append(self.mapping.words(), &self.layout, id, bytes, nc);
    }
}

/// The id of `bytes`, with the name kept for whoever reads the trace. `nc` is the NeuronCore it was interned for, which
/// is only noted. A name that finds no room still has its id.
pub fn intern_bytes(nc: u32, bytes: &[u8]) -> u64 {
    let id = get_id(bytes);
    if let Some(place) = place_of(id)
        && !is_told(place)
    {
        let _full = append(&LOCAL, &local_layout(), id, bytes, nc);
        // SYNC(names): with the fence in `share_all`. Either that one finds the entry above in the process's table, or
        // we find the daemon's table below; perhaps both, and then the name is told twice, which does no harm.
        fence(Ordering::SeqCst);
        if let Some(inside) = threads::enter(process::instance())
            && let Some(shared) = process::names().get(&inside)
        {
            shared.append(id, bytes, nc);
        }
        // SYNC(told): whoever finds the bit emits events after the entries were published.
        TOLD[place / 64].fetch_or(1 << (place % 64), Ordering::Release);
    }
    id
}

/// Whether the name at this place of `KNOWN` is in the tables. A thread that comes while another one is about to enter it
/// enters it too: it can't wait for one that may have been stopped, and its next event must not be there before the
/// name. There are as many entries of a name as threads that met over it, and readers take one of them.
fn is_told(place: usize) -> bool {
    // SYNC(told)
    TOLD[place / 64].load(Ordering::Acquire) >> (place % 64) & 1 == 1
}

/// The place of an id in `KNOWN`, with the id in it; `None` if there is none left.
fn place_of(id: u64) -> Option<usize> {
    let start = home(id);
    for probe in 0..PROBES {
        let place = (start + probe) % KNOWN.len();
        let word = &KNOWN[place];
        // Relaxed: the id alone says nothing of the tables.
        let there = match word.load(Ordering::Relaxed) {
            0 => (word.compare_exchange(0, id, Ordering::Relaxed, Ordering::Relaxed))
                .map_or_else(|taken| taken, |_| id),
            known => known,
        };
        if there == id {
            return Some(place);
        }
    }
    // More names than the table has entries for: count it as any other that finds no room.
    LOCAL[strings::FULL].fetch_add(1, Ordering::Relaxed);
    None
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "taken modulo a small length"
)]
const fn home(id: u64) -> usize {
    id as usize % KNOWN.len()
}

/// The names of this process, in the order in which they were interned.
#[derive(Debug)]
pub struct Names(StringCursor);

impl Names {
    /// From the first one on.
    #[must_use]
    pub fn new() -> Self {
        Self(StringCursor::new(local_layout()))
    }

    /// Calls `sink` for each name that came since the last time, with its id. A name is there before any event that was
    /// emitted after it was interned.
    pub fn more(&mut self, mut sink: impl FnMut(u64, &str)) {
        self.0.poll(&LOCAL[..], |id, bytes, _| {
            if let Ok(text) = std::str::from_utf8(bytes) {
                sink(id, text);
            }
        });
    }
}

impl Default for Names {
    fn default() -> Self {
        Self::new()
    }
}

fn local_layout() -> StringTableLayout {
    StringTableLayout::new(LOCAL_BYTES).expect("1 MiB is whole pages")
}

/// Tells the daemon every name of this process, after its table was published.
pub(crate) fn share_all() {
    fence(Ordering::SeqCst); // SYNC(names)
    let Some(inside) = threads::enter(process::instance()) else {
        return;
    };
    let Some(shared) = process::names().get(&inside) else {
        return;
    };
    StringCursor::new(local_layout()).poll(&LOCAL[..], |id, bytes, nc| {
        shared.append(id, bytes, u32::try_from(nc).unwrap_or(0));
    });
}
