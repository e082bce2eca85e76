//! `subscribe`: events as they come, a line each.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Stdout, Write, stdout};
use std::pin::pin;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use nrt_trace_abi::record::{RECORD_BYTES, Record};
use nrt_trace_export::{JsonOptions, JsonWriter, ProcessIdMode};
use nrt_trace_model::{EventType, Phase};
use nrt_trace_proto::v1;
use nrt_trace_proto::v1::trace_part::Part;

use crate::cli::{ListFormat, SocketArg, SubscribeArgs, SubscribeFrom};
use crate::client::Client;
use crate::error::Failure;
use crate::output::{human, reader, tell};
use crate::record::signals::Signals;

/// Time between two lines that say what was missed.
const SILENCE: Duration = Duration::from_secs(1);

/// Follows the run to its end, or to a signal.
pub(crate) async fn run(socket: &SocketArg, args: SubscribeArgs) -> Result<ExitCode, Failure> {
    let mut signals = Signals::install()?;
    let mut client = Client::connect(&socket.path()).await?;
    let format = args.format.unwrap_or_else(|| {
        if stdout().is_terminal() {
            ListFormat::Table
        } else {
            ListFormat::Json
        }
    });
    let mut parts = client.subscribe(request(args)).await?;
    let mut lines = Lines::new(format);
    let mut tally = Tally::default();
    let mut unread = pin!(reader::gone());
    let ended = loop {
        let part = tokio::select! {
            part = parts.next() => part?,
            error = &mut unread => return Err(error.into()),
            // It is the way to end it, and no failure.
            _ = signals.first() => break false,
        };
        let Some(part) = part else { break true };
        tally.take(&part);
        lines.take(part)?;
    };
    lines.flush()?;
    tally.say(ended);
    Ok(ExitCode::SUCCESS)
}

fn request(args: SubscribeArgs) -> v1::SubscribeRequest {
    let from = match args.from {
        SubscribeFrom::Now => v1::SubscribeFrom::Now,
        SubscribeFrom::Oldest => v1::SubscribeFrom::Oldest,
        SubscribeFrom::Unread => v1::SubscribeFrom::Unread,
    };
    v1::SubscribeRequest {
        token: args.scope.token,
        from: from.into(),
        nc: args.nc.map(|list| list.0).unwrap_or_default(),
        process: args.process,
        events: args.events.map(|terms| terms.0).unwrap_or_default(),
        strings_from: 0,
    }
}

/// Prints events.
enum Lines {
    Json(Box<JsonWriter<Stdout>>),
    Table(Table),
}

impl Lines {
    fn new(format: ListFormat) -> Self {
        let options = JsonOptions {
            process_id: ProcessIdMode::Always,
            names: true,
            ..JsonOptions::default()
        };
        match format {
            ListFormat::Json => Self::Json(Box::new(JsonWriter::lines(stdout(), options))),
            ListFormat::Table => Self::Table(Table::default()),
        }
    }

    fn take(&mut self, part: Part) -> io::Result<()> {
        // A ring's account ends its batch.
        let whole = matches!(part, Part::Account(_));
        match self {
            Self::Json(json) => json.part(&v1::TracePart { part: Some(part) })?,
            Self::Table(table) => table.take(&part, &mut stdout().lock())?,
        }
        if whole { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Json(json) => json.flush(),
            Self::Table(_) => stdout().flush(),
        }
    }
}

/// Lines for people.
#[derive(Default)]
struct Table {
    headed: bool,
    /// Pids, or what stands for them, by producer.
    processes: BTreeMap<u32, String>,
}

impl Table {
    fn take(&mut self, part: &Part, out: &mut impl Write) -> io::Result<()> {
        match part {
            Part::Producer(producer) => {
                let pid = producer
                    .pid
                    .map_or_else(|| "?".to_owned(), |pid| pid.to_string());
                self.processes.insert(producer.producer_id, pid);
                Ok(())
            }
            Part::Records(records) => self.records(records, out),
            _ => Ok(()),
        }
    }

    fn records(&mut self, records: &v1::Records, out: &mut impl Write) -> io::Result<()> {
        if !std::mem::replace(&mut self.headed, true) {
            let (time, pid, nc, phase) = ("time", "pid", "nc", "phase");
            writeln!(out, "{time:<27} {pid:>8} {nc:>3} {phase:<7} event")?;
        }
        let pid = self
            .processes
            .get(&records.producer_id)
            .map_or("?", String::as_str);
        let (packed, _) = records.packed.as_chunks::<RECORD_BYTES>();
        for record in packed.iter().map(Record::from_bytes) {
            let kind = record.trace_type();
            let name = EventType::from_value(kind)
                .map_or_else(|| format!("type {kind}"), |event| event.name().to_owned());
            writeln!(
                out,
                "{:<27} {pid:>8} {:>3} {:<7} {name}",
                human::moment(record.timestamp_ns()),
                records.nc_idx,
                Phase::from_value(record.phase()).map_or("?", Phase::name),
            )?;
        }
        Ok(())
    }
}

/// What came, and what did not.
#[derive(Default)]
struct Tally {
    accounts: BTreeMap<(u32, u32), v1::RingAccount>,
    said: Option<Instant>,
    told: u64,
}

impl Tally {
    fn take(&mut self, part: &Part) {
        if let Part::Account(account) = part {
            let of = (account.producer_id, account.nc_idx);
            self.accounts.insert(of, *account);
            let lost = self.sum(|account| account.lost);
            if lost > self.told && self.said.is_none_or(|at| at.elapsed() >= SILENCE) {
                tell::warning(format!("{} missed so far", human::events(lost)));
                (self.said, self.told) = (Some(Instant::now()), lost);
            }
        }
    }

    fn sum(&self, of: fn(&v1::RingAccount) -> u64) -> u64 {
        self.accounts.values().map(of).fold(0, u64::saturating_add)
    }

    fn say(&self, ended: bool) {
        let (delivered, lost) = (
            self.sum(|account| account.delivered),
            self.sum(|account| account.lost),
        );
        let why = if ended { "the run ended: " } else { "" };
        tell::note(format!(
            "{why}{}, {} missed",
            human::events(delivered),
            human::count(lost)
        ));
    }
}

#[cfg(test)]
mod tests {
    use nrt_trace_abi::record::Draft;

    use super::*;

    #[test]
    fn a_line_for_each_event_under_one_heading() {
        let mut table = Table::default();
        let producer = v1::Producer {
            producer_id: 3,
            pid: Some(42),
            ..v1::Producer::default()
        };
        let record = |trace_type, seq| {
            let draft = Draft {
                trace_type,
                timestamp_ns: 1_796_005_265_123_456_789,
                ..Draft::default()
            };
            draft.finish(seq).to_bytes()
        };
        let records = v1::Records {
            producer_id: 3,
            nc_idx: 7,
            packed: [record(0, 1), record(250, 2)].concat().into(),
        };
        let mut out = Vec::new();
        for part in [Part::Producer(producer), Part::Records(records)] {
            table.take(&part, &mut out).unwrap();
        }
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3);
        assert!(lines[0].starts_with("time "));
        assert!(
            lines[1].starts_with("2026-11-30 02:21:05.123 UTC       42   7 "),
            "{text}"
        );
        assert!(lines[2].ends_with(" type 250"), "{text}");
    }
}
