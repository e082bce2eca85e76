//! A capture of this process alone, which it starts, reads and stops itself.
//!
//! | file | what |
//! |---|---|
//! | `defaults` | what the environment says |
//! | `mail` | requests to the daemon, and its answers, which the background thread receives |
//! | `rings` | the rings with the cursors of this capture |
//! | `events` | reading them, chunk by chunk; what was read is consumed when the reader says so |
//! | `embedded` | rings that the process makes itself, without a daemon |
//!
//! The daemon makes the rings and opens the gates (`StartOwn`); everything else happens here. When a run has the process's
//! rings already the capture joins it: the same rings, another cursor, and what others asked for is passed by.
//!
//! One call at a time, under a lock that a forked child does not inherit: in it this module's state is gone
//! ([`PerProcess`] in a page that fork wipes), so that it is not capturing, and has no lock that nobody will open.

mod defaults;
mod embedded;
mod events;
mod mail;
mod rings;

use std::any::Any;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nrt_trace_abi::MAX_NCS;
use nrt_trace_abi::geometry::CAPACITY_RANGE;
use nrt_trace_abi::message::{Message, StartOwn, StopOwn};
use nrt_trace_model::Status as Code;
use nrt_trace_shm::page::WipedOnFork;
use nrt_trace_shm::per_process::PerProcess;

pub use crate::names::Names;
use crate::process::{self, Status};
use crate::{environment, fork, log, segment};
use embedded::Embedded;
pub use events::{Events, Which};
use mail::Mail;
pub(crate) use mail::{answered, armed, connected, disconnected, parted};
use rings::Rings;

/// How long a start or a stop may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time between two looks at how far attaching has come.
const LOOK: Duration = Duration::from_micros(200);
/// The smallest ring.
const LEAST_EVENTS: u64 = 1024;
/// The largest ring.
const MOST_EVENTS: u64 = *CAPACITY_RANGE.end();

/// What a capture of this process records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnConfig {
    /// Events that each NeuronCore keeps; less than 1,024 means 1,024.
    pub max_events_per_nc: u64,
    /// A bit for each event type.
    pub types: u64,
    /// A bit for each NeuronCore, by the process's own index: bit `nc % 64` of word `nc / 64`.
    pub ncs: [u64; MAX_NCS / 64],
}

impl OwnConfig {
    /// Everything, 1,048,576 events of each NeuronCore.
    pub const DEFAULT: Self = Self {
        max_events_per_nc: 0x10_0000,
        types: nrt_trace_abi::gate::ALL_TYPES,
        ncs: [u64::MAX; MAX_NCS / 64],
    };

    fn wants_nc(&self, nc: usize) -> bool {
        nc < MAX_NCS && self.ncs[nc / 64] >> (nc % 64) & 1 != 0
    }

    fn wants_type(&self, trace_type: u32) -> bool {
        trace_type < 64 && self.types >> trace_type & 1 != 0
    }
}

/// The state of this process.
static OWN: WipedOnFork<PerProcess<Own>> = WipedOnFork::new(PerProcess::none());

#[derive(Debug, Default)]
struct Own {
    /// Held by each call for as long as it takes.
    capture: Mutex<Option<Capture>>,
    mail: Mail,
}

/// A capture that is on.
#[derive(Debug)]
struct Capture {
    config: OwnConfig,
    rings: Rings,
    /// Set without a daemon.
    embedded: Option<Embedded>,
    /// What readers keep from one reading to the next.
    memo: Memo,
    /// Whether there were events, or it was said that there are none.
    told: bool,
}

/// What a reader may keep for the next reading of the same capture.
pub type Memo = Option<Box<dyn Any + Send>>;

fn own() -> &'static Own {
    OWN.get().get_or_make(Own::default)
}

fn capture() -> MutexGuard<'static, Option<Capture>> {
    // Whatever a panic left behind is valid: it is replaced as a whole.
    own().capture.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Has the kernel wipe the state in forked children; false if it can't.
pub(crate) fn protect_from_fork() -> bool {
    OWN.protect().is_ok()
}

/// What the kernel's wipe does, by hand.
pub(crate) fn forget() {
    OWN.get().forget();
}

/// Starts a capture of this process.
///
/// # Errors
/// [`Code::Failure`]: one is on already, or there is no daemon (and no `NRT_TRACE_EMBEDDED=1`). [`Code::Invalid`]: no ring
/// has so many events, or the variables that name the process's cores can't be. [`Code::Resource`]: no memory for the
/// rings. [`Code::Timeout`]: no answer within ten seconds.
pub fn start(config: &OwnConfig) -> Result<(), Code> {
    fork::attach_now();
    let mut place = capture();
    if place.is_some() {
        log::write(log::WARN, "System trace is already capturing");
        return Err(Code::Failure);
    }
    environment::check_cores().map_err(|bad| {
        log::write(log::WARN, &bad);
        Code::Invalid
    })?;
    let mut config = *config;
    config.max_events_per_nc = config.max_events_per_nc.max(LEAST_EVENTS);
    if config.max_events_per_nc > MOST_EVENTS {
        let events = config.max_events_per_nc;
        log::write(
            log::WARN,
            &format!(
                "{events} events of a NeuronCore can't be kept: {LEAST_EVENTS} to {MOST_EVENTS} is allowed"
            ),
        );
        return Err(Code::Invalid);
    }
    let made = begin(config, Instant::now() + PATIENCE)?;
    tell(&made);
    *place = Some(made);
    Ok(())
}

