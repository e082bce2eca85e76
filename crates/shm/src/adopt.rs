//! Listening sockets that a service manager handed over, each looked at before it is used.
//!
//! The manager made them, so their files, modes and groups are its own: nothing here binds, locks or removes anything.

use std::ffi::{OsStr, OsString};
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use rustix::io::Errno;
use rustix::net::sockopt::{socket_acceptconn, socket_domain, socket_type};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType};

use crate::manager::Handed;

/// A socket that is listened on for this process.
#[derive(Debug)]
pub struct Adopted {
    /// Itself, non-blocking.
    pub fd: OwnedFd,
    /// Its file, as whoever bound it named it; none if it has an abstract name.
    pub path: Option<PathBuf>,
    /// Its abstract name, without the zero byte in front.
    pub abstract_name: Option<OsString>,
}

impl Adopted {
    /// How it is written where people read it: its path, or its abstract name behind an `@`.
    #[must_use]
    pub fn shown(&self) -> Option<PathBuf> {
        let of_name = |name: &OsString| {
            let mut shown = OsString::from("@");
            shown.push(name);
            PathBuf::from(shown)
        };
        (self.path.clone()).or_else(|| self.abstract_name.as_ref().map(of_name))
    }
}

/// A descriptor that can't be the socket that its name stands for.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the service manager handed over {found} under the name \"{name}\"; expected: one AF_UNIX socket that is listened on, of type {} ({}=)",
    type_name(*.expected), directive(*.expected)
)]
pub struct NotAdopted {
    /// The descriptor's name.
    pub name: String,
    /// What it is instead.
    pub found: Found,
    /// Type of the socket that was expected.
    pub expected: SocketType,
}

/// What a descriptor is that was to be a listening socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Found {
    /// No socket at all.
    #[error("no socket")]
    NoSocket,
    /// A socket of another address family.
    #[error("a socket of address family {}", .0.as_raw())]
    Family(AddressFamily),
    /// An internet socket that other machines can reach.
    #[error("a socket that is bound to {0}, which is no loopback address")]
    Reachable(std::net::IpAddr),
    /// A unix socket of another type.
    #[error("a socket of type {}", type_name(*.0))]
    Type(SocketType),
    /// A socket of the right type that nobody can connect to.
    #[error("a socket that is not listened on")]
    NotListening,
    /// More than one descriptor has this name.
    #[error("several descriptors")]
    Several,
    /// The kernel does not let it be used.
    #[error("a socket that can't be used ({0})")]
    Unusable(Errno),
}

/// What `fd` is, if it is not a unix socket of this type that is listened on.
///
/// # Errors
/// [`Found`] says what it is.
pub fn check_listening(fd: impl AsFd, kind: SocketType) -> Result<(), Found> {
    let family = socket_domain(&fd).map_err(|_| Found::NoSocket)?;
    if family != AddressFamily::UNIX {
        return Err(Found::Family(family));
    }
    check_kind(fd, kind)
}

fn check_kind(fd: impl AsFd, kind: SocketType) -> Result<(), Found> {
    let found = socket_type(&fd).map_err(Found::Unusable)?;
    if found != kind {
        return Err(Found::Type(found));
    }
    if !socket_acceptconn(&fd).map_err(Found::Unusable)? {
        return Err(Found::NotListening);
    }
    Ok(())
}

/// Takes the socket called `name` out of what was handed over, if it is there.
///
/// # Errors
/// [`NotAdopted`] if it is something else, or there are several.
pub fn take(
    handed: &mut Vec<Handed>,
    name: &str,
    kind: SocketType,
) -> Result<Option<Adopted>, NotAdopted> {
    let refused = |found| NotAdopted {
        name: name.to_owned(),
        found,
        expected: kind,
    };
    let mut named = handed.extract_if(.., |one| one.name == name);
    let Some(Handed { fd, .. }) = named.next() else {
        return Ok(None);
    };
    if named.next().is_some() {
        return Err(refused(Found::Several));
    }
    check_listening(&fd, kind).map_err(refused)?;
    // Whoever made it may have wanted to wait for connections; the threads here have others to serve.
    rustix::io::ioctl_fionbio(&fd, true).map_err(|errno| refused(Found::Unusable(errno)))?;
    let address = rustix::net::getsockname(&fd).and_then(SocketAddrUnix::try_from);
    let address = address.map_err(|errno| refused(Found::Unusable(errno)))?;
    let path = address.path();
    let abstract_name = address.abstract_name();
    Ok(Some(Adopted {
        fd,
        path: path.map(|path| PathBuf::from(OsStr::from_bytes(path.to_bytes()))),
        abstract_name: abstract_name.map(|name| OsStr::from_bytes(name).to_owned()),
    }))
}

/// Takes the stream socket called `name`, which may be a unix socket or one of this machine's loopback addresses; of that,
/// the address is told.
///
/// # Errors
/// As [`take`]; [`Found::Reachable`] for an address that other machines can reach.
pub fn take_local(
    handed: &mut Vec<Handed>,
    name: &str,
) -> Result<Option<(Adopted, Option<SocketAddr>)>, NotAdopted> {
    let inet = [AddressFamily::INET, AddressFamily::INET6];
    let is_inet = |one: &Handed| {
        one.name == name && socket_domain(&one.fd).is_ok_and(|family| inet.contains(&family))
    };
    if handed.iter().filter(|one| one.name == name).count() != 1 || !handed.iter().any(is_inet) {
        let taken = take(handed, name, SocketType::STREAM)?;
        return Ok(taken.map(|adopted| (adopted, None)));
    }
    let refused = |found| NotAdopted {
        name: name.to_owned(),
        found,
        expected: SocketType::STREAM,
    };
    let Some(Handed { fd, .. }) = handed.extract_if(.., |one| one.name == name).next() else {
        return Ok(None);
    };
    check_kind(&fd, SocketType::STREAM).map_err(refused)?;
    let unusable = |errno| refused(Found::Unusable(errno));
    let address = rustix::net::getsockname(&fd).map_err(unusable)?;
    let address = SocketAddr::try_from(address).map_err(unusable)?;
    if !address.ip().is_loopback() {
        return Err(refused(Found::Reachable(address.ip())));
    }
    rustix::io::ioctl_fionbio(&fd, true).map_err(unusable)?;
    let adopted = Adopted {
        fd,
        path: None,
        abstract_name: None,
    };
    Ok(Some((adopted, Some(address))))
}

