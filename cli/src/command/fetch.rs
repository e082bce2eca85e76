//! `fetch`: unread events become a file, and only then are consumed.

use std::io::{Write, stdout};
use std::process::ExitCode;

use nrt_trace_proto::v1;
use nrt_trace_proto::v1::trace_part::Part;

use crate::cli::{FetchArgs, SocketArg};
use crate::client::Client;
use crate::error::Failure;
use crate::output::document::Document;
use crate::output::tally::Tally;
use crate::output::target::{Sink, Target};
use crate::output::{human, tell};

/// Fetches, or gives up, what the run holds.
pub(crate) async fn run(socket: &SocketArg, args: FetchArgs) -> Result<ExitCode, Failure> {
    let request = request(&args);
    let Some(output) = &args.output else {
        let mut client = Client::connect(&socket.path()).await?;
        return discard(&mut client, request).await;
    };
    // What is wrong with the output is told before the daemon is asked for anything.
    let target = Target::new(output, args.to.map(Into::into))?;
    let sink = target.open()?;
    let mut client = Client::connect(&socket.path()).await?;
    let (tally, end, sink) = write(&mut client, request, &target, sink).await?;
    sink.finish()
        .map_err(|error| Failure::file("write", target.name(), &error))?;
    if let Some(file) = &args.host_stats {
        super::host::export(&mut client, file).await?;
    }
    client.commit(end.fetch_id).await.map_err(|failure| {
        failure.while_doing(format!(
            "{} is written, but its events were not consumed and will come again",
            target.name()
        ))
    })?;
    report(&tally, &end, &target);
    Ok(ExitCode::SUCCESS)
}

fn request(args: &FetchArgs) -> v1::FetchRequest {
    v1::FetchRequest {
        token: args.scope.token.clone(),
        nc: args.nc.clone().map(|list| list.0).unwrap_or_default(),
        process: args.process.clone(),
        max_events_per_nc: args.max_events_per_nc.unwrap_or(0),
        discard: args.discard,
        ..v1::FetchRequest::default()
    }
}

/// Streams a fetch into the target, which is complete but not yet in its place.
async fn write(
    client: &mut Client,
    request: v1::FetchRequest,
    target: &Target,
    sink: Sink,
) -> Result<(Tally, v1::FetchEnd, Sink), Failure> {
    let failed = |error| Failure::file("write", target.name(), &error);
    let mut parts = client.fetch(request).await?;
    let mut document = Document::new(target.format(), sink).map_err(failed)?;
    let mut tally = Tally::default();
    let mut end = None;
    while let Some(part) = parts.next().await? {
        if let Part::End(closing) = &part {
            end = Some(*closing);
        }
        let part = v1::TracePart { part: Some(part) };
        tally.part(&part);
        document.part(&part).map_err(failed)?;
    }
    let Some(end) = end else { return Err(cut()) };
    let sink = document.finish().map_err(failed)?;
    Ok((tally, end, sink))
}

async fn discard(client: &mut Client, request: v1::FetchRequest) -> Result<ExitCode, Failure> {
    let mut parts = client.fetch(request).await?;
    let mut accounts = Vec::new();
    let mut ended = false;
    while let Some(part) = parts.next().await? {
        match part {
            Part::Account(account) => accounts.push(account),
            Part::End(_) => ended = true,
            _ => {}
        }
    }
    if !ended {
        return Err(cut());
    }
    let given_up: u64 = accounts.iter().map(|account| account.abandoned).sum();
    let mut out = stdout().lock();
    writeln!(
        out,
        "{} given up since the run began",
        human::events(given_up)
    )?;
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn cut() -> Failure {
    Failure::Failed("the daemon ended the fetch in the middle; nothing was consumed".to_owned())
}

fn report(tally: &Tally, end: &v1::FetchEnd, target: &Target) {
    let left = match end.left {
        0 => String::new(),
        n => format!("; {} stay for a later fetch", human::count(n)),
    };
    tell::note(format!(
        "{} of {} in {}{left}",
        human::events(tally.events()),
        human::processes(tally.processes()),
        target.name()
    ));
    for line in tally.fetched_lines() {
        tell::note(format!("  {line}"));
    }
    tally.warn_of_rest();
}
