//! A file that appears under its name whole, on the disk, or not at all.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use tempfile::NamedTempFile;

use super::target::folder_of;

/// Bytes after which a file's contents are sent to the disk, while more are written.
const EARLY_BYTES: usize = 32 << 20;

/// Mode of a new file, before the umask.
const NEW_FILE: u32 = 0o666;

/// Names that this process's unfinished files have, and how many are finished.
#[derive(Debug)]
pub(crate) struct Names {
    temporary: Vec<PathBuf>,
    finished: usize,
}

/// Held while a file gets its name.
static NAMES: Mutex<Names> = Mutex::new(Names {
    temporary: Vec::new(),
    finished: 0,
});

/// The names as they are. While the answer is held, no file gets another one.
pub(crate) fn names() -> MutexGuard<'static, Names> {
    NAMES.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Names {
    /// Files that stand whole under their names.
    pub(crate) const fn finished(&self) -> usize {
        self.finished
    }

    /// Takes the unfinished files away, before this process ends without having dropped them.
    pub(crate) fn remove_temporary(&self) {
        for path in &self.temporary {
            let _best_effort = fs::remove_file(path);
        }
    }
}

/// A file that has no name, or another one, until it is finished. Dropped before, it leaves nothing behind.
#[derive(Debug)]
pub(crate) struct WholeFile {
    place: PathBuf,
    body: Body,
    /// Written since the disk was last told.
    fresh: usize,
    disk: Option<Disk>,
}

/// A thread that brings to the disk what has been written so far. Left to itself, the kernel begins late, and the end
/// of a large file would wait for nearly all of it.
#[derive(Debug)]
struct Disk {
    wake: SyncSender<()>,
    thread: JoinHandle<()>,
}

impl Disk {
    fn new(file: &File) -> io::Result<Self> {
        let file = file.try_clone()?;
        let (wake, woken) = sync_channel(1);
        let thread = std::thread::Builder::new().name("disk".to_owned());
        let thread = thread.spawn(move || {
            while woken.recv().is_ok() {
                // What fails here fails again at the end, where it is told.
                let _early = file.sync_data();
            }
        })?;
        Ok(Self { wake, thread })
    }

    fn end(self) {
        drop(self.wake);
        let _ended = self.thread.join();
    }
}

#[derive(Debug)]
enum Body {
    /// Without a name: even SIGKILL leaves nothing behind.
    Nameless(File),
    /// Where the file system can't do that.
    Named(NamedTempFile),
}

impl WholeFile {
    /// Opens a new file in the folder of `place`.
    pub(crate) fn create(place: &Path) -> io::Result<Self> {
        let folder = folder_of(place);
        let body = match nameless(&folder) {
            Some(file) => Body::Nameless(file),
            None => {
                let mut names = names();
                let file = tempfile::Builder::new()
                    .prefix(&temporary_name(place))
                    .permissions(fs::Permissions::from_mode(NEW_FILE))
                    .tempfile_in(&folder)?;
                names.temporary.push(file.path().to_owned());
                Body::Named(file)
            }
        };
        Ok(Self {
            place: place.to_owned(),
            body,
            fresh: 0,
            disk: None,
        })
    }

    /// Brings the contents to the disk, then gives the file its name, in place of whatever has it now.
    pub(crate) fn finish(self) -> io::Result<()> {
        if let Some(disk) = self.disk {
            disk.end();
        }
        let file = self.body.file();
        if let Ok(old) = fs::metadata(&self.place) {
            file.set_permissions(old.permissions())?;
        }
        file.sync_all()?;
        let mut names = names();
        match self.body {
            Body::Nameless(file) => name(&file, &self.place)?,
            Body::Named(file) => {
                let temporary = file.path().to_owned();
                file.persist(&self.place).map_err(|refused| refused.error)?;
                names.temporary.retain(|other| *other != temporary);
            }
        }
        names.finished += 1;
        drop(names);
        // The name is in the folder, which has a place on the disk of its own.
        File::open(folder_of(&self.place))?.sync_all()
    }
}

