//! Emit trace events into shared-memory rings that a daemon reads.
//!
//! ```no_run
//! use nrt_trace_client::{Event, EventType, Options, Tracer};
//!
//! let tracer = Tracer::attach(Options::named("trainer"));
//! let model = tracer.intern(0, "model.neff");
//!
//! let start = Event::start(EventType::ExecuteApi, 0).data([model.0, 0, 0, 0, 0]);
//! let tracking = tracer.emit(start);
//! // … run the model …
//! tracer.emit(Event::stop(EventType::ExecuteApi, 0, tracking).data([model.0, 0, 0, 0, 0]));
//!
//! // The same as a guard: the stop is emitted when it goes out of scope.
//! let _span = tracer.span(EventType::ModelSubmit, 0, [model.0, 0, 0, 0, 0]);
//! ```
//!
//! # What it costs and what it never does
//!
//! An emit that nobody listens to is a load and a test. One that is recorded takes a number from its NeuronCore's ring,
//! reads the time stamp counter and writes 128 bytes. It never waits for anybody, takes no lock, allocates nothing and
//! makes no system call (but for one `gettid` at a thread's first event); it may be called from a signal handler. When
//! `emit` has returned, the event is in memory that survives the process, however it ends.
//!
//! One background thread talks to the daemon. It takes none of the process's signals, and without a daemon it only tries
//! again now and then. The library writes nothing to standard output or error unless `NRT_TRACE_LOG` is set.
//!
//! # Environment
//!
//! | variable | meaning |
//! |---|---|
//! | `NRT_TRACE_PRODUCER_SOCKET` | the daemon's producer socket; default `/run/nrt-trace/producer.sock` |
//! | `NRT_TRACE_DISABLE=1` | never start the background thread: every emit is a no-op |
//! | `NRT_TRACE_WAIT_MS=n` | attaching waits until events are recorded, at most n ms; not at all when no run covers this process |
//! | `NRT_TRACE_TOKEN` | the recording that this process belongs to |
//! | `NRT_TRACE_FOLLOW_FORK=1` | a forked child attaches at once, and waits as above; else it attaches at its first call that may allocate |
//! | `NRT_TRACE_LOG=warn`, `debug` | say on standard error what the library does |
//! | `NRT_TRACE_EMBEDDED=1` | a capture of the process's own ([`own`]) does without a daemon where there is none |
//! | `NEURON_RT_VISIBLE_CORES`, `NEURON_RT_NUM_CORES` | host cores of this process: how many rings it gets, and what its NC indices mean |
//! | `NEURON_RT_WORKER_GID`, `RANK` | the worker's number in its group |

#![forbid(unsafe_code)]

mod ahead;
mod background;
mod emit;
mod environment;
mod event;
mod fork;
mod host_stats;
pub mod log;
mod named;
mod names;
pub mod own;
mod process;
mod segment;
mod session;
mod span;
mod tracer;

pub use emit::{control_page, emit_raw, emit_raw_with_seq};
pub use event::{Event, StringId, TrackingId};
pub use host_stats::{HostStats, HostStatsError, HostTick, host_stats};
pub use names::intern_bytes;
pub use nrt_trace_model::event::{Category, EventType, Phase};
pub use nrt_trace_model::payload;
pub use span::Span;
pub use tracer::{Options, Tracer};

/// Labelled steps, for crash tests.
#[cfg(feature = "steps")]
pub mod step {
    pub use nrt_trace_ring::step::set_hook;

    /// Every label of this library, in the order in which a process passes them.
    pub const LABELS: [&str; 14] = [
        "attach:connected",
        "attach:hello",
        "attach:welcome",
        "attach:page",
        "attach:names",
        "attach:shared",
        "arm:received",
        "arm:mapped",
        "arm:published",
        "arm:go",
        "emit:open",
        "emit:entered",
        "disarm:received",
        "disarm:left",
    ];
}
