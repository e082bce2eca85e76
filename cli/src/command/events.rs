//! `events`: the event types that exist.

use std::io::{Write, stdout};
use std::process::ExitCode;

use nrt_trace_model::{Category, EventType};
use nrt_trace_proto::v1;
use nrt_trace_proto::v1::EventCategory;
use serde_json::json;

use crate::cli::{EventsArgs, ListFormat, SocketArg};
use crate::client::{Client, ConnectError};
use crate::error::Failure;
use crate::output::table::{Align, Table, printable};
use crate::output::tell;

/// Prints the daemon's list; without a daemon, and unless one was named, this program's own.
pub(crate) async fn run(socket: &SocketArg, args: EventsArgs) -> Result<ExitCode, Failure> {
    let types = match Client::connect(&socket.path()).await {
        Ok(mut client) => client.event_types().await?,
        Err(error @ (ConnectError::Absent { .. } | ConnectError::Denied { .. }))
            if !socket.is_explicit() =>
        {
            tell::note(format!(
                "{error} These are the types that this program knows."
            ));
            own_types()
        }
        Err(error) => return Err(error.into()),
    };
    let mut out = stdout().lock();
    match args.format.format {
        ListFormat::Table => table(&types).write(&mut out)?,
        ListFormat::Json => {
            let list: Vec<serde_json::Value> = types.iter().map(document).collect();
            writeln!(out, "{:#}", json!({ "event_types": list }))?;
        }
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn own_types() -> Vec<v1::EventType> {
    let one = |event: EventType| v1::EventType {
        value: event.value(),
        name: event.name().to_owned(),
        aliases: event
            .aliases()
            .iter()
            .map(|alias| (*alias).to_owned())
            .collect(),
        category: match event.category() {
            Category::Hardware => EventCategory::Hardware.into(),
            _ => EventCategory::Software.into(),
        },
    };
    EventType::ALL.into_iter().map(one).collect()
}

fn table(types: &[v1::EventType]) -> Table {
    let mut table = Table::new(&[
        ("VALUE", Align::Right),
        ("NAME", Align::Left),
        ("GROUP", Align::Left),
        ("OTHER NAMES", Align::Left),
    ]);
    for event in types {
        table.row(vec![
            event.value.to_string(),
            printable(&event.name),
            category(event.category()).to_owned(),
            printable(&event.aliases.join(", ")),
        ]);
    }
    table
}

fn document(event: &v1::EventType) -> serde_json::Value {
    json!({
        "value": event.value,
        "name": event.name,
        "category": category(event.category()),
        "aliases": event.aliases,
    })
}

fn category(category: EventCategory) -> &'static str {
    match category {
        EventCategory::Unspecified => "unknown",
        EventCategory::Hardware => "hardware",
        EventCategory::Software => "software",
    }
}
