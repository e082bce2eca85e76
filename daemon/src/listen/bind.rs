//! Binding a path, after a look at what is there.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use nrt_trace_shm::{ShmError, socket};
use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use super::StartError;
use crate::config::Config;

/// Waiting connections of the control socket.
const BACKLOG: i32 = 128;

/// Device, inode and time of birth: some file systems give an inode's number to the next file at once.
type Identity = (u64, u64, Option<SystemTime>);

/// A bound socket's file. Dropping it removes the file, if it is still that file.
#[derive(Debug)]
pub(super) struct SocketFile {
    path: PathBuf,
    identity: Option<Identity>,
}

impl SocketFile {
    fn of(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            identity: identity(path),
        }
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if self.identity.is_some() && self.identity == identity(&self.path) {
            drop(std::fs::remove_file(&self.path));
        }
    }
}

fn identity(path: &Path) -> Option<Identity> {
    let meta = std::fs::symlink_metadata(path).ok()?;
    Some((meta.dev(), meta.ino(), meta.created().ok()))
}

/// Case G07: nothing is cut, and the limit is told.
pub(super) fn check_length(path: &Path) -> Result<(), StartError> {
    let bytes = path.as_os_str().as_bytes().len();
    if bytes > socket::PATH_MAX_BYTES {
        return Err(StartError::PathTooLong {
            path: path.to_owned(),
            bytes,
            limit: socket::PATH_MAX_BYTES,
        });
    }
    Ok(())
}

/// Whether a socket stands at `path`; what is there and is none is an error.
pub(super) fn refuse_files(path: &Path) -> Result<bool, StartError> {
    match std::fs::symlink_metadata(path) {
        Ok(meta) if meta.file_type().is_socket() => Ok(true),
        Ok(_) => Err(StartError::NotASocket {
            path: path.to_owned(),
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(source) => Err(StartError::Path {
            what: "look at",
            path: path.to_owned(),
            source,
        }),
    }
}

/// A lock that is taken is best explained by the socket that its holder answers on; `ours` are those to be bound here.
pub(super) fn who_holds(error: StartError, ours: &[&Path], config: &Config) -> StartError {
    if !matches!(error, StartError::Locked { .. }) {
        return error;
    }
    let both = [
        (&config.control_socket, SocketType::STREAM),
        (&config.producer_socket, SocketType::SEQPACKET),
    ];
    let live = |(path, kind): &(&PathBuf, _)| {
        let answers = matches!(probe(path, *kind), Err(StartError::AlreadyRunning { .. }));
        // On one that was handed over this very process would answer.
        ours.contains(&path.as_path()) && answers
    };
    match both.into_iter().find(live) {
        Some((path, _)) => StartError::AlreadyRunning { path: path.clone() },
        None => error,
    }
}

/// Listens on the control socket.
pub(super) fn control(
    path: &Path,
    mode: u32,
    group: Option<u32>,
) -> Result<(UnixListener, SocketFile), StartError> {
    let failed = |what| {
        move |errno: Errno| StartError::Path {
            what,
            path: path.to_owned(),
            source: errno.into(),
        }
    };
    clear(path, SocketType::STREAM)?;
    let fd = new_socket(SocketType::STREAM, SocketFlags::NONBLOCK)
        .map_err(failed("make a socket for"))?;
    let address = SocketAddrUnix::new(path).map_err(failed("use the path"))?;
    rustix::net::bind(&fd, &address).map_err(failed("bind"))?;
    let file = SocketFile::of(path);
    give_to(path, group)?;
    // Nobody can connect before `listen`, so the default mode in between does not matter.
    rustix::fs::chmod(path, Mode::from_raw_mode(mode)).map_err(failed("set the mode of"))?;
    rustix::net::listen(&fd, BACKLOG).map_err(failed("listen on"))?;
    Ok((UnixListener::from(fd), file))
}

/// Listens on the producer socket.
pub(super) fn producer(
    path: &Path,
    mode: u32,
    group: Option<u32>,
) -> Result<(OwnedFd, SocketFile), StartError> {
    clear(path, SocketType::SEQPACKET)?;
    // Closed to all others until it has its group: it listens from its first moment on.
    let first = if group.is_some() { 0o600 } else { mode };
    let fd = socket::listen(path, first).map_err(|error| StartError::Path {
        what: "listen on",
        path: path.to_owned(),
        source: match error {
            ShmError::Os { source, .. } => source,
            other => io::Error::other(other),
        },
    })?;
    let file = SocketFile::of(path);
    if group.is_some() {
        give_to(path, group)?;
        rustix::fs::chmod(path, Mode::from_raw_mode(mode)).map_err(|errno| StartError::Path {
            what: "set the mode of",
            path: path.to_owned(),
            source: errno.into(),
        })?;
    }
    Ok((fd, file))
}

/// Gives a socket's file to a group, if one is set.
fn give_to(path: &Path, group: Option<u32>) -> Result<(), StartError> {
    let given = group.map_or(Ok(()), |group| {
        std::os::unix::fs::lchown(path, None, Some(group))
    });
    given.map_err(|source| StartError::Path {
        what: "give to the configured group",
        path: path.to_owned(),
        source,
    })
}

/// Removes a socket that nobody answers on.
fn clear(path: &Path, kind: SocketType) -> Result<(), StartError> {
    if !refuse_files(path)? {
        return Ok(());
    }
    probe(path, kind)?;
    tracing::info!(path = %path.display(), "replacing a socket whose daemon is gone");
    match std::fs::remove_file(path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => Err(StartError::Path {
            what: "remove the old socket",
            path: path.to_owned(),
            source,
        }),
        _ => Ok(()),
    }
}

/// Case G05: only a refused connection proves that the owner is gone.
fn probe(path: &Path, kind: SocketType) -> Result<(), StartError> {
    let failed = |errno: Errno| StartError::Path {
        what: "probe",
        path: path.to_owned(),
        source: errno.into(),
    };
    // Non-blocking: a live daemon with a full backlog answers EAGAIN instead of keeping us waiting.
    let fd = new_socket(kind, SocketFlags::NONBLOCK).map_err(failed)?;
    let address = SocketAddrUnix::new(path).map_err(failed)?;
    match rustix::net::connect(&fd, &address) {
        Err(Errno::CONNREFUSED | Errno::NOENT) => Ok(()),
        Ok(()) | Err(Errno::AGAIN | Errno::INPROGRESS) => Err(StartError::AlreadyRunning {
            path: path.to_owned(),
        }),
        Err(Errno::PROTOTYPE) => Err(StartError::ForeignSocket {
            path: path.to_owned(),
        }),
        Err(errno) => Err(failed(errno)),
    }
}

fn new_socket(kind: SocketType, flags: SocketFlags) -> Result<OwnedFd, Errno> {
    rustix::net::socket_with(
        AddressFamily::UNIX,
        kind,
        flags | SocketFlags::CLOEXEC,
        None,
    )
}
