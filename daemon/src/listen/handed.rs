//! Sockets that the service manager listens on for the daemon.
//!
//! They are its own: their files, modes and groups are what its units say, and stay when the daemon ends, so that whoever
//! connects in between waits instead of being refused.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

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
        if let Some(unknown) = handed.iter().find(listens) {
            return Err(StartError::UnknownSocket {
                name: unknown.name.clone(),
            });
        }
        let gone = taken.named().find(|(_, path)| is_gone(path));
        if let Some((name, path)) = gone.map(|(name, path)| (name, path.to_owned())) {
            return Err(StartError::FileGone { name, path });
        }
        Ok(taken)
    }

    /// Those that have a file, with their names.
    fn named(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        let metrics = self.metrics.as_ref().map(|(adopted, _)| adopted);
        [
            (CONTROL, self.control.as_ref()),
            (PRODUCER, self.producer.as_ref()),
            (METRICS, metrics),
        ]
        .into_iter()
        .filter_map(|(name, adopted)| Some((name, adopted?.path.as_deref()?)))
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

    /// Writes down where the sockets are: their paths, or abstract names, are those that they were bound with, whatever the
    /// settings say.
    pub(crate) fn place(&self, config: &mut Config) {
        let default = Config::default();
        let place = |adopted: &Option<Adopted>, key, setting: &mut PathBuf, default: &Path| {
            let Some(used) = adopted.as_ref().and_then(Adopted::shown) else {
                return;
            };
            if setting != default {
                tell_unused(key, setting, &used);
            }
            *setting = used;
        };
        place(
            &self.control,
            "control_socket",
            &mut config.control_socket,
            &default.control_socket,
        );
        place(
            &self.producer,
            "producer_socket",
            &mut config.producer_socket,
            &default.producer_socket,
        );
        if let (Some((adopted, address)), Some(setting)) = (&self.metrics, &config.metrics_socket) {
            let address = address.map(|address| PathBuf::from(address.to_string()));
            let used = address.or_else(|| adopted.shown()).unwrap_or_default();
            tell_unused("metrics_socket", setting, &used);
        }
    }
}

/// Says that a socket of the settings is not the one that is used, if it is another one.
fn tell_unused(key: &str, setting: &Path, used: &Path) {
    let file = |path| fs::metadata(path).map(|meta| (meta.dev(), meta.ino())).ok();
    if setting != used && (file(setting).is_none() || file(setting) != file(used)) {
        tracing::warn!(
            key,
            setting = %setting.display(),
            used = %used.display(),
            "the service manager's socket is used, and not the one of the settings"
        );
    }
}

/// Whether a socket's file is surely gone, so that nobody could connect. Where its folder can't be seen either, it may be
/// one of another mount namespace, where others see it.
fn is_gone(path: &Path) -> bool {
    let folder = path.parent().unwrap_or_else(|| Path::new("/"));
    let is_socket = |meta: fs::Metadata| meta.file_type().is_socket();
    folder.is_dir() && !fs::metadata(path).is_ok_and(is_socket)
}
