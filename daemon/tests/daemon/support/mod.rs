//! A daemon with a client, and a producer.

mod apart;
mod client;
mod fetched;
mod host;
mod live;
mod producer;
mod random;

use std::time::{Duration, Instant};

pub(crate) use apart::Apart;
pub(crate) use client::Client;
pub(crate) use fetched::Fetched;
pub(crate) use host::{Host, fetch, host_run, refused, token_run};
pub(crate) use live::{Live, subscription};
pub(crate) use producer::{Answer, Fake, Rings, connect, hello, receive, send};
pub(crate) use random::Random;

/// Waits for `condition`, for a time that only a failure takes.
pub(crate) fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(100);
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        std::thread::yield_now();
    }
}
