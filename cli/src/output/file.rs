//! A file that appears under its name whole, on the disk, or not at all.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use tempfile::NamedTempFile;

use super::target::folder_of;

/// Mode of a new file, before the umask.
const NEW_FILE: u32 = 0o666;

/// A file that has no name, or another one, until it is finished. Dropped before, it leaves nothing behind.
#[derive(Debug)]
pub(crate) struct WholeFile {
    place: PathBuf,
    body: Body,
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
            None => Body::Named(
                tempfile::Builder::new()
                    .prefix(&temporary_name(place))
                    .permissions(fs::Permissions::from_mode(NEW_FILE))
                    .tempfile_in(&folder)?,
            ),
        };
        Ok(Self {
            place: place.to_owned(),
            body,
        })
    }

    /// Brings the contents to the disk, then gives the file its name, in place of whatever has it now.
    pub(crate) fn finish(self) -> io::Result<()> {
        let file = self.body.file();
        if let Ok(old) = fs::metadata(&self.place) {
            file.set_permissions(old.permissions())?;
        }
        file.sync_all()?;
        match self.body {
            Body::Nameless(file) => name(&file, &self.place)?,
            Body::Named(file) => {
                file.persist(&self.place).map_err(|refused| refused.error)?;
            }
        }
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
        self.body.file().write(bytes)
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
        });
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
