//! The two sockets: taken from the service manager, or made under a lock, never in place of a live daemon's or of a thing
//! that is no socket.
//!
//! Whoever starts takes three lock files first: one in the state folder (two daemons never share state) and one beside
//! each socket (two daemons with different state folders never race for a path). What stands at a socket's path is then
//! probed by connecting: refused by the kernel means that its owner is gone, and only then it is replaced.

mod bind;
mod handed;
mod lock;

use std::fs::DirBuilder;
use std::io;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use nrt_trace_shm::adopt::NotAdopted;

use crate::access::Access;
use crate::config::Config;

use bind::SocketFile;
pub(crate) use handed::Listening;
use lock::Lock;

/// Why a daemon can't start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The settings are wrong.
    #[error(transparent)]
    Config(#[from] crate::config::ConfigError),
    /// Somebody answers on the socket.
    #[error("a daemon is already running on {}", .path.display())]
    AlreadyRunning {
        /// The socket.
        path: PathBuf,
    },
    /// Another daemon has the state folder, or is just starting on the same socket.
    #[error("another daemon holds {}", .path.display())]
    Locked {
        /// The lock file.
        path: PathBuf,
    },
    /// There is something at the socket's path that is no socket.
    #[error("{} exists and is not a socket; it is left as it is", .path.display())]
    NotASocket {
        /// The path.
        path: PathBuf,
    },
    /// There is somebody else's socket at the path, of another kind.
    #[error("{} is in use by a program that is no trace daemon", .path.display())]
    ForeignSocket {
        /// The path.
        path: PathBuf,
    },
    /// The service manager handed over something else under a socket's name.
    #[error(transparent)]
    NotAdopted(#[from] NotAdopted),
    /// The service manager handed over a socket that the daemon has no use for.
    #[error(
        "the service manager handed over a listening socket under the name \"{name}\"; allowed: \"control\", \"producer\" and \"metrics\" (FileDescriptorName=)"
    )]
    UnknownSocket {
        /// Its name.
        name: String,
    },
    /// The file of a socket that the service manager handed over is no more.
    #[error(
        "the service manager listens on {}, but there is no socket at that path any more, and nobody could connect: restart the .socket unit of \"{name}\"",
        .path.display()
    )]
    FileGone {
        /// The socket's name.
        name: &'static str,
        /// Where it was.
        path: PathBuf,
    },
    /// The path does not fit the kernel's field.
    #[error("the socket path {} has {bytes} bytes; at most {limit} are possible", .path.display())]
    PathTooLong {
        /// The path.
        path: PathBuf,
        /// Its bytes.
        bytes: usize,
        /// Bytes that are possible.
        limit: usize,
    },
    /// A system call failed.
    #[error("can't {what} {}: {source}", .path.display())]
    Path {
        /// What was tried.
        what: &'static str,
        /// With which path.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// Fewer descriptors than a daemon does anything with.
    #[error(
        "{limit} open files are allowed, and {least} are needed: raise the limit (LimitNOFILE of the unit, ulimit -n)"
    )]
    FewDescriptors {
        /// How many are allowed.
        limit: u64,
        /// How many it takes.
        least: u64,
    },
    /// The machine has no room for the daemon's own threads and descriptors.
    #[error("can't {what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// Why it failed.
        source: io::Error,
    },
}

/// Both sockets, listening. The files of those that were bound here go when this is dropped.
#[derive(Debug)]
pub(crate) struct Sockets {
    /// Stream socket of the control API, non-blocking.
    pub control: UnixListener,
    /// Who may use it.
    pub control_access: Access,
    /// Packet socket of the producers, non-blocking.
    pub producer: OwnedFd,
    /// Who may use it.
    pub producer_access: Access,
    /// Stream socket where metrics are read, non-blocking, if there is one.
    pub metrics: Option<MetricsSocket>,
    /// What keeps the files.
    pub files: SocketFiles,
}

/// Where metrics are read.
#[derive(Debug)]
pub(crate) enum MetricsSocket {
    /// A unix socket, and who may use it.
    Unix(UnixListener, Access),
    /// A loopback address: whoever is on this machine may.
    Loopback(TcpListener),
}

