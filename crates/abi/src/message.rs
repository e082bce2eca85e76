//! The producer socket's packets (`SOCK_SEQPACKET`, one message a packet, descriptors beside them).
//!
//! ```text
//!  library                                     daemon
//!     │ Hello ────────────────────────────────▶ │
//!     │ ◀──────────── Welcome + [page, strings] │   or Refuse
//!     │ ◀──────────────────── Arm + [segment]   │   a run covers this producer
//!     │ Armed ────────────────────────────────▶ │   the segment is mapped and published
//!     │ ◀──────────────────────────────── Go    │   the gates are open
//!     │ ◀──────────────────────────── Disarm    │   the gates are closed
//!     │ Disarmed ─────────────────────────────▶ │   no thread is inside an emit any more
//!
//!     │ StartOwn ─────────────────────────────▶ │   the process wants a capture of its own
//!     │ ◀─────────── Arm, Armed, Go as above    │   unless its rings are there already: then it joins
//!     │ ◀──────────────────────────── OwnAnswer │
//!     │ StopOwn ──────────────────────────────▶ │
//!     │ ◀──────────────────────────── Disarm    │   unless it had joined
//!     │ ◀──────────────────────────── OwnAnswer │
//! ```
//!
//! Every message is a fixed-size struct that starts with a [`Header`]; all numbers are little-endian and there is no
//! padding. A receiver checks magic, version, kind and length before it looks at anything else, and takes exactly the
//! number of descriptors that the kind has.

use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

use crate::layout::SLOT_WORDS;
use crate::record::RECORD_BYTES;
use crate::{ABI_VERSION, MAX_NCS};

/// "NRTM" as a little-endian number.
pub const MAGIC: u32 = u32::from_le_bytes(*b"NRTM");

/// Bytes of the largest message.
pub const MAX_BYTES: usize = size_of::<Hello>();

/// Segments that a Hello can bring.
pub const MAX_HANDED_BACK: usize = 8;

/// Starts every message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Header {
    /// [`MAGIC`].
    pub magic: u32,
    /// [`ABI_VERSION`] of the sender.
    pub abi: u16,
    /// The message's kind, [`Message::KIND`].
    pub kind: u16,
    /// Bytes of the whole message.
    pub bytes: u32,
    /// Zero.
    pub reserved: u32,
}

/// A message of the producer socket.
pub trait Message: FromBytes + IntoBytes + KnownLayout + Immutable + Sized {
    /// Its number in [`Header::kind`].
    const KIND: u16;
    /// Descriptors that travel with it.
    const FDS: usize;

    /// The header of a message of this kind.
    #[must_use]
    fn header() -> Header {
        let bytes = u32::try_from(size_of::<Self>()).unwrap_or(u32::MAX);
        Header {
            magic: MAGIC,
            abi: ABI_VERSION,
            kind: Self::KIND,
            bytes,
            reserved: 0,
        }
    }
}

/// Library to daemon: who I am, as far as the kernel does not tell.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Hello {
    /// Kind 1.
    pub header: Header,
    /// 112.
    pub record_bytes: u32,
    /// 8.
    pub word_bytes: u32,
    /// 128.
    pub slot_bytes: u32,
    /// `NEURON_RT_WORKER_GID`, else `RANK`, else -1.
    pub worker_gid: i32,
    /// The pid that the process believes it has: for display only.
    pub claimed_pid: u32,
    /// Entries of `visible` that hold; 0 when the process knows nothing of its cores.
    pub visible_len: u16,
    /// Bytes of `name` that hold.
    pub name_len: u16,
    /// Bytes of `token` that hold.
    pub token_len: u16,
    /// Bytes of `exe` that hold.
    pub exe_len: u16,
    /// Zero.
    pub reserved: u32,
    /// The run whose rings this process still writes, from an earlier daemon; 0 for none. Rings of earlier daemons travel
    /// with the message, [`MAX_HANDED_BACK`] at most.
    pub armed_generation: u64,
    /// Host cores that the process sees; its NC index k is `visible[k]`.
    pub visible: [u16; MAX_NCS],
    /// Name that the program gave itself, UTF-8.
    pub name: [u8; 128],
    /// `NRT_TRACE_TOKEN`, UTF-8.
    pub token: [u8; 128],
    /// Path of the executable as the process sees it, UTF-8, cut if need be.
    pub exe: [u8; 256],
}

