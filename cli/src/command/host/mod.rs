//! `host`: what the machine and the attached processes use.

mod table;

use std::io::{BufWriter, Write, stdout};
use std::path::Path;
use std::pin::pin;
use std::process::ExitCode;

use nrt_trace_export::{HostWriter, host};
use nrt_trace_proto::v1;
use serde_json::json;

use crate::cli::{HostAction, HostArgs, HostStartArgs, ListFormat, Retention, SocketArg};
use crate::client::Client;
use crate::error::Failure;
use crate::output::file::WholeFile;
use crate::output::{reader, tell};

/// Starts, stops, or shows.
pub(crate) async fn run(socket: &SocketArg, args: HostArgs) -> Result<ExitCode, Failure> {
    let mut client = Client::connect(&socket.path()).await?;
    match args.action {
        Some(HostAction::Start(args)) => start(&mut client, &args).await,
        Some(HostAction::Stop(args)) => stop(&mut client, args.format.format).await,
        None if args.follow => follow(&mut client, &args).await,
        None if args.output.is_some() => {
            let file = args.output.unwrap_or_default();
            let ticks = export(&mut client, &file).await?;
            tell::note(format!("{ticks} ticks in {}", file.display()));
            Ok(())
        }
        None => show(&mut client, &args).await,
    }?;
    Ok(ExitCode::SUCCESS)
}

async fn start(client: &mut Client, args: &HostStartArgs) -> Result<(), Failure> {
    let retention = match args.retention {
        None => v1::HostRetention::Unspecified,
        Some(Retention::Saturate) => v1::HostRetention::Saturate,
        Some(Retention::Ring) => v1::HostRetention::Ring,
    };
    let request = v1::StartHostRequest {
        period_ms: args.period,
        max_samples: args.max_samples,
        retention: retention.into(),
    };
    let reply = client.start_host(request).await?;
    if reply.was_running {
        tell::note("the host monitor was running already");
    }
    let told = say(&reply.state.unwrap_or_default(), args.format.format);
    told.map_err(|failure| failure.after("the host monitor runs"))
}

async fn stop(client: &mut Client, format: ListFormat) -> Result<(), Failure> {
    let state = client.stop_host().await?;
    if state.running {
        tell::note("somebody follows the host monitor, and keeps it going as long as that lasts");
    }
    say(&state, format).map_err(|failure| failure.after("the host monitor is told to stop"))
}

fn say(state: &v1::HostState, format: ListFormat) -> Result<(), Failure> {
    tell::answer(|out| match format {
        ListFormat::Table => writeln!(out, "{}", table::state(state)),
        ListFormat::Json => writeln!(out, "{:#}", state_document(state)),
    })
}

/// The newest tick; the next one if the monitor was off.
async fn show(client: &mut Client, args: &HostArgs) -> Result<(), Failure> {
    let mut answer = client.host_stats(None).await?;
    let state = answer.state.unwrap_or_default();
    if !state.saturated && (!state.running || answer.samples.is_empty()) {
        let mut ticks = client.watch_host(args.period).await?;
        let tick = ticks.next().await?.unwrap_or_default();
        answer = client.host_stats(None).await?;
        answer.samples = tick.sample.into_iter().collect();
    }
    let state = answer.state.unwrap_or_default();
    let sample = answer.samples.pop().unwrap_or_default();
    let info = answer.info.unwrap_or_default();
    let mut out = stdout().lock();
    match args.format.format {
        ListFormat::Table => table::write(&state, &info, &sample, &mut out)?,
        ListFormat::Json => writeln!(out, "{:#}", document(&state, &info, &sample)?)?,
    }
    out.flush()?;
    Ok(())
}

/// Each tick, as soon as it is there.
async fn follow(client: &mut Client, args: &HostArgs) -> Result<(), Failure> {
    let mut ticks = client.watch_host(args.period).await?;
    let mut full = false;
    let mut heading = true;
    let mut unread = pin!(reader::gone());
    loop {
        let tick = tokio::select! {
            tick = ticks.next() => tick?,
            error = &mut unread => return Err(error.into()),
        };
        let Some(tick) = tick else { break };
        full = tick.saturated;
        let sample = tick.sample.unwrap_or_default();
        let mut out = stdout().lock();
        match args.format.format {
            ListFormat::Json => host::line(&sample, full, &mut out)?,
            ListFormat::Table => table::line(&sample, std::mem::take(&mut heading), &mut out)?,
        }
        out.flush()?;
    }
    tell::note(if full {
        "the host monitor is full and samples no more; `nrt-tracectl host start` begins anew"
    } else {
        "the host monitor was stopped"
    });
    Ok(())
}

/// Writes all ticks that the daemon keeps to a file, as Neuron's tools do; says how many.
pub(super) async fn export(client: &mut Client, file: &Path) -> Result<u64, Failure> {
    let failed = |error| Failure::file("write", file, &error);
    let whole = WholeFile::create(file).map_err(failed)?;
    let mut writer = HostWriter::new(BufWriter::new(whole)).map_err(failed)?;
    let (mut after, mut ticks) = (0, 0);
    loop {
        let page = client.host_stats(Some(after)).await?;
        if let Some(info) = &page.info {
            writer.info(info);
        }
        for sample in &page.samples {
            writer.sample(sample).map_err(failed)?;
            after = sample.seq;
            ticks += 1;
        }
        if !page.more {
            break;
        }
    }
    let buffered = writer.finish().map_err(failed)?;
    let whole = buffered
        .into_inner()
        .map_err(|error| failed(error.into_error()))?;
    whole.finish().map_err(failed)?;
    Ok(ticks)
}

/// The monitor itself; the same keys in what `host`, `host start` and `host stop` answer.
fn state_document(state: &v1::HostState) -> serde_json::Value {
    json!({
        "running": state.running,
        "armed": state.armed,
        "watcher_count": state.watchers,
        "period_ms": state.period_ms,
        "max_samples": state.max_samples,
        "sample_count": state.num_samples,
        "retention": table::retention(state),
        "saturated": state.saturated,
        "missed_count": state.missed,
        "bad_value_count": state.bad_values,
        "kept_bytes": state.kept_bytes,
        "full_bytes": state.full_bytes,
        "late_p50_ns": state.late_p50_ns,
        "late_p99_ns": state.late_p99_ns,
        "late_max_ns": state.late_max_ns,
    })
}

fn document(
    state: &v1::HostState,
    info: &v1::HostInfo,
    sample: &v1::HostSample,
) -> Result<serde_json::Value, Failure> {
    let failed = |error| Failure::Failed(format!("cannot write the sample: {error}"));
    let mut document = state_document(state);
    document["cpu_count"] = info.cpus.into();
    document["cpu_name"] = info.cpu_name.as_str().into();
    document["mem_capacity_bytes"] = info.mem_capacity_bytes.into();
    document["instance_id"] = info.instance_id.as_str().into();
    document["sample"] = host::value(sample).map_err(failed)?;
    Ok(document)
}
