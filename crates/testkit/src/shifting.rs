//! Words that change between any two looks of their reader, as a script says: every race with a hostile writer, and no
//! thread to make it happen.

use std::cell::Cell;

use nrt_trace_ring::{LoadWord, Ordering};

/// What becomes of the words under their reader's eyes, and how often it looked.
///
/// One byte for each look: below 128, the word stays as it is; else the next eight bytes take its place first, or, for
/// 192 and above, the word goes up by the byte less 192. When the script is at its end, everything stays as it is.
#[derive(Debug)]
pub(crate) struct Script<'a> {
    rest: Cell<&'a [u8]>,
    looks: Cell<u64>,
}

impl<'a> Script<'a> {
    /// Takes the second half of `bytes` for a script if one is wanted.
    pub(crate) fn split(bytes: &'a [u8], wanted: bool) -> (&'a [u8], Self) {
        let (words, script) = if wanted {
            bytes.split_at(bytes.len() / 2)
        } else {
            (bytes, &[][..])
        };
        let script = Self {
            rest: Cell::new(script),
            looks: Cell::new(0),
        };
        (words, script)
    }

    /// Looks so far.
    pub(crate) fn looks(&self) -> u64 {
        self.looks.get()
    }

    /// What a word of `value` becomes before the next look at it.
    fn next(&self, value: u64) -> u64 {
        self.looks.set(self.looks.get() + 1);
        let Some((&what, rest)) = self.rest.get().split_first() else {
            return value;
        };
        self.rest.set(rest);
        match what {
            0..128 => value,
            128..192 => {
                let Some((word, rest)) = rest.split_first_chunk() else {
                    return value;
                };
                self.rest.set(rest);
                u64::from_le_bytes(*word)
            }
            192.. => value.wrapping_add(u64::from(what - 192)),
        }
    }
}

/// A word of memory that somebody else writes too.
#[derive(Debug)]
pub(crate) struct Word<'a> {
    value: Cell<u64>,
    script: &'a Script<'a>,
}

impl<'a> Word<'a> {
    /// Zero, for now.
    pub(crate) fn new(script: &'a Script<'a>) -> Self {
        let value = Cell::new(0);
        Self { value, script }
    }

    /// Sets it, between visits.
    pub(crate) fn set(&self, value: u64) {
        self.value.set(value);
    }
}

impl LoadWord for Word<'_> {
    fn load(&self, _order: Ordering) -> u64 {
        self.value.set(self.script.next(self.value.get()));
        self.value.get()
    }
}
