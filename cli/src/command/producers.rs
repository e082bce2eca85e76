//! `producers`: the processes that are or were attached.

use std::io::{Write, stdout};
use std::process::ExitCode;

use nrt_trace_proto::v1;
use nrt_trace_proto::v1::ProducerState;
use serde_json::json;

use crate::cli::{ListFormat, ProducersArgs, SocketArg};
use crate::client::Client;
use crate::error::Failure;
use crate::output::human;
use crate::output::table::{Align, Table, printable};

/// Prints the daemon's list.
pub(crate) async fn run(socket: &SocketArg, args: ProducersArgs) -> Result<ExitCode, Failure> {
    let mut client = Client::connect(&socket.path()).await?;
    let producers = client.producers(None).await?;
    let mut out = stdout().lock();
    match args.format.format {
        ListFormat::Table if producers.is_empty() => {
            writeln!(out, "no process is attached, and none left unread events")?;
        }
        ListFormat::Table => table(&producers).write(&mut out)?,
        ListFormat::Json => {
            let list: Vec<serde_json::Value> = producers.iter().map(document).collect();
            writeln!(out, "{:#}", json!({ "producers": list }))?;
        }
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn table(producers: &[v1::Producer]) -> Table {
    let mut table = Table::new(&[
        ("ID", Align::Right),
        ("PID", Align::Right),
        ("NAME", Align::Left),
        ("STATE", Align::Left),
        ("UID", Align::Right),
        ("WORKER", Align::Right),
        ("HOST CORES", Align::Left),
        ("RINGS", Align::Left),
        ("RUN", Align::Left),
        ("ATTACHED", Align::Left),
    ]);
    for producer in producers {
        table.row(vec![
            producer.producer_id.to_string(),
            producer
                .pid
                .map_or_else(|| "-".to_owned(), |pid| pid.to_string()),
            printable(&producer.name),
            state(producer.state()).to_owned(),
            producer.uid.to_string(),
            match producer.worker_gid {
                -1 => "-".to_owned(),
                gid => gid.to_string(),
            },
            dash(human::ranges(&producer.visible_cores)),
            dash(human::ranges(&producer.rings)),
            match producer.run_id {
                0 => "-".to_owned(),
                id => format!("{id:016x}"),
            },
            human::moment(producer.attached_ns),
        ]);
    }
    table
}

fn dash(text: String) -> String {
    if text.is_empty() {
        "-".to_owned()
    } else {
        text
    }
}

fn state(state: ProducerState) -> &'static str {
    match state {
        ProducerState::Unspecified => "unknown",
        ProducerState::Attached => "attached",
        ProducerState::Capturing => "capturing",
        ProducerState::Dead => "dead",
        ProducerState::Detached => "detached",
        ProducerState::Quarantined => "quarantined",
        ProducerState::Away => "away",
    }
}

fn document(producer: &v1::Producer) -> serde_json::Value {
    let run_id = (producer.run_id != 0).then(|| format!("{:016x}", producer.run_id));
    json!({
        "producer_id": producer.producer_id,
        "pid": producer.pid,
        "ns_pid": producer.ns_pid,
        "uid": producer.uid,
        "gid": producer.gid,
        "name": producer.name,
        "comm": producer.comm,
        "cmdline": producer.cmdline,
        "exe": producer.exe,
        "exe_claimed": producer.exe_claimed,
        "state": state(producer.state()),
        "attached_ns": producer.attached_ns.to_string(),
        "ended_ns": producer.ended_ns.map(|ns| ns.to_string()),
        "worker_gid": producer.worker_gid,
        "visible_cores": producer.visible_cores,
        "token": producer.token,
        "armed_from_ns": producer.armed_from_ns.map(|ns| ns.to_string()),
        "rings": producer.rings,
        "run_id": run_id,
        "not_captured": (!producer.not_captured.is_empty()).then_some(&producer.not_captured),
    })
}
