//! What can go wrong below.

use std::io;

use rustix::io::Errno;

/// A failed operation on shared memory or on the producer socket.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ShmError {
    /// A system call failed.
    #[error("{what}: {source}")]
    Os {
        /// What was tried.
        what: &'static str,
        /// Why it failed.
        source: io::Error,
    },
    /// The process has as many descriptors as it may.
    #[error(
        "{what}: no descriptor is left, the process has as many as its limit allows (RLIMIT_NOFILE, ulimit -n: raise it)"
    )]
    NoDescriptors {
        /// What was tried.
        what: &'static str,
    },
    /// The socket has nothing to read, or no room to write, right now.
    #[error("the socket is not ready")]
    WouldBlock,
    /// A descriptor lacks seals: its size, or what it holds, could change under the mapping.
    #[error("the file is not sealed against resizing (seals {seals:#x})")]
    Unsealed {
        /// The seals that it has.
        seals: u32,
    },
    /// A descriptor's file has another size than was announced.
    #[error("the file has {actual} bytes, {expected} were announced")]
    Size {
        /// Its size, bytes.
        actual: u64,
        /// The announced size, bytes.
        expected: u64,
    },
    /// A size that can't be mapped: zero, not whole words, or beyond the address space.
    #[error("{bytes} bytes can't be mapped")]
    BadSize {
        /// The size, bytes.
        bytes: u64,
    },
    /// A socket path that does not fit the kernel's field.
    #[error(
        "the socket path {path} has {bytes} bytes; at most {} are possible",
        crate::socket::PATH_MAX_BYTES
    )]
    PathTooLong {
        /// The path.
        path: String,
        /// Its length in bytes.
        bytes: usize,
    },
    /// A packet was cut: it was longer than any message is.
    #[error("a packet was longer than any message")]
    PacketTooLong,
}

impl ShmError {
    /// Wraps the errno of a call described by `what`.
    pub(crate) fn os(what: &'static str) -> impl FnOnce(Errno) -> Self {
        move |errno| match errno {
            Errno::AGAIN => Self::WouldBlock,
            Errno::MFILE => Self::NoDescriptors { what },
            errno => Self::Os {
                what,
                source: errno.into(),
            },
        }
    }

    /// Wraps the last OS error of a libc call described by `what`.
    pub(crate) fn last_os(what: &'static str) -> Self {
        Self::Os {
            what,
            source: io::Error::last_os_error(),
        }
    }

    /// The errno behind it, if a system call failed.
    #[must_use]
    pub fn raw_os_error(&self) -> Option<i32> {
        match self {
            Self::Os { source, .. } => source.raw_os_error(),
            Self::NoDescriptors { .. } => Some(Errno::MFILE.raw_os_error()),
            _ => None,
        }
    }
}
