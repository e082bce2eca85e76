//! `SOCK_SEQPACKET` unix sockets: one message a packet, descriptors beside it, the kernel's word for who the peer is.
//!
//! Nothing here raises SIGPIPE, and every received descriptor is closed on exec.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
};

use crate::ShmError;
use crate::distant::Distant;

/// Longest socket path, in bytes: the kernel's field has 108 with the closing zero.
pub const PATH_MAX_BYTES: usize = 107;

/// Most descriptors that any message carries.
const MAX_FDS: usize = nrt_trace_abi::message::MAX_HANDED_BACK;

/// Waiting connections of a listener.
const BACKLOG: i32 = 512;

/// Who is at the other end, as the kernel recorded it when the connection was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Process id in this process's PID namespace; `None` if the peer is not visible from it.
    pub pid: Option<i32>,
    /// Effective user id.
    pub uid: u32,
    /// Effective group id.
    pub gid: u32,
}

/// A received packet.
#[derive(Debug)]
pub struct Received {
    /// Its length; 0 when the peer has closed the connection.
    pub bytes: usize,
    /// The descriptors that came with it, at most as many as any message has.
    pub fds: Vec<OwnedFd>,
}

/// The address of `path`, if it fits.
fn address(path: &Path) -> Result<SocketAddrUnix, ShmError> {
    let bytes = path.as_os_str().as_bytes().len();
    if bytes > PATH_MAX_BYTES {
        return Err(ShmError::PathTooLong {
            path: path.display().to_string(),
            bytes,
        });
    }
    SocketAddrUnix::new(path).map_err(ShmError::os("make a socket address"))
}

fn seqpacket(flags: SocketFlags) -> Result<OwnedFd, ShmError> {
    rustix::net::socket_with(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        flags | SocketFlags::CLOEXEC,
        None,
    )
    .map_err(ShmError::os("make a socket"))
}

/// Listens at `path` with permission bits `mode`, non-blocking. The caller has removed a stale file.
///
/// # Errors
/// [`ShmError::PathTooLong`], or the path is taken or not writable.
pub fn listen(path: &Path, mode: u32) -> Result<OwnedFd, ShmError> {
    let address = address(path)?;
    let fd = seqpacket(SocketFlags::NONBLOCK)?;
    rustix::net::bind(&fd, &address).map_err(ShmError::os("bind the producer socket"))?;
    // Nobody can connect before `listen`, so the default mode in between does not matter.
    rustix::fs::chmod(path, Mode::from_raw_mode(mode))
        .map_err(ShmError::os("set the producer socket's mode"))?;
    rustix::net::listen(&fd, BACKLOG).map_err(ShmError::os("listen on the producer socket"))?;
    Ok(fd)
}

/// Takes a connection, non-blocking.
///
/// # Errors
/// [`ShmError::WouldBlock`] when there is none; out of descriptors.
pub fn accept(listener: impl AsFd) -> Result<OwnedFd, ShmError> {
    rustix::net::accept_with(listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC)
        .map_err(ShmError::os("accept a producer"))
}

/// Connects to `path`; the result blocks.
///
/// # Errors
/// [`ShmError::PathTooLong`], or nobody listens there.
pub fn connect(path: &Path) -> Result<OwnedFd, ShmError> {
    let fd = seqpacket(SocketFlags::empty())?;
    connect_to(fd.as_fd(), path)?;
    Ok(fd)
}

/// [`connect`], out of the program's way.
///
/// # Errors
/// As [`connect`]; the program has closed it meanwhile.
pub fn connect_distant(path: &Path) -> Result<Distant, ShmError> {
    let fd = Distant::new(seqpacket(SocketFlags::empty())?)?;
    connect_to(fd.get()?, path)?;
    Ok(fd)
}

fn connect_to(fd: BorrowedFd<'_>, path: &Path) -> Result<(), ShmError> {
    rustix::net::connect(fd, &address(path)?)
        .map_err(ShmError::os("connect to the producer socket"))
}

