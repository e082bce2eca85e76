//! Lock files.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;

use super::StartError;

/// A held lock file; it goes when this is dropped. The kernel frees the lock of a killed daemon.
#[derive(Debug)]
pub(super) struct Lock {
    path: PathBuf,
    _file: File,
}

/// The lock file of the socket at `path`.
pub(super) fn beside(path: &Path) -> PathBuf {
    let mut name = OsString::from(path.as_os_str());
    name.push(".lock");
    name.into()
}

impl Lock {
    /// Takes the lock at `path`, at once or not at all.
    pub(super) fn take(path: PathBuf) -> Result<Self, StartError> {
        loop {
            let file = open(&path).map_err(|source| StartError::Path {
                what: "open the lock file",
                path: path.clone(),
                source,
            })?;
            if let Err(errno) = rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                return Err(if errno == rustix::io::Errno::WOULDBLOCK {
                    StartError::Locked { path }
                } else {
                    StartError::Path {
                        what: "lock",
                        path,
                        source: errno.into(),
                    }
                });
            }
            // Its last holder may have removed the file between our open and our lock: then the lock we got is on a
            // file that nobody else will ever look at.
            if same_file(&file, &path) {
                return Ok(Self { path, _file: file });
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Held until the file is closed, right after this: whoever opened the old file sees that it is not the one
        // at the path any more. A file that can't be removed is a lock nobody holds.
        drop(std::fs::remove_file(&self.path));
    }
}

fn open(path: &Path) -> io::Result<File> {
    let no_follow = i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).unwrap_or(0);
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .mode(0o600)
        .custom_flags(no_follow)
        .open(path)
}

fn same_file(file: &File, path: &Path) -> bool {
    match (file.metadata(), std::fs::symlink_metadata(path)) {
        (Ok(ours), Ok(there)) => (ours.dev(), ours.ino()) == (there.dev(), there.ino()),
        _ => false,
    }
}
