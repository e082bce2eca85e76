//! Waiting for a condition, with a deadline.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// How long anything may take. No promise on time: only so that a test that hangs ends with what it knows.
pub const DEADLINE: Duration = Duration::from_secs(100);

/// Asks `condition` again and again until it has an answer.
///
/// # Panics
///
/// After [`DEADLINE`], with what was waited for.
pub fn until<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(answer) = condition() {
            return answer;
        }
        assert!(began.elapsed() < DEADLINE, "still waiting for {what}");
        thread::park_timeout(Duration::from_millis(2));
    }
}

/// Stops a process, and waits until each of its threads has: the signal alone only asks for it.
///
/// # Panics
///
/// If the process is gone, or goes on.
pub fn stop(pid: Pid) {
    kill_process(pid, Signal::STOP).expect("the process is there");
    let tasks = format!("/proc/{}/task", pid.as_raw_nonzero());
    until("every thread to stop", || {
        let tasks = fs::read_dir(&tasks).expect("the process is there");
        let mut stopped = tasks.flatten().map(|task| {
            let stat = fs::read_to_string(task.path().join("stat")).unwrap_or_default();
            // After the name in parentheses, which may hold anything.
            stat.rsplit_once(") ")
                .is_none_or(|(_, rest)| rest.starts_with('T'))
        });
        stopped.all(|stopped| stopped).then_some(())
    });
}
