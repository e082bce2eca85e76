//! Ctrl-C, SIGTERM and SIGHUP: the first one ends the recording, the second one ends this program at once.
//!
//! A thread waits for them, because the recording may be busy for seconds when the second one comes.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::low_level::siginfo::Cause;
use tokio::sync::mpsc;

use crate::error::Failure;
use crate::output::tell;

/// A signal this soon after another is the same wish: `timeout` sends its signal to the process and to its group.
const SAME_WISH: Duration = Duration::from_millis(50);

/// A wish to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EndSignal {
    /// Its number.
    pub(crate) number: i32,
    /// Whether it came from the terminal, which sent it to the command too.
    pub(crate) from_terminal: bool,
}

impl EndSignal {
    /// The exit status of a program that such a signal ended.
    pub(crate) fn status(self) -> u8 {
        status_of(self.number)
    }
}

/// The exit status of a program that the signal of this number ended.
pub(crate) fn status_of(number: i32) -> u8 {
    u8::try_from(128 + number).unwrap_or(u8::MAX)
}

/// What must still be done when the person will not wait.
type LastAct = Box<dyn FnOnce() + Send>;

/// The signals of this process, from now until it ends.
#[derive(Debug)]
pub(crate) struct Signals {
    first: mpsc::UnboundedReceiver<EndSignal>,
    last_act: LastActSlot,
}

/// Where the recording leaves what must be done if it is cut off.
#[derive(Clone, Default)]
pub(crate) struct LastActSlot(Arc<Mutex<Option<LastAct>>>);

impl std::fmt::Debug for LastActSlot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LastActSlot")
    }
}

impl LastActSlot {
    /// Sets what must be done; `None` once there is nothing any more.
    pub(crate) fn set(&self, act: Option<LastAct>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = act;
    }

    fn take(&self) -> Option<LastAct> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Signals {
    /// Takes the signals over.
    pub(crate) fn install() -> Result<Self, Failure> {
        let failed = |error| Failure::file("wait for", "signals", &error);
        // Whoever starts this with one ignored (nohup, `trap '' INT`, a shell's job in the background) does not want it to
        // end anything: neither this nor the command, which is started with the same ones ignored.
        let mut wanted = vec![SIGINT, SIGTERM, SIGHUP];
        wanted.retain(|number| !is_ignored(*number));
        let mut signals = SignalsInfo::<WithOrigin>::new(&wanted).map_err(failed)?;
        let (sender, first) = mpsc::unbounded_channel();
        let last_act = LastActSlot::default();
        let slot = last_act.clone();
        let wait = move || {
            let mut asked: Option<Instant> = None;
            for origin in signals.forever() {
                let signal = EndSignal {
                    number: origin.signal,
                    from_terminal: origin.cause == Cause::Kernel,
                };
                match asked {
                    None => {
                        asked = Some(Instant::now());
                        // The recording may be over already: then nobody listens, and the process ends anyway.
                        let _best_effort = sender.send(signal);
                    }
                    Some(at) if at.elapsed() < SAME_WISH => {}
                    Some(_) => leave(&slot, signal),
                }
            }
        };
        std::thread::Builder::new()
            .name("signals".to_owned())
            .spawn(wait)
            .map_err(failed)?;
        Ok(Self { first, last_act })
    }

    /// The first signal. Waits for ever after it.
    pub(crate) async fn first(&mut self) -> EndSignal {
        match self.first.recv().await {
            Some(signal) => signal,
            None => std::future::pending().await,
        }
    }

    /// A first signal that has come already.
    pub(crate) fn pending(&mut self) -> Option<EndSignal> {
        self.first.try_recv().ok()
    }

    /// Where to leave what must be done if the recording is cut off.
    pub(crate) fn last_act(&self) -> LastActSlot {
        self.last_act.clone()
    }
}

#[expect(
    clippy::exit,
    reason = "the second signal means: now, whatever the recording is doing"
)]
fn leave(slot: &LastActSlot, signal: EndSignal) {
    tell::note("leaving at once");
    if let Some(act) = slot.take() {
        act();
    }
    std::process::exit(i32::from(signal.status()));
}

/// Whether this process was started with `signal` ignored.
pub(crate) fn is_ignored(signal: i32) -> bool {
    let Ok(status) = std::fs::read_to_string("/proc/self/status") else {
        return false;
    };
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_of_a_signal_is_the_shells() {
        let status = |number| {
            EndSignal {
                number,
                from_terminal: false,
            }
            .status()
        };
        assert_eq!(
            (status(SIGINT), status(SIGTERM), status(SIGHUP)),
            (130, 143, 129)
        );
    }

    #[test]
    fn a_signal_that_nobody_ignores_is_not_ignored() {
        // SIGCHLD: its default is to do nothing, which is not the same as ignored.
        assert!(!is_ignored(signal_hook::consts::SIGCHLD));
    }
}