impl Body {
    fn file(&self) -> &File {
        match self {
            Self::Nameless(file) => file,
            Self::Named(file) => file.as_file(),
        }
    }
}

impl Write for WholeFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.body.file().write(bytes)?;
        self.fresh += written;
        if self.fresh >= EARLY_BYTES {
            self.fresh = 0;
            if self.disk.is_none() {
                self.disk = Some(Disk::new(self.body.file())?);
            }
            // Still busy with what was there before: it will be told the next time, or at the end.
            let _busy = self.disk.as_ref().map(|disk| disk.wake.try_send(()));
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A file without a name in `folder`, where the system can make one, and can name it later.
fn nameless(folder: &Path) -> Option<File> {
    if !Path::new("/proc/self/fd").exists() {
        return None;
    }
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    rustix::fs::open(folder, flags, Mode::from_raw_mode(NEW_FILE))
        .ok()
        .map(File::from)
}

/// Names a nameless file. A link can't replace a file, so it gets a temporary name first.
fn name(file: &File, place: &Path) -> io::Result<()> {
    let mut name = temporary_name(place);
    name.push(std::process::id().to_string());
    let temporary = folder_of(place).join(name);
    let myself = format!("/proc/self/fd/{}", file.as_raw_fd());
    let link = || rustix::fs::linkat(CWD, &myself, CWD, &temporary, AtFlags::SYMLINK_FOLLOW);
    if link() == Err(rustix::io::Errno::EXIST) {
        // Left by a process of the same number that was killed between the two steps.
        fs::remove_file(&temporary)?;
        link()?;
    }
    fs::rename(&temporary, place).inspect_err(|_| {
        let _best_effort = fs::remove_file(&temporary);
    })
}

/// `.trace.json.tmp-`: hidden, beside the file, and telling whose it is.
fn temporary_name(place: &Path) -> OsString {
    let mut name = OsString::from(".");
    name.push(place.file_name().unwrap_or_default());
    name.push(".tmp-");
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<OsString> {
        let mut names: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        names.sort();
        names
    }

    fn check(create: impl Fn(&Path) -> WholeFile) {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("t.json");

        let mut dropped = create(&place);
        dropped.write_all(b"half").unwrap();
        drop(dropped);
        assert_eq!(names(folder.path()), Vec::<OsString>::new());

        for text in ["first", "second"] {
            let mut file = create(&place);
            file.write_all(text.as_bytes()).unwrap();
            file.finish().unwrap();
            assert_eq!(fs::read_to_string(&place).unwrap(), text);
            assert_eq!(names(folder.path()), ["t.json"]);
        }
    }

    #[test]
    fn a_file_is_there_whole_or_not_at_all() {
        check(|place| WholeFile::create(place).unwrap());
    }

    #[test]
    fn the_same_where_every_file_needs_a_name() {
        check(|place| WholeFile {
            place: place.to_owned(),
            body: Body::Named(NamedTempFile::new_in(folder_of(place)).unwrap()),
            fresh: 0,
            disk: None,
        });
    }

    #[test]
    fn a_large_file_goes_to_the_disk_while_it_is_written_and_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("t.json");
        let mut file = WholeFile::create(&place).unwrap();
        let piece: Vec<u8> = (0..1 << 20).map(|n: u32| n.to_le_bytes()[1]).collect();
        for _ in 0..70 {
            file.write_all(&piece).unwrap();
        }
        assert!(file.disk.is_some());
        file.finish().unwrap();
        let whole = fs::read(&place).unwrap();
        assert_eq!(whole.len(), 70 << 20);
        assert!(whole.chunks(1 << 20).all(|chunk| chunk == piece));
    }

    #[test]
    fn the_mode_of_a_file_that_is_replaced_stays() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("t.json");
        fs::write(&place, "old").unwrap();
        fs::set_permissions(&place, fs::Permissions::from_mode(0o640)).unwrap();
        WholeFile::create(&place).unwrap().finish().unwrap();
        assert_eq!(
            fs::metadata(&place).unwrap().permissions().mode() & 0o777,
            0o640
        );
        assert_eq!(fs::read(&place).unwrap(), b"");
    }
}
