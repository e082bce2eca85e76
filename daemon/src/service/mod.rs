//! A daemon as a service: its log, a higher descriptor limit, what the service manager is told, a reload on SIGHUP, an end
//! on SIGTERM and SIGINT.

mod entry;
mod journal;
mod limit;
mod log;
pub(crate) mod outlet;
mod ready;
mod signals;
mod watchdog;

use std::io;
use std::sync::Arc;

use nrt_trace_shm::clock::anchor;
use nrt_trace_shm::manager::Manager;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::config::{Change, Flags, LogLevel, Settings};
use crate::daemon::{Daemon, Running};
use crate::listen::StartError;
use crate::state::FromManager;
pub use entry::main;
use log::Log;
use signals::{Next, Signals};
use watchdog::Watchdog;

/// Runs a daemon with the settings that `flags`, environment and file give, until SIGTERM or SIGINT.
///
/// # Errors
/// As [`Daemon::start`]; [`StartError::System`] if a part of the daemon fails while it runs.
pub fn run(flags: &Flags) -> Result<(), StartError> {
    // Before anything else: what it handed over is told by its numbers.
    let from_manager = FromManager::take();
    let settings = flags.settings()?;
    let log = Log::start(settings.config().log_level);
    raise_descriptor_limit()?;
    // Signals next: one that comes while the daemon starts ends it in order too.
    let mut signals = Signals::install().map_err(|source| StartError::System {
        what: "handle signals",
        source,
    })?;
    let manager = Manager::from_environment().map(Arc::new);
    let tell = |lines: &str| {
        // A manager that does not listen has nothing to wait for either.
        drop(manager.as_ref().map(|manager| manager.tell(lines, None)));
    };
    let mut running = Daemon::start_with(settings.config().clone(), from_manager)?;
    ready::wait(&running)?;
    tell("READY=1\nSTATUS=both sockets answer");
    let watchdog = match &manager {
        Some(manager) => Watchdog::start(manager, &running)?,
        None => None,
    };
    let mut settings = settings;
    let failed = loop {
        match signals.wait(running.ended()) {
            Next::End => break false,
            Next::Failed => break true,
            Next::Reload => {
                let now = anchor().monotonic_ns / 1000;
                tell(&format!("RELOADING=1\nMONOTONIC_USEC={now}"));
                reload(flags, &mut settings, &running, &log);
                tell("READY=1");
            }
        }
    };
    tell("STOPPING=1");
    drop(watchdog);
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

/// Reads the settings again. What a running daemon can take it takes; for the rest, and if there is a mistake, the log says
/// what stays as it is.
fn reload(flags: &Flags, settings: &mut Settings, running: &Running, log: &Log) {
    let new = match flags.settings() {
        Ok(new) => new,
        Err(error) => {
            for line in error.lines() {
                tracing::warn!("settings stay as they are: {line}");
            }
            return;
        }
    };
    let changes = settings.changes(&new);
    for Change { key, old, new } in &changes.left {
        tracing::warn!(key, old, new, "changed, and needs a restart to be taken");
    }
    *settings = settings.reloaded(&new);
    let config = settings.config();
    if let Err(error) = running.reconfigure(config) {
        log.set_level(config.log_level);
        tracing::warn!("settings stay as they are: {error}");
        return;
    }
    // Whoever had it read again sees what came of that, with few lines wanted before or from now on.
    log.set_level(LogLevel::Info);
    for Change { key, old, new } in &changes.taken {
        tracing::info!(key, old, new, "changed");
    }
    if changes.taken.is_empty() && changes.left.is_empty() {
        tracing::info!("settings read again: nothing changed");
    }
    log.set_level(config.log_level);
}

/// What the daemon has open itself, and spares for its clients.
const FEWEST_DESCRIPTORS: u64 = 64;

/// Each producer takes a few descriptors; the usual soft limit of 1024 would be its limit of about 300 producers.
fn raise_descriptor_limit() -> Result<(), StartError> {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    let is_raised = limit.current == limit.maximum
        || match setrlimit(Resource::Nofile, raised) {
            Ok(()) => true,
            Err(errno) => {
                tracing::warn!("can't raise the limit of open files: {errno}");
                false
            }
        };
    match if is_raised {
        limit.maximum
    } else {
        limit.current
    } {
        Some(limit) if limit < FEWEST_DESCRIPTORS => Err(StartError::FewDescriptors {
            limit,
            least: FEWEST_DESCRIPTORS,
        }),
        _ => Ok(()),
    }
}