/// The files of the sockets and the locks; dropped in this order, so that a name is never free while it is in use.
#[derive(Debug)]
pub(crate) struct SocketFiles {
    _sockets: Vec<SocketFile>,
    _locks: Vec<Lock>,
}

impl Sockets {
    /// Adopts what was handed over. For what was not: makes the folders that are missing, takes the locks, binds.
    pub(crate) fn open(config: &Config, handed: Listening) -> Result<Self, StartError> {
        let Listening {
            control,
            producer,
            metrics,
        } = handed;
        let to_bind: Vec<&Path> = [
            (&config.control_socket, control.is_none()),
            (&config.producer_socket, producer.is_none()),
        ]
        .into_iter()
        .filter_map(|(path, bound_here)| bound_here.then_some(path.as_path()))
        .chain(
            config
                .metrics_socket
                .as_deref()
                .filter(|_| metrics.is_none()),
        )
        .collect();
        for path in &to_bind {
            bind::check_length(path)?;
            if let Some(folder) = path
                .parent()
                .filter(|folder| !folder.as_os_str().is_empty())
            {
                make_folder(folder)?;
            }
        }
        make_folder(&config.state_dir)?;
        // A live daemon is best told by its socket; the locks decide who may look and replace.
        for path in &to_bind {
            bind::refuse_files(path)?;
        }
        let mut locks = Vec::new();
        let places = [config.state_dir.join("nrt-traced.lock")];
        for place in (places.into_iter()).chain(to_bind.iter().map(|path| lock::beside(path))) {
            let taken = Lock::take(place);
            locks.push(taken.map_err(|error| bind::who_holds(error, &to_bind, config))?);
        }
        let mut files = Vec::new();
        let access = |path: &Path, mode| {
            Access::of(path, mode).map_err(|source| StartError::Path {
                what: "look at",
                path: path.to_owned(),
                source,
            })
        };
        let (path, mode, group) = (
            &config.control_socket,
            config.control_mode,
            config.control_group,
        );
        let (control, control_access) = match control {
            Some(adopted) => {
                let access = Access::adopted(adopted.path.as_deref(), mode, group);
                (UnixListener::from(adopted.fd), access)
            }
            None => {
                let (listener, file) = bind::control(path, mode, group)?;
                files.push(file);
                (listener, access(path, mode)?)
            }
        };
        let (path, mode, group) = (
            &config.producer_socket,
            config.producer_mode,
            config.producer_group,
        );
        let (producer, producer_access) = match producer {
            Some(adopted) => {
                let access = Access::adopted(adopted.path.as_deref(), mode, group);
                (adopted.fd, access)
            }
            None => {
                let (listener, file) = bind::producer(path, mode, group)?;
                files.push(file);
                (listener, access(path, mode)?)
            }
        };
        let metrics = match (metrics, &config.metrics_socket) {
            (Some((adopted, Some(_))), _) => Some(MetricsSocket::Loopback(adopted.fd.into())),
            (Some((adopted, None)), _) => {
                let path = adopted.path.as_deref();
                let access = Access::adopted(path, config.metrics_mode, config.metrics_group);
                Some(MetricsSocket::Unix(adopted.fd.into(), access))
            }
            (None, Some(path)) => {
                let (mode, group) = (config.metrics_mode, config.metrics_group);
                let (listener, file) = bind::control(path, mode, group)?;
                files.push(file);
                Some(MetricsSocket::Unix(listener, access(path, mode)?))
            }
            (None, None) => None,
        };
        Ok(Self {
            control,
            control_access,
            producer,
            producer_access,
            metrics,
            files: SocketFiles {
                _sockets: files,
                _locks: locks,
            },
        })
    }
}

/// Makes `folder` with mode 0755 if it is missing; its parent must exist.
fn make_folder(folder: &Path) -> Result<(), StartError> {
    match DirBuilder::new().mode(0o755).create(folder) {
        // In a read-only place an existing folder is told as something else.
        Err(_) if folder.is_dir() => Ok(()),
        Err(source) => Err(StartError::Path {
            what: "make the folder",
            path: folder.to_owned(),
            source,
        }),
        Ok(()) => Ok(()),
    }
}

#[cfg(test)]
mod tests;
