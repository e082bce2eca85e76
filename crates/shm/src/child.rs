//! Forked children for tests.

/// Calls `check` in a forked child, and tells its answer. It may make system calls, touch atomics, and nothing else: this
/// process has other threads.
pub(crate) fn in_child(check: impl FnOnce() -> bool) -> bool {
    // SAFETY: the caller's check does what is allowed after fork in a threaded process, and then _exit is called.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        let code = i32::from(!check());
        // SAFETY: ends the child at once, without running anything of the parent's.
        unsafe { libc::_exit(code) };
    }
    let mut status = 0;
    // SAFETY: `pid` is our child, and `status` is valid for the call.
    assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
    status == 0
}
