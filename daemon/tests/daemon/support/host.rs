//! A daemon in a folder of its own, and a client of it.

use std::ops::{Deref, DerefMut};

use nrt_trace_proto::v1;
use nrt_traced::{Config, Daemon, Running};
use tempfile::TempDir;
use tonic::{Code, Status};

use super::Client;

/// A daemon in this process, with a client.
pub(crate) struct Host {
    pub(crate) client: Client,
    pub(crate) daemon: Running,
    _folder: TempDir,
}

/// A start of the host's run, with rings of `cap` events.
pub(crate) fn host_run(cap: u64) -> v1::StartRequest {
    token_run("", cap)
}

/// A start of a token's run. The timeout is far beyond what an answer takes.
pub(crate) fn token_run(token: &str, cap: u64) -> v1::StartRequest {
    v1::StartRequest {
        token: token.to_owned(),
        max_events_per_nc: Some(cap),
        arm_timeout_ms: Some(10_000),
        ..Default::default()
    }
}

/// A fetch of everything of the host's run.
pub(crate) fn fetch() -> v1::FetchRequest {
    v1::FetchRequest::default()
}

impl Host {
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    pub(crate) fn with(change: impl FnOnce(&mut Config)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut config = Config::embedded_in(folder.path());
        config.test_small_rings = true;
        config.default_cores = 2;
        // Answers are awaited for as long as a loaded machine may need; tests of timeouts say so.
        config.disarm_timeout_ms = 10_000;
        change(&mut config);
        let daemon = Daemon::start(config).unwrap();
        let client = Client::of(daemon.control_socket());
        Self {
            client,
            daemon,
            _folder: folder,
        }
    }
}

impl Deref for Host {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl DerefMut for Host {
    fn deref_mut(&mut self) -> &mut Client {
        &mut self.client
    }
}

/// Asserts on a refusal's code and words.
#[track_caller]
pub(crate) fn refused<T: std::fmt::Debug>(result: Result<T, Status>, code: Code, words: &str) {
    let status = result.unwrap_err();
    assert_eq!(status.code(), code, "{status}");
    assert!(status.message().contains(words), "{status}");
}