/// Daemon to library: attached. Descriptors: control page, string table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Welcome {
    /// Kind 2.
    pub header: Header,
    /// The daemon's number for this attach.
    pub producer_id: u32,
    /// 1 if a run covers this producer and an Arm follows, [`Welcome::RUN_GOES_ON`] if it keeps the rings that it handed
    /// back, else 0: whoever waits to be armed need not wait for 0.
    pub run_follows: u32,
    /// How long the library keeps an armed segment without a daemon.
    pub orphan_keep_s: u32,
    /// Zero.
    pub reserved: u32,
    /// Bytes of the string table.
    pub string_bytes: u64,
}

/// Daemon to library: not attached, and why; after the Welcome: not captured by a run, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Refuse {
    /// Kind 3.
    pub header: Header,
    /// One of [`refuse`].
    pub code: u32,
    /// Bytes of `text` that hold.
    pub text_len: u32,
    /// Plain words for a log, UTF-8.
    pub text: [u8; 200],
}

/// Reasons in [`Refuse::code`].
pub mod refuse {
    /// Another ABI version, record size, word size or slot size.
    pub const VERSION: u32 = 1;
    /// A message that is malformed or out of turn.
    pub const PROTOCOL: u32 = 2;
    /// Over a budget (producers, memory, descriptors).
    pub const BUDGET: u32 = 3;
    /// Not allowed by the daemon's configuration.
    pub const ACCESS: u32 = 4;
}

/// Daemon to library: a run begins for this producer. Descriptor: the segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Arm {
    /// Kind 4.
    pub header: Header,
    /// The run's generation.
    pub generation: u64,
    /// Bytes of the segment.
    pub segment_bytes: u64,
}

/// Library to daemon: the segment is mapped and emits will find it once the gates open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Armed {
    /// Kind 5.
    pub header: Header,
    /// The generation of the Arm that this answers.
    pub generation: u64,
    /// 0, or the errno for which the segment could not be mapped.
    pub errno: u32,
    /// Zero.
    pub reserved: u32,
}

/// Daemon to library: the gates are open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Go {
    /// Kind 6.
    pub header: Header,
    /// The run's generation.
    pub generation: u64,
}

/// Daemon to library: the gates are closed; give the segment up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Disarm {
    /// Kind 7.
    pub header: Header,
    /// The run's generation.
    pub generation: u64,
}

/// Library to daemon: no thread writes the segment any more (or some still might: `quiescent` 0).
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct Disarmed {
    /// Kind 8.
    pub header: Header,
    /// The generation of the Disarm that this answers.
    pub generation: u64,
    /// 1 if every thread was seen outside an emit.
    pub quiescent: u32,
    /// Zero.
    pub reserved: u32,
}

/// Library to daemon: begin a capture of this process alone, which the process reads itself.
///
/// Who asks is the connection's process; the message says nothing of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct StartOwn {
    /// Kind 9.
    pub header: Header,
    /// Comes back in [`OwnAnswer::request`].
    pub request: u64,
    /// Slots of each ring. Where rings are there already they keep their size.
    pub max_events_per_nc: u64,
    /// Event types, a bit each; bits that no type has are ignored.
    pub types: u64,
    /// NCs by the process's own index: bit `nc % 64` of word `nc / 64`.
    pub ncs: [u64; MAX_NCS / 64],
}

/// Library to daemon: end the capture that [`StartOwn`] began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct StopOwn {
    /// Kind 10.
    pub header: Header,
    /// Comes back in [`OwnAnswer::request`].
    pub request: u64,
}

/// Daemon to library: what came of a [`StartOwn`] or [`StopOwn`].
///
/// For a start it comes when the gates are open, for a stop after the Disarm, so that the library has done all that
/// follows from it when it reads this.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct OwnAnswer {
    /// Kind 11.
    pub header: Header,
    /// The number of the request.
    pub request: u64,
    /// An `NRT_STATUS`: 0 when it was done.
    pub status: u32,
    /// 1 if the capture shares the rings of a run that was on before.
    pub joined: u32,
    /// Bytes of `text` that hold.
    pub text_len: u32,
    /// Zero.
    pub reserved: u32,
    /// What a log should say of it, UTF-8; empty when nothing is worth saying.
    pub text: [u8; 200],
}

macro_rules! messages {
    ($($name:ident $kind:literal $fds:literal),* $(,)?) => {$(
        impl Message for $name {
            const KIND: u16 = $kind;
            const FDS: usize = $fds;
        }
    )*};
}

messages! {
    Hello 1 0, Welcome 2 2, Refuse 3 0, Arm 4 1, Armed 5 0, Go 6 0, Disarm 7 0, Disarmed 8 0,
    StartOwn 9 0, StopOwn 10 0, OwnAnswer 11 0,
}

