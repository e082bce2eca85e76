//! A thread that has to be punctual and needs little time.

use std::time::Duration;

/// Time that the kernel lets such a thread run at a stretch: the shortest that it takes.
const SLICE: Duration = Duration::from_micros(100);
/// Its priority, where this process may give it: above ordinary threads, below those that the system needs.
const NICE: i32 = -10;

/// The lowest real-time priority: before every ordinary thread, in whatever group those are scheduled.
const REALTIME: u32 = 1;

/// What the kernel granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Punctual {
    /// The lowest real-time priority.
    Realtime,
    /// A short slice and a higher priority.
    Preferred,
    /// A short slice: since Linux 6.12, where others run at length, such a thread comes first.
    Short,
    /// Nothing: the thread is as any other.
    No,
}

/// Asks that the calling thread be run soon when it wakes up. It should do little then: a few milliseconds, now and then.
pub fn be_punctual() -> Punctual {
    if ask(libc::SCHED_FIFO, REALTIME, 0) {
        Punctual::Realtime
    } else if ask(libc::SCHED_OTHER, 0, NICE) {
        Punctual::Preferred
    } else if ask(libc::SCHED_OTHER, 0, 0) {
        Punctual::Short
    } else {
        Punctual::No
    }
}

fn ask(policy: libc::c_int, priority: u32, nice: i32) -> bool {
    let size = u32::try_from(size_of::<libc::sched_attr>()).unwrap_or(0);
    let attributes = libc::sched_attr {
        size,
        sched_policy: policy.cast_unsigned(),
        // What this thread starts is ordinary again.
        sched_flags: 1, // SCHED_FLAG_RESET_ON_FORK
        sched_nice: nice,
        sched_priority: priority,
        sched_runtime: u64::try_from(SLICE.as_nanos()).unwrap_or(0),
        sched_deadline: 0,
        sched_period: 0,
    };
    // SAFETY: the kernel reads `size` bytes of the attributes, which are there for the whole call; thread 0 is the calling
    // one, and flags of 0 are what it takes. It changes nothing in this process's memory.
    let status = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    status == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_gets_what_its_process_may_give() {
        let thread = std::thread::spawn(|| {
            let granted = be_punctual();
            let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
            let fields = stat.rsplit_once(')').unwrap().1;
            let field = |n| fields.split_whitespace().nth(n).map(str::to_owned);
            (granted, field(15), field(16))
        });
        let (granted, priority, nice) = thread.join().unwrap();
        // A sandbox may refuse the call altogether; of another thread nothing is changed.
        if granted == Punctual::Realtime {
            assert_eq!(priority.as_deref(), Some("-2"));
        }
        if granted == Punctual::Preferred {
            assert_eq!(nice.as_deref(), Some("-10"));
        }
        let own = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
        let fields = own.rsplit_once(')').unwrap().1;
        assert_ne!(fields.split_whitespace().nth(16), Some("-10"));
        assert_ne!(fields.split_whitespace().nth(15), Some("-2"));
    }
}
