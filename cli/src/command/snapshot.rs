//! `snapshot`: what the rings hold becomes a file, and stays in them.

use std::process::ExitCode;

use nrt_trace_proto::v1;

use super::fetch::{report, room_to_tell, write};
use crate::cli::{SnapshotArgs, SocketArg};
use crate::client::Client;
use crate::error::Failure;
use crate::output::interrupt::{self, Work};
use crate::output::target::Target;

/// Writes what the run's rings hold.
pub(crate) async fn run(socket: &SocketArg, args: SnapshotArgs) -> Result<ExitCode, Failure> {
    // What is wrong with the output is told before the daemon is asked for anything.
    let target = Target::new(&args.output, args.to.map(Into::into))?.with(&args.json)?;
    room_to_tell(&target, args.format)?;
    interrupt::install(Work::Writing(target.clone()))?;
    let opened = target.open()?;
    let mut client = Client::connect(&socket.path()).await?;
    let request = v1::SnapshotRequest {
        token: args.scope.token,
        nc: args.nc.map(|list| list.0).unwrap_or_default(),
        process: args.process,
        strings_from: 0,
    };
    let mut parts = client.snapshot(request).await?;
    let (tally, end, complete) = write(&mut parts, &target, opened).await?;
    complete
        .finish()
        .map_err(|error| Failure::file("write", target.name(), &error))?;
    let told = report(&tally, &end, &target, args.format);
    told.map_err(|failure| failure.after(format!("{} is written", target.name())))?;
    Ok(ExitCode::SUCCESS)
}