/// What is wrong with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BadMessage {
    /// Shorter than a header, or another magic: not this protocol at all.
    Foreign,
    /// The sender speaks another ABI version.
    Version {
        /// The sender's version.
        theirs: u16,
    },
    /// The kind is not one that may come here.
    Kind {
        /// The kind that came.
        kind: u16,
    },
    /// The packet's length is not its kind's.
    Length {
        /// Bytes that came.
        bytes: usize,
    },
}

impl core::fmt::Display for BadMessage {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Foreign => write!(f, "not a message of this protocol"),
            Self::Version { theirs } => write!(
                f,
                "the peer speaks ABI version {theirs}, this side {ABI_VERSION}"
            ),
            Self::Kind { kind } => write!(f, "message kind {kind} is not expected here"),
            Self::Length { bytes } => write!(
                f,
                "a message of {bytes} bytes has the wrong length for its kind"
            ),
        }
    }
}

impl core::error::Error for BadMessage {}

/// The kind of a packet, after magic and version are checked.
///
/// # Errors
/// [`BadMessage::Foreign`] or [`BadMessage::Version`].
pub fn kind_of(packet: &[u8]) -> Result<u16, BadMessage> {
    let (header, _) = Header::read_from_prefix(packet).map_err(|_| BadMessage::Foreign)?;
    if header.magic != MAGIC {
        return Err(BadMessage::Foreign);
    }
    if header.abi != ABI_VERSION {
        return Err(BadMessage::Version { theirs: header.abi });
    }
    Ok(header.kind)
}

/// Reads a packet as a message of type `M`.
///
/// # Errors
/// Whatever is wrong with it, see [`BadMessage`].
pub fn parse<M: Message>(packet: &[u8]) -> Result<M, BadMessage> {
    let kind = kind_of(packet)?;
    if kind != M::KIND {
        return Err(BadMessage::Kind { kind });
    }
    let (header, _) = Header::read_from_prefix(packet).map_err(|_| BadMessage::Foreign)?;
    M::read_from_bytes(packet)
        .ok()
        .filter(|_| header.bytes == M::header().bytes)
        .ok_or(BadMessage::Length {
            bytes: packet.len(),
        })
}

impl Welcome {
    /// [`Welcome::run_follows`] of a process that goes on with the rings that it has.
    pub const RUN_GOES_ON: u32 = 2;
}

impl Hello {
    /// A Hello with this library's sizes and nothing else filled in.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "two small constants")]
    pub fn new() -> Self {
        let mut hello = Self::new_zeroed();
        hello.header = Self::header();
        hello.record_bytes = RECORD_BYTES as u32;
        hello.word_bytes = 8;
        hello.slot_bytes = (SLOT_WORDS * 8) as u32;
        hello.worker_gid = -1;
        hello
    }

    /// Whether the sender's sizes are ours.
    #[must_use]
    pub const fn sizes_match(&self) -> bool {
        self.record_bytes as usize == RECORD_BYTES
            && self.word_bytes == 8
            && self.slot_bytes as usize == SLOT_WORDS * 8
    }

    /// Host cores that the process sees, in its own order.
    #[must_use]
    pub fn visible(&self) -> &[u16] {
        &self.visible[..usize::from(self.visible_len).min(MAX_NCS)]
    }

    /// Sets the visible cores; more than 256 are cut.
    #[expect(clippy::cast_possible_truncation, reason = "at most 256")]
    pub fn set_visible(&mut self, cores: &[u16]) {
        let len = cores.len().min(MAX_NCS);
        self.visible[..len].copy_from_slice(&cores[..len]);
        self.visible_len = len as u16;
    }

    /// Sets the name, cut to its field at a character boundary.
    pub fn set_name(&mut self, name: &str) {
        self.name_len = copy_text(&mut self.name, name);
    }

    /// Sets the token, cut to its field at a character boundary.
    pub fn set_token(&mut self, token: &str) {
        self.token_len = copy_text(&mut self.token, token);
    }

    /// Sets the executable's path, cut to its field at a character boundary.
    pub fn set_exe(&mut self, exe: &str) {
        self.exe_len = copy_text(&mut self.exe, exe);
    }

    /// The name, if it is UTF-8.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        text(&self.name, usize::from(self.name_len))
    }

    /// The token, if it is UTF-8.
    #[must_use]
    pub fn token(&self) -> Option<&str> {
        text(&self.token, usize::from(self.token_len))
    }

    /// The executable's path, if it is UTF-8.
    #[must_use]
    pub fn exe(&self) -> Option<&str> {
        text(&self.exe, usize::from(self.exe_len))
    }
}

impl Default for Hello {
    fn default() -> Self {
        Self::new()
    }
}

