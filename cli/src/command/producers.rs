//! `producers`: the processes that are or were attached.

use std::io::{Write, stdout};
use std::process::ExitCode;

use nrt_trace_proto::v1;
use serde_json::json;

use crate::cli::{ListFormat, ProducersArgs, SocketArg};
use crate::client::Client;
use crate::error::Failure;
use crate::output::table::{Align, Table, printable};
use crate::output::{answer, human};

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
            let list: Vec<serde_json::Value> = producers.iter().map(answer::producer).collect();
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
            answer::state(producer.state()).to_owned(),
            producer.uid.to_string(),
            match producer.worker_gid {
                -1 => "-".to_owned(),
                gid => gid.to_string(),
            },
            dash(human::ranges(&producer.visible_cores)),
            dash(human::ranges(&producer.rings)),
            match producer.run_id {
                0 => "-".to_owned(),
                id => answer::run_id(id),
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
