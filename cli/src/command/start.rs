//! `start`: a run begins.

use std::io::{self, Write};
use std::process::ExitCode;

use nrt_trace_proto::v1;
use serde_json::{Value, json};

use super::start_request;
use crate::cli::{ListFormat, SocketArg, StartArgs};
use crate::client::Client;
use crate::error::Failure;
use crate::output::table::printable;
use crate::output::{answer, human, tell};

/// Starts a run and tells, a line each, what it captures and who is in it.
pub(crate) async fn run(socket: &SocketArg, args: StartArgs) -> Result<ExitCode, Failure> {
    let capture = args.capture.or_environment()?;
    let mut client = Client::connect(&socket.path()).await?;
    let arm_timeout_ms = args.arm_timeout;
    let request = v1::StartRequest {
        keep: args.keep,
        arm_timeout_ms,
        ..start_request(args.scope.token, capture)
    };
    let reply = client.start(request).await.map_err(in_options)?;
    let told = tell::answer(|out| match args.format.format {
        ListFormat::Table => report(&reply, out),
        ListFormat::Json => writeln!(out, "{:#}", document(&reply)),
    });
    for warning in &reply.warnings {
        tell::warning(warning);
    }
    told.map_err(|failure| failure.after("the run has begun"))?;
    Ok(ExitCode::SUCCESS)
}

/// The daemon names the request's field, which is an option here.
fn in_options(failure: Failure) -> Failure {
    match failure {
        Failure::Failed(text) => {
            Failure::Failed(text.replace("start without keep", "start without --keep"))
        }
        other => other,
    }
}

fn report(reply: &v1::StartResponse, out: &mut impl Write) -> io::Result<()> {
    let run = reply.run.clone().unwrap_or_default();
    writeln!(
        out,
        "run      {} of {}, started {}",
        run_id(&run),
        scope(&run),
        human::moment(run.started_ns)
    )?;
    writeln!(
        out,
        "ring     {} for each NeuronCore",
        human::events(run.max_events_per_nc)
    )?;
    writeln!(out, "filter   {}", filter(&run.nc, &run.events))?;
    for producer in &reply.producers {
        armed(producer, out)?;
    }
    if reply.producers.is_empty() {
        writeln!(
            out,
            "armed    nobody yet: no process is attached; those that attach are armed at once"
        )?;
    }
    if reply.abandoned > 0 {
        let given_up = human::events(reply.abandoned);
        writeln!(
            out,
            "given up {given_up} of the previous run that nobody had fetched"
        )?;
    }
    Ok(())
}

fn document(reply: &v1::StartResponse) -> Value {
    let producers: Vec<Value> = reply.producers.iter().map(answer::armed).collect();
    json!({
        "run": reply.run.as_ref().map(answer::run),
        "producers": producers,
        "abandoned": reply.abandoned,
        "warnings": reply.warnings,
    })
}

/// Whether a process has its rings.
pub(super) fn armed(producer: &v1::ArmedProducer, out: &mut impl Write) -> io::Result<()> {
    let name = printable(&producer.name);
    let who = match producer.pid {
        Some(pid) => format!("{pid} {name}"),
        None => format!("producer {} {name}", producer.producer_id),
    };
    if !producer.refused.is_empty() {
        writeln!(out, "refused  {who}: {}", printable(&producer.refused))?;
    } else if producer.armed {
        let memory = human::bytes(producer.segment_bytes);
        writeln!(out, "armed    {who} (up to {memory} of shared memory)")?;
    } else {
        writeln!(
            out,
            "not yet  {who}: it did not answer in time, and is armed when it does"
        )?;
    }
    Ok(())
}

/// A run's number as it is printed everywhere.
pub(super) fn run_id(run: &v1::Run) -> String {
    answer::run_id(run.run_id)
}

/// Whose run it is.
pub(crate) fn scope(run: &v1::Run) -> String {
    match run.token.as_str() {
        "" => "the host".to_owned(),
        token => format!("token {}", printable(token)),
    }
}

/// A filter in words.
pub(crate) fn filter(nc: &[u32], events: &[String]) -> String {
    let cores = match nc {
        [] => "all NeuronCores".to_owned(),
        list => format!("NeuronCores {}", human::ranges(list)),
    };
    let events = match events.len() {
        0 => "all event types".to_owned(),
        1..=8 => format!("event types {}", events.join(", ")),
        n => format!("{n} event types"),
    };
    format!("{cores}, {events}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_of_the_request_is_told_as_the_option() {
        let refused = Failure::Failed("a run is going on; start without keep ends it".to_owned());
        let told = in_options(refused).to_string();
        assert_eq!(told, "a run is going on; start without --keep ends it");
    }

    #[test]
    fn each_fact_has_its_line() {
        let run = v1::Run {
            run_id: 0xAB,
            started_ns: 1_796_005_265_123_456_789,
            max_events_per_nc: 1024,
            nc: vec![0, 1, 2, 8],
            events: vec!["nrt_execute".to_owned()],
            ..v1::Run::default()
        };
        let armed = v1::ArmedProducer {
            producer_id: 1,
            pid: Some(42),
            name: "trainer".to_owned(),
            armed: true,
            segment_bytes: 1 << 20,
            refused: String::new(),
        };
        let late = v1::ArmedProducer {
            producer_id: 2,
            pid: None,
            armed: false,
            ..armed.clone()
        };
        let refused = v1::ArmedProducer {
            refused: "its rings need 2 bytes, 1 is allowed (max_segment_bytes)".to_owned(),
            ..late.clone()
        };
        let reply = v1::StartResponse {
            run: Some(run),
            producers: vec![armed, late, refused],
            abandoned: 7,
            ..v1::StartResponse::default()
        };
        let mut out = Vec::new();
        report(&reply, &mut out).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "run      00000000000000ab of the host, started 2026-11-30 02:21:05.123 UTC\n\
             ring     1,024 events for each NeuronCore\n\
             filter   NeuronCores 0-2,8, event types nrt_execute\n\
             armed    42 trainer (up to 1.0 MiB of shared memory)\n\
             not yet  producer 2 trainer: it did not answer in time, and is armed when it does\n\
             refused  producer 2 trainer: its rings need 2 bytes, 1 is allowed (max_segment_bytes)\n\
             given up 7 events of the previous run that nobody had fetched\n"
        );
    }
}
