//! A daemon as a service: a log on standard error, a higher descriptor limit, an end on SIGTERM and SIGINT.

use std::io;

use nrt_trace_shm::manager::Manager;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing_subscriber::EnvFilter;

use crate::config::Config;
use crate::daemon::Daemon;
use crate::listen::StartError;
use crate::state::FromManager;

/// Sends the log to standard error: INFO and above, or what `RUST_LOG` says.
pub fn log_to_stderr() {
    let filter = EnvFilter::builder()
        .with_default_directive(tracing::Level::INFO.into())
        .from_env_lossy();
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(false);
    // A second call finds the first one's log in place.
    drop(subscriber.try_init());
}

/// Runs a daemon until SIGTERM or SIGINT.
///
/// # Errors
/// As [`Daemon::start`]; [`StartError::System`] if a part of the daemon fails while it runs.
pub fn run(config: Config) -> Result<(), StartError> {
    // Before anything else: what it handed over is told by its numbers.
    let from_manager = FromManager::take();
    // Signals first: one that comes while the daemon starts ends it in order too.
    let mut signals = Signals::install().map_err(|source| StartError::System {
        what: "handle signals",
        source,
    })?;
    raise_descriptor_limit();
    let manager = Manager::from_environment();
    let tell = |lines| {
        // A manager that does not listen has nothing to wait for either.
        drop(manager.as_ref().map(|manager| manager.tell(lines, None)));
    };
    let mut running = Daemon::start_with(config, from_manager)?;
    tell("READY=1");
    let failed = signals.wait(running.ended());
    tell("STOPPING=1");
    running.shutdown();
    if failed {
        let source = io::Error::other("a part of it failed; see the log");
        return Err(StartError::System {
            what: "keep the daemon running",
            source,
        });
    }
    Ok(())
}

struct Signals {
    runtime: Runtime,
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn install() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_io().build()?;
        let context = runtime.enter();
        let (terminate, interrupt) = (
            signal(SignalKind::terminate())?,
            signal(SignalKind::interrupt())?,
        );
        // Beyond a limit on file sizes the kernel sends a signal that ends the program, unless somebody takes it: then
        // the segment can't be made, which can be told. The handler stays when this is dropped.
        let _taken = signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()))?;
        drop(context);
        Ok(Self {
            runtime,
            terminate,
            interrupt,
        })
    }

    /// Waits for a signal, or for `ended`; true if it was that.
    fn wait(&mut self, ended: impl Future<Output = ()>) -> bool {
        let Self {
            runtime,
            terminate,
            interrupt,
        } = self;
        runtime.block_on(async {
            tokio::select! {
                _ = terminate.recv() => false,
                _ = interrupt.recv() => false,
                () = ended => true,
            }
        })
    }
}

/// Each producer takes a few descriptors; the usual soft limit of 1024 would be its limit of about 300 producers.
fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    if let Err(errno) = setrlimit(Resource::Nofile, raised) {
        tracing::warn!("can't raise the limit of open files: {errno}");
    }
}
