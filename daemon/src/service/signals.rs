//! Signals.

use std::io;

use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// What a service does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// It ends, as it was asked to.
    End,
    /// It ends, because a part of it has.
    Failed,
    /// It reads its settings again.
    Reload,
}

/// Handlers of the signals that a service knows.
#[derive(Debug)]
pub(super) struct Signals {
    runtime: Runtime,
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

impl Signals {
    /// Installs the handlers.
    pub(super) fn install() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_io().build()?;
        let context = runtime.enter();
        let terminate = signal(SignalKind::terminate())?;
        let interrupt = signal(SignalKind::interrupt())?;
        let hangup = signal(SignalKind::hangup())?;
        // Beyond a limit on file sizes the kernel sends a signal that ends the program, unless somebody takes it: then
        // the segment can't be made, which can be told. The handler stays when this is dropped.
        let _taken = signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()))?;
        drop(context);
        Ok(Self {
            runtime,
            terminate,
            interrupt,
            hangup,
        })
    }

    /// Waits for a signal, or for `ended`.
    pub(super) fn wait(&mut self, ended: impl Future<Output = ()>) -> Next {
        let Self {
            runtime,
            terminate,
            interrupt,
            hangup,
        } = self;
        runtime.block_on(async {
            tokio::select! {
                _ = terminate.recv() => Next::End,
                _ = interrupt.recv() => Next::End,
                _ = hangup.recv() => Next::Reload,
                () = ended => Next::Failed,
            }
        })
    }
}
