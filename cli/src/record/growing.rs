//! The file that grows while a program is recorded: native format, one fetch after the other.

use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::io::{self, Seek};
use std::mem;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nrt_trace_export::NativeWriter;
use nrt_trace_proto::v1;
use nrt_trace_proto::v1::trace_part::Part;

use crate::error::Failure;
use crate::output::target::Target;
use crate::output::tell;

/// A growing native file.
///
/// A fetch gets its end mark only after it was committed. So one that was broken off, or that will be delivered again,
/// shows as what it is, and whatever came of it is not lost if nothing comes after it.
#[derive(Debug)]
pub(crate) struct GrowingFile {
    /// Its name; `None` if the trace does not go to a file.
    path: Option<PathBuf>,
    file: File,
    writer: Writer,
    /// Whether it stays under its name when this is dropped: it has something that somebody may want.
    stays: bool,
}

#[derive(Debug)]
enum Writer {
    /// There was nothing to write yet; the file is empty.
    Unused,
    Open(NativeWriter<File>),
    /// The file is complete, or can't be written any more: then it reads as a cut file does.
    Over,
}

impl GrowingFile {
    /// Makes the growing file of a target: `FILE.part` beside a file, else a nameless temporary one.
    pub(crate) fn create(target: &Target) -> Result<Self, Failure> {
        let Some(path) = target.file().map(part_path) else {
            return Self::nameless();
        };
        let failed = |error| Failure::file("write", &path, &error);
        let file = open_part(&path).map_err(failed)?;
        Ok(Self::new(file, Some(path)))
    }

    /// Makes one that nobody can see, and that is gone with this program.
    pub(crate) fn nameless() -> Result<Self, Failure> {
        match tempfile::tempfile() {
            Ok(file) => Ok(Self::new(file, None)),
            Err(error) => Err(Failure::file(
                "write a temporary file in",
                std::env::temp_dir(),
                &error,
            )),
        }
    }

    fn new(file: File, path: Option<PathBuf>) -> Self {
        Self {
            path,
            file,
            writer: Writer::Unused,
            stays: false,
        }
    }

    /// Appends a part.
    pub(crate) fn part(&mut self, part: Part) -> Result<(), Failure> {
        if matches!(self.writer, Writer::Unused) {
            self.begin()?;
        }
        let part = v1::TracePart { part: Some(part) };
        self.write(|writer| writer.part(&part))
    }

    /// Makes everything until here readable, whatever happens to this program.
    pub(crate) fn keep(&mut self) -> Result<(), Failure> {
        self.write(NativeWriter::flush_frame)
    }

    /// Where it stands: what comes behind can be taken back.
    pub(crate) fn mark(&mut self) -> Result<u64, Failure> {
        if matches!(self.writer, Writer::Unused) {
            self.begin()?;
        }
        self.keep()?;
        Ok(self.bytes())
    }

    /// Takes back what was written behind a mark.
    pub(crate) fn take_back(&mut self, mark: u64) -> Result<(), Failure> {
        self.write(|writer| {
            writer.rewind_to(mark)?;
            writer.get_mut().set_len(mark)
        })
    }

    /// Bytes that it has.
    pub(crate) fn bytes(&self) -> u64 {
        match &self.writer {
            Writer::Open(writer) => writer.bytes_written(),
            Writer::Unused | Writer::Over => 0,
        }
    }

    /// The name under which it stays if there will be no trace.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.path.as_deref().filter(|_| self.stays)
    }

    /// Marks its end, and gives the whole of it to be read.
    pub(crate) fn complete(&mut self) -> Result<File, Failure> {
        if matches!(self.writer, Writer::Unused) {
            self.begin()?;
        }
        if let Writer::Open(writer) = mem::replace(&mut self.writer, Writer::Over) {
            // On a full disk the mark may be missing: then it reads as a cut file does, up to the last whole block.
            let _best_effort = writer.finish();
        }
        let open = || {
            let mut file = self.file.try_clone()?;
            file.rewind()?;
            Ok(file)
        };
        open().map_err(|error| self.failed(&error))
    }

    /// Gives one that has no name a name of its own in the temporary folder, because there will be no trace. It was
    /// opened so that nobody could ever name it: it is copied.
    pub(crate) fn save(&self) -> io::Result<PathBuf> {
        let mut file = self.file.try_clone()?;
        file.rewind()?;
        let mut named = tempfile::Builder::new()
            .prefix("nrt-trace-")
            .suffix(".nrtt")
            .tempfile()?;
        io::copy(&mut file, named.as_file_mut())?;
        named.as_file().sync_all()?;
        let (_file, path) = named.keep().map_err(|refused| refused.error)?;
        Ok(path)
    }

    /// Takes it away, once the trace is there.
    pub(crate) fn remove(mut self) {
        self.stays = false;
    }

    fn begin(&mut self) -> Result<(), Failure> {
        let writer = self.file.try_clone().and_then(NativeWriter::new);
        self.writer = Writer::Open(writer.map_err(|error| self.failed(&error))?);
        self.stays = true;
        Ok(())
    }

    fn write(
        &mut self,
        write: impl FnOnce(&mut NativeWriter<File>) -> io::Result<()>,
    ) -> Result<(), Failure> {
        let Writer::Open(writer) = &mut self.writer else {
            return Ok(());
        };
        write(writer).map_err(|error| {
            // Nothing may stand behind half a block.
            self.writer = Writer::Over;
            self.failed(&error)
        })
    }

    fn failed(&self, error: &io::Error) -> Failure {
        let shown = self.path.clone().unwrap_or_else(std::env::temp_dir);
        Failure::file("write", shown, error)
    }
}

