//! Living in somebody else's process: threads that take no signals, and a word when it forks.

use std::ffi::{CStr, c_void};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::ShmError;

/// What a quiet thread runs.
type Body = Box<dyn FnOnce() + Send>;

/// Starts a detached thread that takes none of the process's signals: handlers of the host program never run on it.
///
/// It is made by `pthread_create` and not by `std::thread`, because it may be started by a constructor of a library that
/// is being opened with `dlopen`. The standard library registers a destructor for each of its threads, which takes the
/// loader's lock, which `dlopen` holds until the constructor returns: a constructor that waits for the thread would wait
/// in vain. For the same reason `body` should keep away from thread-locals with destructors.
///
/// # Errors
/// The thread can't be started.
pub fn spawn_quiet(name: &CStr, body: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let mut all = empty_set();
    // SAFETY: `all` is an initialised signal set.
    unsafe { libc::sigfillset(&raw mut all) };
    let mut before = empty_set();
    // The new thread inherits the mask: blocked from its first instruction on.
    // SAFETY: both sets are initialised and valid for the call; the mask is this thread's own.
    let blocked =
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before) } == 0;
    let started = start(name, Box::new(body));
    if blocked {
        // SAFETY: `before` is the mask that the call above wrote.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut())
        };
    }
    started
}

/// Stack of a quiet thread. Not the host's default, which may be as little as 64 KiB: this one's own needs are what counts.
const STACK_BYTES: usize = 512 << 10;

fn start(name: &CStr, body: Body) -> io::Result<()> {
    let argument = Box::into_raw(Box::new(body));
    let mut thread = std::mem::MaybeUninit::uninit();
    let mut attributes = std::mem::MaybeUninit::uninit();
    // SAFETY: initialises the attributes at an address that is valid for writing; on Linux it can't fail.
    unsafe { libc::pthread_attr_init(attributes.as_mut_ptr()) };
    // SAFETY: the attributes were initialised by the call above. A size that is refused leaves the default.
    unsafe { libc::pthread_attr_setstacksize(attributes.as_mut_ptr(), STACK_BYTES) };
    // SAFETY: `thread` is valid for writing, the attributes are initialised, `enter` has the right type, and `argument` is
    // what it expects; it is handed over if the call succeeds.
    let status = unsafe {
        libc::pthread_create(
            thread.as_mut_ptr(),
            attributes.as_ptr(),
            enter,
            argument.cast(),
        )
    };
    // SAFETY: initialised above, and used no more.
    unsafe { libc::pthread_attr_destroy(attributes.as_mut_ptr()) };
    if status != 0 {
        // SAFETY: made by Box::into_raw above, and no thread was started that could have taken it.
        drop(unsafe { Box::from_raw(argument) });
        return Err(io::Error::from_raw_os_error(status));
    }
    // SAFETY: the call succeeded, so it wrote the thread's handle.
    let thread = unsafe { thread.assume_init() };
    // A name that is too long is not set, which does no harm.
    // SAFETY: the thread is neither joined nor detached yet, so its handle is valid; the name ends with a zero byte.
    unsafe { libc::pthread_setname_np(thread, name.as_ptr()) };
    // SAFETY: as above; from here on nobody uses the handle.
    unsafe { libc::pthread_detach(thread) };
    Ok(())
}

/// The quiet thread's first function.
extern "C" fn enter(argument: *mut c_void) -> *mut c_void {
    // SAFETY: `start` passes a pointer made by Box::into_raw from a boxed Body, and gives it up.
    let body = unsafe { Box::from_raw(argument.cast::<Body>()) };
    // A panic must not unwind into the C library; it has been told by the panic hook, and the thread ends.
    let _told = catch_unwind(AssertUnwindSafe(*body));
    std::ptr::null_mut()
}

fn empty_set() -> libc::sigset_t {
    let mut set = std::mem::MaybeUninit::uninit();
    // SAFETY: sigemptyset initialises the whole set at the address, which is valid.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    // SAFETY: initialised by the call above, which can't fail for a valid address.
    unsafe { set.assume_init() }
}

/// Has `handler` called in every child that `fork` makes, in its only thread, before `fork` returns there.
///
/// # Errors
/// Out of memory.
pub fn on_fork_in_child(handler: extern "C" fn()) -> Result<(), ShmError> {
    // SAFETY: `handler` is a function of this library, which is never unloaded (it is linked nodelete, or part of the
    // program).
    let status = unsafe { libc::pthread_atfork(None, None, Some(handler)) };
    if status == 0 {
        Ok(())
    } else {
        Err(ShmError::Os {
            what: "register a fork handler",
            source: io::Error::from_raw_os_error(status),
        })
    }
}

/// The kernel's number for the calling thread. A system call each time: the caller keeps it.
#[must_use]
pub fn gettid() -> u32 {
    rustix::thread::gettid()
        .as_raw_nonzero()
        .get()
        .unsigned_abs()
}

/// Whether a thread of this process with number `tid` exists.
#[must_use]
pub fn thread_exists(tid: u32) -> bool {
    let Ok(tid) = libc::pid_t::try_from(tid) else {
        return false;
    };
    // SAFETY: getpid only returns a number.
    let pid = unsafe { libc::getpid() };
    // SAFETY: signal 0 sends nothing; the call only looks the thread up.
    let status = unsafe { libc::syscall(libc::SYS_tgkill, pid, tid, 0) };
    status == 0 || io::Error::last_os_error().raw_os_error() != Some(libc::ESRCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The mask of `thread`, as /proc tells it.
    fn blocked_signals(tid: u32) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/self/task/{tid}/status")).unwrap();
        let line = status
            .lines()
            .find(|line| line.starts_with("SigBlk:"))
            .unwrap();
        u64::from_str_radix(line[7..].trim(), 16).unwrap()
    }

    /// Case C09, second half: the host's masks and handlers are as they were.
    #[test]
    fn a_quiet_thread_blocks_signals_and_its_parent_does_not() {
        let before = blocked_signals(gettid());
        let (send, receive) = std::sync::mpsc::channel();
        spawn_quiet(c"quiet", move || {
            send.send(blocked_signals(gettid())).unwrap();
        })
        .unwrap();
        let inside = receive.recv().unwrap();
        assert_eq!(blocked_signals(gettid()), before);
        let sigprof = 1 << (libc::SIGPROF - 1);
        assert_eq!((inside & sigprof, before & sigprof), (sigprof, 0));
    }

    #[test]
    fn threads_are_found_while_they_live() {
        assert!(thread_exists(gettid()));
        let gone = std::thread::spawn(gettid).join().unwrap();
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while thread_exists(gone) {
            assert!(std::time::Instant::now() < deadline);
            std::thread::yield_now();
        }
    }
}
