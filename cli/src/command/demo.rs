//! Stub.
use crate::cli::DemoArgs;
use crate::error::Failure;
use std::process::ExitCode;
pub(crate) async fn run(_args: DemoArgs) -> Result<ExitCode, Failure> {
    Err(Failure::Failed("stub".into()))
}
