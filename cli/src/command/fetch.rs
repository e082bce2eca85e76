//! `fetch`: unread events become a file, and only then are consumed.

use std::io::{self, Write};
use std::panic::resume_unwind;
use std::process::ExitCode;

use nrt_trace_proto::v1;
use nrt_trace_proto::v1::trace_part::Part;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::given_up::GivenUp;
use super::stop::away;
use crate::cli::{FetchArgs, ListFormat, SocketArg};
use crate::client::{Client, Parts};
use crate::error::Failure;
use crate::output::document::{Complete, Document};
use crate::output::interrupt::{self, Work};
use crate::output::tally::Tally;
use crate::output::target::{Opened, Target};
use crate::output::{answer, human, tell};

/// Fetches, or gives up, what the run holds.
pub(crate) async fn run(socket: &SocketArg, args: FetchArgs) -> Result<ExitCode, Failure> {
    let request = request(&args);
    let Some(output) = &args.output else {
        let mut client = Client::connect(&socket.path()).await?;
        return discard(&mut client, request, args.format).await;
    };
    // What is wrong with the output is told before the daemon is asked for anything.
    let target = Target::new(output, args.to.map(Into::into))?
        .with(&args.json)?
        .with_pftrace(&args.pftrace)?;
    room_to_tell(&target, args.format)?;
    interrupt::install(Work::Fetching(target.clone()))?;
    let opened = target.open()?;
    let mut client = Client::connect(&socket.path()).await?;
    let mut parts = client.fetch(request).await?;
    let (tally, end, complete) = write(&mut parts, &target, opened).await?;
    complete
        .finish()
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
    report(&tally, &end, &target, args.format).map_err(|failure| {
        failure.after(format!(
            "{} is written, and its events are consumed",
            target.name()
        ))
    })?;
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

/// Parts between connection and document, 1 MiB each at most: one is written while the next ones come.
const AHEAD: usize = 4;

/// Streams a fetch or a snapshot into the target, which is complete but not yet in its place.
pub(super) async fn write(
    parts: &mut Parts,
    target: &Target,
    opened: Opened,
) -> Result<(Tally, v1::FetchEnd, Complete), Failure> {
    let failed = |error| Failure::file("write", target.name(), &error);
    let document = Document::new(target, opened).map_err(failed)?;
    let (sender, receiver) = mpsc::channel(AHEAD);
    let writing = std::thread::Builder::new()
        .name("document".to_owned())
        .spawn(move || document_of(document, receiver))
        .map_err(failed)?;
    let received = receive(parts, sender).await;
    let written = writing.join().unwrap_or_else(|panic| resume_unwind(panic));
    // If that failed, nothing more was received either.
    let (tally, complete) = written.map_err(failed)?;
    let end = received?.ok_or_else(cut)?;
    Ok((tally, end, complete))
}

/// Hands on what comes, until the stream ends or nobody takes it any more.
async fn receive(
    parts: &mut Parts,
    document: mpsc::Sender<Part>,
) -> Result<Option<v1::FetchEnd>, Failure> {
    let mut end = None;
    while let Some(part) = parts.next().await? {
        if let Part::End(closing) = &part {
            end = Some(*closing);
        }
        if document.send(part).await.is_err() {
            break;
        }
    }
    Ok(end)
}

/// Writes and counts what is handed on.
fn document_of(
    mut document: Document,
    mut parts: mpsc::Receiver<Part>,
) -> io::Result<(Tally, Complete)> {
    let mut tally = Tally::default();
    while let Some(part) = parts.blocking_recv() {
        let part = v1::TracePart { part: Some(part) };
        tally.part(&part);
        document.part(&part)?;
    }
    Ok((tally, document.complete()?))
}

async fn discard(
    client: &mut Client,
    request: v1::FetchRequest,
    format: ListFormat,
) -> Result<ExitCode, Failure> {
    let before = GivenUp::of(client.status_at_connect(), &request.token);
    let mut parts = client.fetch(request).await?;
    let mut tally = Tally::default();
    let mut accounts = Vec::new();
    let mut ended = None;
    while let Some(part) = parts.next().await? {
        match part {
            Part::End(end) => ended = Some(end),
            Part::Account(account) => {
                accounts.push(account);
                tally.account(account);
            }
            Part::Producer(producer) => tally.producer(producer),
            _ => {}
        }
    }
    let end = ended.ok_or_else(cut)?;
    let given_up = before.since(&accounts);
    let told = tell::answer(|out| match format {
        ListFormat::Table => writeln!(out, "{} given up", human::events(given_up)),
        ListFormat::Json => writeln!(out, "{:#}", document(&tally, &end, None, given_up)),
    });
    warn_of_away(&end);
    told.map_err(|failure| failure.after("the events are given up"))?;
    Ok(ExitCode::SUCCESS)
}

fn cut() -> Failure {
    Failure::Failed("the daemon ended the fetch in the middle; nothing was consumed".to_owned())
}

/// Standard output can't have the trace and a document about it.
pub(super) fn room_to_tell(target: &Target, format: ListFormat) -> Result<(), Failure> {
    if format == ListFormat::Json && target.is_stdout() {
        let text =
            "--format json goes to standard output, where the trace is to go: name a file with -o";
        return Err(Failure::Usage(text.to_owned()));
    }
    Ok(())
}

/// Tells what is in the file.
pub(super) fn report(
    tally: &Tally,
    end: &v1::FetchEnd,
    target: &Target,
    format: ListFormat,
) -> Result<(), Failure> {
    let told = match format {
        ListFormat::Table => {
            lines(tally, end, target);
            Ok(())
        }
        ListFormat::Json => {
            tell::answer(|out| writeln!(out, "{:#}", document(tally, end, Some(target), 0)))
        }
    };
    warn_of_away(end);
    tally.warn_of_rest();
    told
}

fn lines(tally: &Tally, end: &v1::FetchEnd, target: &Target) {
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
}

/// What a fetch, or a snapshot, did; without a target the events were given up.
fn document(tally: &Tally, end: &v1::FetchEnd, target: Option<&Target>, given_up: u64) -> Value {
    let producers: Vec<Value> = tally.producers().map(answer::producer).collect();
    let account = |(account, events): (v1::RingAccount, u64)| {
        let mut account = answer::account(&account);
        account["event_count"] = events.into();
        account
    };
    let accounts: Vec<Value> = tally.accounts().map(account).collect();
    json!({
        "output": target.map(Target::name),
        "event_count": tally.events(),
        "producers": producers,
        "accounts": accounts,
        "abandoned": given_up,
        "left_count": end.left,
        "away_count": end.away,
        "run_ended": end.run_ended,
    })
}

fn warn_of_away(end: &v1::FetchEnd) {
    if end.away > 0 {
        tell::warning(away(usize::try_from(end.away).unwrap_or(usize::MAX)));
    }
}
