//! Pages of the program's own image with a special fate: some over which files are mapped, one that fork wipes.
//!
//! All are statics, so that they are there before anything runs and emit reaches them without asking whether they are.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use rustix::mm::{Advice, MapFlags, ProtFlags};

use crate::{ReadWord, ShmError};

/// Words of a [`MappedPage`].
pub const WORDS: usize = 512;

/// The places of a [`MappedPage`]: one that reads zeros for good, and two that files are mapped over in turn.
#[derive(Debug)]
#[cfg_attr(target_arch = "aarch64", repr(C, align(65536)))]
#[cfg_attr(not(target_arch = "aarch64"), repr(C, align(4096)))]
struct Place([ReadWord; WORDS]);

impl Place {
    const fn new() -> Self {
        Self([const { ReadWord::zero() }; WORDS])
    }
}

/// The pages that a [`MappedPage`] turns between. Meant for a `static`.
#[derive(Debug)]
pub struct Places {
    zeros: Place,
    files: [Place; 2],
}

impl Places {
    /// Pages of zeros.
    #[expect(
        clippy::new_without_default,
        reason = "a const constructor for statics"
    )]
    #[must_use]
    pub const fn new() -> Self {
        Self {
            zeros: Place::new(),
            files: [const { Place::new() }; 2],
        }
    }
}

/// A page that reads as zeros until a file takes its place; files can take each other's place at any time.
///
/// A thread that reads the page meanwhile sees words of the old or of the new file, never a hole, and never waits: the next
/// file is mapped, with its page table entry, where nobody looks, and then one store of a pointer has it looked at. (To map
/// it over the old one would be atomic too, but whoever reads the page in that moment takes a fault and sleeps until the
/// kernel has done with the mapping.) So emit may look at the page at any time, without being counted as inside. That costs
/// one more load, of a line that nobody writes.
///
/// There are two places for files. Who took the pointer and was stopped, over a whole replacement and into the middle of the
/// next, may yet find his page being replaced: he sees words of the one or the other, and waits that once.
#[derive(Debug)]
#[repr(align(128))] // a line of its own: it is read by every emit, and its neighbours may be written
pub struct MappedPage {
    /// One of the places.
    current: AtomicPtr<Place>,
    places: &'static Places,
}

impl MappedPage {
    /// A page of zeros. Meant for a `static`.
    #[must_use]
    pub const fn new(places: &'static Places) -> Self {
        Self {
            current: AtomicPtr::new((&raw const places.zeros).cast_mut()),
            places,
        }
    }