/// A connected pair, for tests.
///
/// # Errors
/// Out of descriptors.
pub fn pair() -> Result<(OwnedFd, OwnedFd), ShmError> {
    rustix::net::socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )
    .map_err(ShmError::os("make a socket pair"))
}

/// Sends one packet, with as many descriptors as any message has at most.
///
/// # Errors
/// [`ShmError::WouldBlock`] when a non-blocking peer does not read; the peer is gone (EPIPE, without a signal).
pub fn send(fd: impl AsFd, packet: &[u8], fds: &[BorrowedFd<'_>]) -> Result<(), ShmError> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(ShmError::os("send descriptors")(Errno::INVAL));
    }
    loop {
        match rustix::net::sendmsg(
            &fd,
            &[IoSlice::new(packet)],
            &mut control,
            SendFlags::NOSIGNAL,
        ) {
            Ok(_) => return Ok(()), // a packet goes whole or not at all
            Err(Errno::INTR) => {}
            Err(errno) => return Err(ShmError::os("send a message")(errno)),
        }
    }
}

/// Receives one packet.
///
/// # Errors
/// [`ShmError::WouldBlock`] when a non-blocking socket has none; [`ShmError::PacketTooLong`]; [`ShmError::NoDescriptors`].
pub fn receive(fd: impl AsFd, buffer: &mut [u8]) -> Result<Received, ShmError> {
    // Room for more than any message has, so that a count that is too high can be told from a right one.
    const ROOM: usize = MAX_FDS + 2;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(ROOM))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let message = loop {
        match rustix::net::recvmsg(
            &fd,
            &mut [IoSliceMut::new(buffer)],
            &mut control,
            RecvFlags::CMSG_CLOEXEC,
        ) {
            Err(Errno::INTR) => {}
            other => break other.map_err(ShmError::os("receive a message"))?,
        }
    };
    // Collected before anything is refused: dropping them closes them.
    let fds: Vec<OwnedFd> = control
        .drain()
        .filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(fds) => Some(fds),
            _ => None,
        })
        .flatten()
        .collect();
    if message.flags.contains(ReturnFlags::TRUNC) {
        return Err(ShmError::PacketTooLong);
    }
    // Not for want of room here: those that did not come found no number.
    if message.flags.contains(ReturnFlags::CTRUNC) && fds.len() < ROOM {
        return Err(ShmError::NoDescriptors {
            what: "receive descriptors",
        });
    }
    Ok(Received {
        bytes: message.bytes,
        fds,
    })
}

/// The peer of a connection.
///
/// # Errors
/// `fd` is no connected unix socket.
pub fn peer(fd: impl AsFd) -> Result<Peer, ShmError> {
    // rustix's own call makes a NonZero of the pid, which is 0 for a peer in another PID namespace.
    let mut cred = libc::ucred {
        pid: 0,
        uid: 0,
        gid: 0,
    };
    let mut len = socklen::<libc::ucred>();
    // SAFETY: `cred` and `len` are valid for writes for the whole call, and `len` holds the size of `cred`, so the
    // kernel writes no more than that; the descriptor is borrowed and so open.
    let status = unsafe {
        libc::getsockopt(
            fd.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut cred).cast(),
            &raw mut len,
        )
    };
    if status != 0 {
        return Err(ShmError::last_os("read the peer's credentials"));
    }
    Ok(Peer {
        pid: (cred.pid > 0).then_some(cred.pid),
        uid: cred.uid,
        gid: cred.gid,
    })
}

