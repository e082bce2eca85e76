//! `generate`: for packagers, and hidden from everybody else.

use std::path::PathBuf;

use clap::Args;

/// Write man pages and completions, made from the same definitions as --help
///
/// Writes DIR/man1, DIR/man8, DIR/bash, DIR/zsh and DIR/fish; `make install` puts their files where a distribution
/// expects them.
#[derive(Args, Debug)]
#[command(hide = true)]
pub(crate) struct GenerateArgs {
    /// Folder that gets them, made where it is missing
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
}
