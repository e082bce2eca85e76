//! The service manager that started this process: descriptors that it handed over, and what it is told.
//!
//! systemd's protocol. A service gets descriptors from number 3 on, which `LISTEN_FDS` counts and `LISTEN_FDNAMES` names;
//! they are sockets that the manager listens on for it, and descriptors that an earlier run of it had asked to be kept.
//! It tells the manager things by datagrams to `NOTIFY_SOCKET`. These never wait here: a manager that does not read
//! must not stop a thread that has others to serve.

use std::ffi::OsStr;
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::{Errno, FdFlags};
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix,
    SocketFlags, SocketType,
};

use crate::ShmError;

/// The first descriptor that a manager hands over.
const FIRST: RawFd = 3;
/// More than a manager may keep for a service is no count.
const MOST: RawFd = 1 << 20;

/// Set when the descriptors were given out: each has one owner.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// A descriptor that was handed over.
#[derive(Debug)]
pub struct Handed {
    /// Its name; empty if it has none.
    pub name: String,
    /// Itself; closed on exec from now on.
    pub fd: OwnedFd,
}

/// Takes what the service manager handed over, if this is the process that it is meant for; the second time nothing.
#[must_use]
pub fn take_handed() -> Vec<Handed> {
    let number = |name: &str| -> Option<i32> { std::env::var(name).ok()?.parse().ok() };
    let mine = number("LISTEN_PID") == Some(std::process::id().cast_signed());
    let count = number("LISTEN_FDS").unwrap_or(0);
    if !mine || !(1..=MOST).contains(&count) || TAKEN.swap(true, Ordering::Relaxed) {
        return Vec::new();
    }
    let names = std::env::var("LISTEN_FDNAMES").unwrap_or_default();
    let mut names = names.split(':');
    let mut handed = Vec::new();
    for raw in FIRST..FIRST + count {
        let name = names.next().unwrap_or_default().to_owned();
        if let Some(fd) = take(raw) {
            handed.push(Handed { name, fd });
        }
    }
    handed
}

/// Takes ownership of one descriptor from before this program's start.
fn take(raw: RawFd) -> Option<OwnedFd> {
    // SAFETY: the call takes any number; of one that is not open it says so.
    let flags = unsafe { libc::fcntl(raw, libc::F_GETFD) };
    if flags < 0 || flags & libc::FD_CLOEXEC != 0 {
        // Not open, or opened by this process since it began: what was there before outlived an exec, and so does not
        // have the flag that all of std's and rustix's descriptors have.
        return None;
    }
    // SAFETY: it is open, and it was before this program began (see above), so nothing in this process has opened it.
    // The environment says that it was left for this very process, and `TAKEN` that this is the only place to take it.
    let fd = unsafe { OwnedFd::from_raw_fd(raw) };
    // It would only be inherited by a program that this one starts.
    let _best_effort = rustix::io::fcntl_setfd(&fd, FdFlags::CLOEXEC);
    Some(fd)
}

/// The way to the service manager.
#[derive(Debug)]
pub struct Manager {
    socket: OwnedFd,
    address: SocketAddrUnix,
}

impl Manager {
    /// The manager that `NOTIFY_SOCKET` names; `None` if there is none.
    #[must_use]
    pub fn from_environment() -> Option<Self> {
        Self::at(&std::env::var_os("NOTIFY_SOCKET")?)
    }

    /// The manager at an address: a path, or an abstract name behind an `@`.
    #[must_use]
    pub fn at(address: &OsStr) -> Option<Self> {
        let address = match address.as_bytes() {
            [b'@', name @ ..] => SocketAddrUnix::new_abstract_name(name),
            path @ [b'/', ..] => SocketAddrUnix::new(path),
            _ => return None,
        };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket =
            rustix::net::socket_with(AddressFamily::UNIX, SocketType::DGRAM, flags, None).ok()?;
        Some(Self {
            socket,
            address: address.ok()?,
        })
    }

    /// Tells it something, `KEY=value` a line, with a descriptor if there is one.
    ///
    /// # Errors
    /// [`ShmError::WouldBlock`] when it has not read what it was told before; it is gone.
    pub fn tell(&self, lines: &str, fd: Option<BorrowedFd<'_>>) -> Result<(), ShmError> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if let Some(fd) = &fd
            && !control.push(SendAncillaryMessage::ScmRights(std::slice::from_ref(fd)))
        {
            return Err(ShmError::os("send a descriptor")(Errno::INVAL));
        }
        let text = [IoSlice::new(lines.as_bytes())];
        loop {
            // To the address each time: a manager that is started anew has another socket there.
            let sent = rustix::net::sendmsg_addr(
                &self.socket,
                &self.address,
                &text,
                &mut control,
                SendFlags::NOSIGNAL,
            );
            match sent {
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(ShmError::os("tell the service manager")(errno)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixDatagram;

    use super::*;
    use crate::memfd;

    #[test]
    fn nothing_is_taken_that_this_process_opened() {
        use std::os::fd::AsRawFd;
        let mine = memfd::create("mine", 4096).unwrap();
        assert!(take(mine.as_raw_fd()).is_none());
        assert!(take(1 << 20).is_none(), "and nothing that is not open");
    }

    #[test]
    fn the_manager_is_told_and_never_waited_for() {
        let folder = std::env::temp_dir().join(format!("nrt-manager-{}", std::process::id()));
        drop(std::fs::remove_file(&folder));
        let ear = UnixDatagram::bind(&folder).unwrap();
        let manager = Manager::at(folder.as_os_str()).unwrap();
        let fd = memfd::create("kept", 4096).unwrap();
        manager
            .tell("FDSTORE=1\nFDNAME=a", Some(fd.as_fd()))
            .unwrap();
        let mut bytes = [0; 64];
        let heard = crate::socket::receive(&ear, &mut bytes).unwrap();
        assert_eq!(&bytes[..heard.bytes], b"FDSTORE=1\nFDNAME=a");
        assert_eq!(
            memfd::identity(&heard.fds[0]).unwrap(),
            memfd::identity(&fd).unwrap()
        );
        let refused = (0..100_000).find_map(|_| manager.tell("STATUS=x", None).err());
        assert!(matches!(refused, Some(ShmError::WouldBlock)), "{refused:?}");
        std::fs::remove_file(&folder).unwrap();
        assert!(Manager::at(OsStr::new("relative")).is_none());
    }
}
