//! `summary`: what a trace holds, in a screenful.

use std::io::{Write, stdout};
use std::process::ExitCode;

use nrt_trace_export::{NativeError, Summary};

use crate::cli::{SummaryArgs, SummaryFormat};
use crate::error::Failure;
use crate::input::Trace;
use crate::output::interrupt::{self, Work};
use crate::output::progress::Progress;
use crate::output::tell;

/// Reads the trace, and prints its figures.
pub(crate) fn run(args: &SummaryArgs) -> Result<ExitCode, Failure> {
    interrupt::install(Work::Reading)?;
    let mut progress = Progress::new();
    let read = summary(args, &mut progress);
    progress.clear();
    let (trace, summary) = read?;
    let report = summary.report();
    let mut out = stdout().lock();
    match args.format {
        SummaryFormat::Text if tell::fancy(&stdout()) => {
            out.write_all(report.to_coloured_text().as_bytes())?;
        }
        SummaryFormat::Text => out.write_all(report.to_text().as_bytes())?,
        SummaryFormat::Json => writeln!(out, "{}", report.to_json())?,
    }
    out.flush()?;
    trace.ended()?;
    Ok(ExitCode::SUCCESS)
}

fn summary(args: &SummaryArgs, progress: &mut Progress) -> Result<(Trace, Summary), Failure> {
    let mut trace = Trace::open(&args.input, progress)?;
    let all = trace.spool.events();
    let mut summary = Summary::default();
    let read = trace.spool.regroup_ahead(|part| {
        summary.part(&part);
        progress.counting(summary.events(), all);
        Ok::<(), NativeError>(())
    });
    read.map_err(|error| trace.broken(&error))?;
    Ok((trace, summary))
}
