//! Who reads standard output.

use std::fs::File;
use std::future::pending;
use std::io::{self, stdout};
use std::os::fd::AsFd;

use tokio::io::Interest;
use tokio::net::unix::pipe::Sender;

/// Ends when nobody reads standard output any more, as after `| head -1`, with the error that the next write would have.
///
/// What follows events or ticks would notice it only with the next one, which may be hours away. Never ends where standard
/// output is a file, which the kernel does not watch.
pub(crate) async fn gone() -> io::Error {
    match watch().await {
        Ok(()) => io::ErrorKind::BrokenPipe.into(),
        Err(_) => pending().await,
    }
}

/// Waits for an error of standard output.
async fn watch() -> io::Result<()> {
    let out = stdout().as_fd().try_clone_to_owned()?;
    // Nothing is written to it, so that it need not be one that does not block: that would change it for whoever shares it.
    let out = Sender::from_file_unchecked(File::from(out))?;
    out.ready(Interest::ERROR).await.map(|_| ())
}