impl Drop for GrowingFile {
    /// A recording that never got anything leaves nothing; if the name can't be taken away, an empty file lies about.
    fn drop(&mut self) {
        if let (Some(path), false) = (&self.path, self.stays) {
            let _best_effort = fs::remove_file(path);
        }
    }
}

/// `trace.json.part`.
fn part_path(target: &Path) -> PathBuf {
    with_ending(target, ".part")
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(ending);
    PathBuf::from(name)
}

/// Where nothing lies that an earlier recording left.
fn unused(path: &Path) -> PathBuf {
    let mut place = with_ending(path, ".old");
    let mut number = 1;
    while place.exists() {
        number += 1;
        place = with_ending(path, &format!(".old-{number}"));
    }
    place
}

/// Opens `FILE.part`, which belongs to one recording at a time. What a killed recording left there is kept under
/// another name: it can be read.
fn open_part(path: &Path) -> io::Result<File> {
    let mut file = claim_part(path)?;
    if file.metadata()?.len() > 0 {
        let old = unused(path);
        fs::rename(path, &old)?;
        tell::warning(format!(
            "kept what a killed recording had left in {} as {} (native format)",
            path.display(),
            old.display()
        ));
        file = claim_part(path)?;
    }
    Ok(file)
}

/// Opens `FILE.part` and locks it.
fn claim_part(path: &Path) -> io::Result<File> {
    loop {
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let text = "another recording is writing it; give this one another -o";
                return Err(io::Error::other(text));
            }
            // A file system without locks: then nobody is kept out.
            Err(TryLockError::Error(_)) => {}
        }
        // The recording that had it before may have taken the name away after this one opened it.
        let (mine, named) = (file.metadata()?, fs::metadata(path));
        if named.is_ok_and(|named| (named.dev(), named.ino()) == (mine.dev(), mine.ino())) {
            return Ok(file);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_recording_at_a_time_writes_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let target = Target::new(&folder.path().join("t.json"), None).unwrap();
        let first = GrowingFile::create(&target).unwrap();
        let error = GrowingFile::create(&target).unwrap_err().to_string();
        assert!(error.contains("t.json.part: another recording"), "{error}");
        first.remove();
        let again = GrowingFile::create(&target).unwrap();
        assert!(folder.path().join("t.json.part").exists());
        drop(again);
        assert!(
            !folder.path().join("t.json.part").exists(),
            "nothing was in it"
        );
    }

    #[test]
    fn what_is_taken_back_was_never_there() {
        let mut growing = GrowingFile::nameless().unwrap();
        let begin = |fetch_id| {
            Part::Begin(v1::FetchBegin {
                fetch_id,
                ..v1::FetchBegin::default()
            })
        };
        growing.part(begin(1)).unwrap();
        let mark = growing.mark().unwrap();
        growing.part(begin(2)).unwrap();
        growing.keep().unwrap();
        growing.part(begin(3)).unwrap();
        growing.take_back(mark).unwrap();
        growing.part(begin(4)).unwrap();
        let file = growing.complete().unwrap();
        let mut numbers = Vec::new();
        for part in nrt_trace_export::NativeReader::new(file).unwrap() {
            match part.unwrap().part {
                Some(Part::Begin(begin)) => numbers.push(begin.fetch_id),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(numbers, [1, 4]);
    }

    #[test]
    fn what_a_killed_recording_left_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let part = folder.path().join("t.json.part");
        fs::write(&part, "left").unwrap();
        let target = Target::new(&folder.path().join("t.json"), None).unwrap();
        let growing = GrowingFile::create(&target).unwrap();
        assert_eq!(
            fs::read_to_string(folder.path().join("t.json.part.old")).unwrap(),
            "left"
        );
        assert_eq!(growing.bytes(), 0);
        drop(growing);
        for (n, name) in [(2, "t.json.part.old-2"), (3, "t.json.part.old-3")] {
            fs::write(&part, format!("left {n}")).unwrap();
            let _growing = GrowingFile::create(&target).unwrap();
            let kept = fs::read_to_string(folder.path().join(name)).unwrap();
            assert_eq!(kept, format!("left {n}"));
        }
        let first = fs::read_to_string(folder.path().join("t.json.part.old"));
        assert_eq!(first.unwrap(), "left");
    }
}
