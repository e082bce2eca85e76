//! A producer's private log: what it was about to emit and what became of it, event by event, in a file.
//!
//! The crash tests know from it, and not from any counter, which events there must be. An entry is written before the
//! call and another one after it, each with one system call, so that a SIGKILL between any two instructions leaves it
//! true.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// Bytes of an entry: thread and kind, number, result.
const ENTRY: usize = 24;

/// A log that is being written; several threads may share it.
#[derive(Debug)]
pub struct Ledger(File);

impl Ledger {
    /// An empty log.
    ///
    /// # Errors
    ///
    /// If the file can't be made.
    pub fn create(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        Ok(Self(options.create_new(true).append(true).open(path)?))
    }

    /// Event `number` of `thread` is about to be emitted.
    pub fn begin(&self, thread: u64, number: u64) {
        self.write([thread << 1, number, 0]);
    }

    /// It was emitted; `id` is what emit gave, 0 for nothing.
    pub fn end(&self, thread: u64, number: u64, id: u64) {
        self.write([thread << 1 | 1, number, id]);
    }

    fn write(&self, words: [u64; 3]) {
        let mut entry = [0; ENTRY];
        for (bytes, word) in entry.chunks_exact_mut(8).zip(words) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        // One append: entries of other threads come before or after it, not in between.
        (&self.0).write_all(&entry).expect("the log has room");
    }
}

/// What emit gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gave {
    /// It has not returned.
    Unfinished,
    /// 0: nothing was stored.
    Nothing,
    /// The id of the stored event.
    Id(u64),
}

/// An event of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Emit {
    /// The thread's number.
    pub thread: u64,
    /// The event's number in its thread, 1 for the first.
    pub number: u64,
    /// What became of it.
    pub gave: Gave,
}

/// Reads a log: events in the order in which they were begun.
///
/// # Panics
///
/// If it is no log, or one that contradicts itself.
#[must_use]
pub fn read(path: &Path) -> Vec<Emit> {
    let bytes = fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut emits = Vec::<Emit>::new();
    let mut open = std::collections::BTreeMap::new();
    for entry in bytes.as_chunks::<ENTRY>().0 {
        let [head, number, id] = [0, 8, 16].map(|at| {
            let word: [u8; 8] = entry[at..at + 8].try_into().expect("eight bytes");
            u64::from_le_bytes(word)
        });
        let thread = head >> 1;
        if head & 1 == 0 {
            open.insert(thread, emits.len());
            let gave = Gave::Unfinished;
            emits.push(Emit {
                thread,
                number,
                gave,
            });
        } else {
            let at = open.remove(&thread).expect("an end has a beginning");
            assert_eq!(emits[at].number, number, "ends are of what was begun");
            emits[at].gave = if id == 0 { Gave::Nothing } else { Gave::Id(id) };
        }
    }
    emits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_begun_and_not_ended_is_unfinished() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let ledger = Ledger::create(&path).unwrap();
        ledger.begin(0, 1);
        ledger.begin(3, 1);
        ledger.end(3, 1, 0);
        ledger.begin(3, 2);
        ledger.end(3, 2, 77);
        let got: Vec<_> = read(&path)
            .iter()
            .map(|e| (e.thread, e.number, e.gave))
            .collect();
        assert_eq!(
            got,
            [
                (0, 1, Gave::Unfinished),
                (3, 1, Gave::Nothing),
                (3, 2, Gave::Id(77))
            ]
        );
    }
}
