//! The folder of the files: nothing in it is followed, waited for, or believed because of its name.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags};
use rustix::io::Errno;

/// Begins the name of each file; its generation follows.
const PREFIX: &str = "segment-";
/// Ends the name of a file that is being written.
const NEW: &str = ".new";

/// Name of the file of a set of rings.
pub(super) fn name(generation: u64) -> String {
    format!("{PREFIX}{generation}")
}

fn generation_of(name: &str) -> Option<u64> {
    let number = name.strip_prefix(PREFIX)?.parse().ok()?;
    (self::name(number) == name).then_some(number)
}

/// The folder, made when it is first used.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
}

impl Folder {
    /// The folder at `path`, whose parent is there.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let folder = Self {
            path: path.to_owned(),
        };
        match folder.enter() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(folder),
            entered => entered.map(|_| folder),
        }
    }

    /// The folder itself, if it is one that only this user may write.
    fn enter(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
        let folder = rustix::fs::openat(CWD, &self.path, flags, Mode::empty())?;
        let stat = rustix::fs::fstat(&folder)?;
        let mine = stat.st_uid == rustix::process::geteuid().as_raw();
        if mine && Mode::from_raw_mode(stat.st_mode) & (Mode::WGRP | Mode::WOTH) == Mode::empty() {
            Ok(folder)
        } else {
            Err(io::Error::other("others may write there"))
        }
    }

    fn make(&self) -> io::Result<OwnedFd> {
        match rustix::fs::mkdirat(CWD, &self.path, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => self.enter(),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Opens a file for reading.
    pub(super) fn read(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::RDONLY;
        let file = rustix::fs::openat(self.enter()?, name, flags, Mode::empty())?;
        let file = File::from(file);
        let meta = file.metadata()?;
        if meta.is_file() && meta.uid() == rustix::process::geteuid().as_raw() {
            Ok(file)
        } else {
            Err(io::Error::other("it is no file of ours"))
        }
    }

    /// Whether there is a file of this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.read(name).is_ok()
    }

    /// Has `fill` write a file, which gets its name when it is whole.
    pub(super) fn write(
        &self,
        name: &str,
        fill: impl FnOnce(&File) -> io::Result<()>,
    ) -> io::Result<()> {
        let folder = self.make()?;
        let new = format!("{name}{NEW}");
        let _ = unlink(&folder, &new); // of a daemon that was killed
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let file = rustix::fs::openat(&folder, &new, flags | OFlags::WRONLY, mode)?;
        let written = fill(&File::from(file)).and_then(|()| {
            rustix::fs::renameat(&folder, &new, &folder, name)?;
            Ok(())
        });
        if written.is_err() {
            let _ = unlink(&folder, &new); // half a file is of no use, and takes room
        }
        written
    }

    /// Removes a file; one that is not there need not be.
    pub(super) fn remove(&self, name: &str) {
        if let Ok(folder) = self.enter()
            && let Err(errno) = unlink(&folder, name)
            && errno != Errno::NOENT
        {
            tracing::warn!(file = name, "can't remove what was consumed: {errno}");
        }
    }

    /// Gives a file a name that is never read; says which.
    pub(super) fn put_aside(&self, name: &str) -> Option<String> {
        let folder = self.enter().ok()?;
        let free = (0..100)
            .map(|number| format!("{name}.aside-{number}"))
            .find(|aside| {
                let found = rustix::fs::statat(&folder, aside, AtFlags::SYMLINK_NOFOLLOW);
                found.is_err_and(|errno| errno == Errno::NOENT)
            })?;
        rustix::fs::renameat(&folder, name, &folder, &free).ok()?;
        Some(free)
    }

    /// Puts all that an earlier daemon wrote aside; says how many files.
    pub(super) fn put_all_aside(&self) -> usize {
        let Ok(folder) = self.enter() else { return 0 };
        let Ok(entries) = Dir::read_from(&folder) else {
            return 0;
        };
        let names: Vec<String> = (entries.flatten())
            .filter_map(|entry| entry.file_name().to_str().ok().map(str::to_owned))
            .filter(|name| generation_of(name).is_some())
            .collect();
        (names.iter())
            .filter(|name| self.put_aside(name).is_some())
            .count()
    }

    /// Removes our files but those of `kept`, and leaves alone what is none of ours.
    pub(super) fn clear_all_but(&self, kept: &BTreeSet<u64>) {
        let Ok(folder) = self.enter() else { return };
        let Ok(entries) = Dir::read_from(&folder) else {
            return;
        };
        let mut foreign = Vec::new();
        for entry in entries.flatten() {
            let Ok(name) = entry.file_name().to_str() else {
                foreign.push(entry.file_name().to_string_lossy().into_owned());
                continue;
            };
            let unfinished = name.strip_suffix(NEW).and_then(generation_of);
            let stale = generation_of(name).filter(|number| !kept.contains(number));
            let is_file = || {
                rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|stat| {
                    rustix::fs::FileType::from_raw_mode(stat.st_mode)
                        == rustix::fs::FileType::RegularFile
                })
            };
            if unfinished.or(stale).is_some() && is_file() {
                let _ = unlink(&folder, name);
            } else if !matches!(name, "." | "..")
                && !name.contains(".aside-")
                && generation_of(name).is_none_or(|number| !kept.contains(&number))
            {
                foreign.push(name.to_owned());
            }
        }
        if !foreign.is_empty() {
            tracing::warn!(
                folder = %self.path.display(),
                ?foreign,
                "there is something that this daemon did not write; it is left alone"
            );
        }
        self.go_if_empty();
    }

    /// Removes the folder when nothing is in it.
    pub(super) fn go_if_empty(&self) {
        // Not empty, or not there: then it need not go.
        let _ = rustix::fs::unlinkat(CWD, &self.path, AtFlags::REMOVEDIR);
    }
}

fn unlink(folder: impl AsFd, name: &str) -> Result<(), Errno> {
    rustix::fs::unlinkat(folder, name, AtFlags::empty())
}
