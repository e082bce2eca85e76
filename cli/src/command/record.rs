//! `record`: a command's trace, or the host's, as a file.

use std::io::{Write, stderr, stdout};
use std::process::ExitCode;

use nrt_trace_export::Format;

use crate::cli::{RecordArgs, SocketArg};
use crate::error::Failure;
use crate::output::table::printable;
use crate::output::target::Target;
use crate::output::{human, tell};
use crate::record::{Destination, HostPlan, Outcome, Plan, Session, child};

/// Records, prints the summary, and ends as the command did.
pub(crate) async fn run(socket: &SocketArg, args: RecordArgs) -> Result<ExitCode, Failure> {
    let target = Target::new(&args.output, args.to.map(Into::into))?
        .with(&args.json)?
        .with_pftrace(&args.pftrace)?;
    let host = host_plan(&args, &target)?;
    let capture = args.capture.or_environment()?;
    // First whatever can be wrong without anything having happened yet.
    let destination = Destination::open(target.clone())?;
    let name = args
        .command
        .first()
        .map(|program| program.display().to_string());
    let plan = Plan {
        capture,
        host,
        duration: args.duration,
        reconnect: args.reconnect,
        command: args.command,
    };
    let mut session = Session::open(Some(&socket.path())).await?;
    let outcome = session.record(plan, destination).await;
    session.close();
    let outcome = outcome?;
    // The command's own status tells more than that the summary could not be written.
    let mut untold = 0;
    match report(&outcome, &target) {
        Ok(()) | Err(Failure::Closed) => {}
        Err(failure) => {
            let failure = failure.after("the recording is over");
            untold = failure.status();
            tell::error(&failure);
        }
    }
    if let (Some(name), Some(status)) = (name, outcome.command)
        && let Some(end) = child::bad_end(status)
    {
        tell::note(format!("{name} {end}"));
    }
    Ok(ExitCode::from(match outcome.status() {
        0 => untold,
        status => status,
    }))
}

/// What is to be recorded of the host monitor. Neuron's JSON document has no place for it: there is a file beside it then.
fn host_plan(args: &RecordArgs, target: &Target) -> Result<Option<HostPlan>, Failure> {
    if !args.host && args.host_stats.is_none() {
        return Ok(None);
    }
    let beside = || match (target.format(), target.file()) {
        (Format::Native | Format::Pftrace, _) => Ok(None),
        (_, Some(file)) => Ok(Some(file.with_extension("host.json"))),
        (_, None) => Err(Failure::Usage(
            "JSON has no place for what the machine uses: say --host-stats FILE, or write .nrtt"
                .to_owned(),
        )),
    };
    let file = match &args.host_stats {
        Some(file) => Some(file.clone()),
        None => beside()?,
    };
    Ok(Some(HostPlan {
        period_ms: args.host_period,
        file,
    }))
}

/// The summary: on standard output, or beside a trace that goes there; warnings on standard error.
pub(super) fn report(outcome: &Outcome, target: &Target) -> Result<(), Failure> {
    let text = text(outcome, target);
    let mut told = Ok(());
    if target.is_stdout() {
        let _best_effort = stderr().lock().write_all(text.as_bytes());
    } else {
        told = tell::answer(|out| out.write_all(text.as_bytes()));
    }
    if let Some(written) = &outcome.written {
        written.tally.warn_of_all();
        written.tally.warn_of_refused(&outcome.daemon.refusals);
    }
    told
}

fn text(outcome: &Outcome, target: &Target) -> String {
    let mut text = String::new();
    let mut events = outcome.events;
    if let Some(written) = &outcome.written {
        events = written.summary.events();
        let mut figures = written.summary.report();
        // They go to standard error, where nobody misses them.
        figures.warnings.clear();
        let coloured = if target.is_stdout() {
            tell::fancy(&stderr())
        } else {
            tell::fancy(&stdout())
        };
        text.push_str(&if coloured {
            figures.to_coloured_text()
        } else {
            figures.to_text()
        });
    }
    let size = target.file().and_then(|path| std::fs::metadata(path).ok());
    let size = size.map_or_else(String::new, |meta| {
        format!(" ({})", human::bytes(meta.len()))
    });
    text.push_str(&format!(
        "{} recorded in {}, {}; trace in {}{size}\n",
        human::events(events),
        human::span(outcome.lasted),
        human::rate(events, outcome.lasted),
        printable(target.name())
    ));
    text
}
