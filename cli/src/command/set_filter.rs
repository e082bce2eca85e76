//! `set-filter`: a run captures something else from now on.

use std::io::{self, Write};
use std::process::ExitCode;

use nrt_trace_proto::v1;
use serde_json::{Value, json};

use super::start::{armed, filter, run_id, scope};
use crate::cli::{ListFormat, SetFilterArgs, SocketArg};
use crate::client::Client;
use crate::error::Failure;
use crate::output::{answer, human, tell};

/// Changes the filter of a run and tells what it captures now, and what before.
pub(crate) async fn run(socket: &SocketArg, args: SetFilterArgs) -> Result<ExitCode, Failure> {
    let mut client = Client::connect(&socket.path()).await?;
    let request = v1::SetFilterRequest {
        token: args.scope.token,
        nc: args.nc.map(|list| v1::NcFilter { nc: list.0 }),
        events: args.events.map(|terms| v1::TypeFilter { events: terms.0 }),
        arm_timeout_ms: args.arm_timeout,
    };
    let reply = client.set_filter(request).await?;
    let told = tell::answer(|out| match args.format.format {
        ListFormat::Table => report(&reply, out),
        ListFormat::Json => writeln!(out, "{:#}", document(&reply)),
    });
    for warning in &reply.warnings {
        tell::warning(warning);
    }
    told.map_err(|failure| failure.after("the filter is in force"))?;
    Ok(ExitCode::SUCCESS)
}

fn report(reply: &v1::SetFilterResponse, out: &mut impl Write) -> io::Result<()> {
    let run = reply.run.clone().unwrap_or_default();
    writeln!(out, "run      {} of {}", run_id(&run), scope(&run))?;
    writeln!(out, "filter   {}", filter(&run.nc, &run.events))?;
    if let Some(last) = run.past_filters.last() {
        let (before, until) = (filter(&last.nc, &last.events), human::moment(last.until_ns));
        writeln!(out, "before   {before}, until {until}")?;
    }
    let members = usize::try_from(reply.producers).unwrap_or(usize::MAX);
    writeln!(out, "in force {}", human::processes(members))?;
    for producer in &reply.rearmed {
        armed(producer, out)?;
    }
    Ok(())
}

fn document(reply: &v1::SetFilterResponse) -> Value {
    let rearmed: Vec<Value> = reply.rearmed.iter().map(answer::armed).collect();
    json!({
        "run": reply.run.as_ref().map(answer::run),
        "producer_count": reply.producers,
        "rearmed": rearmed,
        "warnings": reply.warnings,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_what_is_captured_now_and_what_was() {
        let past = v1::PastFilter {
            until_ns: 1_796_005_265_123_456_789,
            events: vec!["cc_running".to_owned()],
            ..v1::PastFilter::default()
        };
        let run = v1::Run {
            run_id: 0xAB,
            nc: vec![0, 1],
            past_filters: vec![past],
            filter_changes: 1,
            ..v1::Run::default()
        };
        let reply = v1::SetFilterResponse {
            run: Some(run),
            warnings: Vec::new(),
            producers: 3,
            rearmed: vec![v1::ArmedProducer {
                pid: Some(42),
                name: "trainer".to_owned(),
                armed: true,
                segment_bytes: 1 << 20,
                ..v1::ArmedProducer::default()
            }],
        };
        let mut out = Vec::new();
        report(&reply, &mut out).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "run      00000000000000ab of the host\n\
             filter   NeuronCores 0-1, all event types\n\
             before   all NeuronCores, event types cc_running, until 2026-11-30 02:21:05.123 UTC\n\
             in force 3 processes\n\
             armed    42 trainer (up to 1.0 MiB of shared memory)\n"
        );
    }
}
