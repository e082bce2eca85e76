//! The service manager's watchdog: fed only while the two threads go on that everything depends on.
//!
//! The registry thread serves the producers and every command; the host monitor's thread reads files of other processes,
//! where a kernel may let it wait. Both are called, and have to have come round since; else the manager hears nothing, and
//! ends the daemon as it was told to. Events go on being recorded meanwhile, and the next daemon takes them up.

use std::sync::Arc;
use std::time::Duration;

use nrt_trace_shm::manager::Manager;

use crate::daemon::Running;
use crate::listen::StartError;
use crate::pulse::Pulse;
use crate::ticker::Ticker;

/// Looks in the time that the manager waits: a thread that is late in one has others.
const LOOKS: u32 = 4;

/// The thread that feeds it. Dropping it ends the thread.
#[derive(Debug)]
pub(super) struct Watchdog {
    _ticker: Ticker,
}

/// A thread that is watched.
struct Watched {
    name: &'static str,
    pulse: Pulse,
    call: Box<dyn Fn() + Send>,
    /// Its beats when it was last looked at.
    seen: u64,
    /// Whether it has come round since the manager was last told.
    alive: bool,
}

impl Watchdog {
    /// Starts it, if the manager waits to be told.
    pub(super) fn start(
        manager: &Arc<Manager>,
        running: &Running,
    ) -> Result<Option<Self>, StartError> {
        let Some(interval) = interval() else {
            return Ok(None);
        };
        let (handle, monitor) = (running.handle().clone(), running.monitor());
        let mut watched = [
            Watched::new("registry", handle.pulse(), move || handle.ring()),
            Watched::new("host monitor", monitor.pulse(), move || monitor.nudge()),
        ];
        let manager = manager.clone();
        let mut told = false;
        let ticker = Ticker::start("nrt-watchdog", interval / LOOKS, move || {
            look(&manager, &mut watched, &mut told);
        })?;
        Ok(Some(Self { _ticker: ticker }))
    }
}

impl Watched {
    fn new(name: &'static str, pulse: Pulse, call: impl Fn() + Send + 'static) -> Self {
        Self {
            name,
            seen: pulse.beats(),
            pulse,
            call: Box::new(call),
            alive: false,
        }
    }
}

/// Tells the manager that all is well, or in its status which thread has not come round; then calls them.
fn look(manager: &Manager, watched: &mut [Watched], told: &mut bool) {
    for thread in &mut *watched {
        let beats = thread.pulse.beats();
        thread.alive |= beats != thread.seen;
        thread.seen = beats;
    }
    let silent: Vec<&str> = (watched.iter())
        .filter(|thread| !thread.alive)
        .map(|thread| thread.name)
        .collect();
    // A manager that has not read the last is told again at the next look.
    if silent.is_empty() {
        let lines = if std::mem::take(told) {
            "WATCHDOG=1\nSTATUS=both sockets answer"
        } else {
            "WATCHDOG=1"
        };
        drop(manager.tell(lines, None));
        watched.iter_mut().for_each(|thread| thread.alive = false);
    } else {
        let silent = silent.join(", ");
        if !std::mem::replace(told, true) {
            tracing::debug!(thread = silent, "waiting for a thread to come round");
        }
        drop(manager.tell(&format!("STATUS=waiting for thread: {silent}"), None));
    }
    watched.iter().for_each(|thread| (thread.call)());
}

/// How long the manager waits; `None` if it does not, or means another process.
fn interval() -> Option<Duration> {
    let number = |name| std::env::var(name).ok()?.parse::<u64>().ok();
    let other = number("WATCHDOG_PID").is_some_and(|pid| pid != u64::from(std::process::id()));
    let micros = number("WATCHDOG_USEC").filter(|micros| *micros > 0 && !other)?;
    Some(Duration::from_micros(micros))
}
