//! Files of the kernel, kept open and read again and again into one buffer.

use std::fs::File;
use std::io;
use std::path::PathBuf;

use rustix::buffer::spare_capacity;
use rustix::fs::{Mode, OFlags};

/// File systems whose files give new contents at each read. Any other file may be replaced by another of its name, so it is
/// opened anew: fixtures are such files.
const KERNEL_FILE_SYSTEMS: [u64; 4] = [
    0x9fa0,      // proc
    0x6265_6572, // sysfs
    0x0027_e0eb, // cgroup
    0x6367_7270, // cgroup2
];
/// No file of the kernel's is larger; a line of 1 MiB is read whole.
const MAX_BYTES: usize = 16 << 20;
/// Free bytes with which a read is begun: all of most files, in one call.
const PIECE: usize = 64 << 10;
/// Reads for which a file that could not be opened is left alone.
const PAUSE: u8 = 15;

/// The buffer of all reads.
#[derive(Debug)]
pub(crate) struct Buffer(Vec<u8>);

impl Buffer {
    /// An empty one.
    pub(crate) fn new() -> Self {
        Self(Vec::with_capacity(PIECE))
    }
}

/// How a file's contents come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// In one piece: what one read gives up to the end of a line is all of it.
    Whole,
    /// In pieces: it is read until nothing more comes.
    Pieces,
}

/// A file that is read at each tick.
#[derive(Debug)]
pub(crate) struct Kept {
    path: PathBuf,
    shape: Shape,
    /// Open, if it is the kernel's.
    file: Option<File>,
    /// Reads for which it is not tried again.
    pause: u8,
}

impl Kept {
    /// A file that is opened when it is first read.
    pub(crate) fn new(path: PathBuf, shape: Shape) -> Self {
        Self {
            path,
            shape,
            file: None,
            pause: 0,
        }
    }

    /// Its contents now; `None` if there is no such file, it may not be read, or it is empty.
    pub(crate) fn read<'b>(&mut self, buffer: &'b mut Buffer) -> Option<&'b [u8]> {
        if self.pause > 0 {
            self.pause -= 1;
            return None;
        }
        let (file, keep) = match self.file.take() {
            Some(file) => (file, true),
            None => match open(&self.path) {
                Ok(file) => {
                    let keep = is_kernels(&file);
                    (file, keep)
                }
                Err(_) => {
                    self.pause = PAUSE;
                    return None;
                }
            },
        };
        // After an error it is opened anew at the next tick.
        read_all(&file, self.shape, &mut buffer.0).ok()?;
        self.file = keep.then_some(file);
        (!buffer.0.is_empty()).then_some(&buffer.0[..])
    }
}

/// A file of a process, read through the process's own folder: gone when the process is, whoever has its number then.
#[derive(Debug)]
pub(crate) struct OfProcess {
    file: File,
}

impl OfProcess {
    /// Opens `name` in `folder`.
    pub(crate) fn open(folder: &File, name: &str) -> Option<Self> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let file = rustix::fs::openat(folder, name, flags, Mode::empty()).ok()?;
        Some(Self { file: file.into() })
    }

    /// Its contents now; `None` when the process is gone or nothing came.
    pub(crate) fn read<'b>(&self, buffer: &'b mut Buffer) -> Option<&'b [u8]> {
        read_all(&self.file, Shape::Whole, &mut buffer.0).ok()?;
        (!buffer.0.is_empty()).then_some(&buffer.0[..])
    }
}

fn open(path: &PathBuf) -> io::Result<File> {
    // A fixture may hold anything: opening a pipe must not wait.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    Ok(rustix::fs::open(path, flags, Mode::empty())?.into())
}

fn is_kernels(file: &File) -> bool {
    rustix::fs::fstatfs(file).is_ok_and(|about| {
        u64::try_from(about.f_type).is_ok_and(|kind| KERNEL_FILE_SYSTEMS.contains(&kind))
    })
}

fn read_all(file: &File, shape: Shape, into: &mut Vec<u8>) -> io::Result<()> {
    into.clear();
    loop {
        into.reserve(PIECE);
        let (room, offset) = (into.capacity() - into.len(), into.len() as u64);
        let read = match rustix::io::pread(file, spare_capacity(into), offset) {
            Err(rustix::io::Errno::INTR) => continue,
            read => read?,
        };
        let whole = shape == Shape::Whole && read < room && into.last() == Some(&b'\n');
        if read == 0 || whole {
            return Ok(());
        }
        if into.len() > MAX_BYTES {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    fn kept(path: &Path) -> Kept {
        Kept::new(path.to_owned(), Shape::Whole)
    }

    #[test]
    fn a_kernels_file_stays_open_and_gives_new_contents() {
        let (mut buffer, mut file) = (Buffer::new(), kept(Path::new("/proc/self/stat")));
        let first = file.read(&mut buffer).unwrap().to_vec();
        assert!(file.file.is_some() && first.ends_with(b"\n"));
        let (mut pieces, mut whole) = (
            Kept::new("/proc/self/maps".into(), Shape::Pieces),
            Buffer::new(),
        );
        let lines = |text: &[u8]| text.iter().filter(|byte| **byte == b'\n').count();
        let read = lines(pieces.read(&mut whole).unwrap());
        assert!(read.abs_diff(lines(&fs::read("/proc/self/maps").unwrap())) <= 4);
    }

    #[test]
    fn a_fixture_may_be_replaced_shortened_and_taken_away() {
        let folder = tempfile::tempdir().unwrap();
        let (path, new) = (folder.path().join("stat"), folder.path().join("new"));
        let (mut buffer, mut file) = (Buffer::new(), kept(&path));
        fs::write(&path, "first, and long").unwrap();
        assert_eq!(file.read(&mut buffer).unwrap(), b"first, and long");
        fs::write(&new, "second").unwrap();
        fs::rename(&new, &path).unwrap();
        assert_eq!(file.read(&mut buffer).unwrap(), b"second");
        fs::write(&path, "").unwrap();
        assert_eq!(file.read(&mut buffer), None);
        let long = "x ".repeat(1 << 19);
        fs::write(&path, &long).unwrap();
        assert_eq!(file.read(&mut buffer).unwrap(), long.as_bytes());
        fs::remove_file(&path).unwrap();
        assert_eq!(file.read(&mut buffer), None);
        fs::write(&path, "third").unwrap();
        let tries = (0..=PAUSE).filter(|_| file.read(&mut buffer).is_some());
        assert_eq!(tries.count(), 1, "tried again after a pause");
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert_eq!(kept(&path).read(&mut buffer), None);
    }
}
