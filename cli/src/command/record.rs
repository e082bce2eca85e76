//! `record`: a command's trace, or the host's, as a file.

use std::io::{Write, stderr, stdout};
use std::process::ExitCode;

use crate::cli::{RecordArgs, SocketArg};
use crate::error::Failure;
use crate::output::target::Target;
use crate::output::{human, tell};
use crate::record::{Outcome, Plan, child, record};

/// Records, prints the summary, and ends as the command did.
pub(crate) async fn run(socket: &SocketArg, args: RecordArgs) -> Result<ExitCode, Failure> {
    let target = Target::new(&args.output, args.to.map(Into::into))?;
    let name = args
        .command
        .first()
        .map(|program| program.display().to_string());
    let plan = Plan {
        target: target.clone(),
        capture: args.capture,
        duration: args.duration,
        command: args.command,
        socket: Some(socket.path()),
    };
    let outcome = record(plan).await?;
    report(&outcome, &target)?;
    if let (Some(name), Some(status)) = (name, outcome.command)
        && let Some(end) = child::bad_end(status)
    {
        tell::note(format!("{name} {end}"));
    }
    Ok(ExitCode::from(outcome.status()))
}

/// The summary: on standard output, or beside a trace that goes there.
pub(super) fn report(outcome: &Outcome, target: &Target) -> Result<(), Failure> {
    let text = text(outcome, target);
    if target.is_stdout() {
        let _best_effort = stderr().lock().write_all(text.as_bytes());
        return Ok(());
    }
    let mut out = stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

fn text(outcome: &Outcome, target: &Target) -> String {
    let mut text = outcome.summary.to_text();
    if !text.ends_with('\n') {
        text.push('\n');
    }
    let size = target.file().and_then(|path| std::fs::metadata(path).ok());
    let size = size.map_or_else(String::new, |meta| {
        format!(" ({})", human::bytes(meta.len()))
    });
    text.push_str(&format!(
        "{} in {}, {}; in {}{size}\n",
        human::events(outcome.events),
        human::span(outcome.lasted),
        human::rate(outcome.events, outcome.lasted),
        target.name()
    ));
    text
}
