//! Fork: the child has nothing of its parent's tracer, and makes its own when it is safe to.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nrt_trace_shm::{distant, inherited, process as host, threads};

use crate::tracer::{self, Options};
use crate::{background, environment, process};

/// The options of the first attach, for children.
static OPTIONS: OnceLock<Options> = OnceLock::new();

/// Whether a child attaches in the fork handler.
static FOLLOW: AtomicBool = AtomicBool::new(false);

/// How long such a child waits there until it is captured; not set: not at all.
static WAIT: OnceLock<Duration> = OnceLock::new();

/// Keeps the options for children, and registers the handler, once.
pub(crate) fn remember(options: &Options) {
    let mut first = false;
    OPTIONS.get_or_init(|| {
        first = true;
        options.clone()
    });
    if first {
        FOLLOW.store(
            environment::is_on("NRT_TRACE_FOLLOW_FORK"),
            Ordering::Relaxed,
        );
        if let Some(limit) = environment::wait_limit() {
            WAIT.get_or_init(|| limit);
        }
        // Without memory for a handler, a child still has its words wiped by the kernel.
        let _no_handler = host::on_fork_in_child(in_child);
    }
}

/// Runs in a forked child, on its only thread, before `fork` returns.
extern "C" fn in_child() {
    process::wipe();
    inherited::replace_all();
    distant::close_inherited();
    threads::forget_others();
    if FOLLOW.load(Ordering::Relaxed) {
        attach_again();
        // As the parent did when it attached: else the child's first events would be nobody's.
        if let Some(&limit) = WAIT.get() {
            let _armed = tracer::wait(limit, true);
        }
    }
}

/// Starts attaching, whether or not anybody asked for it before. For calls that may allocate.
pub(crate) fn attach_now() {
    remember(&Options::default());
    attach_again();
}

/// How many NeuronCores this process has, as far as anybody says; the daemon's default where nobody does.
pub(crate) fn cores() -> usize {
    const DEFAULT_CORES: usize = 8;
    let program = OPTIONS.get().map_or(&[][..], |options| &options.cores);
    match environment::visible_cores(program).len() {
        0 => DEFAULT_CORES,
        cores => cores.min(nrt_trace_abi::MAX_NCS),
    }
}

/// In a forked child of an attached process: starts attaching. Elsewhere nothing. For calls that may allocate.
pub(crate) fn attach_again() {
    if process::status() == process::Status::Idle
        && let Some(options) = OPTIONS.get()
    {
        background::start(options.clone());
    }
}
