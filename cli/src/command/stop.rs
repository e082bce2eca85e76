//! `stop`: a run ends; what it holds stays.

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use nrt_trace_proto::v1;
use serde_json::{Value, json};

use super::given_up::GivenUp;
use super::start::{run_id, scope};
use crate::cli::{ListFormat, SocketArg, StopArgs};
use crate::client::Client;
use crate::error::Failure;
use crate::output::tally::{Tally, dropped};
use crate::output::{answer, human, tell};

/// Stops a run and tells what each process and core recorded.
pub(crate) async fn run(socket: &SocketArg, args: StopArgs) -> Result<ExitCode, Failure> {
    let mut client = Client::connect(&socket.path()).await?;
    let token = args.scope.token;
    let request = v1::StopRequest {
        token: token.clone(),
        discard: args.discard,
    };
    let before = GivenUp::of(client.status_at_connect(), &token);
    let reply = client.stop(request).await?;
    let given_up = before.since(&reply.accounts);
    let run = reply.run.clone().unwrap_or_default();

    let mut producers = client.producers(None).await?;
    producers.retain(|producer| producer.run_id == run.run_id);
    let mut tally = Tally::default();
    for producer in &producers {
        tally.producer(producer.clone());
    }
    for account in &reply.accounts {
        tally.account(*account);
    }
    let told = tell::answer(|out| match args.format.format {
        ListFormat::Table => report(&run, &reply, &tally, out),
        ListFormat::Json => writeln!(out, "{:#}", document(&reply, &producers, given_up)),
    });

    for id in &reply.not_quiescent {
        tell::warning(format!(
            "producer {id} did not answer in time: how its losses split by cause is not exact, their sum is"
        ));
    }
    if !reply.away.is_empty() {
        tell::warning(away(reply.away.len()));
    }
    tally.warn_of_rest();
    told.map_err(|failure| failure.after("the run has ended"))?;
    Ok(ExitCode::SUCCESS)
}

/// What it means that processes have not come back to a daemon that started anew.
pub(super) fn away(processes: usize) -> String {
    format!(
        "{} not come back yet since the daemon started anew: what they recorded meanwhile is not in these figures, and they go \
         on recording until they are back; then fetch",
        match processes {
            1 => "1 process has".to_owned(),
            n => format!("{} have", human::processes(n)),
        }
    )
}

fn report(
    run: &v1::Run,
    reply: &v1::StopResponse,
    tally: &Tally,
    out: &mut impl Write,
) -> io::Result<()> {
    let lasted = Duration::from_nanos(
        run.stopped_ns
            .unwrap_or(run.started_ns)
            .saturating_sub(run.started_ns),
    );
    writeln!(
        out,
        "run      {} of {}, lasted {}",
        run_id(run),
        scope(run),
        human::span(lasted)
    )?;
    for line in tally.claimed_lines() {
        writeln!(out, "recorded {line}")?;
    }
    let forgotten = run.forgotten.unwrap_or_default();
    if run.forgotten_processes > 0 {
        writeln!(
            out,
            "recorded by {} that ended and {} fetched: {}",
            human::processes(run.forgotten_processes as usize),
            if run.forgotten_processes == 1 {
                "was"
            } else {
                "were"
            },
            human::events(forgotten.claimed),
        )?;
    }
    let accounts = || reply.accounts.iter().chain(&run.forgotten);
    let sum = |field: fn(&v1::RingAccount) -> u64| accounts().map(field).sum::<u64>();
    let unread = sum(|a| a.unread) + sum(|a| a.pending);
    writeln!(
        out,
        "in all   {} recorded, {} fetched, {} unread, {} lost, {} given up",
        human::events(sum(|a| a.claimed)),
        human::count(sum(|a| a.delivered)),
        human::count(unread),
        human::count(tally.dropped() + dropped(&forgotten)),
        human::count(sum(|a| a.abandoned)),
    )?;
    Ok(())
}

fn document(reply: &v1::StopResponse, producers: &[v1::Producer], given_up: u64) -> Value {
    let producers: Vec<Value> = producers.iter().map(answer::producer).collect();
    let accounts: Vec<Value> = reply.accounts.iter().map(answer::account).collect();
    json!({
        "run": reply.run.as_ref().map(answer::run),
        "producers": producers,
        "accounts": accounts,
        "abandoned": given_up,
        "not_quiescent_producer_ids": reply.not_quiescent,
        "away_producer_ids": reply.away,
        "away_count": reply.away.len(),
    })
}