fn type_name(kind: SocketType) -> &'static str {
    match kind {
        SocketType::STREAM => "SOCK_STREAM",
        SocketType::SEQPACKET => "SOCK_SEQPACKET",
        SocketType::DGRAM => "SOCK_DGRAM",
        _ => "unknown",
    }
}

/// How a socket unit asks for such a socket.
fn directive(kind: SocketType) -> &'static str {
    if kind == SocketType::SEQPACKET {
        "ListenSequentialPacket"
    } else {
        "ListenStream"
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
    use std::path::Path;

    use super::*;
    use crate::{memfd, socket};

    fn handed(fds: Vec<OwnedFd>) -> Vec<Handed> {
        let named = |fd| Handed {
            name: "control".to_owned(),
            fd,
        };
        fds.into_iter().map(named).collect()
    }

    fn refusal(fds: Vec<OwnedFd>, kind: SocketType) -> NotAdopted {
        take(&mut handed(fds), "control", kind).unwrap_err()
    }

    fn listener(path: &Path) -> OwnedFd {
        UnixListener::bind(path).unwrap().into()
    }

    #[test]
    fn a_listening_socket_is_taken_with_its_path_and_never_waits() {
        let folder = Folder::new("adopted");
        let path = folder.0.join("c.sock");
        let mut all = handed(vec![listener(&path)]);
        all.push(Handed {
            name: "segment-1".to_owned(),
            fd: memfd::create("kept", 4096).unwrap(),
        });
        let adopted = take(&mut all, "control", SocketType::STREAM)
            .unwrap()
            .unwrap();
        assert_eq!(adopted.path.as_deref(), Some(path.as_path()));
        let empty = UnixListener::from(adopted.fd).accept().unwrap_err();
        assert_eq!(empty.kind(), std::io::ErrorKind::WouldBlock);
        assert_eq!(all.len(), 1, "what has another name stays");
        assert!(
            take(&mut all, "control", SocketType::STREAM)
                .unwrap()
                .is_none()
        );
    }

    /// Each is refused by what it is, and the message says the name and what is expected.
    #[test]
    fn what_is_no_such_socket_is_refused() {
        let folder = Folder::new("refused");
        let unix = |name: &str| folder.0.join(name);
        let stream = SocketType::STREAM;
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let connected = UnixStream::pair().unwrap().0;
        let cases: [(Vec<OwnedFd>, SocketType, Found); 7] = [
            (
                vec![memfd::create("no", 4096).unwrap()],
                stream,
                Found::NoSocket,
            ),
            (vec![tcp.into()], stream, Found::Family(AddressFamily::INET)),
            (
                vec![UnixDatagram::unbound().unwrap().into()],
                stream,
                Found::Type(SocketType::DGRAM),
            ),
            (
                vec![socket::listen(&unix("p"), 0o600).unwrap()],
                stream,
                Found::Type(SocketType::SEQPACKET),
            ),
            (
                vec![listener(&unix("a"))],
                SocketType::SEQPACKET,
                Found::Type(stream),
            ),
            (vec![connected.into()], stream, Found::NotListening),
            (
                vec![listener(&unix("b")), listener(&unix("c"))],
                stream,
                Found::Several,
            ),
        ];
        for (fds, kind, found) in cases {
            let error = refusal(fds, kind);
            assert_eq!(error.found, found);
            let text = error.to_string();
            assert!(text.contains("\"control\""), "{text}");
            assert!(text.contains("AF_UNIX"), "{text}");
            assert!(text.contains(type_name(kind)), "{text}");
            assert!(text.contains(directive(kind)), "{text}");
        }
    }

    /// Where others may read, the loopback will do; nothing that other machines can reach.
    #[test]
    fn a_loopback_socket_is_taken_where_it_may_be() {
        let tcp = |address| vec![OwnedFd::from(TcpListener::bind(address).unwrap())];
        let mut all = handed(tcp("127.0.0.1:0"));
        let (adopted, address) = take_local(&mut all, "control").unwrap().unwrap();
        assert!(all.is_empty() && adopted.path.is_none());
        assert!(address.unwrap().ip().is_loopback());
        let error = take_local(&mut handed(tcp("0.0.0.0:0")), "control").unwrap_err();
        assert!(matches!(error.found, Found::Reachable(_)), "{error}");
        let folder = Folder::new("local");
        let unix = listener(&folder.0.join("m"));
        let (adopted, address) = take_local(&mut handed(vec![unix]), "control")
            .unwrap()
            .unwrap();
        assert!(adopted.path.is_some() && address.is_none());
        assert!(take_local(&mut Vec::new(), "control").unwrap().is_none());
    }

    /// A folder of one test.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("nrt-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            drop(std::fs::remove_dir_all(&self.0));
        }
    }
}
