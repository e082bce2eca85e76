//! A client's connection whose `:authority` is made acceptable on the way in (`hpack` says why).
//!
//! Bytes go through unchanged but for the header blocks of HEADERS frames (RFC 9113 §4.1, §6.2), which are held back until
//! they are whole. Not looked at: CONTINUATION frames, in which nobody has been seen to send an authority.

use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tonic::transport::server::Connected;

use super::hpack::mend_authority;

/// Bytes that a client sends before its first frame.
const PREFACE: usize = 24;
/// Bytes of a frame's head: length (3), type, flags, stream (4).
const HEAD: usize = 9;
/// The type of a HEADERS frame, and its flags.
const HEADERS: u8 = 1;
const PADDED: u8 = 0x8;
const PRIORITY: u8 = 0x20;
/// Frames that are held back at most; the server allows clients 16 KiB.
const LONGEST: usize = 16 << 10;

/// A connection `S` whose reads are mended.
#[derive(Debug)]
pub(super) struct MendedAuthority<S> {
    inner: S,
    next: Next,
    /// Bytes of a frame's head or of a HEADERS frame that are not whole yet.
    held: Vec<u8>,
    /// Bytes that were read and not yet asked for, and how many of them were given out.
    ready: Vec<u8>,
    given: usize,
}

/// What the next byte of the client belongs to.
#[derive(Clone, Copy, Debug)]
enum Next {
    /// So many bytes that go through.
    Through(usize),
    /// A frame's head.
    Head,
    /// A HEADERS frame of so many bytes, its head among them.
    Headers(usize),
}

impl<S> MendedAuthority<S> {
    pub(super) fn new(inner: S) -> Self {
        Self {
            inner,
            next: Next::Through(PREFACE),
            held: Vec::new(),
            ready: Vec::new(),
            given: 0,
        }
    }

    /// Takes bytes of the client, and makes ready what is whole.
    fn take(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            match self.next {
                Next::Through(left) => {
                    let (now, later) = bytes.split_at(left.min(bytes.len()));
                    self.ready.extend_from_slice(now);
                    bytes = later;
                    self.next = match left - now.len() {
                        0 => Next::Head,
                        left => Next::Through(left),
                    };
                }
                Next::Head => {
                    if self.hold(&mut bytes, HEAD) {
                        self.begin_frame();
                    }
                }
                Next::Headers(whole) => {
                    if self.hold(&mut bytes, whole) {
                        mend(&mut self.held);
                        self.ready.append(&mut self.held);
                        self.next = Next::Head;
                    }
                }
            }
        }
    }

    /// Holds bytes back; true if there are `whole` of them.
    fn hold(&mut self, bytes: &mut &[u8], whole: usize) -> bool {
        let (now, later) = bytes.split_at((whole - self.held.len()).min(bytes.len()));
        self.held.extend_from_slice(now);
        *bytes = later;
        self.held.len() == whole
    }

    fn begin_frame(&mut self) {
        let [a, b, c, kind, ..] = self.held[..] else {
            return;
        };
        let bytes = u32::from_be_bytes([0, a, b, c]) as usize;
        if kind == HEADERS && bytes > 0 && bytes <= LONGEST {
            self.next = Next::Headers(HEAD + bytes);
            return;
        }
        self.ready.append(&mut self.held);
        self.next = match bytes {
            0 => Next::Head,
            bytes => Next::Through(bytes),
        };
    }
}

/// Mends the header block of a HEADERS frame, whose length may change; nothing, if its padding can't be, or if it became
/// longer than a frame may be.
fn mend(frame: &mut Vec<u8>) {
    let Some(place) = header_block(frame) else {
        return;
    };
    let mut block = frame[place.clone()].to_vec();
    mend_authority(&mut block);
    let bytes = frame.len() - HEAD - place.len() + block.len();
    if let Ok(length) = u32::try_from(bytes)
        && bytes <= LONGEST
    {
        frame[..3].copy_from_slice(&length.to_be_bytes()[1..]);
        frame.splice(place, block);
    }
}

