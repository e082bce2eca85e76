//! The monitor's thread, and what others ask of it.
//!
//! It samples while somebody wants it: armed by the configuration or a request, or as long as a stream that started it
//! lives. Off, the thread waits and holds no file open.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use nrt_trace_proto::v1;
use rustix::event::{EventfdFlags, PollFd, PollFlags};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::sync::watch;

use super::grid::Grid;
use super::history::{Bounds, History, Retention};
use super::members::Members;
use super::process::Units;
use super::sampler::{Roots, Sampler, monotonic_ns};
use super::tick::Tick;
use crate::config::HostSettings;
use crate::listen::StartError;
use crate::pulse::Pulse;

/// Why a request to the monitor fails.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum HostError {
    /// It runs with other settings.
    #[error(
        "the host monitor runs already, with a period of {period_ms} ms, max_samples {samples} and retention {retention}; stop it first"
    )]
    OtherSettings {
        /// Its period.
        period_ms: u32,
        /// Ticks that it keeps.
        samples: usize,
        /// What it does when it is full.
        retention: Retention,
    },
    /// It is off, and the request does not start it.
    #[error("the host monitor is off")]
    Off,
    /// A value that is not allowed.
    #[error("{0}")]
    Invalid(String),
}

/// What a start asks for; `None`: as configured.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wish {
    pub(crate) period_ms: Option<u32>,
    pub(crate) samples: Option<u64>,
    pub(crate) retention: Option<Retention>,
}

/// The monitor's door.
#[derive(Clone, Debug)]
pub(crate) struct HostMonitor(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    settings: Mutex<HostSettings>,
    instance_id: String,
    members: Members,
    wake: OwnedFd,
    state: Mutex<State>,
    /// Goes up with each change that streams wait for.
    news: watch::Sender<u64>,
    pulse: Pulse,
}

#[derive(Debug)]
struct State {
    armed: bool,
    watchers: u32,
    ending: bool,
    /// Goes up with each beginning: what an earlier one still reads is not kept.
    run: u64,
    period_ms: u32,
    history: History,
    info: Option<v1::HostInfo>,
    next_seq: u64,
    missed: u64,
    bad_values: u64,
    ever: Ever,
}

/// Counts that go on from one beginning to the next.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ever {
    /// Ticks that happened.
    pub ticks: u64,
    /// Ticks that were due and did not happen.
    pub missed: u64,
    /// Values in the kernel's files that made no sense.
    pub bad_values: u64,
}

impl State {
    fn is_wanted(&self) -> bool {
        !self.ending && (self.armed || self.watchers > 0) && !self.history.is_saturated()
    }

    fn begin(&mut self, period_ms: u32, bounds: Bounds) {
        self.run += 1;
        self.period_ms = period_ms;
        self.history = History::new(bounds);
        (self.missed, self.bad_values) = (0, 0);
    }

    fn keep(&mut self, mut tick: Tick, bad_values: u64) {
        tick.seq = self.next_seq;
        self.next_seq += 1;
        self.missed += tick.missed;
        self.ever.ticks += 1;
        self.ever.missed += tick.missed;
        self.ever.bad_values += bad_values.saturating_sub(self.bad_values);
        self.bad_values = bad_values;
        self.history.push(tick);
    }
}

/// The running thread. Dropping it ends the thread.
#[derive(Debug)]
pub(crate) struct HostThread {
    monitor: HostMonitor,
    thread: Option<JoinHandle<()>>,
}

impl HostThread {
    /// Starts the thread; it samples from now on if the settings say so.
    pub(crate) fn start(
        settings: HostSettings,
        instance_id: String,
        members: Members,
    ) -> Result<Self, StartError> {
        let failed = |what| move |source| StartError::System { what, source };
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let wake = rustix::event::eventfd(0, flags)
            .map_err(|errno| failed("make an eventfd")(errno.into()))?;
        let timer = timerfd_create(
            TimerfdClockId::Monotonic,
            TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK,
        )
        .map_err(|errno| failed("make a timer")(errno.into()))?;
        let state = State {
            armed: settings.enabled,
            watchers: 0,
            ending: false,
            run: 1,
            period_ms: settings.period_ms,
            history: History::new(bounds(&settings, Wish::default())),
            info: None,
            next_seq: 1,
            missed: 0,
            bad_values: 0,
            ever: Ever::default(),
        };
        let monitor = HostMonitor(Arc::new(Shared {
            settings: Mutex::new(settings),
            instance_id,
            members,
            wake,
            state: Mutex::new(state),
            news: watch::Sender::new(0),
            pulse: Pulse::default(),
        }));
        let inner = monitor.clone();
        let thread = std::thread::Builder::new()
            .name("nrt-host".to_owned())
            .spawn(move || inner.run(&timer))
            .map_err(failed("start the host monitor's thread"))?;
        Ok(Self {
            monitor,
            thread: Some(thread),
        })
    }

