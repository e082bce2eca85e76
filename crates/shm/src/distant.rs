//! Descriptors that a library keeps in somebody else's program.
//!
//! Some programs close descriptors that they did not open: those that become daemons close all from 3 on. What they open next
//! gets the lowest numbers that are free, and a library that went on using its old numbers would read, write and close files of
//! the program's. So the library's have high numbers, which nobody gets by opening, and before one is used or closed it is
//! looked at whether it still is what it was.
//!
//! Between the look and the use there is a moment. Whoever wants to be hit in it has to close our number and to have a file of
//! his own under it within two system calls: with a high number that takes a program that means it (`dup2`), or one with
//! hundreds of files. What the kernel has just made has a low number, for as long as it takes to look at it and to move it.
//!
//! A forked child has its parent's descriptors too, and no use for them: they are noted where it finds them and closes them
//! ([`close_inherited`]).

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd};
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use rustix::io::{Errno, fcntl_dupfd_cloexec};

use crate::ShmError;

/// Where ours begin: the first of these that the program's limit leaves room for. The usual limit is 1,024, and a table of
/// that size costs the kernel 8 KiB.
const FIRST: [i32; 4] = [1024 - 64, 256 - 32, 64 - 16, 16];

/// Device and inode, which no two sockets or files in memory share while they live.
type File = (u64, u64);

/// A descriptor out of the program's way, which may be gone or another's at any time. A socket or a file in memory.
#[derive(Debug)]
pub struct Distant {
    /// There until it is dropped.
    fd: Option<OwnedFd>,
    file: File,
    /// `None`: more are open than anybody has.
    note: Option<&'static Note>,
}

impl Distant {
    /// Takes a descriptor over that was made just now, and moves it out of the way if there is room.
    ///
    /// # Errors
    /// The program has closed it already.
    pub fn new(fd: OwnedFd) -> Result<Self, ShmError> {
        let file = match identity(fd.as_fd()) {
            Ok(file) => file,
            Err(errno) => {
                let _not_ours = fd.into_raw_fd();
                return Err(gone(errno));
            }
        };
        let low = Self {
            fd: Some(fd),
            file,
            note: None,
        };
        let moved = FIRST
            .iter()
            .find_map(|first| fcntl_dupfd_cloexec(low.get().ok()?, *first).ok());
        let mut there = match moved {
            Some(fd) => Self {
                // This one is ours, whatever it leads to: nobody knows its number yet.
                file: identity(fd.as_fd()).unwrap_or(file),
                fd: Some(fd),
                note: None,
            },
            None => low,
        };
        if there.file != file {
            return Err(gone(Errno::BADF));
        }
        there.note = there.get().ok().and_then(|fd| Note::take(fd, file));
        Ok(there)
    }

    /// Whether it still is what it was.
    #[must_use]
    pub fn is_there(&self) -> bool {
        self.get().is_ok()
    }

    /// The descriptor, to be used at once.
    ///
    /// # Errors
    /// The program has closed it; its number may be another file's now.
    pub fn get(&self) -> Result<BorrowedFd<'_>, ShmError> {
        let fd = self.fd.as_ref().ok_or(Errno::BADF).map_err(gone)?.as_fd();
        match identity(fd) {
            Ok(file) if file == self.file => Ok(fd),
            Ok(_) => Err(gone(Errno::BADF)),
            Err(errno) => Err(gone(errno)),
        }
    }
}

impl Drop for Distant {
    fn drop(&mut self) {
        if let Some(note) = self.note.take() {
            note.give(self.fd.as_ref().map_or(Note::TAKEN, AsRawFd::as_raw_fd));
        }
        let is_there = self.is_there();
        let Some(fd) = self.fd.take() else { return };
        if is_there {
            drop(fd);
        } else {
            let _not_ours = fd.into_raw_fd();
        }
    }
}

fn gone(errno: Errno) -> ShmError {
    ShmError::os("use a descriptor that the program has closed")(errno)
}

fn identity(fd: BorrowedFd<'_>) -> rustix::io::Result<File> {
    let stat = rustix::fs::fstat(fd)?;
    Ok((stat.st_dev, stat.st_ino))
}

/// An open [`Distant`], where a forked child finds it without a lock, whatever its parent's threads were doing.
#[derive(Debug)]
struct Note {
    number: AtomicI32,
    device: AtomicU64,
    inode: AtomicU64,
}

/// A connection, eight sets of rings, what came with a message; some to spare.
static NOTES: [Note; 24] = [const {
    Note {
        number: AtomicI32::new(Note::FREE),
        device: AtomicU64::new(0),
        inode: AtomicU64::new(0),
    }
}; 24];

impl Note {
    const FREE: i32 = -1;
    /// Being written.
    const TAKEN: i32 = -2;

