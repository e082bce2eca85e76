//! Pages of the program's own image with a special fate: one over which a file is mapped, one that fork wipes.
//!
//! Both are statics, so their address is fixed before anything runs and emit reaches them without a pointer.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicPtr, AtomicU64};

use rustix::mm::{Advice, MapFlags, ProtFlags};

use crate::{ReadWord, ShmError};

/// Words of a [`MappedPage`].
pub const WORDS: usize = 512;

const BYTES: usize = WORDS * size_of::<u64>();

/// A page that reads as zeros until a file is mapped over it, at the same address.
///
/// Swapping what is mapped is one system call that the kernel makes atomic towards page faults: a thread that reads the
/// page meanwhile sees words of the old or of the new file, never a hole. So emit may look at the page at any time,
/// without being counted as inside, and the header's inline gate can read it directly.
#[derive(Debug)]
#[cfg_attr(target_arch = "aarch64", repr(C, align(65536)))]
#[cfg_attr(not(target_arch = "aarch64"), repr(C, align(4096)))]
pub struct MappedPage {
    words: [ReadWord; WORDS],
}

impl MappedPage {
    /// A page of zeros. Meant for a `static`.
    #[expect(
        clippy::new_without_default,
        reason = "a const constructor for statics"
    )]
    #[must_use]
    pub const fn new() -> Self {
        Self {
            words: [const { ReadWord::zero() }; WORDS],
        }
    }

    /// The words that are mapped there at the moment.
    #[inline]
    #[must_use]
    pub fn words(&'static self) -> &'static [ReadWord; WORDS] {
        &self.words
    }

    /// `N` words from word `FROM` on.
    #[inline]
    #[must_use]
    pub fn words_at<const FROM: usize, const N: usize>(&'static self) -> &'static [ReadWord; N] {
        const { assert!(FROM + N <= WORDS, "beyond the page") }
        self.words[FROM..]
            .first_chunk()
            .expect("asserted when it was compiled")
    }

    /// Maps the first page of `fd` over this page, read-only. The caller has checked size and seals.
    ///
    /// # Errors
    /// The file can't be mapped; the page is as it was.
    pub fn map(&'static self, fd: impl AsFd) -> Result<(), ShmError> {
        self.replace(Some(fd.as_fd()))
    }

    /// Puts zeros there again.
    ///
    /// # Errors
    /// No memory for a mapping; the page is as it was.
    pub fn clear(&'static self) -> Result<(), ShmError> {
        self.replace(None)
    }

    fn replace(&'static self, fd: Option<BorrowedFd<'_>>) -> Result<(), ShmError> {
        let at = (&raw const self.words).cast_mut().cast();
        let result = match fd {
            // SAFETY: `at` is the start of a static that is aligned to the largest page size of this architecture and
            // takes whole pages, so MAP_FIXED replaces this object and nothing else. All of it is ReadWords (atomic,
            // any value valid, only ever loaded), so that its contents may change and become read-only at any time.
            Some(fd) => unsafe {
                rustix::mm::mmap(
                    at,
                    BYTES,
                    ProtFlags::READ,
                    MapFlags::SHARED | MapFlags::FIXED,
                    fd,
                    0,
                )
            },
            // SAFETY: as above, with zero-filled memory.
            None => unsafe {
                rustix::mm::mmap_anonymous(
                    at,
                    BYTES,
                    ProtFlags::READ,
                    MapFlags::PRIVATE | MapFlags::FIXED,
                )
            },
        };
        result
            .map(|_| ())
            .map_err(ShmError::os("map the control page"))
    }
}

/// A type of which all-zero bytes are a valid value that can appear at any moment.
///
/// # Safety
/// Zero bytes are a valid value of the type, it owns nothing that losing its value would free twice or use after free,
/// and every access to it is atomic.
pub unsafe trait ZeroAnyTime {}

// SAFETY: an atomic integer that owns nothing.
unsafe impl ZeroAnyTime for AtomicU64 {}
// SAFETY: null is a valid pointer value; an atomic pointer owns nothing.
unsafe impl<T> ZeroAnyTime for AtomicPtr<T> {}

// SAFETY: made of parts for which it holds.
unsafe impl<A: ZeroAnyTime, B: ZeroAnyTime> ZeroAnyTime for (A, B) {}

/// A value in pages of its own that read as zeros in a forked child, from its first instruction on.
///
/// `pthread_atfork` handlers run late, and not at all for `clone`, `_Fork` or the raw system call; the kernel's
/// `MADV_WIPEONFORK` covers every kind.
#[derive(Debug)]
#[cfg_attr(target_arch = "aarch64", repr(C, align(65536)))]
#[cfg_attr(not(target_arch = "aarch64"), repr(C, align(4096)))]
pub struct WipedOnFork<T>(T);

impl<T: ZeroAnyTime> WipedOnFork<T> {
    /// Meant for a `static`.
    pub const fn new(value: T) -> Self {
        Self(value)
    }

    /// Asks the kernel to wipe it in children. Until then it is an ordinary static.
    ///
    /// # Errors
    /// The kernel refuses (before 4.14): the caller must do without, or rely on a fork handler.
    pub fn protect(&'static self) -> Result<(), ShmError> {
        // SAFETY: the range is this static alone (aligned to a page, its size a multiple of the alignment), and
        // `ZeroAnyTime` says that a child may find zeros there.
        unsafe {
            rustix::mm::madvise(
                (&raw const *self).cast_mut().cast(),
                size_of::<Self>(),
                Advice::LinuxWipeOnFork,
            )
        }
        .map_err(ShmError::os("protect a page from fork"))
    }

    /// The value.
    #[inline]
    pub const fn get(&self) -> &T {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;
    use crate::child::in_child;
    use crate::control::ControlPage;

    #[test]
    fn a_file_appears_at_the_pages_address_and_goes_again() {
        static PAGE: MappedPage = MappedPage::new();
        assert!(PAGE.words().iter().all(|word| word.get() == 0));
        let (control, fd) = ControlPage::create(7).unwrap();
        PAGE.map(&fd).unwrap();
        assert_eq!(
            PAGE.words()[nrt_trace_abi::layout::control::PRODUCER_ID].get(),
            7
        );
        let mut gates = [0; 256];
        gates[255] = 5;
        control.set_gates(&gates);
        assert_eq!(PAGE.words()[511].get(), 5);
        PAGE.clear().unwrap();
        assert!(PAGE.words().iter().all(|word| word.get() == 0));
    }

    /// Reads of the page while it is swapped all the time: old or new words, never a fault, never anything else.
    #[test]
    fn a_page_can_be_read_while_it_is_swapped() {
        static PAGE: MappedPage = MappedPage::new();
        let pages: Vec<_> = (1..3).map(|id| ControlPage::create(id).unwrap()).collect();
        PAGE.map(&pages[0].1).unwrap();
        std::thread::scope(|scope| {
            let swapper = scope.spawn(|| {
                for n in 0..2000 {
                    PAGE.map(&pages[n % 2].1).unwrap();
                }
            });
            while !swapper.is_finished() {
                let id = PAGE.words()[nrt_trace_abi::layout::control::PRODUCER_ID].get();
                assert!((1..3).contains(&id), "{id}");
            }
        });
    }

    #[test]
    fn a_forked_child_finds_zeros() {
        static WORD: WipedOnFork<AtomicU64> = WipedOnFork::new(AtomicU64::new(0));
        WORD.protect().unwrap();
        WORD.get().store(42, Ordering::Relaxed);
        let zero = in_child(|| WORD.get().load(Ordering::Relaxed) == 0);
        assert!(zero, "the child saw the parent's value");
        assert_eq!(WORD.get().load(Ordering::Relaxed), 42);
    }
}
