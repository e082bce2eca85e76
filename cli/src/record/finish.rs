//! The end of a recording: the growing file becomes the trace.

use std::io;
use std::path::Path;

use nrt_trace_export::{NativeError, Spool, Summary};

use super::growing::GrowingFile;
use super::ticks::HostFile;
use crate::error::{Failure, reason};
use crate::output::census::Census;
use crate::output::document::Document;
use crate::output::human;
use crate::output::progress::Progress;
use crate::output::tally::Tally;
use crate::output::target::Target;

/// What a trace holds.
#[derive(Debug)]
pub(crate) struct Written {
    /// Events, durations, losses.
    pub(crate) summary: Summary,
    /// The same by process and core, to be told.
    pub(crate) tally: Tally,
    /// The same by process and type.
    pub(crate) census: Census,
}

/// Writes the trace to its place, and takes the growing file away. If the trace can't be written that file stays, and
/// the failure says where it is; `recorded` are its events, to be told if even that is not possible.
pub(crate) fn finish(
    mut growing: GrowingFile,
    target: &Target,
    host: Option<&Path>,
    recorded: u64,
    progress: &mut Progress,
) -> Result<Written, Failure> {
    match write(&mut growing, target, host, progress) {
        Ok(written) => {
            growing.remove();
            Ok(written)
        }
        Err(Failure::Failed(text)) => {
            let rest = what_is_left(&growing, recorded);
            Err(Failure::Failed(format!("{text}; {rest}")))
        }
        Err(other) => Err(other),
    }
}

/// Where the recording is that did not become a trace.
fn what_is_left(growing: &GrowingFile, recorded: u64) -> String {
    let saved = match growing.path() {
        Some(part) => Ok(part.to_owned()),
        None => growing.save(),
    };
    match saved {
        Ok(place) => format!(
            "what was recorded is in {} (native format)",
            place.display()
        ),
        Err(error) => format!(
            "{} are lost: they can't be kept in {} either: {}",
            human::events(recorded),
            std::env::temp_dir().display(),
            reason(&error)
        ),
    }
}

fn write(
    growing: &mut GrowingFile,
    target: &Target,
    host: Option<&Path>,
    progress: &mut Progress,
) -> Result<Written, Failure> {
    let mut host = host.map(HostFile::create).transpose()?;
    let failed = |error| Failure::file("write", target.name(), &error);
    let file = growing.complete()?;
    let mut spool = Spool::open(file).map_err(unreadable)?;
    let all = spool.events();
    let mut document = Document::new(target, target.open()?).map_err(failed)?;
    let mut summary = Summary::default();
    let mut tally = Tally::default();
    let mut census = Census::default();
    let written = spool.regroup_ahead(|part| {
        summary.part(&part);
        tally.part(&part);
        census.part(&part);
        progress.writing(tally.events(), all);
        if let Some(host) = &mut host {
            host.part(&part).map_err(Broken::Host)?;
        }
        document.part(&part).map_err(Broken::Written)
    });
    written.map_err(|broken| match broken {
        Broken::Read(error) => unreadable(error),
        Broken::Written(error) => failed(error),
        Broken::Host(failure) => failure,
    })?;
    host.map_or(Ok(()), HostFile::finish)?;
    let complete = document.complete().map_err(failed)?;
    complete.finish().map_err(failed)?;
    Ok(Written {
        summary,
        tally,
        census,
    })
}

/// Which side of the copy broke.
enum Broken {
    Read(NativeError),
    Written(io::Error),
    Host(Failure),
}

impl From<NativeError> for Broken {
    fn from(error: NativeError) -> Self {
        Self::Read(error)
    }
}

fn unreadable(error: NativeError) -> Failure {
    Failure::Failed(format!("cannot read the recording back: {error}"))
}