    fn take(fd: BorrowedFd<'_>, file: File) -> Option<&'static Self> {
        // SYNC(distant-free): what it stood for is not written any more.
        let note = NOTES.iter().find(|note| {
            note.number
                .compare_exchange(
                    Self::FREE,
                    Self::TAKEN,
                    Ordering::Acquire,
                    Ordering::Relaxed,
                )
                .is_ok()
        })?;
        note.device.store(file.0, Ordering::Relaxed);
        note.inode.store(file.1, Ordering::Relaxed);
        // SYNC(distant): a child that finds the number finds what it stands for.
        note.number.store(fd.as_raw_fd(), Ordering::Release);
        Some(note)
    }

    /// Gives it back; in a child it may stand for another one already.
    fn give(&self, number: i32) {
        // SYNC(distant-free)
        let _other =
            self.number
                .compare_exchange(number, Self::FREE, Ordering::Release, Ordering::Relaxed);
    }
}

/// In a forked child, before it has any of its own: closes its parent's. A system call or two for each; neither locks nor
/// allocates. One that the parent was about to take over or to close in that moment may stay.
pub fn close_inherited() {
    for note in &NOTES {
        // SYNC(distant)
        let number = note.number.swap(Note::FREE, Ordering::Acquire);
        if number < 0 {
            continue;
        }
        let file = (
            note.device.load(Ordering::Relaxed),
            note.inode.load(Ordering::Relaxed),
        );
        // SAFETY: a number that was open when it was noted, borrowed for one call that only looks at it; it may be closed
        // or another file by now, and then the call says so.
        let is_ours = identity(unsafe { BorrowedFd::borrow_raw(number) }) == Ok(file);
        if is_ours {
            // SAFETY: it leads to what the parent's `Distant` leads to, so it is this process's copy of that one's
            // descriptor. That `Distant` is not used here any more, and looks before it closes.
            drop(unsafe { OwnedFd::from_raw_fd(number) });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::path::PathBuf;

    use super::*;
    use crate::child::in_child;
    use crate::memfd;

    fn distant() -> Distant {
        Distant::new(memfd::create("distant", 4096).unwrap()).unwrap()
    }

    fn number(distant: &Distant) -> i32 {
        distant.get().unwrap().as_raw_fd()
    }

    fn is_open(number: i32) -> bool {
        // SAFETY: asks for a descriptor's flags, whatever the number stands for.
        unsafe { libc::fcntl(number, libc::F_GETFD) >= 0 }
    }

    #[test]
    fn it_is_out_of_the_way_and_closed_in_the_end() {
        let distant = distant();
        let number = number(&distant);
        assert!(number >= FIRST[1], "{number}");
        let opened = File::open("/dev/null").unwrap().as_raw_fd();
        assert!(opened < FIRST[1], "{opened}");
        let link = PathBuf::from(format!("/proc/self/fd/{number}"));
        assert!(link.exists());
        drop(distant);
        assert!(!link.exists());
    }

    #[test]
    fn it_is_closed_on_exec() {
        let flags = rustix::io::fcntl_getfd(distant().get().unwrap()).unwrap();
        assert!(flags.contains(rustix::io::FdFlags::CLOEXEC), "{flags:?}");
    }

    /// The program puts a file of its own under the number: it is neither used nor closed.
    #[test]
    fn what_took_its_number_is_left_alone() {
        let distant = distant();
        let number = number(&distant);
        let theirs = memfd::create("theirs", 4096).unwrap();
        assert!(in_child(move || {
            // SAFETY: in a process of its own, which has nothing but `distant` under that number.
            let placed = unsafe { libc::dup2(theirs.as_raw_fd(), number) };
            let is_gone = placed == number && !distant.is_there();
            drop(distant);
            is_gone && is_open(number)
        }));
    }

    /// Closed before it could be moved: an error, and nothing is closed.
    #[test]
    fn what_is_gone_at_once_is_an_error() {
        let fd = memfd::create("distant", 4096).unwrap();
        assert!(in_child(move || {
            let number = fd.as_raw_fd();
            // SAFETY: in a process of its own, where `Distant` is all that looks at the number afterwards.
            unsafe { libc::close(number) };
            Distant::new(fd).is_err()
        }));
    }

    #[test]
    fn where_there_is_little_room_it_is_as_high_as_can_be() {
        let soft = |limit: u64| {
            let limit = libc::rlimit {
                rlim_cur: limit,
                rlim_max: limit,
            };
            // SAFETY: reads a valid struct; only called in a process of its own.
            unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) == 0 }
        };
        // Made before the limit: its number is that of any other.
        for (limit, least) in [(256, FIRST[1]), (64, FIRST[2])] {
            let fd = memfd::create("distant", 4096).unwrap();
            assert!(
                in_child(move || {
                    let number = soft(limit)
                        .then(|| Distant::new(fd).ok())
                        .flatten()
                        .map(|distant| number(&distant));
                    number.is_some_and(|number| number >= least)
                }),
                "{limit}"
            );
        }
        let fd = memfd::create("distant", 4096).unwrap();
        assert!(in_child(move || {
            let stays = fd.as_raw_fd();
            let full = soft(3);
            let distant = Distant::new(fd).unwrap();
            full && number(&distant) == stays
        }));
    }

    /// A child closes what it has of its parent's, and of nobody else.
    #[test]
    fn a_child_closes_what_it_inherited() {
        let (mine, taken, dropped) = (distant(), distant(), distant());
        let was = number(&dropped);
        drop(dropped);
        let theirs = memfd::create("theirs", 4096).unwrap();
        assert!(in_child(move || {
            let numbers = [&mine, &taken].map(number);
            // SAFETY: in a process of its own, which has nothing but `taken` under that number.
            let placed = unsafe { libc::dup2(theirs.as_raw_fd(), numbers[1]) };
            close_inherited();
            let closed = !is_open(numbers[0]) && !mine.is_there();
            let left = placed == numbers[1] && is_open(numbers[1]) && is_open(theirs.as_raw_fd());
            // What the child has itself now is not touched by dropping what was its parent's.
            let own = Distant::new(theirs).unwrap();
            drop((mine, taken));
            closed && left && own.is_there() && was != numbers[0]
        }));
    }
}
