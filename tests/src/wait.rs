//! Waiting for a condition, with a deadline.

use std::thread;
use std::time::{Duration, Instant};

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
