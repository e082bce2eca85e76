//! Traces that are read: from a file or a pipe, in the native format or as a JSON document.
//!
//! A native file is read where it is. What comes through a pipe, and a JSON document, becomes a native file without a name
//! first: a trace is put in order by going over it twice.

pub(crate) mod filter;
mod found;

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::Path;

use nrt_trace_export::{JsonError, NativeError, Spool, import_json};

use crate::error::{Failure, reason};
use crate::output::progress::Progress;
use crate::output::{human, tell};

/// Bytes that tell a native file from a JSON document.
const MAGIC: [u8; 4] = 0x184D_2A57_u32.to_le_bytes();

/// A trace that can be read.
#[derive(Debug)]
pub(crate) struct Trace {
    pub(crate) spool: Spool<File>,
    /// How it is called in lines for people.
    pub(crate) name: String,
    /// Why it ends too early, if it does.
    cut: Option<String>,
}

impl Trace {
    /// Opens the trace at `path`, `-` for standard input.
    pub(crate) fn open(path: &Path, progress: &mut Progress) -> Result<Self, Failure> {
        let stdin = path.as_os_str() == "-";
        let name = if stdin {
            "standard input".to_owned()
        } else {
            path.display().to_string()
        };
        let failed = |error: &io::Error| read_failure(&name, error);
        let mut file = if stdin {
            use std::os::fd::AsFd;
            let own = io::stdin().as_fd().try_clone_to_owned();
            File::from(own.map_err(|error| failed(&error))?)
        } else {
            File::open(path).map_err(|error| failed(&error))?
        };
        let meta = file.metadata().map_err(|error| failed(&error))?;
        if meta.is_dir() {
            return Err(failed(&io::Error::other("it is a directory")));
        }
        let mut head = Vec::new();
        let begin = Read::by_ref(&mut file).take(4).read_to_end(&mut head);
        begin.map_err(|error| failed(&error))?;
        let native = head == MAGIC;
        if !native && !looks_like_json(&head) {
            let text = "it is neither a native trace (.nrtt) nor a JSON document";
            return Err(failed(&io::Error::other(text)));
        }
        if native && meta.is_file() && file.stream_position().is_ok_and(|at| at == 4) {
            return Self::native(file, name, None);
        }
        let all = if meta.is_file() { meta.len() } else { 0 };
        let input = Watched {
            input: head.as_slice().chain(file),
            read: 0,
            all,
            progress,
        };
        if native {
            let file = gather(input, &name)?;
            Self::native(file, name, None)
        } else {
            Self::json(input, name)
        }
    }

    fn native(file: File, name: String, cut: Option<String>) -> Result<Self, Failure> {
        let spool = Spool::open(file).map_err(|error| broken(&name, &error))?;
        let cut = cut.or_else(|| spool.cut().map(ToString::to_string));
        Ok(Self { spool, name, cut })
    }

    fn json(input: impl Read, name: String) -> Result<Self, Failure> {
        let mut file = temporary()?;
        let imported =
            import_json(input, io::BufWriter::new(&mut file)).map_err(|error| match error {
                JsonError::Sink(error) => no_room(&error),
                error => Failure::Failed(format!("cannot read {name}: {error}")),
            })?;
        if imported.unknown > 0 {
            tell::warning(format!(
                "{} of types that this program does not know are left out",
                human::events(imported.unknown)
            ));
        }
        file.rewind().map_err(|error| read_failure(&name, &error))?;
        Self::native(file, name, imported.cut.map(|cut| cut.to_string()))
    }

    /// What to say, and to end with, when the trace was cut: everything before the cut was used.
    pub(crate) fn ended(&self) -> Result<(), Failure> {
        match &self.cut {
            None => Ok(()),
            Some(cut) => Err(Failure::Failed(format!(
                "{}: {cut}; the {} before that were used",
                self.name,
                human::events(self.spool.events())
            ))),
        }
    }

    /// That the trace can't be read on.
    pub(crate) fn broken(&self, error: &NativeError) -> Failure {
        broken(&self.name, error)
    }
}

fn broken(name: &str, error: &NativeError) -> Failure {
    Failure::Failed(format!("cannot read {name}: {error}"))
}

fn read_failure(name: &str, error: &io::Error) -> Failure {
    Failure::Failed(format!("cannot read {name}: {}", reason(error)))
}

fn looks_like_json(head: &[u8]) -> bool {
    let text = head.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(head);
    let first = text.iter().find(|byte| !byte.is_ascii_whitespace());
    first.is_none_or(|byte| *byte == b'{') && !head.is_empty()
}

/// Everything that comes, as a file.
fn gather(mut input: impl Read, name: &str) -> Result<File, Failure> {
    let mut file = temporary()?;
    let mut piece = vec![0; 1 << 18];
    loop {
        let read = match input.read(&mut piece) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(read_failure(name, &error)),
        };
        file.write_all(&piece[..read])
            .map_err(|error| no_room(&error))?;
    }
    file.rewind().map_err(|error| read_failure(name, &error))?;
    Ok(file)
}

fn temporary() -> Result<File, Failure> {
    tempfile::tempfile().map_err(|error| no_room(&error))
}

fn no_room(error: &io::Error) -> Failure {
    Failure::file("write a temporary file in", std::env::temp_dir(), error)
}

/// An input whose way through is shown.
struct Watched<'a, R> {
    input: R,
    read: u64,
    all: u64,
    progress: &'a mut Progress,
}

impl<R: Read> Read for Watched<'_, R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(bytes)?;
        self.read += read as u64;
        self.progress.reading(self.read, self.all);
        Ok(read)
    }
}
