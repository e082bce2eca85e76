//! `metrics`: the daemon's metrics as OpenMetrics text.

use std::io::{Write, stdout};
use std::process::ExitCode;

use crate::cli::SocketArg;
use crate::client::Client;
use crate::error::Failure;

/// Prints them.
pub(crate) async fn run(socket: &SocketArg) -> Result<ExitCode, Failure> {
    let text = Client::connect(&socket.path()).await?.metrics().await?;
    let mut out = stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}
