//! Where a trace goes: in which format, to which file, and whether it can be written, before anything else happens.

use std::fs::{self, File, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use nrt_trace_export::{Format, JsonOptions, PftraceOptions};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::FileType;

use super::file::WholeFile;
use crate::cli::{JsonArgs, PftraceArgs};
use crate::error::Failure;

/// Where a trace goes.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    place: Place,
    format: Format,
    /// As the person wrote it.
    name: String,
    options: JsonOptions,
    pftrace: PftraceOptions,
    /// A file for each process.
    split: bool,
}

/// What [`Target::open`] opened.
#[derive(Debug)]
pub(crate) enum Opened {
    /// The whole trace's place.
    One(Sink),
    /// A file for each process, beside this path: opened when the process comes.
    Each(PathBuf),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    Stdout,
    /// A device or a named pipe: written as it is, never replaced.
    Stream(PathBuf),
    /// A regular file, there or not yet; symbolic links are followed already.
    File(PathBuf),
}

impl Target {
    /// Reads `-o` and `--to`, and looks whether the place can be written.
    pub(crate) fn new(output: &Path, to: Option<Format>) -> Result<Self, Failure> {
        if output.as_os_str() == "-" {
            let format = to.unwrap_or(Format::Json);
            let binary = matches!(format, Format::Native | Format::Pftrace);
            if binary && io::stdout().is_terminal() {
                let text = "the format is binary: redirect standard output, or write a file";
                return Err(Failure::Usage(text.to_owned()));
            }
            return Ok(Self {
                place: Place::Stdout,
                format,
                name: "standard output".to_owned(),
                options: JsonOptions::default(),
                pftrace: PftraceOptions::default(),
                split: false,
            });
        }
        let place = place(output)?;
        let format = match (to, Format::from_path(output), &place) {
            (Some(format), _, _) | (None, Ok(format), _) => format,
            (None, Err(_), Place::Stream(_)) => Format::Json,
            (None, Err(unknown), _) => {
                return Err(Failure::Usage(format!("{unknown}; or say --to FORMAT")));
            }
        };
        Ok(Self {
            place,
            format,
            name: output.display().to_string(),
            options: JsonOptions::default(),
            pftrace: PftraceOptions::default(),
            split: false,
        })
    }

    /// The same place with a document as `args` want it.
    pub(crate) fn with(mut self, args: &JsonArgs) -> Result<Self, Failure> {
        let JsonArgs {
            names,
            large_as_strings,
            split,
        } = *args;
        let wrong = |text: &str| Err(Failure::Usage(text.to_owned()));
        if self.format != Format::Json && (names || large_as_strings || split) {
            return wrong("--names, --large-as-strings and --split are about JSON documents");
        }
        if split && self.file().is_none() {
            return wrong("--split needs the name of a file, which each process's file varies");
        }
        self.options = JsonOptions {
            names,
            large_as_strings,
            ..JsonOptions::default()
        };
        self.split = split;
        if split {
            self.name.push_str(" (a file for each process)");
        }
        Ok(self)
    }

    /// The same place with a Perfetto trace as `args` want it.
    pub(crate) fn with_pftrace(mut self, args: &PftraceArgs) -> Result<Self, Failure> {
        let options = args.options();
        if self.format != Format::Pftrace && options != PftraceOptions::default() {
            let text = "--primary-group, --secondary-group and --zstd are about Perfetto traces (.pftrace)";
            return Err(Failure::Usage(text.to_owned()));
        }
        self.pftrace = options;
        Ok(self)
    }

    /// Some events are left out on purpose.
    pub(crate) const fn filtered(mut self) -> Self {
        self.pftrace.filtered = true;
        self
    }

    /// How a Perfetto trace is to be.
    pub(crate) fn pftrace_options(&self) -> PftraceOptions {
        self.pftrace.clone()
    }

    /// How a JSON document is to be.
    pub(crate) fn json_options(&self) -> JsonOptions {
        self.options
    }

    /// The format.
    pub(crate) fn format(&self) -> Format {
        self.format
    }

    /// Whether the trace goes to standard output, so that nothing else may.
    pub(crate) fn is_stdout(&self) -> bool {
        self.place == Place::Stdout
    }

    /// The regular file that it is, if it is one.
    pub(crate) fn file(&self) -> Option<&Path> {
        match &self.place {
            Place::File(path) => Some(path),
            Place::Stdout | Place::Stream(_) => None,
        }
    }

    /// How it is called in lines for people.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Opens it. A file shows under its name only after [`Sink::finish`].
    pub(crate) fn open(&self) -> Result<Opened, Failure> {
        if let (true, Place::File(path)) = (self.split, &self.place) {
            return Ok(Opened::Each(path.clone()));
        }
        let opened = match &self.place {
            Place::Stdout => Ok(Sink::Stdout(io::stdout())),
            Place::Stream(path) => OpenOptions::new().write(true).open(path).map(Sink::Stream),
            Place::File(path) => WholeFile::create(path).map(Sink::File),
        };
        opened
            .map(Opened::One)
            .map_err(|error| Failure::file("write", self.name(), &error))
    }
}

