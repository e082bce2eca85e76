//! The end of a recording: the growing file becomes the trace.

use nrt_trace_export::{Spool, Summary};

use super::growing::GrowingFile;
use crate::error::Failure;
use crate::output::document::Document;
use crate::output::target::Target;

/// Writes the trace to its place, and takes the growing file away. If the trace can't be written that file stays, and
/// the failure says where it is.
pub(crate) fn finish(mut growing: GrowingFile, target: &Target) -> Result<Summary, Failure> {
    match write(&mut growing, target) {
        Ok(summary) => {
            growing.remove();
            Ok(summary)
        }
        Err(Failure::Failed(text)) => match growing.path() {
            Some(part) => Err(Failure::Failed(format!(
                "{text}; what was recorded is in {} (native format)",
                part.display()
            ))),
            None => Err(Failure::Failed(text)),
        },
        Err(other) => Err(other),
    }
}

fn write(growing: &mut GrowingFile, target: &Target) -> Result<Summary, Failure> {
    let failed = |error| Failure::file("write", target.name(), &error);
    let mut document = Document::new(target.format(), target.open()?).map_err(failed)?;
    let mut summary = Summary::default();
    let file = growing.complete()?;
    let unreadable = |error: &dyn std::fmt::Display| {
        Failure::Failed(format!("cannot read the recording back: {error}"))
    };
    let mut spool = Spool::open(file).map_err(|error| unreadable(&error))?;
    for part in spool.parts() {
        let part = part.map_err(|error| unreadable(&error))?;
        summary.part(&part);
        document.part(&part).map_err(failed)?;
    }
    document
        .finish()
        .and_then(|out| out.finish())
        .map_err(failed)?;
    Ok(summary)
}