    /// The words that are there at the moment.
    #[inline]
    #[must_use]
    pub fn words(&'static self) -> &'static [ReadWord; WORDS] {
        // SYNC(page): pairs with the store in `look_at`, so that the file's words are read after it was mapped.
        let place = self.current.load(Ordering::Acquire);
        // SAFETY: `current` is only ever set to a place of `self.places`, which is static. All of a place is ReadWords, of
        // which any value is valid and which are only loaded, so that a file may take its place meanwhile.
        unsafe { &(*place).0 }
    }

    /// `N` words from word `FROM` on.
    #[inline]
    #[must_use]
    pub fn words_at<const FROM: usize, const N: usize>(&'static self) -> &'static [ReadWord; N] {
        const { assert!(FROM + N <= WORDS, "beyond the page") }
        self.words()[FROM..]
            .first_chunk()
            .expect("asserted when it was compiled")
    }

    /// Where the address of the words stands, for readers in other languages: they load it each time, then the word.
    #[must_use]
    pub const fn place(&'static self) -> *const *const u64 {
        (&raw const self.current).cast()
    }

    /// Puts the first page of `fd` in place, read-only. The caller has checked size and seals, and is the only one to do so.
    ///
    /// # Errors
    /// The file can't be mapped; the page is as it was, for whoever took an earlier pointer too.
    pub fn map(&'static self, fd: impl AsFd) -> Result<(), ShmError> {
        let current: *const Place = self.current.load(Ordering::Relaxed);
        let [first, second] = &self.places.files;
        let next = if std::ptr::eq(current, first) {
            second
        } else {
            first
        };
        put(fd.as_fd(), next).map_err(ShmError::os("map the control page"))?;
        self.look_at(next);
        Ok(())
    }

    /// Puts zeros there again.
    pub fn clear(&'static self) {
        self.look_at(&self.places.zeros);
    }

    fn look_at(&'static self, place: &'static Place) {
        // SYNC(page): after the mapping.
        self.current
            .store(std::ptr::from_ref(place).cast_mut(), Ordering::Release);
    }
}

/// Maps the first page of `fd`, with its page table entry, over what is at `place`.
///
/// A kernel that does so takes away what is there, and only then asks the file: one that can't be mapped would leave a hole, which
/// a late reader falls into, and which the program's next mapping may get. So the file is mapped where nobody is first. What
/// can fail after that is for want of the kernel's own memory, and zeros fill the hole then, unless somebody was faster.
fn put(fd: BorrowedFd<'_>, place: &'static Place) -> rustix::io::Result<()> {
    const BYTES: usize = size_of::<Place>();
    let at = std::ptr::from_ref(place).cast_mut().cast();
    let (nowhere, read) = (std::ptr::null_mut(), ProtFlags::READ);
    // SAFETY: a new mapping, at an address that nothing has.
    let tried = unsafe { rustix::mm::mmap(nowhere, BYTES, read, MapFlags::SHARED, fd, 0) }?;
    // SAFETY: the whole mapping from above, which nobody else knows.
    unsafe { rustix::mm::munmap(tried, BYTES) }?;
    let over = MapFlags::SHARED | MapFlags::FIXED | MapFlags::POPULATE;
    // SAFETY: `at` is the start of an object of a static that is aligned to the largest page size of this architecture and
    // takes whole pages, so MAP_FIXED replaces this object and nothing else. All of it is ReadWords (atomic, any value
    // valid, only ever loaded), so that its contents may change and become read-only at any time, even under a reader, and
    // even if two threads came here at once.
    let mapped = unsafe { rustix::mm::mmap(at, BYTES, read, over, fd, 0) };
    mapped.map(drop).inspect_err(|_| {
        let zeros = MapFlags::PRIVATE | MapFlags::FIXED_NOREPLACE;
        // SAFETY: replaces nothing: what is mapped at `at` stays. Else zeros are what the object held at first.
        let _filled = unsafe { rustix::mm::mmap_anonymous(at, BYTES, read, zeros) };
    })
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
    use nrt_trace_abi::layout::control::PRODUCER_ID;

    use super::*;
    use crate::child::in_child;
    use crate::control::ControlPage;

    #[test]
    fn a_file_takes_its_place_and_goes_again() {
        static PLACES: Places = Places::new();
        static PAGE: MappedPage = MappedPage::new(&PLACES);
        const GATE: usize = nrt_trace_abi::layout::control::GATES + 255;
        assert!(PAGE.words().iter().all(|word| word.get() == 0));
        for round in 1..6 {
            let (control, fd) = ControlPage::create(round).unwrap();
            PAGE.map(&fd).unwrap();
            let words = PAGE.words();
            assert_eq!(words[PRODUCER_ID].get(), u64::from(round));
            let mut gates = [0; 256];
            gates[255] = 5;
            control.set_gates(&gates);
            assert_eq!(words[GATE].get(), 5);
            assert_eq!(PAGE.words_at::<GATE, 1>()[0].get(), 5);
            let (_later, later_fd) = ControlPage::create(round + 10).unwrap();
            PAGE.map(&later_fd).unwrap();
            assert_eq!(words[GATE].get(), 5, "whoever looked at it still does");
            if round % 2 == 0 {
                PAGE.clear();
                assert!(PAGE.words().iter().all(|word| word.get() == 0));
            }
        }
    }

    /// Reads of the page while it is replaced all the time: old or new words, never a fault, never anything else.
    #[test]
    fn a_page_can_be_read_while_it_is_replaced() {
        static PLACES: Places = Places::new();
        static PAGE: MappedPage = MappedPage::new(&PLACES);
        let pages: Vec<_> = (1..3).map(|id| ControlPage::create(id).unwrap()).collect();
        PAGE.map(&pages[0].1).unwrap();
        std::thread::scope(|scope| {
            let swapper = scope.spawn(|| {
                for n in 0..2000 {
                    PAGE.map(&pages[n % 2].1).unwrap();
                }
            });
            while !swapper.is_finished() {
                let id = PAGE.words()[PRODUCER_ID].get();
                assert!((1..3).contains(&id), "{id}");
            }
        });
    }

    /// Files that the kernel refuses after it has made room for them: whoever took a pointer before still reads his page.
    #[test]
    fn what_cannot_be_mapped_leaves_both_places_as_they_were() {
        static PLACES: Places = Places::new();
        static PAGE: MappedPage = MappedPage::new(&PLACES);
        let pages: Vec<_> = (1..3).map(|id| ControlPage::create(id).unwrap()).collect();
        let words: Vec<_> = (pages.iter())
            .map(|(_, fd)| {
                PAGE.map(fd).unwrap();
                PAGE.words()
            })
            .collect();
        let refused = std::fs::File::open("/sys/kernel/uevent_seqnum").unwrap();
        assert!(in_child(move || {
            let failed = PAGE.map(&refused).is_err();
            let ids = [&words[0], &words[1]].map(|words| words[PRODUCER_ID].get());
            failed && ids == [1, 2] && std::ptr::eq(PAGE.words(), words[1])
        }));
    }

    /// Replacing the page is not noticed: the reader takes no fault, so that there is nothing for it to wait for.
    #[test]
    fn who_reads_a_page_takes_no_fault_when_it_is_replaced() {
        static PLACES: Places = Places::new();
        static PAGE: MappedPage = MappedPage::new(&PLACES);
        let pages: Vec<_> = (1..3).map(|id| ControlPage::create(id).unwrap()).collect();
        // The first of each place touches the page tables; what is measured is the rest.
        for (_page, fd) in &pages {
            PAGE.map(fd).unwrap();
        }
        let mut faults = 0;
        for n in 0..100 {
            PAGE.map(&pages[n % 2].1).unwrap();
            let before = minor_faults();
            let id = PAGE.words()[PRODUCER_ID].get();
            faults += minor_faults() - before;
            assert_eq!(id, n as u64 % 2 + 1);
        }
        assert!(faults < 10, "{faults} faults in 100 readings");
    }

    /// Page faults of this thread that the kernel settled without a disk.
    fn minor_faults() -> u64 {
        let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
        let after_name = stat.rsplit_once(") ").unwrap().1;
        after_name.split(' ').nth(7).unwrap().parse().unwrap()
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