    /// Its door.
    pub(crate) fn monitor(&self) -> HostMonitor {
        self.monitor.clone()
    }
}

impl Drop for HostThread {
    fn drop(&mut self) {
        self.monitor.lock().ending = true;
        self.monitor.ring();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was told when it happened.
            drop(thread.join());
        }
    }
}

fn bounds(settings: &HostSettings, wish: Wish) -> Bounds {
    let samples = wish.samples.unwrap_or(settings.max_samples);
    Bounds {
        samples: usize::try_from(samples).unwrap_or(usize::MAX),
        bytes: usize::try_from(settings.memory_bytes).unwrap_or(usize::MAX),
        retention: wish.retention.unwrap_or(settings.retention),
    }
}

/// Keeps the monitor going as long as it lives.
#[derive(Debug)]
pub(crate) struct Lease(HostMonitor);

impl Drop for Lease {
    fn drop(&mut self) {
        self.0.lock().watchers -= 1;
        self.0.ring();
    }
}

impl HostMonitor {
    /// A panic while it was locked left it valid: a tick is whole before it is kept.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How the next start samples, where it does not say itself.
    fn settings(&self) -> HostSettings {
        let settings = &self.0.settings;
        settings
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Changes that. What runs goes on as it is.
    pub(crate) fn configure(&self, settings: HostSettings) {
        let place = &self.0.settings;
        *place.lock().unwrap_or_else(PoisonError::into_inner) = settings;
    }

    /// Whether the thread comes round.
    pub(crate) fn pulse(&self) -> Pulse {
        self.0.pulse.clone()
    }

    /// Wakes the thread, which goes on with what it did.
    pub(crate) fn nudge(&self) {
        // Full: the thread has been rung often enough.
        let _ = rustix::io::write(&self.0.wake, &1u64.to_ne_bytes());
    }

    /// Wakes the thread and the streams.
    fn ring(&self) {
        self.nudge();
        self.0.news.send_modify(|version| *version += 1);
    }

    /// Starts it; says whether it was running already.
    pub(crate) fn start(&self, wish: Wish) -> Result<bool, HostError> {
        let period_ms = self.check(wish)?;
        let bounds = bounds(&self.settings(), wish);
        let mut state = self.lock();
        let (runs, same) = (
            state.is_wanted(),
            state.period_ms == period_ms && state.history.bounds() == bounds,
        );
        if runs && state.armed && !same {
            return Err(HostError::OtherSettings {
                period_ms: state.period_ms,
                samples: state.history.bounds().samples,
                retention: state.history.bounds().retention,
            });
        }
        state.armed = true;
        // One that only streams keep going takes these settings on; a full one begins anew.
        if !(runs && same) {
            state.begin(period_ms, bounds);
            drop(state);
            self.ring();
        }
        Ok(runs && same)
    }

    /// Disarms it. Streams that started it keep it going.
    pub(crate) fn stop(&self) {
        self.lock().armed = false;
        self.ring();
    }

    /// Keeps it going, and starts it if it is off.
    pub(crate) fn lease(&self, period_ms: Option<u32>) -> Result<Lease, HostError> {
        let wish = Wish {
            period_ms,
            ..Wish::default()
        };
        let period_ms = self.check(wish)?;
        let settings = self.settings();
        let mut state = self.lock();
        // What is full stays full until somebody starts it: others may want to read it.
        if !state.is_wanted() && !state.history.is_saturated() {
            state.begin(period_ms, bounds(&settings, wish));
        }
        state.watchers += 1;
        drop(state);
        self.ring();
        Ok(Lease(self.clone()))
    }

    fn check(&self, wish: Wish) -> Result<u32, HostError> {
        let period_ms = wish.period_ms.unwrap_or_else(|| self.settings().period_ms);
        if !HostSettings::PERIODS_MS.contains(&period_ms) {
            return Err(HostError::Invalid(format!(
                "a period of {period_ms} ms; allowed: 100 to 60000"
            )));
        }
        if wish.samples == Some(0) {
            return Err(HostError::Invalid(
                "max_samples of 0; allowed: at least 1".to_owned(),
            ));
        }
        Ok(period_ms)
    }

    /// Becomes different with each tick and each change.
    pub(crate) fn news(&self) -> watch::Receiver<u64> {
        self.0.news.subscribe()
    }

    /// Whether it samples.
    pub(crate) fn is_running(&self) -> bool {
        self.lock().is_wanted()
    }

    /// Looks at what is kept; the closure's time is the lock's.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&History) -> T) -> T {
        look(&self.lock().history)
    }

    /// What stays the same, once it has run.
    pub(crate) fn info(&self) -> Option<v1::HostInfo> {
        self.lock().info.clone()
    }

