//! Header, labels and end mark as bytes.

use std::io::{self, Read};

use super::NativeError;

/// Version of the file's structure.
pub(crate) const VERSION: u32 = 1;

/// A block is closed when its parts reach this.
pub(crate) const BLOCK_BYTES: usize = 1 << 20;

/// No block has more bytes of parts, so a reader may refuse what a damaged label asks it to allocate. (A single part
/// larger than [`BLOCK_BYTES`] gets a block of its own.)
pub(crate) const BLOCK_BYTES_MAX: usize = 64 << 20;

/// First word of a skippable frame; zstd reserves 0x184D2A50 to 0x184D2A5F.
const SKIPPABLE: u32 = 0x184D_2A57;
const SKIPPABLE_FIRST: u32 = 0x184D_2A50;

const MAGIC: &[u8; 8] = b"NRTTRACE";

const HEADER: u32 = 0;
const GENERAL: u32 = 1;
const RING: u32 = 2;
const END: u32 = 3;

/// What a block holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// Parts that belong to no ring.
    General,
    /// Records and correlations of one ring.
    Ring(RingLabel),
}

/// What a label says of a ring block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RingLabel {
    /// Producer and NC.
    pub(crate) key: (u32, u32),
    pub(crate) records: u32,
    /// Lowest and highest seq; `(u64::MAX, 0)` without records.
    pub(crate) seqs: (u64, u64),
    /// Whether each record's seq is above the one before.
    pub(crate) ascending: bool,
}

impl RingLabel {
    pub(crate) const fn new(key: (u32, u32)) -> Self {
        Self {
            key,
            records: 0,
            seqs: (u64::MAX, 0),
            ascending: true,
        }
    }

    pub(crate) fn add(&mut self, seq: u64) {
        self.ascending &= self.records == 0 || seq > self.seqs.1;
        self.records += 1;
        self.seqs = (self.seqs.0.min(seq), self.seqs.1.max(seq));
    }
}

/// A block's label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Label {
    pub(crate) content: Content,
    /// Bytes of the frame.
    pub(crate) frame: u32,
    /// Bytes of its parts.
    pub(crate) raw: u32,
}

impl Label {
    pub(crate) fn to_bytes(self) -> Vec<u8> {
        let mut words = Vec::with_capacity(12);
        match self.content {
            Content::General => words.extend([GENERAL, self.frame, self.raw]),
            Content::Ring(ring) => {
                words.extend([
                    RING,
                    self.frame,
                    self.raw,
                    ring.key.0,
                    ring.key.1,
                    ring.records,
                ]);
                words.extend([ring.seqs.0, ring.seqs.1].into_iter().flat_map(halves));
                words.push(u32::from(ring.ascending));
            }
        }
        words.push(check(&words));
        skippable(&words)
    }
}

/// FNV-1a over a label's words: a label is not under zstd's checksum.
fn check(words: &[u32]) -> u32 {
    words
        .iter()
        .flat_map(|w| w.to_le_bytes())
        .fold(0x811C_9DC5, |h: u32, b| {
            (h ^ u32::from(b)).wrapping_mul(0x0100_0193)
        })
}

pub(crate) fn header() -> Vec<u8> {
    let [a, b] = halves(u64::from_le_bytes(*MAGIC));
    skippable(&[HEADER, VERSION, a, b])
}

pub(crate) fn end() -> Vec<u8> {
    skippable(&[END])
}

fn skippable(words: &[u32]) -> Vec<u8> {
    let bytes = u32::try_from(words.len() * 4).expect("a handful of words");
    [SKIPPABLE, bytes]
        .iter()
        .chain(words)
        .flat_map(|w| w.to_le_bytes())
        .collect()
}

#[expect(clippy::cast_possible_truncation, reason = "the low half")]
const fn halves(word: u64) -> [u32; 2] {
    [word as u32, (word >> 32) as u32]
}

/// What stands next in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// A block, whose frame follows.
    Block(Label),
    /// Something of a later version, passed over.
    Unknown,
    /// The end mark.
    End,
}

/// Reads the header.
pub(crate) fn read_header(input: &mut impl Read) -> Result<(), NativeError> {
    let foreign = |e: io::Error| match e.kind() {
        io::ErrorKind::UnexpectedEof => NativeError::Foreign,
        _ => NativeError::Read(e),
    };
    let mut bytes = [0; 24];
    input.read_exact(&mut bytes).map_err(foreign)?;
    let expected = header();
    let (fixed, version) = (|b: &[u8]| [&b[..12], &b[16..24]].concat(), &bytes[12..16]);
    if fixed(&bytes) != fixed(&expected) {
        return Err(NativeError::Foreign);
    }
    match u32::from_le_bytes(*version.first_chunk().expect("four bytes")) {
        VERSION => Ok(()),
        found => Err(NativeError::Version { found }),
    }
}

/// Bytes of the file header.
pub(crate) const HEADER_BYTES: u64 = 24;

