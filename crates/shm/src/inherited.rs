//! Mappings that a forked child must not write.
//!
//! A child has its parent's shared mappings. What an emit reaches them through reads as zero there
//! ([`crate::page::WipedOnFork`]), but a fork in a signal handler may have interrupted an emit that had its pointer
//! already: the child's half of that emit would go on in the parent's ring. So the child puts memory of its own in place
//! of each mapping, at the same address, before `fork` returns in it.
//!
//! ```text
//! note                                        another thread, or a child's copy of the memory
//!   start: null → TAKEN     (Acquire) ◄────      start = null          (Release) ── SYNC(note-free): unmapped after it
//!   bytes = …               (Relaxed)
//!   start = address         (Release) ─────►     start                 (Acquire) ── SYNC(note)
//!   FIRST = note            (Release) ─────►     FIRST                 (Acquire) ── SYNC(notes)
//! ```

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use rustix::mm::{MapFlags, ProtFlags};

/// A mapping that is noted. Notes are never freed, only used again: a child walks the list without a lock, whatever
/// its parent's threads were doing.
#[derive(Debug)]
struct Note {
    /// Null: free. [`TAKEN`]: being written.
    start: AtomicPtr<c_void>,
    bytes: AtomicUsize,
    next: Option<&'static Note>,
}

/// Address of no mapping.
const TAKEN: *mut c_void = ptr::without_provenance_mut(1);

static FIRST: AtomicPtr<Note> = AtomicPtr::new(ptr::null_mut());

/// Keeps a mapping noted; to be dropped before the mapping is.
#[derive(Debug)]
pub(crate) struct Noted(&'static Note);

impl Noted {
    /// Notes `bytes` at `start`.
    ///
    /// # Safety
    /// They are a whole mapping of atomic words, readable and writable, which outlives the result.
    pub(crate) unsafe fn new(start: *mut c_void, bytes: usize) -> Self {
        let note = notes().find(|note| {
            let (free, taken) = (ptr::null_mut(), TAKEN);
            // SYNC(note-free): the number of bytes is written after the one before was done with.
            note.start
                .compare_exchange(free, taken, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
        });
        let note = note.unwrap_or_else(another);
        note.bytes.store(bytes, Ordering::Relaxed);
        // SYNC(note): with its number of bytes.
        note.start.store(start, Ordering::Release);
        Self(note)
    }
}

impl Drop for Noted {
    fn drop(&mut self) {
        // SYNC(note-free): whoever takes the note next comes after this.
        self.0.start.store(ptr::null_mut(), Ordering::Release);
    }
}

/// Every note, free ones too.
fn notes() -> impl Iterator<Item = &'static Note> {
    // SYNC(notes): a note is seen as it was written.
    // SAFETY: null, or a leaked box from `another`, which nobody writes but through its atomics once it is published.
    let first = unsafe { FIRST.load(Ordering::Acquire).as_ref() };
    std::iter::successors(first, |note| note.next)
}

/// One more note, taken.
fn another() -> &'static Note {
    // SYNC(notes).
    let mut first = FIRST.load(Ordering::Acquire);
    let note = Box::leak(Box::new(Note {
        start: AtomicPtr::new(TAKEN),
        bytes: AtomicUsize::new(0),
        next: None,
    }));
    let note: *mut Note = note;
    loop {
        // SAFETY: null, or a leaked box from an earlier call of this, published after it was written.
        let next = unsafe { first.as_ref() };
        // SAFETY: leaked above, and not published yet: nobody else has it.
        unsafe { (*note).next = next };
        // SYNC(notes): Release, the note with its successor is written; Acquire, for the successor.
        match FIRST.compare_exchange(first, note, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: leaked, and from here on only shared.
            Ok(_) => return unsafe { &*note },
            Err(newer) => first = newer,
        }
    }
}

/// In a forked child: puts zeros of its own in the place of everything that is noted. A system call for each; neither
/// locks nor allocates. Where there is no memory for that, the mapping stays.
pub fn replace_all() {
    for note in notes() {
        // SYNC(note).
        let start = note.start.load(Ordering::Acquire);
        if start.is_null() || start == TAKEN {
            continue;
        }
        // SAFETY: `Noted::new` was promised that this is a whole mapping of atomic words, which is there for as long as it
        // is noted. Zeros are valid for them, whoever may be reading or writing them.
        let _replaced = unsafe {
            rustix::mm::mmap_anonymous(
                start,
                note.bytes.load(Ordering::Relaxed),
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE | MapFlags::FIXED | MapFlags::NORESERVE,
            )
        };
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;
    use crate::child::in_child;
    use crate::{WriteMapping, memfd};

    #[test]
    fn a_child_writes_memory_of_its_own() {
        let map = || {
            let fd = memfd::create("inherited", 8192).unwrap();
            WriteMapping::map(&fd, 8192).unwrap()
        };
        let gone = map().not_for_children();
        drop(gone);
        let (mine, second, shared) = (map().not_for_children(), map().not_for_children(), map());
        for mapping in [&mine, &second, &shared] {
            mapping.words()[1023].store(1, Ordering::Relaxed);
        }
        assert!(in_child(|| {
            replace_all();
            let zero = |word: &AtomicU64| word.load(Ordering::Relaxed) == 0;
            let zeros = mine.words().iter().all(zero) && second.words().iter().all(zero);
            for mapping in [&mine, &second, &shared] {
                mapping.words()[1023].store(2, Ordering::Relaxed);
            }
            zeros
        }));
        let left = [&mine, &second, &shared].map(|m| m.words()[1023].load(Ordering::Relaxed));
        assert_eq!(left, [1, 1, 2], "the last one was not noted");
    }

    #[test]
    fn notes_are_used_again() {
        let fd = memfd::create("inherited", 4096).unwrap();
        for _ in 0..100 {
            drop(WriteMapping::map(&fd, 4096).unwrap().not_for_children());
        }
        assert!(notes().count() < 50, "{}", notes().count());
    }
}
