//! Anonymous files for sharing: sized, sealed, nameless.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{FallocateFlags, MemfdFlags, Mode, SealFlags};
use rustix::io::Errno;

use crate::ShmError;

/// Makes a file of `bytes` zero bytes, mode 0400, closed on exec. Nothing has a name in `/dev/shm`.
///
/// The mode only keeps other users from reopening it through `/proc`; against resizing and writing there are seals.
///
/// # Errors
/// Out of descriptors or memory, or `RLIMIT_FSIZE` below `bytes`.
pub fn create(name: &str, bytes: u64) -> Result<OwnedFd, ShmError> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let fd = match rustix::fs::memfd_create(name, flags | MemfdFlags::NOEXEC_SEAL) {
        // Kernels before 6.3 do not know the flag.
        Err(Errno::INVAL) => rustix::fs::memfd_create(name, flags),
        other => other,
    }
    .map_err(ShmError::os("memfd_create"))?;
    rustix::fs::ftruncate(&fd, bytes).map_err(ShmError::os("set the size of a memfd"))?;
    rustix::fs::fchmod(&fd, Mode::RUSR).map_err(ShmError::os("set the mode of a memfd"))?;
    Ok(fd)
}

/// Writes `words` at the start of the file, little-endian, before it is shared.
///
/// # Errors
/// The write failed, out of memory for one.
pub fn write_words(fd: impl AsFd, words: &[u64]) -> Result<(), ShmError> {
    write_words_at(fd, 0, words)
}

/// Writes `words` from word `first` of the file on, as [`write_words`].
///
/// # Errors
/// The write failed, out of memory for one.
pub fn write_words_at(fd: impl AsFd, first: usize, words: &[u64]) -> Result<(), ShmError> {
    let start = first as u64 * 8;
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let mut done = 0;
    while done < bytes.len() {
        match rustix::io::pwrite(&fd, &bytes[done..], start + done as u64) {
            Ok(0) => {
                return Err(ShmError::Os {
                    what: "write a memfd",
                    source: io::ErrorKind::WriteZero.into(),
                });
            }
            Ok(n) => done += n,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(ShmError::os("write a memfd")(errno)),
        }
    }
    Ok(())
}

/// Seals the size for ever: neither side can make the other run into the end of the file.
///
/// # Errors
/// The file does not allow sealing.
pub fn seal_size(fd: impl AsFd) -> Result<(), ShmError> {
    rustix::fs::fcntl_add_seals(fd, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)
        .map_err(ShmError::os("seal a memfd"))
}

/// Seals the size, and everything but the writable mappings that exist already (I8).
///
/// A read-only descriptor would protect nothing: `/proc/self/fd` reopens a memfd for writing.
///
/// # Errors
/// The file does not allow sealing.
pub fn seal_writes(fd: impl AsFd) -> Result<(), ShmError> {
    let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::FUTURE_WRITE | SealFlags::SEAL;
    rustix::fs::fcntl_add_seals(fd, seals).map_err(ShmError::os("seal a memfd"))
}

/// Checks what another process sent: resizing is sealed off, and the size is as announced. Without this a peer could
/// kill us with SIGBUS by cutting the file.
///
/// # Errors
/// [`ShmError::Unsealed`], [`ShmError::Size`], or the descriptor is no memfd.
pub fn check(fd: impl AsFd, bytes: u64) -> Result<(), ShmError> {
    let seals = rustix::fs::fcntl_get_seals(&fd)
        .map_err(ShmError::os("read the seals of a received file"))?;
    if !seals.contains(SealFlags::SHRINK | SealFlags::GROW) {
        return Err(ShmError::Unsealed {
            seals: seals.bits(),
        });
    }
    let stat = rustix::fs::fstat(&fd).map_err(ShmError::os("stat a received file"))?;
    let actual = u64::try_from(stat.st_size).unwrap_or(0);
    if actual == bytes {
        Ok(())
    } else {
        Err(ShmError::Size {
            actual,
            expected: bytes,
        })
    }
}

/// Takes memory for a range of the file now, charged to the caller.
///
/// # Errors
/// No memory, or over the caller's limit.
pub fn allocate(fd: impl AsFd, offset: u64, bytes: u64) -> Result<(), ShmError> {
    rustix::fs::fallocate(fd, FallocateFlags::KEEP_SIZE, offset, bytes)
        .map_err(ShmError::os("allocate memory for a segment"))
}

