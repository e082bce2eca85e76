//! `convert`: a trace in another format.

use std::io;
use std::process::ExitCode;

use nrt_trace_export::NativeError;

use crate::cli::ConvertArgs;
use crate::error::Failure;
use crate::input::Trace;
use crate::input::filter::Filter;
use crate::output::document::Document;
use crate::output::interrupt::{self, Work};
use crate::output::progress::Progress;
use crate::output::tally::Tally;
use crate::output::target::Target;
use crate::output::{human, tell};

/// Which side of the copy broke.
enum Broken {
    Read(NativeError),
    Filter(Failure),
    Written(io::Error),
}

impl From<NativeError> for Broken {
    fn from(error: NativeError) -> Self {
        Self::Read(error)
    }
}

/// Reads, leaves out what the filters say, and writes.
pub(crate) fn run(args: &ConvertArgs) -> Result<ExitCode, Failure> {
    let mut target = Target::new(&args.output, args.to.map(Into::into))?
        .with(&args.json)?
        .with_pftrace(&args.pftrace)?;
    let mut filter = Filter::new(&args.filter)?;
    if filter.any() {
        target = target.filtered();
    }
    interrupt::install(Work::Writing(target.clone()))?;
    let mut progress = Progress::new();
    let converted = convert(args, &target, &mut filter, &mut progress);
    progress.clear();
    let (trace, tally) = converted?;
    if !target.is_stdout() {
        let size = target.file().and_then(|path| std::fs::metadata(path).ok());
        let size = size.map_or_else(String::new, |meta| {
            format!(" ({})", human::bytes(meta.len()))
        });
        tell::note(format!(
            "{} of {} in {}{size}",
            human::events(tally.events()),
            human::processes(tally.processes()),
            target.name()
        ));
    }
    if filter.any() && tally.events() == 0 && trace.spool.events() > 0 {
        tell::warning(format!(
            "0 of {} fit the filter: {}",
            human::events(trace.spool.events()),
            filter.misfit()
        ));
    }
    trace.ended()?;
    Ok(ExitCode::SUCCESS)
}

fn convert(
    args: &ConvertArgs,
    target: &Target,
    filter: &mut Filter,
    progress: &mut Progress,
) -> Result<(Trace, Tally), Failure> {
    let failed = |error| Failure::file("write", target.name(), &error);
    let mut trace = Trace::open(&args.input, progress)?;
    let mut document = Document::new(target, target.open()?).map_err(failed)?;
    let all = trace.spool.events();
    let (mut tally, mut taken, mut filtered) = (Tally::default(), Tally::default(), filter.any());
    filtered &= all > 0;
    let copied = trace.spool.regroup_ahead(|part| {
        taken.part(&part);
        progress.writing(taken.events(), all);
        if !filtered {
            tally.part(&part);
            return document.part(&part).map_err(Broken::Written);
        }
        for part in filter.part(part).map_err(Broken::Filter)? {
            tally.part(&part);
            document.part(&part).map_err(Broken::Written)?;
        }
        Ok(())
    });
    copied.map_err(|broken| match broken {
        Broken::Read(error) => trace.broken(&error),
        Broken::Filter(failure) => failure,
        Broken::Written(error) => failed(error),
    })?;
    let complete = document.complete().map_err(failed)?;
    complete.finish().map_err(failed)?;
    Ok((trace, tally))
}
