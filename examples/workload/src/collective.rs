//! Ring all-reduce of `f32` buffers over unix sockets, one member per replica.
//!
//! A buffer is cut into as many chunks as the ring has members. In `size - 1` rounds each member passes a chunk on and
//! adds what comes in (reduce-scatter): then each holds the finished sum of one chunk. In as many rounds again the
//! finished chunks go round (all-gather). Every sum is made once, in one order, and then copied: all members end with
//! the same bits.
//!
//! A round goes in pieces, sent and received in turn, each small enough for a socket's buffer. Nobody blocks for ever:
//! of all members the one that is furthest behind always finds its piece there, or room for its own.

use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Floats of a piece: 16 KiB, where the smallest default send buffer of a unix socket holds over 100 KiB.
const PIECE: usize = 4096;

/// How long to wait for the neighbour's connection, once everybody is known to listen.
const ACCEPT_TIMEOUT: Timespec = Timespec {
    tv_sec: 60,
    tv_nsec: 0,
};

/// A member that listens and is not yet connected.
#[derive(Debug)]
pub(crate) struct Listening {
    listener: UnixListener,
    folder: PathBuf,
    rank: usize,
    size: usize,
}

/// A connected member.
#[derive(Debug)]
pub(crate) struct Ring {
    rank: usize,
    size: usize,
    next: UnixStream,
    previous: UnixStream,
    bytes: Vec<u8>,
}

impl Listening {
    /// Starts to listen as member `rank` of `size`, with a socket in `folder`.
    pub(crate) fn new(folder: &Path, rank: usize, size: usize) -> io::Result<Self> {
        let listener = UnixListener::bind(socket(folder, rank))?;
        Ok(Self {
            listener,
            folder: folder.to_owned(),
            rank,
            size,
        })
    }

    /// Joins the ring. All members must listen by now.
    pub(crate) fn connect(self) -> io::Result<Ring> {
        let next = UnixStream::connect(socket(&self.folder, (self.rank + 1) % self.size))?;
        if poll(
            &mut [PollFd::new(&self.listener, PollFlags::IN)],
            Some(&ACCEPT_TIMEOUT),
        )? == 0
        {
            return Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "the neighbour did not connect",
            ));
        }
        let (previous, _) = self.listener.accept()?;
        Ok(Ring {
            rank: self.rank,
            size: self.size,
            next,
            previous,
            bytes: vec![0; PIECE * 4],
        })
    }
}

impl Ring {
    /// Members.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// Rank of the member that this one sends to, and of the one that it hears.
    pub(crate) fn neighbours(&self) -> (usize, usize) {
        (
            (self.rank + 1) % self.size,
            (self.rank + self.size - 1) % self.size,
        )
    }

    /// Tells the next member that this one is ready.
    pub(crate) fn send_token(&mut self) -> io::Result<()> {
        self.next.write_all(&[0])
    }

    /// Waits until the previous member is ready.
    pub(crate) fn receive_token(&mut self) -> io::Result<()> {
        self.previous.read_exact(&mut [0])
    }

    /// Replaces `data` by the sum over all members. Errors when a neighbour has gone.
    pub(crate) fn all_reduce(&mut self, data: &mut [f32]) -> io::Result<()> {
        let (rank, size) = (self.rank, self.size);
        for round in 0..size - 1 {
            let send = (rank + size - round) % size;
            let receive = (rank + 2 * size - round - 1) % size;
            self.exchange(data, send, receive, |mine, theirs| *mine += theirs)?;
        }
        for round in 0..size - 1 {
            let send = (rank + 1 + size - round) % size;
            let receive = (rank + size - round) % size;
            self.exchange(data, send, receive, |mine, theirs| *mine = theirs)?;
        }
        Ok(())
    }

    /// Sends chunk `send` of `data` and folds what comes in into chunk `receive`.
    fn exchange(
        &mut self,
        data: &mut [f32],
        send: usize,
        receive: usize,
        fold: impl Fn(&mut f32, f32),
    ) -> io::Result<()> {
        let chunk = |n: usize| (data.len() * n / self.size, data.len() * (n + 1) / self.size);
        let (mut out, out_end) = chunk(send);
        let (mut into, into_end) = chunk(receive);
        while out < out_end || into < into_end {
            let piece = &data[out..out_end.min(out + PIECE)];
            for (bytes, x) in self.bytes.chunks_exact_mut(4).zip(piece) {
                bytes.copy_from_slice(&x.to_le_bytes());
            }
            self.next.write_all(&self.bytes[..piece.len() * 4])?;
            out += piece.len();

            let piece = &mut data[into..into_end.min(into + PIECE)];
            let bytes = &mut self.bytes[..piece.len() * 4];
            self.previous.read_exact(bytes)?;
            for (mine, bytes) in piece.iter_mut().zip(bytes.as_chunks::<4>().0) {
                fold(mine, f32::from_le_bytes(*bytes));
            }
            into += piece.len();
        }
        Ok(())
    }
}

fn socket(folder: &Path, rank: usize) -> PathBuf {
    folder.join(format!("{rank}.sock"))
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn reduce(size: usize, len: usize) -> Vec<Vec<f32>> {
        let folder = tempfile::tempdir().unwrap();
        let members: Vec<_> = (0..size)
            .map(|rank| Listening::new(folder.path(), rank, size).unwrap())
            .collect();
        let threads: Vec<_> = members
            .into_iter()
            .enumerate()
            .map(|(rank, member)| {
                thread::spawn(move || {
                    let mut ring = member.connect().unwrap();
                    let mut data: Vec<f32> =
                        (0..len).map(|i| (rank * len + i) as f32 * 0.1).collect();
                    ring.send_token().unwrap();
                    ring.receive_token().unwrap();
                    ring.all_reduce(&mut data).unwrap();
                    data
                })
            })
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    }

    #[test]
    fn every_member_gets_the_same_bits_and_they_are_the_sum() {
        for (size, len) in [(1, 5), (2, 1), (3, 2), (4, 1000), (8, 3), (3, 100_000)] {
            let results = reduce(size, len);
            for result in &results {
                assert!(
                    result
                        .iter()
                        .zip(&results[0])
                        .all(|(a, b)| a.to_bits() == b.to_bits()),
                    "{size} members"
                );
            }
            for (i, &sum) in results[0].iter().enumerate() {
                let expected: f64 = (0..size).map(|rank| (rank * len + i) as f64 * 0.1).sum();
                assert!(
                    (f64::from(sum) - expected).abs() <= 1e-5 * expected.abs(),
                    "{size} {len} {i}: {sum} {expected}"
                );
            }
        }
    }

    #[test]
    fn a_member_that_goes_is_an_error_for_the_others() {
        let folder = tempfile::tempdir().unwrap();
        let mut members: Vec<_> = (0..3)
            .map(|rank| Listening::new(folder.path(), rank, 3).unwrap())
            .collect();
        let quitter = members.pop().unwrap();
        let threads: Vec<_> = members
            .into_iter()
            .map(|member| {
                thread::spawn(move || member.connect().unwrap().all_reduce(&mut [0.0; 90_000]))
            })
            .collect();
        drop(quitter.connect().unwrap());
        for thread in threads {
            assert!(thread.join().unwrap().is_err());
        }
    }
}
