//! The process's tracer.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use nrt_trace_abi::layout::control;

use crate::event::{Event, StringId, TrackingId};
use crate::process::{self, CONTROL, Status};
use crate::span::Span;
use crate::{EventType, background, emit_raw, emit_raw_with_seq, environment, fork, intern_bytes};

/// What a program says of itself when it attaches. The environment has the last word, see the crate's documentation.
#[derive(Clone, Debug, Default)]
pub struct Options {
    pub(crate) name: String,
    pub(crate) cores: Vec<u16>,
    pub(crate) socket: Option<PathBuf>,
}

impl Options {
    /// Options with a name for the process in the trace; at most 128 bytes of it are kept.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            ..Self::default()
        }
    }

    /// Says which host cores the process sees, where the environment does not: its NC index k is `cores[k]`.
    #[must_use]
    pub fn cores(mut self, cores: &[u16]) -> Self {
        self.cores = cores.to_vec();
        self
    }

    /// Says where the daemon's producer socket is, where the environment does not.
    #[must_use]
    pub fn socket(mut self, path: impl Into<PathBuf>) -> Self {
        self.socket = Some(path.into());
        self
    }
}

/// A handle to the process's one tracer. It is a word of proof that attaching was asked for, and costs nothing to copy.
#[derive(Clone, Copy, Debug)]
pub struct Tracer(());

impl Tracer {
    /// Starts attaching to the daemon, in the background; the first call of a process decides the options.
    ///
    /// Returns at once, unless `NRT_TRACE_WAIT_MS` says to wait: then when events are recorded, when it is known that
    /// no run covers this process or that there is no daemon, or when the time is over.
    pub fn attach(options: Options) -> Self {
        fork::remember(&options);
        if background::start(options)
            && let Some(limit) = environment::wait_limit()
        {
            let _armed = wait(limit, true);
        }
        Self(())
    }

    /// Records an event if somebody wants it. `None`: nothing was recorded.
    ///
    /// The id goes into the event that ends what this one starts.
    #[inline]
    #[must_use = "the id of a start belongs into its stop; for others, drop it with `let _ =`"]
    pub fn emit(&self, event: Event) -> Option<TrackingId> {
        let Event {
            kind,
            phase,
            nc,
            tracking,
            data,
        } = event;
        let tracking = tracking.map_or(0, |id| id.0);
        recorded(emit_raw(kind.value(), phase.value(), nc, tracking, &data))
    }

    /// [`Tracer::emit`], for an event that belongs to an asynchronous request.
    #[inline]
    #[must_use = "the id of a start belongs into its stop; for others, drop it with `let _ =`"]
    pub fn emit_with_seq(&self, event: Event, nrta_seq_id: u64) -> Option<TrackingId> {
        let Event {
            kind,
            phase,
            nc,
            tracking,
            data,
        } = event;
        let tracking = tracking.map_or(0, |id| id.0);
        recorded(emit_raw_with_seq(
            kind.value(),
            phase.value(),
            nc,
            tracking,
            &data,
            nrta_seq_id,
        ))
    }

    /// Starts a span that ends when the guard goes out of scope.
    pub fn span(&self, kind: EventType, nc: u32, data: [u64; 5]) -> Span {
        Span::start(*self, kind, nc, data)
    }

    /// The id of a name, which is kept for whoever reads the trace. May be called at any time, with or without a daemon.
    #[must_use]
    pub fn intern(&self, nc: u32, name: &str) -> StringId {
        fork::attach_again();
        StringId(intern_bytes(nc, name.as_bytes()))
    }

    /// Whether events of this process are being recorded now.
    #[must_use]
    pub fn is_capturing(&self) -> bool {
        process::instance() != 0 && CONTROL.words()[control::STATE].get() & 1 == 1
    }

    /// Waits until events are recorded; false if they are not within `timeout`.
    #[must_use]
    pub fn wait_armed(&self, timeout: Duration) -> bool {
        fork::attach_again();
        wait(timeout, false)
    }
}

#[inline]
fn recorded(id: u64) -> Option<TrackingId> {
    if id == 0 { None } else { Some(TrackingId(id)) }
}

/// Waits until armed, or with `give_up` until it is plain that there is nothing to wait for.
///
/// It looks again after an eighth of the time that it has waited, so that a hundred processes that start at once leave the CPUs
/// to the daemon they wait for. No wake-up: this happens at the start of a process only, and a lock or condition variable could be left locked by
/// another thread when the process forks.
pub(crate) fn wait(timeout: Duration, give_up: bool) -> bool {
    const PAUSE: (Duration, Duration) = (Duration::from_micros(100), Duration::from_millis(20));
    let began = Instant::now();
    loop {
        let waited = began.elapsed();
        match process::status() {
            Status::Armed | Status::Embedded => return true,
            Status::Idle | Status::NoDaemon | Status::Attached if give_up => return false,
            _ if waited >= timeout => return false,
            _ => {
                let pause = (waited / 8).clamp(PAUSE.0, PAUSE.1);
                std::thread::sleep(pause.min(timeout - waited));
            }
        }
    }
}
