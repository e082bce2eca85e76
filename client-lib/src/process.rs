//! What the process's one tracer consists of: a few statics, reached without a lock.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use nrt_trace_shm::clock::realtime_ns;
use nrt_trace_shm::page::{MappedPage, Places, WipedOnFork};
use nrt_trace_shm::publish::Published;

use crate::names::SharedNames;
use crate::own;
use crate::segment::Segment;

/// The control page; zeros (every gate closed) while there is no daemon.
pub(crate) static CONTROL: MappedPage = MappedPage::new(&CONTROL_PLACES);
static CONTROL_PLACES: Places = Places::new();

/// What belongs to this process as it is attached now: its instance and status, its segment and names. Zeros in a forked
/// child, so that it can't write its parent's rings. One static, so that emit asks for one address.
static OWN: WipedOnFork<((AtomicU64, AtomicU64), Shared)> = WipedOnFork::new((
    (AtomicU64::new(0), AtomicU64::new(0)),
    (Published::none(), Published::none()),
));

/// What the daemon shares with this process.
type Shared = (Published<Segment>, Published<SharedNames>);

/// True if the time stamp counter may not be read here.
pub(crate) static TSC_FORBIDDEN: AtomicBool = AtomicBool::new(false);

/// How far attaching has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum Status {
    /// The background thread was never started, or this is a forked child.
    Idle = 0,
    /// It is on its way to a daemon.
    Connecting = 1,
    /// No daemon answered; it tries again from time to time.
    NoDaemon = 2,
    /// Attached; no run covers this process.
    Attached = 3,
    /// Attached; a run covers this process, and its segment is coming.
    Arming = 4,
    /// Events are being recorded.
    Armed = 5,
    /// There is no daemon, and events are being recorded in rings of the process's own making.
    Embedded = 6,
}

/// The instance number: 0 while this process has never been attached.
#[inline]
pub(crate) fn instance() -> u64 {
    // Relaxed: what it guards is published on its own.
    OWN.get().0.0.load(Ordering::Relaxed)
}

/// Makes threads register themselves afresh: called once for each attach.
///
/// The number is made of the time and the process: a count would start over in a forked child, whose thread still carries
/// its parent's number, slot and thread id in its thread-local storage.
pub(crate) fn new_instance() {
    let process = u64::from(std::process::id()).rotate_right(22);
    let instance = (realtime_ns() ^ process).max(1);
    OWN.get().0.0.store(instance, Ordering::Relaxed);
}

#[inline]
pub(crate) fn segment() -> &'static Published<Segment> {
    &OWN.get().1.0
}

#[inline]
pub(crate) fn names() -> &'static Published<SharedNames> {
    &OWN.get().1.1
}

pub(crate) fn status() -> Status {
    // SYNC(status): what was done before it was set is seen.
    match OWN.get().0.1.load(Ordering::Acquire) {
        1 => Status::Connecting,
        2 => Status::NoDaemon,
        3 => Status::Attached,
        4 => Status::Arming,
        5 => Status::Armed,
        6 => Status::Embedded,
        _ => Status::Idle,
    }
}

pub(crate) fn set_status(status: Status) {
    // SYNC(status).
    OWN.get().0.1.store(status as u64, Ordering::Release);
}

/// Claims the right to start the background thread: true once for each process.
pub(crate) fn claim_start() -> bool {
    change(Status::Idle, Status::Connecting)
}

/// Claims the right to connect, for the background thread; false while the process has rings of its own making. Whoever
/// has this right or the other one is alone with the control page and the segment.
pub(crate) fn claim_connect() -> bool {
    status() == Status::Connecting || change(Status::NoDaemon, Status::Connecting)
}

/// Claims the right to have rings of the process's own making: where there is no daemon, and nobody is connecting to one.
pub(crate) fn claim_embedded() -> bool {
    change(Status::NoDaemon, Status::Embedded)
}

/// Gives that right back.
pub(crate) fn release_embedded() {
    let _was_there = change(Status::Embedded, Status::NoDaemon);
}

fn change(from: Status, to: Status) -> bool {
    let word = &OWN.get().0.1;
    // SYNC(status): a right passes from one to the next, with the page and the segment as the one before left them.
    word.compare_exchange(from as u64, to as u64, Ordering::AcqRel, Ordering::Relaxed)
        .is_ok()
}

/// Has the kernel wipe the statics in forked children; false if it can't.
pub(crate) fn protect_from_fork() -> bool {
    // Both, whatever becomes of the first.
    OWN.protect().is_ok() & own::protect_from_fork()
}

/// What the kernel's wipe does, by hand, for kernels that can't, in a child that has just been forked.
pub(crate) fn wipe() {
    own::forget();
    OWN.get().0.0.store(0, Ordering::Relaxed);
    OWN.get().0.1.store(Status::Idle as u64, Ordering::Relaxed);
    // Leaked on purpose: the parent's mapping stays, unused, until this process ends or calls exec.
    let _parents_segment = segment().replace(None);
    let _parents_names = names().replace(None);
}
