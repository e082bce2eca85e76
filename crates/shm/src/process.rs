//! Living in somebody else's process: threads that take no signals, and a word when it forks.

use std::io;
use std::thread::JoinHandle;

use crate::ShmError;

/// Starts a thread that takes none of the process's signals: handlers of the host program never run on it.
///
/// # Errors
/// The thread can't be started.
pub fn spawn_quiet(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    let mut all = empty_set();
    // SAFETY: `all` is an initialised signal set.
    unsafe { libc::sigfillset(&raw mut all) };
    let mut before = empty_set();
    // The new thread inherits the mask: blocked from its first instruction on.
    // SAFETY: both sets are initialised and valid for the call; the mask is this thread's own.
    let blocked =
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before) } == 0;
    let started = std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(body);
    if blocked {
        // SAFETY: `before` is the mask that the call above wrote.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut())
        };
    }
    started
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
        let thread = spawn_quiet("quiet", move || {
            send.send(blocked_signals(gettid())).unwrap();
        })
        .unwrap();
        let inside = receive.recv().unwrap();
        thread.join().unwrap();
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
