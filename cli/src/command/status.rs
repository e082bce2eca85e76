//! `status`: the daemon and its runs.

use std::io::{Write, stdout};
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nrt_trace_proto::v1;
use serde_json::json;

use super::start::{filter, run_id, scope};
use crate::cli::{ListFormat, SocketArg, StatusArgs};
use crate::client::Client;
use crate::error::Failure;
use crate::output::table::{Align, Table, printable};
use crate::output::{answer, human};

/// Prints what the daemon says of itself.
pub(crate) async fn run(socket: &SocketArg, args: StatusArgs) -> Result<ExitCode, Failure> {
    let client = Client::connect(&socket.path()).await?;
    let status = client.status_at_connect();
    let mut out = stdout().lock();
    match args.format.format {
        ListFormat::Table => table(status, &mut out)?,
        ListFormat::Json => writeln!(out, "{:#}", document(status))?,
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn table(status: &v1::GetStatusResponse, out: &mut impl Write) -> Result<(), Failure> {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let up = now.saturating_sub(Duration::from_nanos(status.started_ns));
    writeln!(
        out,
        "daemon     {} (ABI {}), pid {}, up {}{}",
        printable(&status.version),
        status.abi_version,
        status.pid,
        human::span(up),
        if status.embedded {
            ", inside a recording"
        } else {
            ""
        }
    )?;
    writeln!(out, "control    {}", printable(&status.control_socket))?;
    writeln!(out, "producers  {}", printable(&status.producer_socket))?;
    writeln!(
        out,
        "attached   {} processes; {} quarantined, {} refused since the start",
        status.producers, status.quarantined, status.refused
    )?;
    if status.not_kept > 0 {
        writeln!(
            out,
            "not kept   {} unread events of ended processes; they would not survive the daemon (see its log)",
            status.not_kept
        )?;
    }
    writeln!(
        out,
        "memory     rings: {} reserved, {} touched; {} of its own; CPU {:.2} s",
        human::bytes(status.reserved_bytes),
        human::bytes(status.resident_bytes),
        human::bytes(status.rss_bytes),
        Duration::from_nanos(status.cpu_ns).as_secs_f64()
    )?;
    for refusal in &status.refusals {
        let often = human::count(refusal.count);
        writeln!(
            out,
            "refused    {often} times: {}",
            printable(&refusal.text)
        )?;
    }
    writeln!(
        out,
        "clock      {}; event times come from {}",
        printable(&status.clocksource),
        if status.tsc_clock {
            "the time stamp counter"
        } else {
            "clock_gettime"
        }
    )?;
    if status.runs.is_empty() {
        writeln!(
            out,
            "runs       none: nothing is captured, nothing is unread"
        )?;
        return Ok(());
    }
    for one in &status.runs {
        let run = one.run.clone().unwrap_or_default();
        writeln!(
            out,
            "run        {} of {}: {}, started {}; {} for each NeuronCore; {}",
            run_id(&run),
            scope(&run),
            state(one),
            human::moment(run.started_ns),
            human::events(run.max_events_per_nc),
            filter(&run.nc, &run.events)
        )?;
    }
    writeln!(out)?;
    runs_table(status).write(out)?;
    Ok(())
}

/// What a run does, and whether all of it is here.
fn state(one: &v1::RunStatus) -> String {
    let state = if one.capturing {
        "capturing"
    } else {
        "stopped"
    };
    match one.away {
        0 => state.to_owned(),
        away => format!(
            "{state} ({} away since the daemon started anew)",
            human::processes(usize::try_from(away).unwrap_or(usize::MAX))
        ),
    }
}

fn runs_table(status: &v1::GetStatusResponse) -> Table {
    let right = |name| (name, Align::Right);
    let mut table = Table::new(&[
        ("RUN", Align::Left),
        ("STATE", Align::Left),
        right("PROCESSES"),
        right("RECORDED"),
        right("FETCHED"),
        right("UNREAD"),
        right("PENDING"),
        right("LOST"),
        right("GIVEN UP"),
    ]);
    for one in &status.runs {
        let run = one.run.clone().unwrap_or_default();
        let sum = |field: fn(&v1::RingAccount) -> u64| {
            human::count(one.accounts.iter().map(field).sum::<u64>())
        };
        table.row(vec![
            run_id(&run),
            if one.capturing {
                "capturing".to_owned()
            } else {
                "stopped".to_owned()
            },
            one.producers.to_string(),
            sum(|a| a.claimed),
            sum(|a| a.delivered),
            sum(|a| a.unread),
            sum(|a| a.pending),
            sum(|a| a.lost.saturating_sub(a.abandoned)),
            sum(|a| a.abandoned),
        ]);
    }
    table
}

fn document(status: &v1::GetStatusResponse) -> serde_json::Value {
    let runs: Vec<serde_json::Value> = status.runs.iter().map(run_document).collect();
    json!({
        "version": status.version,
        "abi_version": status.abi_version,
        "pid": status.pid,
        "started_ns": status.started_ns.to_string(),
        "embedded": status.embedded,
        "control_socket": status.control_socket,
        "producer_socket": status.producer_socket,
        "producer_count": status.producers,
        "quarantined_count": status.quarantined,
        "refused_count": status.refused,
        "not_kept_count": status.not_kept,
        "reserved_bytes": status.reserved_bytes,
        "resident_bytes": status.resident_bytes,
        "rss_bytes": status.rss_bytes,
        "cpu_ns": status.cpu_ns,
        "clocksource": status.clocksource,
        "tsc_clock": status.tsc_clock,
        "budgets": status.budgets.iter().map(budget_document).collect::<Vec<_>>(),
        "refusals": status.refusals.iter().map(refusal_document).collect::<Vec<_>>(),
        "runs": runs,
    })
}

fn budget_document(budget: &v1::Budget) -> serde_json::Value {
    json!({ "key": budget.key, "used": budget.used, "allowed": budget.allowed })
}

fn refusal_document(refusal: &v1::Refusal) -> serde_json::Value {
    json!({
        "cause": refusal.cause,
        "text": refusal.text,
        "count": refusal.count,
        "last_ns": refusal.last_ns.to_string(),
    })
}

fn run_document(one: &v1::RunStatus) -> serde_json::Value {
    let accounts: Vec<serde_json::Value> = one.accounts.iter().map(answer::account).collect();
    let mut run = answer::run(&one.run.clone().unwrap_or_default());
    run["capturing"] = one.capturing.into();
    run["producer_count"] = one.producers.into();
    run["away_count"] = one.away.into();
    run["accounts"] = accounts.into();
    run
}
