//! Waiting for the library, as a daemon that a test plays.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use nrt_trace_abi::message::{MAX_BYTES, Message, parse};
use nrt_trace_shm::socket;

/// How long anything may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Looks until there is something to see.
pub(crate) fn poll<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "waited too long");
        std::thread::yield_now();
    }
}

/// The next message, which has to be an `M`.
pub(crate) fn receive<M: Message>(fd: &OwnedFd) -> M {
    let mut buffer = [0; MAX_BYTES];
    let bytes = poll(|| {
        socket::receive(fd, &mut buffer)
            .ok()
            .map(|received| received.bytes)
    });
    parse(&buffer[..bytes]).unwrap()
}