/// A descriptor of the peer's process that becomes readable when the process has ended.
///
/// # Errors
/// The process is gone already, or the kernel has no pidfds.
pub fn peer_pidfd(fd: impl AsFd) -> Result<OwnedFd, ShmError> {
    const SO_PEERPIDFD: libc::c_int = 77;
    let mut raw: libc::c_int = -1;
    let mut len = socklen::<libc::c_int>();
    // SAFETY: `raw` and `len` are valid for writes for the whole call, and `len` holds the size of `raw`; the
    // descriptor is borrowed and so open.
    let status = unsafe {
        libc::getsockopt(
            fd.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            SO_PEERPIDFD,
            (&raw mut raw).cast(),
            &raw mut len,
        )
    };
    if status == 0 && raw >= 0 {
        // SAFETY: the kernel has just made this descriptor for us (close-on-exec), and nobody else knows its number.
        return Ok(unsafe { OwnedFd::from_raw_fd(raw) });
    }
    // Before kernel 6.5: by number, right after accept, when the process can hardly have been replaced.
    let pid = peer(&fd)?.pid.and_then(rustix::process::Pid::from_raw);
    let pid = pid.ok_or_else(|| ShmError::os("open the peer's pidfd")(Errno::SRCH))?;
    rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty())
        .map_err(ShmError::os("open the peer's pidfd"))
}

#[expect(clippy::cast_possible_truncation, reason = "sizes of small structs")]
const fn socklen<T>() -> libc::socklen_t {
    size_of::<T>() as libc::socklen_t
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_arrives_whole_with_its_descriptors() {
        let (a, b) = pair().unwrap();
        let file = crate::memfd::create("test", 4096).unwrap();
        send(&a, b"hello", &[file.as_fd(), file.as_fd()]).unwrap();
        let mut buffer = [0; 64];
        let got = receive(&b, &mut buffer).unwrap();
        assert_eq!(
            (got.bytes, got.fds.len(), &buffer[..5]),
            (5, 2, &b"hello"[..])
        );
        assert_eq!(rustix::fs::fstat(&got.fds[1]).unwrap().st_size, 4096);
        drop(a);
        assert_eq!(receive(&b, &mut buffer).unwrap().bytes, 0);
    }

    /// Descriptors for which there is no number are told, and none of them stays.
    #[test]
    fn a_receiver_without_room_for_descriptors_is_told() {
        let (a, b) = pair().unwrap();
        let file = crate::memfd::create("test", 4096).unwrap();
        send(&a, b"hello", &[file.as_fd(), file.as_fd()]).unwrap();
        assert!(crate::child::in_child(move || {
            let full = libc::rlimit {
                rlim_cur: 3,
                rlim_max: 3,
            };
            // SAFETY: reads a valid struct, in a process of its own.
            let limited = unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const full) == 0 };
            let received = receive(&b, &mut [0; 64]);
            limited && matches!(received, Err(ShmError::NoDescriptors { .. }))
        }));
    }

    #[test]
    fn a_packet_that_does_not_fit_is_refused() {
        let (a, b) = pair().unwrap();
        send(&a, &[7; 100], &[]).unwrap();
        assert!(matches!(
            receive(&b, &mut [0; 10]),
            Err(ShmError::PacketTooLong)
        ));
    }

    /// Case C09: writing to a connection whose far end is gone is an error and not a signal.
    #[test]
    fn c09_a_closed_peer_is_an_error() {
        let (a, b) = pair().unwrap();
        drop(b);
        assert_eq!(
            send(&a, b"x", &[]).unwrap_err().raw_os_error(),
            Some(libc::EPIPE)
        );
    }

    #[test]
    fn the_peer_is_who_the_kernel_says() {
        let (a, _b) = pair().unwrap();
        let peer = peer(&a).unwrap();
        assert_eq!(peer.pid, i32::try_from(std::process::id()).ok());
        let pidfd = peer_pidfd(&a).unwrap();
        assert!(pidfd.as_raw_fd() > 2);
    }

    /// Case G07: a path that does not fit is refused with its length and the limit.
    #[test]
    fn g07_a_long_path_is_told_with_its_length() {
        let path = format!("/tmp/{}", "x".repeat(120));
        let message = connect(Path::new(&path)).unwrap_err().to_string();
        assert!(
            message.contains("125") && message.contains("107"),
            "{message}"
        );
    }
}
