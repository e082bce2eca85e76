//! Sockets that the service manager listens on for the daemon.
//!
//! They are its own: their files, modes and groups are what its units say, and stay when the daemon ends, so that whoever
//! connects in between waits instead of being refused.

use std::net::SocketAddr;

use nrt_trace_shm::adopt::{self, Adopted};
use nrt_trace_shm::manager::Handed;
use rustix::net::SocketType;

use super::StartError;
use crate::config::Config;

/// Name of the control socket.
const CONTROL: &str = "control";
/// Name of the producer socket.
const PRODUCER: &str = "producer";
/// Name of the metrics socket.
const METRICS: &str = "metrics";

/// What was handed over to be listened on; what is missing is bound by the daemon.
#[derive(Debug, Default)]
pub(crate) struct Listening {
    /// Stream socket of the control API.
    pub control: Option<Adopted>,
    /// Packet socket of the producers.
    pub producer: Option<Adopted>,
    /// Stream socket where metrics are read, and its address if it is the loopback's.
    pub metrics: Option<(Adopted, Option<SocketAddr>)>,
}

impl Listening {
    /// Takes the sockets out of what was handed over, and leaves what the manager kept.
    pub(crate) fn take(handed: &mut Vec<Handed>) -> Result<Self, StartError> {
        let taken = Self {
            control: adopt::take(handed, CONTROL, SocketType::STREAM)?,
            producer: adopt::take(handed, PRODUCER, SocketType::SEQPACKET)?,
            metrics: adopt::take_local(handed, METRICS)?,
        };
        let listens = |one: &&Handed| {
            [SocketType::STREAM, SocketType::SEQPACKET]
                .iter()
                .any(|kind| adopt::check_listening(&one.fd, *kind).is_ok())
        };
        // Closed, it would leave whoever connects to it waiting for ever, and what it was meant for bound a second time.
        match handed.iter().find(listens) {
            Some(unknown) => Err(StartError::UnknownSocket {
                name: unknown.name.clone(),
            }),
            None => Ok(taken),
        }
    }
    /// Names of the sockets that are there, for the log.
    pub(crate) fn names(&self) -> Vec<&'static str> {
        [
            (CONTROL, self.control.is_some()),
            (PRODUCER, self.producer.is_some()),
            (METRICS, self.metrics.is_some()),
        ]
        .into_iter()
        .filter_map(|(name, is_there)| is_there.then_some(name))
        .collect()
    }

    /// Writes down where the sockets are: their paths are those that they were bound with, whatever the settings say.
    pub(crate) fn place(&self, config: &mut Config) {
        let path = |socket: &Option<Adopted>| socket.as_ref().and_then(|one| one.path.clone());
        if let Some(path) = path(&self.control) {
            config.control_socket = path;
        }
        if let Some(path) = path(&self.producer) {
            config.producer_socket = path;
        }
    }
}