/// Where the header block of a HEADERS frame is; none if its padding can't be.
fn header_block(frame: &[u8]) -> Option<Range<usize>> {
    let flags = frame[4];
    let mut from = HEAD;
    let mut until = frame.len();
    if flags & PADDED != 0 {
        until = until.checked_sub(usize::from(*frame.get(from)?))?;
        from += 1;
    }
    if flags & PRIORITY != 0 {
        from += 5;
    }
    (from <= until).then_some(from..until)
}

impl<S: AsyncRead + Unpin> AsyncRead for MendedAuthority<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            let waiting = &this.ready[this.given..];
            if !waiting.is_empty() {
                let bytes = waiting.len().min(buffer.remaining());
                buffer.put_slice(&waiting[..bytes]);
                this.given += bytes;
                return Poll::Ready(Ok(()));
            }
            this.ready.clear();
            this.given = 0;
            let mut space = [0; 4096];
            let mut read = ReadBuf::new(&mut space);
            ready!(Pin::new(&mut this.inner).poll_read(context, &mut read))?;
            if read.filled().is_empty() {
                // The end. Half a frame is of no use to anybody, but hiding it would be a lie.
                this.ready.append(&mut this.held);
                if this.ready.is_empty() {
                    return Poll::Ready(Ok(()));
                }
            }
            this.take(read.filled());
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for MendedAuthority<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().inner).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().inner).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_shutdown(context)
    }
}

impl<S: Connected> Connected for MendedAuthority<S> {
    type ConnectInfo = S::ConnectInfo;

    fn connect_info(&self) -> Self::ConnectInfo {
        self.inner.connect_info()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        let head = [length[1], length[2], length[3], kind, flags, 0, 0, 0, 1];
        [&head, payload].concat()
    }

    /// `:authority: V`, as a literal.
    fn block(value: &str) -> Vec<u8> {
        let length = u8::try_from(value.len()).unwrap();
        [&[0x41, length], value.as_bytes()].concat()
    }

    fn conversation(value: &str) -> Vec<u8> {
        let padded = [&[3, 0, 0, 0, 0, 16][..], &block(value), &[0; 3]].concat();
        [
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
            frame(4, 0, &[]),
            frame(HEADERS, 4, &block(value)),
            // Data may look like anything.
            frame(0, 1, &frame(HEADERS, 4, &block("a/b"))),
            frame(HEADERS, 4 | PADDED | PRIORITY, &padded),
        ]
        .concat()
    }

    fn through(pieces: &[&[u8]]) -> Vec<u8> {
        let mut mended = MendedAuthority::new(());
        pieces.iter().for_each(|piece| mended.take(piece));
        assert!(mended.held.is_empty());
        mended.ready
    }

    #[test]
    fn headers_are_mended_wherever_the_bytes_are_cut() {
        let sent = conversation("/run/x");
        let expected = conversation("-run-x");
        for cut in 0..sent.len() {
            let (one, two) = sent.split_at(cut);
            assert_eq!(through(&[one, two]), expected, "cut at {cut}");
        }
        let single: Vec<&[u8]> = sent.chunks(1).collect();
        assert_eq!(through(&single), expected);
    }

    /// Here a shorter one: `0#` takes three bytes in Huffman's code, and `--` as it is two. The frame's length says so.
    #[test]
    fn a_block_of_another_length_is_a_frame_of_another_length() {
        let huffman = [0x41, 0x83, 0x07, 0xFD, 0x7F]; // `0#` and padding
        let padded = [&[2][..], &huffman, &[0; 2]].concat();
        let mended = [&[2, 0x41, 2][..], b"--", &[0; 2]].concat();
        let sent = [&[0; PREFACE], &frame(HEADERS, 4 | PADDED, &padded)[..]].concat();
        let expected = [&[0; PREFACE], &frame(HEADERS, 4 | PADDED, &mended)[..]].concat();
        assert_eq!(through(&[&sent]), expected);
    }

    #[test]
    fn frames_that_lie_about_themselves_go_through() {
        for frame in [
            frame(HEADERS, PADDED, &[200]),
            frame(HEADERS, PADDED | PRIORITY, &[0]),
            frame(HEADERS, 0, &[]),
            frame(HEADERS, 0, &vec![b'/'; LONGEST + 1]),
        ] {
            let sent = [&[0; PREFACE], &frame[..]].concat();
            assert_eq!(through(&[&sent]), sent);
        }
    }
}