impl Refuse {
    /// A refusal with its reason.
    #[must_use]
    pub fn new(code: u32, reason: &str) -> Self {
        let mut refuse = Self::new_zeroed();
        refuse.header = Self::header();
        refuse.code = code;
        refuse.text_len = u32::from(copy_text(&mut refuse.text, reason));
        refuse
    }

    /// The reason, if it is UTF-8.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        text(&self.text, self.text_len as usize)
    }
}

impl StartOwn {
    /// Whether NC `nc` is wanted.
    #[must_use]
    pub const fn wants(&self, nc: usize) -> bool {
        nc < MAX_NCS && self.ncs[nc / 64] >> (nc % 64) & 1 != 0
    }
}

impl OwnAnswer {
    /// An answer with what a log should say of it.
    #[must_use]
    pub fn new(request: u64, status: u32, joined: bool, say: &str) -> Self {
        let mut answer = Self::new_zeroed();
        answer.header = Self::header();
        answer.request = request;
        answer.status = status;
        answer.joined = u32::from(joined);
        answer.text_len = u32::from(copy_text(&mut answer.text, say));
        answer
    }

    /// What a log should say of it, if it is UTF-8.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        text(&self.text, self.text_len as usize)
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "fields are shorter than 2^16"
)]
fn copy_text(field: &mut [u8], text: &str) -> u16 {
    let end = text.floor_char_boundary(field.len());
    field[..end].copy_from_slice(&text.as_bytes()[..end]);
    end as u16
}

fn text(field: &[u8], len: usize) -> Option<&str> {
    core::str::from_utf8(field.get(..len)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hello_reads_back() {
        let mut hello = Hello::new();
        hello.set_name("trainer");
        hello.set_token("t-1");
        hello.set_visible(&[8, 9]);
        let back: Hello = parse(hello.as_bytes()).unwrap();
        assert_eq!(
            (back.name(), back.token(), back.visible()),
            (Some("trainer"), Some("t-1"), &[8, 9][..])
        );
        assert!(back.sizes_match());
    }

    #[test]
    fn long_text_is_cut_between_characters() {
        let mut hello = Hello::new();
        hello.set_name(&"é".repeat(100));
        assert_eq!(hello.name().unwrap().len(), 128);
        hello.set_name(&format!("a{}", "é".repeat(100)));
        assert_eq!(hello.name().unwrap().len(), 127);
    }

    #[test]
    fn each_defect_is_told_by_name() {
        let go = Go {
            header: Go::header(),
            generation: 1,
        };
        let bytes = go.as_bytes();
        assert_eq!(parse::<Go>(bytes), Ok(go));
        assert_eq!(parse::<Go>(&bytes[..3]), Err(BadMessage::Foreign));
        assert_eq!(parse::<Disarm>(bytes), Err(BadMessage::Kind { kind: 6 }));
        assert_eq!(
            parse::<Go>(&bytes[..20]),
            Err(BadMessage::Length { bytes: 20 })
        );
        let mut other = go;
        other.header.bytes = 20;
        assert_eq!(
            parse::<Go>(other.as_bytes()),
            Err(BadMessage::Length { bytes: 24 }),
            "it says of itself that it is shorter"
        );
        let mut other = go;
        other.header.abi = 9;
        assert_eq!(
            parse::<Go>(other.as_bytes()),
            Err(BadMessage::Version { theirs: 9 })
        );
        other.header.magic = 0;
        assert_eq!(parse::<Go>(other.as_bytes()), Err(BadMessage::Foreign));
    }

    #[test]
    fn lengths_that_a_peer_made_up_do_not_reach_past_their_field() {
        let mut hello = Hello::new();
        hello.visible_len = u16::MAX;
        hello.name_len = u16::MAX;
        assert_eq!(hello.visible().len(), MAX_NCS);
        assert_eq!(hello.name(), None);
    }

    #[test]
    fn a_capture_of_its_own_asks_for_ncs_below_256_whatever_the_words_say() {
        let mut start = StartOwn::new_zeroed();
        start.header = StartOwn::header();
        start.ncs = [1, 0, 0, 1 << 63];
        let back: StartOwn = parse(start.as_bytes()).unwrap();
        let wanted: Vec<_> = (0..1000).filter(|&nc| back.wants(nc)).collect();
        assert_eq!(wanted, [0, 255]);
    }

    #[test]
    fn an_answer_reads_back_and_its_length_does_not_reach_past_its_field() {
        let mut answer = OwnAnswer::new(7, 4, true, &"é".repeat(200));
        let back: OwnAnswer = parse(answer.as_bytes()).unwrap();
        assert_eq!((back.request, back.status, back.joined), (7, 4, 1));
        assert_eq!(back.text().unwrap().len(), 200);
        answer.text_len = 201;
        assert_eq!(answer.text(), None);
    }
}
