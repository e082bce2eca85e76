//! A program's first packet, and who it really is.
//!
//! What the kernel says of the peer (pid, user, group, a pidfd) is taken from the socket and cannot be made up. What
//! the program says of itself in its Hello is kept as its word: a name, a token, its cores. Its pid is never taken from
//! a message, and nothing is ever signalled.

mod facts;

use std::os::fd::OwnedFd;

use nrt_trace_abi::message::{self, BadMessage, Hello, refuse};
use nrt_trace_shm::ShmError;
use nrt_trace_shm::socket::{Peer, peer, peer_pidfd};

pub(crate) use facts::{CommandLines, KernelFacts, ProcFolder};

/// Why a program is not attached; the text goes to it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// One of [`refuse`].
    pub code: u32,
    /// The setting that decides, or a word for what has none.
    pub cause: &'static str,
    /// In words.
    pub reason: String,
}

/// The process at the other end of a connection, as the kernel knows it.
#[derive(Debug)]
pub(crate) struct PeerProcess {
    /// Pid, user and group.
    pub peer: Peer,
    /// Readable when the process has ended; absent if it has ended already.
    pub pidfd: Option<OwnedFd>,
}

impl PeerProcess {
    /// Asks the kernel.
    pub(crate) fn of(socket: &OwnedFd) -> Result<Self, ShmError> {
        Ok(Self {
            peer: peer(socket)?,
            pidfd: peer_pidfd(socket).ok(),
        })
    }
}

/// Takes a first packet for a Hello, or says why not.
pub(crate) fn judge(packet: &[u8], descriptors: usize) -> Result<Hello, Refusal> {
    let protocol = |reason: String| Refusal {
        code: refuse::PROTOCOL,
        cause: "protocol",
        reason,
    };
    let hello: Hello = message::parse(packet).map_err(|bad| match bad {
        BadMessage::Version { .. } => Refusal {
            code: refuse::VERSION,
            cause: "version",
            reason: for_the_peer(&bad),
        },
        _ => protocol(bad.to_string()),
    })?;
    if descriptors > message::MAX_HANDED_BACK {
        return Err(protocol(format!(
            "a Hello comes with {} descriptors at most, this one had {descriptors}",
            message::MAX_HANDED_BACK
        )));
    }
    if !hello.sizes_match() {
        let ours = Hello::new();
        let reason = format!(
            "record, word and slot of {}, {} and {} bytes; the daemon has {}, {} and {}",
            hello.record_bytes,
            hello.word_bytes,
            hello.slot_bytes,
            ours.record_bytes,
            ours.word_bytes,
            ours.slot_bytes
        );
        return Err(Refusal {
            code: refuse::VERSION,
            cause: "version",
            reason,
        });
    }
    if usize::from(hello.visible_len) > nrt_trace_abi::MAX_NCS {
        let reason = format!("visible cores {} exceeds 256", hello.visible_len);
        return Err(protocol(reason));
    }
    for (what, text) in [
        ("name", hello.name()),
        ("token", hello.token()),
        ("path", hello.exe()),
    ] {
        if text.is_none() {
            return Err(protocol(format!(
                "the {what} is not UTF-8, or longer than its field"
            )));
        }
    }
    Ok(hello)
}

/// A version mismatch as the other side has to read it.
fn for_the_peer(bad: &BadMessage) -> String {
    match bad {
        BadMessage::Version { theirs } => {
            format!(
                "the library speaks ABI version {theirs}, the daemon {}",
                nrt_trace_abi::ABI_VERSION
            )
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use zerocopy::IntoBytes;

    use super::*;

    fn refused(change: impl FnOnce(&mut Hello)) -> (u32, String) {
        let mut hello = Hello::new();
        change(&mut hello);
        let refusal = judge(hello.as_bytes(), 0).unwrap_err();
        (refusal.code, refusal.reason)
    }

    #[test]
    fn a_good_hello_passes() {
        let mut hello = Hello::new();
        hello.set_name("trainer");
        assert_eq!(judge(hello.as_bytes(), 0).unwrap().name(), Some("trainer"));
        let _passes = judge(hello.as_bytes(), message::MAX_HANDED_BACK).unwrap();
        assert_eq!(
            judge(hello.as_bytes(), message::MAX_HANDED_BACK + 1)
                .unwrap_err()
                .code,
            refuse::PROTOCOL
        );
    }

    /// Case R07: another word, record or layout is refused by name.
    #[test]
    fn r07_each_mismatch_is_refused_by_name() {
        let (code, reason) = refused(|hello| hello.header.abi = 9);
        assert_eq!(code, refuse::VERSION);
        assert!(
            reason.contains("library speaks ABI version 9")
                && reason.contains(&format!("daemon {}", nrt_trace_abi::ABI_VERSION)),
            "{reason}"
        );
        let (code, reason) = refused(|hello| hello.record_bytes = 120);
        assert!(
            code == refuse::VERSION && reason.contains("120") && reason.contains("112"),
            "{reason}"
        );
        for change in [
            |h: &mut Hello| h.word_bytes = 4,
            |h: &mut Hello| h.slot_bytes = 64,
        ] {
            assert_eq!(refused(change).0, refuse::VERSION);
        }
        for change in [
            |h: &mut Hello| h.header.magic = 0,
            |h: &mut Hello| h.header.kind = 5,
            |h: &mut Hello| h.visible_len = 257,
            |h: &mut Hello| h.token_len = 129,
            |h: &mut Hello| (h.name_len, h.name[0]) = (1, 0xFF),
        ] {
            assert_eq!(refused(change).0, refuse::PROTOCOL);
        }
    }

    #[test]
    fn garbage_is_refused() {
        for garbage in [&b""[..], b"GET / HTTP/1.1", &[0xFF; 1056]] {
            assert_eq!(judge(garbage, 0).unwrap_err().code, refuse::PROTOCOL);
        }
    }
}
