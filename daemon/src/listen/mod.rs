//! The two sockets: made under a lock, never in place of a live daemon's or of a thing that is no socket.
//!
//! Whoever starts takes three lock files first: one in the state folder (two daemons never share state) and one beside
//! each socket (two daemons with different state folders never race for a path). What stands at a socket's path is then
//! probed by connecting: refused by the kernel means that its owner is gone, and only then it is replaced.

mod bind;
mod lock;

use std::fs::DirBuilder;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use crate::access::Access;
use crate::config::Config;

use bind::SocketFile;
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
    /// The machine has no room for the daemon's own threads and descriptors.
    #[error("can't {what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// Why it failed.
        source: io::Error,
    },
}

/// Both sockets, listening. Their files go when this is dropped.
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
    /// What keeps the files.
    pub files: SocketFiles,
}

/// The files of the sockets and the locks; dropped in this order, so that a name is never free while it is in use.
#[derive(Debug)]
pub(crate) struct SocketFiles {
    _sockets: [SocketFile; 2],
    _locks: Vec<Lock>,
}

impl Sockets {
    /// Makes the folders that are missing, takes the locks, binds.
    pub(crate) fn open(config: &Config) -> Result<Self, StartError> {
        for path in [&config.control_socket, &config.producer_socket] {
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
        for path in [&config.control_socket, &config.producer_socket] {
            bind::refuse_files(path)?;
        }
        let mut locks = Vec::new();
        for path in [
            config.state_dir.join("nrt-traced.lock"),
            lock::beside(&config.control_socket),
            lock::beside(&config.producer_socket),
        ] {
            locks.push(Lock::take(path).map_err(|error| bind::who_holds(error, config))?);
        }
        let (control, control_file) = bind::control(
            &config.control_socket,
            config.control_mode,
            config.control_group,
        )?;
        let (producer, producer_file) = bind::producer(
            &config.producer_socket,
            config.producer_mode,
            config.producer_group,
        )?;
        let access = |path: &Path, mode| {
            Access::of(path, mode).map_err(|source| StartError::Path {
                what: "look at",
                path: path.to_owned(),
                source,
            })
        };
        let control_access = access(&config.control_socket, config.control_mode)?;
        let producer_access = access(&config.producer_socket, config.producer_mode)?;
        let files = SocketFiles {
            _sockets: [control_file, producer_file],
            _locks: locks,
        };
        Ok(Self {
            control,
            control_access,
            producer,
            producer_access,
            files,
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