/// Begins where there is somebody to begin with: at the daemon, or here.
fn begin(config: OwnConfig, deadline: Instant) -> Result<Capture, Code> {
    loop {
        match process::status() {
            // The background thread is about to see it, and to connect anew.
            Status::Attached | Status::Arming | Status::Armed
                if own().mail.is_cut() && Instant::now() < deadline =>
            {
                std::thread::sleep(LOOK);
            }
            Status::Attached | Status::Arming | Status::Armed => {
                return at_daemon(config, deadline);
            }
            Status::Connecting if Instant::now() < deadline => std::thread::sleep(LOOK),
            Status::NoDaemon if environment::is_on("NRT_TRACE_EMBEDDED") => {
                if process::claim_embedded() {
                    return embedded::begin(config);
                }
            }
            Status::Connecting => return Err(Code::Timeout),
            Status::Idle | Status::NoDaemon | Status::Embedded => {
                log::write(
                    log::WARN,
                    "System trace can't be started: there is no daemon (nrt-traced), and NRT_TRACE_EMBEDDED=1 is not set",
                );
                return Err(Code::Failure);
            }
        }
    }
}

fn at_daemon(config: OwnConfig, deadline: Instant) -> Result<Capture, Code> {
    let mail = &own().mail;
    let asked = mail.ask(deadline, |request| StartOwn {
        header: StartOwn::header(),
        request,
        max_events_per_nc: config.max_events_per_nc,
        types: config.types,
        ncs: config.ncs,
    });
    if asked == Err(Code::Timeout) {
        // Should it come to pass later, nobody would ever end it.
        mail.tell(|request| StopOwn {
            header: StopOwn::header(),
            request,
        });
    }
    asked?;
    Ok(Capture {
        config,
        rings: Rings::default(),
        embedded: None,
        memo: None,
        told: false,
    })
}

/// The lines that users of Neuron's runtime know.
fn tell(capture: &Capture) {
    if !log::is_on(log::DEBUG) {
        return;
    }
    let Some((cap, ncs, bytes)) = capture.size() else {
        return;
    };
    let events = cap * ncs.len() as u64;
    #[expect(clippy::cast_precision_loss, reason = "a figure for a log line")]
    let gib = bytes as f64 / f64::from(1 << 30);
    log::write(
        log::DEBUG,
        &format!(
            "Allocating memory for {events} events ({gib:.3} GB) for system trace ring buffer"
        ),
    );
    for nc in (0..fork::cores()).filter(|&nc| !capture.config.wants_nc(nc)) {
        log::write(
            log::DEBUG,
            &format!("System trace capture disabled for this NeuronCore: {nc}"),
        );
    }
}

/// Stops the capture of this process. What was not read is lost, as in the original.
///
/// # Errors
/// [`Code::Failure`] when none is on. [`Code::Timeout`] when the daemon did not answer within ten seconds; it is stopped
/// for this process all the same.
pub fn stop() -> Result<(), Code> {
    // Held to the end: a start on another thread comes after this.
    let mut place = capture();
    let ended = place.take().ok_or(Code::Failure)?;
    segment::tell_of_misplaced();
    own().mail.forget_rings();
    if let Some(embedded) = ended.embedded {
        embedded.end();
        return Ok(());
    }
    let asked = own()
        .mail
        .ask(Instant::now() + PATIENCE, |request| StopOwn {
            header: StopOwn::header(),
            request,
        });
    match asked {
        Err(Code::Timeout) => asked,
        // It was stopped before: by a daemon that ended, or that gave this process up.
        _ => Ok(()),
    }
}

/// Reads events of the capture of this process. What `body` read is consumed if it succeeds, and else it can be read again.
///
/// # Errors
/// [`Code::Failure`] when none is on; else those of `body`.
pub fn read<T>(
    which: Which,
    body: impl FnOnce(&mut Events<'_>) -> Result<T, Code>,
) -> Result<T, Code> {
    let mut place = capture();
    let Some(capture) = place.as_mut() else {
        log::write(
            log::WARN,
            "System trace is not capturing: there is nothing to fetch",
        );
        return Err(Code::Failure);
    };
    capture.catch_up();
    let Capture {
        rings,
        config,
        memo,
        told,
        ..
    } = capture;
    let mut events = Events::new(rings, config, which, memo);
    let read = body(&mut events)?;
    let consumed = events.end()?;
    rings.consume(consumed);
    if !std::mem::replace(told, true) && rings.are_untouched() {
        log::write(
            log::WARN,
            "no event was recorded so far: nothing emits, or not of the NeuronCores and event types that are captured",
        );
    }
    Ok(read)
}

/// Events that each ring of the capture keeps; 0 when none is on.
#[must_use]
pub fn ring_size() -> u64 {
    let mut place = capture();
    let Some(capture) = place.as_mut() else {
        return 0;
    };
    capture.catch_up();
    capture.size().map_or(0, |(cap, ..)| cap)
}

/// Events that are in the rings and were not read; 0 when no capture is on. In rings that are shared with a run of others,
/// theirs are among them.
#[must_use]
pub fn unread() -> u64 {
    let mut place = capture();
    let Some(capture) = place.as_mut() else {
        return 0;
    };
    capture.catch_up();
    capture.rings.unread()
}

/// The worker's number in its group, as the environment says; -1 when it does not.
#[must_use]
pub fn worker_gid() -> i32 {
    environment::worker_gid()
}

impl Capture {
    /// Takes over the rings that came since the last call.
    fn catch_up(&mut self) {
        own().mail.take_rings(&mut self.rings);
    }

    /// Events of a ring, NCs with one, and bytes of the newest rings.
    fn size(&self) -> Option<(u64, Vec<usize>, u64)> {
        self.rings.newest().or_else(|| own().mail.newest_rings())
    }
}