/// Reads a label or an end mark, and says how many bytes it took. End of file inside or before it is an
/// [`io::ErrorKind::UnexpectedEof`].
pub(crate) fn read_next(input: &mut impl Read, offset: u64) -> Result<(Next, u64), NativeError> {
    let damaged = |what: &str| NativeError::Damaged {
        offset,
        what: what.to_owned(),
    };
    let [magic, bytes] = read_words(input)?;
    if magic & !0xF != SKIPPABLE_FIRST {
        return Err(damaged("neither a label nor an end mark stands there"));
    }
    if magic != SKIPPABLE || bytes < 4 {
        skip(input, bytes.into())?;
        return Ok((Next::Unknown, 8 + u64::from(bytes)));
    }
    let [kind] = read_words(input)?;
    let (next, taken) = match kind {
        GENERAL if bytes >= 16 => {
            let [frame, raw, sum] = read_words(input)?;
            if sum != check(&[kind, frame, raw]) {
                return Err(damaged("a label's check word is wrong"));
            }
            (
                Next::Block(Label {
                    content: Content::General,
                    frame,
                    raw,
                }),
                16,
            )
        }
        RING if bytes >= 48 => {
            let fields: [u32; 11] = read_words(input)?;
            let [
                frame,
                raw,
                producer,
                nc,
                records,
                a,
                b,
                c,
                d,
                ascending,
                sum,
            ] = fields;
            if sum != check(&[&[kind], &fields[..10]].concat()) {
                return Err(damaged("a label's check word is wrong"));
            }
            let word = |low, high| u64::from(low) | u64::from(high) << 32;
            let seqs = (word(a, b), word(c, d));
            let ring = RingLabel {
                key: (producer, nc),
                records,
                seqs,
                ascending: ascending != 0,
            };
            (
                Next::Block(Label {
                    content: Content::Ring(ring),
                    frame,
                    raw,
                }),
                48,
            )
        }
        GENERAL | RING => return Err(damaged("a label is too short")),
        // Exactly four bytes: a label with a damaged kind is no end.
        END if bytes == 4 => (Next::End, 4),
        _ => (Next::Unknown, 4),
    };
    skip(input, u64::from(bytes) - taken)?;
    if let Next::Block(label) = next {
        let limit = |n: u32| usize::try_from(n).is_ok_and(|n| n <= BLOCK_BYTES_MAX + BLOCK_BYTES);
        if !limit(label.frame) || !limit(label.raw) {
            return Err(damaged(
                "a label names a block larger than any writer makes",
            ));
        }
    }
    Ok((next, 8 + u64::from(bytes)))
}

fn read_words<const N: usize>(input: &mut impl Read) -> io::Result<[u32; N]> {
    let mut words = [0; N];
    for word in &mut words {
        let mut bytes = [0; 4];
        input.read_exact(&mut bytes)?;
        *word = u32::from_le_bytes(bytes);
    }
    Ok(words)
}

fn skip(input: &mut impl Read, bytes: u64) -> io::Result<()> {
    match io::copy(&mut input.take(bytes), &mut io::sink())? {
        n if n == bytes => Ok(()),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_read_back_as_themselves() {
        let mut ring = RingLabel::new((7, 255));
        ring.add(u64::MAX);
        ring.add(3);
        assert_eq!(
            (ring.records, ring.seqs, ring.ascending),
            (2, (3, u64::MAX), false)
        );
        for content in [Content::General, Content::Ring(ring)] {
            let label = Label {
                content,
                frame: 1,
                raw: 2,
            };
            let bytes = label.to_bytes();
            let (next, taken) = read_next(&mut bytes.as_slice(), 0).unwrap();
            assert_eq!((next, taken), (Next::Block(label), bytes.len() as u64));
        }
        assert_eq!(
            read_next(&mut end().as_slice(), 0).unwrap(),
            (Next::End, 12)
        );
    }

    #[test]
    fn what_a_later_version_adds_is_passed_over() {
        let mut longer = Label {
            content: Content::General,
            frame: 1,
            raw: 2,
        }
        .to_bytes();
        longer.extend([9; 4]);
        longer[4] += 4;
        assert!(matches!(
            read_next(&mut longer.as_slice(), 0).unwrap(),
            (Next::Block(_), 28)
        ));
        assert_eq!(
            read_next(&mut skippable(&[99, 1, 2]).as_slice(), 0).unwrap(),
            (Next::Unknown, 20)
        );
        let mut foreign = skippable(&[1, 2, 3]);
        foreign[0] = 0x50;
        assert_eq!(
            read_next(&mut foreign.as_slice(), 0).unwrap(),
            (Next::Unknown, 20)
        );
    }

    #[test]
    fn a_label_cannot_ask_for_more_memory_than_a_writer_uses() {
        let bytes = Label {
            content: Content::General,
            frame: 1,
            raw: u32::MAX,
        }
        .to_bytes();
        assert!(matches!(
            read_next(&mut bytes.as_slice(), 5),
            Err(NativeError::Damaged { offset: 5, .. })
        ));
    }
}