    /// What it has counted since the daemon started.
    pub(crate) fn ever(&self) -> Ever {
        self.lock().ever
    }

    /// Its state.
    pub(crate) fn state(&self) -> v1::HostState {
        let (mut message, mut late) = {
            let state = self.lock();
            let (history, bounds) = (&state.history, state.history.bounds());
            let late: Vec<u64> = history.all().map(|tick| tick.late_ns).collect();
            let message = v1::HostState {
                running: state.is_wanted(),
                armed: state.armed,
                watchers: state.watchers,
                period_ms: state.period_ms,
                max_samples: bounds.samples as u64,
                num_samples: history.len() as u64,
                retention: match bounds.retention {
                    Retention::Saturate => v1::HostRetention::Saturate,
                    Retention::Ring => v1::HostRetention::Ring,
                }
                .into(),
                saturated: history.is_saturated(),
                missed: state.missed,
                bad_values: state.bad_values,
                kept_bytes: history.bytes() as u64,
                full_bytes: bounds.bytes as u64,
                ..v1::HostState::default()
            };
            (message, late)
        };
        late.sort_unstable();
        // The smallest that so many of them do not exceed.
        let at = |percent: usize| late.get((late.len() * percent).div_ceil(100).max(1) - 1);
        message.late_p50_ns = at(50).copied().unwrap_or(0);
        message.late_p99_ns = at(99).copied().unwrap_or(0);
        message.late_max_ns = at(100).copied().unwrap_or(0);
        message
    }

    /// The thread.
    fn run(&self, timer: &OwnedFd) {
        let granted = nrt_trace_shm::schedule::be_punctual();
        tracing::debug!(?granted, "host monitor's place among the threads");
        loop {
            self.come_round();
            let job = {
                let state = self.lock();
                if state.ending {
                    return;
                }
                state.is_wanted().then_some((state.run, state.period_ms))
            };
            match job {
                Some((run, period_ms)) => self.sample(run, period_ms, timer),
                None => self.wait(None),
            }
        }
    }

    /// Once for each turn of the thread.
    fn come_round(&self) {
        self.0.pulse.beat();
        crate::failpoint::at("sampler");
    }

    /// Samples until this run is over.
    fn sample(&self, run: u64, period_ms: u32, timer: &OwnedFd) {
        let settings = self.settings();
        let roots = Roots {
            proc: settings.proc_root,
            sys: settings.sys_root,
        };
        let mut sampler = Sampler::new(roots, Units::of_this_kernel(), self.0.members.clone());
        let info = v1::HostInfo {
            instance_id: self.0.instance_id.clone(),
            ..sampler.info()
        };
        self.lock().info = Some(info);
        tracing::info!(period_ms, "host monitor on");
        let mut grid = Grid::new(monotonic_ns(), u64::from(period_ms) * 1_000_000);
        // Only what the first tick's differences are taken to.
        drop(sampler.tick(Default::default()));
        let goes_on = |state: &State| state.run == run && state.is_wanted();
        while goes_on(&self.lock()) {
            self.come_round();
            let Some(due) = grid.at(monotonic_ns()) else {
                set(timer, grid.next());
                self.wait(Some(timer));
                continue;
            };
            let tick = sampler.tick(due);
            let mut state = self.lock();
            if !goes_on(&state) {
                break;
            }
            state.keep(tick, sampler.bad_values());
            let full = state.history.is_saturated();
            drop(state);
            if full {
                tracing::warn!("host monitor full: it samples no more until it is started again");
            }
            self.0.news.send_modify(|version| *version += 1);
        }
        tracing::info!("host monitor off");
    }

    /// Waits for the timer, or a call.
    fn wait(&self, timer: Option<&OwnedFd>) {
        let mut fds = vec![PollFd::new(&self.0.wake, PollFlags::IN)];
        fds.extend(timer.map(|timer| PollFd::from_borrowed_fd(timer.as_fd(), PollFlags::IN)));
        // An error other than an interruption would be one of ours; the caller looks at the clock in any case.
        let _ = rustix::event::poll(&mut fds, None);
        // Not readable: nobody rang.
        let _ = rustix::io::read(&self.0.wake, &mut [0; 8]);
    }
}

/// Lets the timer be readable at a moment of the monotonic clock.
fn set(timer: &OwnedFd, at_ns: u64) {
    let time = |ns: u64| Timespec {
        tv_sec: i64::try_from(ns / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: (ns % 1_000_000_000).cast_signed(),
    };
    let once = Itimerspec {
        it_interval: time(0),
        it_value: time(at_ns),
    };
    if let Err(errno) = timerfd_settime(timer, TimerfdTimerFlags::ABSTIME, &once) {
        tracing::error!("host monitor: no timer: {errno}");
    }
}
