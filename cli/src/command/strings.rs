//! `strings`: names and their ids.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{Write, stdout};
use std::path::Path;
use std::process::ExitCode;

use nrt_trace_export::NativeReader;
use nrt_trace_model::strings::get_id;
use nrt_trace_proto::v1::StringEntry;
use nrt_trace_proto::v1::trace_part::Part;
use serde_json::json;

use crate::cli::{ListFormat, SocketArg, StringsArgs};
use crate::client::Client;
use crate::error::Failure;
use crate::output::table::{Align, Table, printable};
use crate::output::tell;

/// Ids of one request; the daemon takes 4096.
const IDS: usize = 1000;

/// Lists the names, or prints the id of one.
pub(crate) async fn run(socket: &SocketArg, args: StringsArgs) -> Result<ExitCode, Failure> {
    if let Some(text) = &args.of {
        writeln!(stdout(), "{}", id_of(text)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let (names, broken) = match &args.file {
        Some(file) => of_file(file, &args.id)?,
        None => (of_daemon(socket, &args.id).await?, None),
    };
    let mut out = stdout().lock();
    match args.format.format {
        ListFormat::Table => table(&names).write(&mut out)?,
        ListFormat::Json => {
            let list: Vec<serde_json::Value> = names
                .iter()
                .map(|entry| json!({ "id": entry.id, "name": entry.text }))
                .collect();
            writeln!(out, "{:#}", json!({ "strings": list }))?;
        }
    }
    out.flush()?;
    if let Some(failure) = broken {
        return Err(failure);
    }
    match args
        .id
        .iter()
        .find(|id| names.iter().all(|name| name.id != **id))
    {
        Some(id) => Err(Failure::Failed(format!("no name has the id {id}"))),
        None => Ok(ExitCode::SUCCESS),
    }
}

fn id_of(text: &OsStr) -> Result<u64, Failure> {
    let text = text.to_str().ok_or_else(|| {
        Failure::Usage("--of takes text in UTF-8: other bytes are no name".to_owned())
    })?;
    Ok(get_id(text.as_bytes()))
}

async fn of_daemon(socket: &SocketArg, ids: &[u64]) -> Result<Vec<StringEntry>, Failure> {
    let mut client = Client::connect(&socket.path()).await?;
    let mut names = Vec::new();
    for some in ids.chunks(IDS) {
        names.extend(client.strings(0, some.to_vec()).await?.entries);
    }
    let mut from = 0;
    while ids.is_empty() {
        let page = client.strings(from, Vec::new()).await?;
        // A page that does not move on would be asked for again for ever.
        let last = page.next >= page.total || page.next <= from;
        from = page.next;
        names.extend(page.entries);
        if last {
            break;
        }
    }
    Ok(names)
}

/// The names of a trace file; of one that is cut or damaged those before that place, and why there are no more.
fn of_file(path: &Path, ids: &[u64]) -> Result<(Vec<StringEntry>, Option<Failure>), Failure> {
    let file = File::open(path).map_err(|error| Failure::file("read", path, &error))?;
    let broken = |error| Failure::Failed(format!("{}: {error}", path.display()));
    let reader = NativeReader::new(file).map_err(broken)?;
    let mut names: Vec<StringEntry> = Vec::new();
    let mut places: HashMap<u64, usize> = HashMap::new();
    for part in reader {
        let strings = match part {
            Ok(part) => match part.part {
                Some(Part::Strings(strings)) => strings,
                _ => continue,
            },
            Err(error) => return Ok((names, Some(broken(error)))),
        };
        for entry in strings.entries {
            if !ids.is_empty() && !ids.contains(&entry.id) {
                continue;
            }
            match places.get(&entry.id).map(|place| &names[*place]) {
                None => {
                    places.insert(entry.id, names.len());
                    names.push(entry);
                }
                Some(first) if first.text != entry.text => tell::warning(format!(
                    "conflicting id {} with name {:?} and {:?}: the first stays",
                    entry.id, first.text, entry.text
                )),
                Some(_) => {}
            }
        }
    }
    Ok((names, None))
}

fn table(names: &[StringEntry]) -> Table {
    let mut table = Table::new(&[("ID", Align::Right), ("NAME", Align::Left)]);
    for entry in names {
        let name = match entry.text.as_str() {
            "" => "\"\"".to_owned(),
            text => printable(text),
        };
        table.row(vec![entry.id.to_string(), name]);
    }
    table
}