/// Gives the memory of a range of the file back, whoever has it mapped; what is read there afterwards is zeros, and what is
/// written takes memory of the writer's.
///
/// # Errors
/// The file is sealed against writing.
pub fn give_back(fd: impl AsFd, offset: u64, bytes: u64) -> Result<(), ShmError> {
    let how = FallocateFlags::KEEP_SIZE | FallocateFlags::PUNCH_HOLE;
    rustix::fs::fallocate(fd, how, offset, bytes)
        .map_err(ShmError::os("give the memory of a segment back"))
}

/// Device and inode of the file: no other file of the same boot has both while it exists.
///
/// # Errors
/// The descriptor can't be asked.
pub fn identity(fd: impl AsFd) -> Result<(u64, u64), ShmError> {
    let stat = rustix::fs::fstat(fd).map_err(ShmError::os("stat a segment"))?;
    Ok((stat.st_dev, stat.st_ino))
}

/// Bytes of memory that the file really takes.
///
/// # Errors
/// The descriptor can't be asked.
pub fn resident_bytes(fd: impl AsFd) -> Result<u64, ShmError> {
    let stat = rustix::fs::fstat(fd).map_err(ShmError::os("stat a segment"))?;
    Ok(u64::try_from(stat.st_blocks).unwrap_or(0) * 512)
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::os::fd::AsRawFd;

    use super::*;
    use crate::{ReadMapping, WriteMapping};

    /// Cases S05: a peer that resizes the file must not be able to.
    #[test]
    fn s05_a_sealed_file_can_be_neither_cut_nor_grown() {
        let fd = create("test", 4096).unwrap();
        seal_size(&fd).unwrap();
        for size in [0, 8192] {
            assert_eq!(rustix::fs::ftruncate(&fd, size), Err(Errno::PERM));
        }
        check(&fd, 4096).unwrap();
        assert!(matches!(
            check(&fd, 8192),
            Err(ShmError::Size {
                actual: 4096,
                expected: 8192
            })
        ));
    }

    #[test]
    fn an_unsealed_file_is_refused() {
        let fd = create("test", 4096).unwrap();
        assert!(matches!(check(&fd, 4096), Err(ShmError::Unsealed { .. })));
        let plain = std::fs::File::open("/dev/null").unwrap();
        assert!(matches!(check(&plain, 0), Err(ShmError::Os { .. })));
    }

    /// I8: by descriptor, by reopening through /proc, by a new mapping.
    #[test]
    fn i8_nobody_else_can_write_a_write_sealed_file() {
        let fd = create("test", 4096).unwrap();
        let ours = WriteMapping::map(&fd, 4096).unwrap();
        seal_writes(&fd).unwrap();
        assert!(write_words(&fd, &[1]).is_err());
        let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
        if let Ok(reopened) = OpenOptions::new().read(true).write(true).open(path) {
            assert!(write_words(&reopened, &[1]).is_err());
            WriteMapping::map(&reopened, 4096).unwrap_err();
        }
        WriteMapping::map(&fd, 4096).unwrap_err();
        let theirs = ReadMapping::map(&fd, 4096).unwrap();
        ours.words()[3].store(7, std::sync::atomic::Ordering::Relaxed);
        assert_eq!(
            theirs.words()[3].get(),
            7,
            "the owner's mapping goes on writing"
        );
    }

    #[test]
    fn memory_is_taken_when_it_is_allocated() {
        let fd = create("test", 1 << 20).unwrap();
        assert_eq!(resident_bytes(&fd).unwrap(), 0);
        allocate(&fd, 0, 1 << 16).unwrap();
        assert_eq!(resident_bytes(&fd).unwrap(), 1 << 16);
    }

    /// A process that keeps a file mapped must not keep its memory.
    #[test]
    fn memory_can_be_given_back_while_others_have_it_mapped() {
        let fd = create("test", 1 << 20).unwrap();
        seal_size(&fd).unwrap();
        write_words_at(&fd, 100, &[5, 6]).unwrap();
        allocate(&fd, 0, 1 << 20).unwrap();
        let theirs = ReadMapping::map(&fd, 1 << 20).unwrap();
        assert_eq!([99, 100, 101].map(|at| theirs.words()[at].get()), [0, 5, 6]);
        give_back(&fd, 0, 1 << 20).unwrap();
        assert_eq!(resident_bytes(&fd).unwrap(), 0);
        assert_eq!(theirs.words()[100].get(), 0);
    }
}
