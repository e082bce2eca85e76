//! Traps: a thread that comes to a label for the n-th time stays there until it is released.

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use nrt_trace_ring::step;
use rustix::process::{Signal, getpid, kill_process};

/// Threads that can have a trap: the workers, and the library's background thread.
pub(crate) const THREADS: usize = 8;
/// The background thread, which is every thread that did not say who it is.
pub(crate) const BACKGROUND: usize = THREADS - 1;

/// What a thread tells.
#[derive(Debug)]
pub(crate) enum Report {
    /// It is at this label and stays there.
    Parked(&'static str),
    /// It has done what it was told.
    Done,
}

#[derive(Debug)]
struct Trap {
    /// The look that every step pays: whether there is anything to compare with.
    set: AtomicBool,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    label: String,
    passes_left: u32,
    /// Stop the whole process too.
    stop: bool,
    released: bool,
}

static TRAPS: [Trap; THREADS] = [const {
    Trap {
        set: AtomicBool::new(false),
        state: Mutex::new(State {
            label: String::new(),
            passes_left: 0,
            stop: false,
            released: false,
        }),
        changed: Condvar::new(),
    }
}; THREADS];

static REPORTS: OnceLock<Sender<(usize, Report)>> = OnceLock::new();

thread_local! {
    static ME: Cell<usize> = const { Cell::new(BACKGROUND) };
}

/// Has parked threads tell `reports`, from the first step on.
pub(crate) fn report_to(reports: Sender<(usize, Report)>) {
    REPORTS.get_or_init(|| reports);
    step::set_hook(hook);
}

/// Says which worker the calling thread is.
pub(crate) fn i_am(worker: usize) {
    ME.set(worker);
}

/// Sends what a thread has to tell.
pub(crate) fn tell(thread: usize, report: Report) {
    // Nobody listens any more when the process ends.
    let _ending = REPORTS.get().map(|reports| reports.send((thread, report)));
}

/// Sets a thread's trap: at its `pass`-th time at `label` it stays there; with `stop` the process is stopped as well.
pub(crate) fn set(thread: usize, label: &str, pass: u32, stop: bool) {
    let mut state = lock(&TRAPS[thread]);
    *state = State {
        label: label.to_owned(),
        passes_left: pass,
        stop,
        released: false,
    };
    TRAPS[thread].set.store(true, Ordering::Release);
}

/// Lets a thread go on that is in its trap.
pub(crate) fn release(thread: usize) {
    lock(&TRAPS[thread]).released = true;
    TRAPS[thread].changed.notify_all();
}

fn lock(trap: &Trap) -> MutexGuard<'_, State> {
    trap.state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn hook(label: &'static str) {
    let me = ME.get();
    let trap = &TRAPS[me];
    if !trap.set.load(Ordering::Acquire) {
        return;
    }
    let mut state = lock(trap);
    if state.label != label {
        return;
    }
    state.passes_left -= 1;
    if state.passes_left > 0 {
        return;
    }
    trap.set.store(false, Ordering::Relaxed);
    let stop = state.stop;
    drop(state);
    tell(me, Report::Parked(label));
    if stop {
        // Another thread may take the signal, and this one may be a little further before it stops: hence the wait
        // below also then.
        let _stopped = kill_process(getpid(), Signal::STOP);
    }
    let mut state = lock(trap);
    while !state.released {
        state = trap
            .changed
            .wait(state)
            .unwrap_or_else(PoisonError::into_inner);
    }
}

/// Where the daemon comes to its end, or to a rest.
#[derive(Debug)]
struct End {
    label: String,
    passes_left: AtomicU32,
    from: Option<PathBuf>,
    rest: Option<PathBuf>,
}

static END: OnceLock<End> = OnceLock::new();

/// Has the process kill itself at its `pass`-th time at `label`, counted while the file `from` exists; or the thread rest there,
/// for as long as the file `rest`, which it makes, exists.
pub(crate) fn end_at(label: String, pass: u32, from: Option<PathBuf>, rest: Option<PathBuf>) {
    let passes_left = AtomicU32::new(pass);
    END.get_or_init(|| End {
        label,
        passes_left,
        from,
        rest,
    });
    step::set_hook(|label| {
        if let Some(end) = END.get()
            && end.label == label
            && end.from.as_ref().is_none_or(|file| file.exists())
            && end.passes_left.fetch_sub(1, Ordering::Relaxed) == 1
        {
            match &end.rest {
                Some(file) => rest_while_there_is(file),
                None => die(),
            }
        }
    });
}

fn rest_while_there_is(file: &Path) {
    // Without the file nobody knows that it rests, and the test says so.
    let _made = fs::write(file, "");
    while file.exists() {
        thread::park_timeout(Duration::from_millis(1));
    }
}

fn die() -> ! {
    let _dead = kill_process(getpid(), Signal::KILL);
    loop {
        thread::park(); // not one step further, should another thread take the signal
    }
}
