//! A file, or anonymous memory, as a slice of atomic words.

use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::{MmapOptions, MmapRaw};
use nrt_trace_ring::LoadWord;
use rustix::mm::Advice;

use crate::ShmError;
use crate::inherited::Noted;

/// A word of a read-only mapping: it can be loaded and nothing else. (A store would be a page fault.)
#[derive(Debug)]
#[repr(transparent)]
pub struct ReadWord(AtomicU64);

impl ReadWord {
    /// A word that reads 0, for a page that a file will be mapped over.
    pub(crate) const fn zero() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Its value, Relaxed.
    #[inline]
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl LoadWord for ReadWord {
    #[inline]
    fn load(&self, order: Ordering) -> u64 {
        self.0.load(order)
    }
}

/// A shared mapping that can be read and written.
#[derive(Debug)]
pub struct WriteMapping {
    /// Dropped first.
    noted: Option<Noted>,
    raw: MmapRaw,
}

/// A shared mapping that can be read.
#[derive(Debug)]
pub struct ReadMapping(MmapRaw);

/// Zero-filled memory of this process alone, taken page by page as it is touched.
#[derive(Debug)]
pub struct PrivateMapping(MmapRaw);

/// `bytes` as a length that can be mapped: not 0, whole words, within the address space.
fn mappable(bytes: u64) -> Result<usize, ShmError> {
    usize::try_from(bytes)
        .ok()
        .filter(|&len| {
            len > 0 && len.is_multiple_of(size_of::<u64>()) && isize::try_from(len).is_ok()
        })
        .ok_or(ShmError::BadSize { bytes })
}

fn map_error(what: &'static str) -> impl FnOnce(std::io::Error) -> ShmError {
    move |source| ShmError::Os { what, source }
}

impl WriteMapping {
    /// Maps the first `bytes` of `fd`. The caller has checked ([`crate::memfd::check`]) or made the file: a file that
    /// is shorter, or can be cut later, would end this process with SIGBUS.
    ///
    /// # Errors
    /// [`ShmError::BadSize`], sealed against writing, or no address space.
    pub fn map(fd: impl AsFd, bytes: u64) -> Result<Self, ShmError> {
        let len = mappable(bytes)?;
        let raw = MmapOptions::new()
            .len(len)
            .map_raw(&fd.as_fd())
            .map_err(map_error("map a file for writing"))?;
        Ok(Self { noted: None, raw })
    }

    /// Has a child, should this process fork, not write it: see [`crate::inherited`].
    #[must_use]
    pub fn not_for_children(mut self) -> Self {
        let start = self.raw.as_mut_ptr().cast();
        // SAFETY: the mapping is whole, is only used as atomic words, and ends after the note, which is the first field.
        self.noted = Some(unsafe { Noted::new(start, self.raw.len()) });
        self
    }

    /// The mapped words.
    #[inline]
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "atomic words, not bytes")]
    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping is page-aligned, readable and writable, `mappable` made its length whole words within
        // isize, and it stays mapped while `self` is borrowed. Any bit pattern is an AtomicU64, and all accesses of
        // this process and of the others are atomic, so that there is no data race.
        unsafe {
            std::slice::from_raw_parts(self.raw.as_ptr().cast(), self.raw.len() / size_of::<u64>())
        }
    }
}

impl WriteMapping {
    /// Enters the pages that hold `words` into this process's page table, so that nobody takes a fault for them.
    ///
    /// # Errors
    /// The kernel can't (before 5.14), or there is no memory; nothing is wrong with the mapping then.
    pub fn populate(&self, words: Range<usize>) -> Result<(), ShmError> {
        const PAGE: usize = 4096;
        let end = words.end.min(self.words().len()) * size_of::<u64>();
        let start = (words.start * size_of::<u64>()).min(end) / PAGE * PAGE;
        if start == end {
            return Ok(());
        }
        let at = self.raw.as_mut_ptr().wrapping_add(start).cast();
        // SAFETY: the range lies within this mapping, which stays mapped during the call, and begins at a page. Populating
        // changes no contents and no permission: it does what a store to each page would do to the page table.
        unsafe { rustix::mm::madvise(at, end - start, Advice::LinuxPopulateWrite) }
            .map_err(ShmError::os("populate a mapping"))
    }
}

impl ReadMapping {
    /// Maps the first `bytes` of `fd` for reading; see [`WriteMapping::map`].
    ///
    /// # Errors
    /// [`ShmError::BadSize`], or no address space.
    pub fn map(fd: impl AsFd, bytes: u64) -> Result<Self, ShmError> {
        let len = mappable(bytes)?;
        let raw = MmapOptions::new()
            .len(len)
            .map_raw_read_only(&fd.as_fd())
            .map_err(map_error("map a file for reading"))?;
        Ok(Self(raw))
    }

    /// The mapped words.
    #[inline]
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "atomic words, not bytes")]
    pub fn words(&self) -> &[ReadWord] {
        // SAFETY: page-aligned, readable, whole words within isize (`mappable`), mapped while `self` is borrowed.
        // ReadWord is a transparent AtomicU64 that is only ever loaded, which read-only memory allows for this size;
        // whoever writes the words does so atomically.
        unsafe {
            std::slice::from_raw_parts(self.0.as_ptr().cast(), self.0.len() / size_of::<u64>())
        }
    }
}

impl PrivateMapping {
    /// Takes `bytes` of address space.
    ///
    /// # Errors
    /// [`ShmError::BadSize`], or no address space.
    pub fn new(bytes: u64) -> Result<Self, ShmError> {
        let len = mappable(bytes)?;
        let map = MmapOptions::new()
            .len(len)
            .map_anon()
            .map_err(map_error("map memory"))?;
        Ok(Self(map.into()))
    }

    /// The words.
    #[inline]
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "atomic words, not bytes")]
    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: as for WriteMapping: page-aligned, readable and writable, whole words, mapped while borrowed; only
        // this process sees them.
        unsafe {
            std::slice::from_raw_parts(self.0.as_ptr().cast(), self.0.len() / size_of::<u64>())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memfd;

    #[test]
    fn sizes_that_cannot_be_words_are_refused() {
        let fd = memfd::create("test", 4096).unwrap();
        for bytes in [0, 4, 4095, u64::MAX - 7] {
            assert!(
                matches!(WriteMapping::map(&fd, bytes), Err(ShmError::BadSize { .. })),
                "{bytes}"
            );
            assert!(
                matches!(ReadMapping::map(&fd, bytes), Err(ShmError::BadSize { .. })),
                "{bytes}"
            );
        }
    }

    #[test]
    fn what_one_mapping_writes_the_other_reads() {
        let fd = memfd::create("test", 4096).unwrap();
        let (w, r) = (
            WriteMapping::map(&fd, 4096).unwrap(),
            ReadMapping::map(&fd, 4096).unwrap(),
        );
        assert_eq!((w.words().len(), r.words().len()), (512, 512));
        w.words()[511].store(9, Ordering::Release);
        assert_eq!(r.words()[511].load(Ordering::Acquire), 9);
    }
}