fn place(output: &Path) -> Result<Place, Failure> {
    let fail = |error: io::Error| Failure::file("write", output, &error);
    match fs::metadata(output) {
        Ok(meta) if meta.is_dir() => Err(fail(io::Error::other(
            "it is a directory; name a file in it",
        ))),
        Ok(meta) if meta.is_file() => {
            // Replacing it would work in a writable folder even if the file itself is protected: respect that.
            OpenOptions::new().write(true).open(output).map_err(fail)?;
            Ok(Place::File(fs::canonicalize(output).map_err(fail)?))
        }
        Ok(_) => Ok(Place::Stream(output.to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let path = followed(output);
            let folder = folder_of(&path);
            match fs::metadata(&folder) {
                Ok(meta) if meta.is_dir() => Ok(Place::File(path)),
                Ok(_) => Err(fail(io::Error::other(format!(
                    "{} is no folder",
                    folder.display()
                )))),
                Err(_) => Err(fail(io::Error::other(format!(
                    "there is no folder {}",
                    folder.display()
                )))),
            }
        }
        Err(error) => Err(fail(error)),
    }
}

/// The folder in which `path` is.
pub(crate) fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// Where a symbolic link to something that is not there yet leads; the path itself if it is no link.
fn followed(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    // As many steps as the kernel takes before it calls it a loop.
    for _ in 0..40 {
        match fs::read_link(&path) {
            Ok(next) => path = folder_of(&path).join(next),
            Err(_) => break,
        }
    }
    path
}

/// An open target.
#[derive(Debug)]
pub(crate) enum Sink {
    Stdout(io::Stdout),
    Stream(File),
    File(WholeFile),
}

impl Sink {
    /// Makes sure that what was written is there: a file stands under its name, on the disk; a pipe's reader has taken
    /// it. Only then may events be consumed.
    pub(crate) fn finish(self) -> io::Result<()> {
        match self {
            Self::Stdout(mut out) => {
                out.flush()?;
                taken(&out)
            }
            Self::Stream(file) => taken(&file),
            Self::File(file) => file.finish(),
        }
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Stdout(out) => out.write(bytes),
            Self::Stream(file) => file.write(bytes),
            Self::File(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Stdout(out) => out.flush(),
            Self::Stream(file) => file.flush(),
            Self::File(file) => file.flush(),
        }
    }
}

/// Waits until the reader of a pipe has taken everything: a pipe holds 64 KiB, which a reader that has gone away
/// (`| less`, then q) never saw.
fn taken(out: &impl AsFd) -> io::Result<()> {
    let out = out.as_fd();
    if FileType::from_raw_mode(rustix::fs::fstat(out)?.st_mode) != FileType::Fifo {
        return Ok(());
    }
    let tick = Timespec {
        tv_sec: 0,
        tv_nsec: 10_000_000,
    };
    while rustix::io::ioctl_fionread(out)? > 0 {
        let mut ends = [PollFd::new(&out, PollFlags::empty())];
        rustix::event::poll(&mut ends, Some(&tick))?;
        if ends[0].revents().contains(PollFlags::ERR) && rustix::io::ioctl_fionread(out)? > 0 {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(target: &Target) -> Sink {
        match target.open().unwrap() {
            Opened::One(sink) => sink,
            Opened::Each(place) => panic!("{}", place.display()),
        }
    }

    fn refused(output: &Path, to: Option<Format>) -> (u8, String) {
        let failure = Target::new(output, to).unwrap_err();
        (failure.status(), failure.to_string())
    }

    #[test]
    fn the_extension_says_the_format() {
        let folder = tempfile::tempdir().unwrap();
        let format = |name: &str, to| Target::new(&folder.path().join(name), to).unwrap().format();
        assert_eq!(format("a.json", None), Format::Json);
        assert_eq!(format("a.b.NRTT", None), Format::Native);
        assert_eq!(format("a.txt", Some(Format::Native)), Format::Native);
        let (status, text) = refused(&folder.path().join("a.txt"), None);
        assert_eq!(status, 2);
        assert!(text.contains(".json (JSON document), .nrtt"), "{text}");
    }

    #[test]
    fn a_place_that_cannot_be_written_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let (status, text) = refused(folder.path(), None);
        assert_eq!(
            (status, text.contains("it is a directory")),
            (1, true),
            "{text}"
        );
        let (status, text) = refused(&folder.path().join("no/such.json"), None);
        assert_eq!(
            (status, text.contains("there is no folder")),
            (1, true),
            "{text}"
        );
    }

    #[test]
    fn devices_are_written_and_never_replaced() {
        let target = Target::new(Path::new("/dev/full"), None).unwrap();
        assert_eq!((target.file(), target.format()), (None, Format::Json));
        let error = open(&target).write_all(b"x").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }

    #[test]
    fn links_are_followed_also_to_what_is_not_there_yet() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (
            folder.path().join("real.json"),
            folder.path().join("link.json"),
        );
        std::os::unix::fs::symlink("real.json", &link).unwrap();
        for _ in 0..2 {
            let mut sink = open(&Target::new(&link, None).unwrap());
            sink.write_all(b"{}").unwrap();
            sink.finish().unwrap();
            assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
            assert_eq!(fs::read(&real).unwrap(), b"{}");
        }
    }

    #[test]
    fn a_pipe_counts_as_taken_only_when_its_reader_took_it() {
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        rustix::io::write(&writer, b"abc").unwrap();
        let taker = std::thread::spawn(move || {
            let mut three = [0; 3];
            let n = rustix::io::read(&reader, &mut three).unwrap();
            (reader, n)
        });
        taken(&writer).unwrap();
        let (reader, n) = taker.join().unwrap();
        assert_eq!(n, 3);
        rustix::io::write(&writer, b"abc").unwrap();
        drop(reader);
        assert_eq!(
            taken(&writer).unwrap_err().kind(),
            io::ErrorKind::BrokenPipe
        );
    }
}
