//! One module for each verb.

mod convert;
mod demo;
mod doctor;
mod events;
mod fetch;
mod generate;
mod given_up;
mod host;
mod metrics;
mod producers;
mod record;
mod set_filter;
mod snapshot;
mod start;
mod status;
mod stop;
mod strings;
mod subscribe;
mod summary;
mod view;

use std::process::ExitCode;

use nrt_trace_proto::v1;
use rustix::process::{Resource, getrlimit};

use crate::cli::{CaptureArgs, Cli, MetricsArgs, Verb};
use crate::error::Failure;

/// Does what the arguments say.
pub(crate) fn run(cli: Cli) -> Result<ExitCode, Failure> {
    check_descriptors()?;
    // One thread serves one connection; an embedded daemon brings its own.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::file("start", "the event loop", &error))?;
    // Beyond a limit on file sizes the kernel sends a signal that ends the program, unless somebody takes it: then the
    // write fails, which can be told. (Ignoring it would be passed on to recorded commands; a handler is not.)
    let over = std::sync::Arc::default();
    let _unlimited = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, over);
    let socket = cli.socket;
    runtime.block_on(async {
        match cli.verb {
            Verb::Start(args) => start::run(&socket, args).await,
            Verb::SetFilter(args) => set_filter::run(&socket, args).await,
            Verb::Stop(args) => stop::run(&socket, args).await,
            Verb::Fetch(args) => fetch::run(&socket, args).await,
            Verb::Snapshot(args) => snapshot::run(&socket, args).await,
            Verb::Subscribe(args) => subscribe::run(&socket, args).await,
            Verb::Status(args) => status::run(&socket, args).await,
            Verb::Metrics(MetricsArgs {}) => metrics::run(&socket).await,
            Verb::Doctor(args) => doctor::run(&socket, args).await,
            Verb::Producers(args) => producers::run(&socket, args).await,
            Verb::Events(args) => events::run(&socket, args).await,
            Verb::Strings(args) => strings::run(&socket, args).await,
            Verb::Host(args) => host::run(&socket, args).await,
            Verb::Record(args) => record::run(&socket, args).await,
            Verb::Convert(args) => convert::run(&args),
            Verb::Summary(args) => summary::run(&args),
            Verb::View(args) => view::run(&args),
            Verb::Demo(args) => demo::run(args).await,
            Verb::DemoWorkload(args) => demo::workload(&args),
            Verb::DemoWorker(args) => demo::worker(&args),
            Verb::DemoPump(args) => Ok(demo::pump(&args)),
            Verb::Generate(args) => generate::run(&args),
        }
    })
}

/// What no command does without: its event loop, signals, a private daemon's sockets and its first processes.
const FEWEST_DESCRIPTORS: u64 = 64;

/// Says at the start what would show itself as a failure of this or that. The limit is not raised: recorded commands would
/// inherit it.
fn check_descriptors() -> Result<(), Failure> {
    match getrlimit(Resource::Nofile).current {
        Some(limit) if limit < FEWEST_DESCRIPTORS => Err(Failure::Failed(format!(
            "{limit} open files are allowed here, {FEWEST_DESCRIPTORS} are needed: raise the limit (ulimit -n {FEWEST_DESCRIPTORS})"
        ))),
        _ => Ok(()),
    }
}

/// The request that starts a run with these filters.
pub(crate) fn start_request(token: String, capture: CaptureArgs) -> v1::StartRequest {
    v1::StartRequest {
        token,
        max_events_per_nc: capture.max_events_per_nc,
        nc: capture.nc.map(|list| list.0).unwrap_or_default(),
        events: capture.events.map(|terms| terms.0).unwrap_or_default(),
        keep: false,
        arm_timeout_ms: None,
    }
}
