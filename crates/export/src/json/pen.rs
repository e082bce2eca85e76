//! The buffer that text is written into.
//!
//! An event is some twenty short pieces. Appending each to a `Vec` costs a call of memcpy for its few bytes, and those
//! calls were two fifths of all time. So fixed text is kept padded to whole blocks and copied block by block, which
//! compiles to plain vector moves. Numbers are made eight digits at a time in a register and stored in place: a formatter
//! with a buffer of its own (`itoa`) took twice as long, because what it had just stored was loaded again to be copied.

/// Bytes of a block.
const BLOCK: usize = 32;

/// Room that [`Pen::reserve`] always leaves: no block and no number reaches further.
const SLACK: usize = 64;

/// Fixed text, padded to whole blocks.
#[derive(Debug)]
pub(crate) struct Piece {
    blocks: Vec<[u8; BLOCK]>,
    length: usize,
}

impl Piece {
    pub(crate) fn new(text: &[u8]) -> Self {
        let padded = |chunk: &[u8]| {
            let mut block = [0; BLOCK];
            block[..chunk.len()].copy_from_slice(chunk);
            block
        };
        Self {
            blocks: text.chunks(BLOCK).map(padded).collect(),
            length: text.len(),
        }
    }

    pub(crate) const fn len(&self) -> usize {
        self.length
    }
}

/// A number as it was written the last time: many numbers come several times in a row.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Again {
    value: u64,
    text: [u8; BLOCK],
    /// 0 before the first time.
    length: usize,
}

/// A buffer with a position. Before a run of writes, [`Pen::reserve`] makes room for all of them.
#[derive(Debug)]
pub(crate) struct Pen {
    buffer: Vec<u8>,
    at: usize,
    /// Up to here there is room.
    end: usize,
    /// Larger numbers stand in quotes.
    quote_above: u64,
}

impl Pen {
    pub(crate) fn new(quote_above: u64) -> Self {
        Self {
            buffer: Vec::new(),
            at: 0,
            end: 0,
            quote_above,
        }
    }

    /// What has been written.
    pub(crate) fn written(&self) -> &[u8] {
        &self.buffer[..self.at]
    }

    /// Forgets what has been written.
    pub(crate) const fn clear(&mut self) {
        self.at = 0;
    }

    /// Makes room for this many bytes, beside those of [`Pen::text`].
    #[inline]
    pub(crate) fn reserve(&mut self, bytes: usize) {
        self.extend_to(self.at + bytes);
    }

    #[inline]
    fn extend_to(&mut self, end: usize) {
        self.end = end;
        if self.buffer.len() < end + SLACK {
            self.buffer.resize((end + SLACK).next_multiple_of(4096), 0);
        }
    }

    #[inline]
    pub(crate) fn piece(&mut self, piece: &Piece) {
        for (i, block) in piece.blocks.iter().enumerate() {
            self.put(i * BLOCK, block);
        }
        self.at += piece.length;
    }

    #[inline]
    pub(crate) fn literal<const N: usize>(&mut self, text: &[u8; N]) {
        self.put(0, text);
        self.at += N;
    }

    /// Text of any length, for which it makes room itself.
    pub(crate) fn text(&mut self, text: &[u8]) {
        self.extend_to(self.end + text.len());
        self.buffer[self.at..self.at + text.len()].copy_from_slice(text);
        self.at += text.len();
    }

    #[inline]
    pub(crate) fn number(&mut self, value: u64) {
        if value > self.quote_above {
            self.literal(b"\"");
            self.digits(value);
            self.literal(b"\"");
        } else {
            self.digits(value);
        }
    }

    /// [`Pen::number`], which copies the text if the number is the one of the last time.
    #[inline]
    pub(crate) fn number_again(&mut self, value: u64, again: &mut Again) {
        if again.value == value && again.length > 0 {
            self.put(0, &again.text);
            self.at += again.length;
            return;
        }
        let from = self.at;
        self.number(value);
        // No number has more digits than a block; what stands after them is room.
        again.text.copy_from_slice(&self.buffer[from..from + BLOCK]);
        (again.value, again.length) = (value, self.at - from);
    }

    /// What [`Pen::number`] would write.
    pub(crate) fn number_text(&self, value: u64) -> Vec<u8> {
        if value > self.quote_above {
            format!("\"{value}\"").into_bytes()
        } else {
            value.to_string().into_bytes()
        }
    }

    /// A piece of any length, for which it makes room itself.
    #[inline]
    pub(crate) fn long_piece(&mut self, piece: &Piece) {
        self.extend_to(self.end + piece.length);
        self.piece(piece);
    }

    #[inline]
    fn digits(&mut self, value: u64) {
        const E8: u64 = 100_000_000;
        match value {
            0..E8 => self.leading(value),
            E8..10_000_000_000_000_000 => {
                self.leading(value / E8);
                self.literal(&eight_digits(value % E8).to_le_bytes());
            }
            _ => {
                self.leading(value / (E8 * E8));
                self.literal(&eight_digits(value / E8 % E8).to_le_bytes());
                self.literal(&eight_digits(value % E8).to_le_bytes());
            }
        }
    }

    /// Up to eight digits, without leading zeros.
    #[inline]
    fn leading(&mut self, value: u64) {
        let digits = eight_digits(value);
        // The first digit is the lowest byte; an ASCII zero there differs from the others in no bit of the mask.
        let zeros = ((digits & 0x0F0F_0F0F_0F0F_0F0F).trailing_zeros() / 8).min(7);
        self.put(0, &(digits >> (8 * zeros)).to_le_bytes());
        self.at += 8 - zeros as usize;
    }

    pub(crate) fn signed(&mut self, value: i32) {
        if value < 0 {
            self.literal(b"-");
        }
        self.number(value.unsigned_abs().into());
    }

    /// `"0x…"`, lower-case, without leading zeros.
    pub(crate) fn hex(&mut self, value: u64) {
        self.literal(b"\"0x");
        let digits = (u64::BITS - value.leading_zeros()).div_ceil(4).max(1);
        for digit in (0..digits).rev() {
            self.literal(&[super::text::digit_char(value >> (4 * digit))]);
        }
        self.literal(b"\"");
    }

    #[inline]
    fn put<const N: usize>(&mut self, offset: usize, bytes: &[u8; N]) {
        let at = self.at + offset;
        self.buffer[at..at + N].copy_from_slice(bytes);
    }
}

/// The eight decimal digits of a number below 10^8, as ASCII, the first one in the lowest byte.
#[inline]
const fn eight_digits(value: u64) -> u64 {
    // Two lanes of four digits, then four lanes of two, then eight of one. Each quotient is a multiplication that is
    // exact for its lane's range and too small to reach the next lane.
    let fours = (value / 10_000) | ((value % 10_000) << 32);
    let hundreds = ((fours * 5_243) >> 19) & 0x0000_007F_0000_007F;
    let twos = hundreds | ((fours - hundreds * 100) << 16);
    let tens = ((twos * 103) >> 10) & 0x000F_000F_000F_000F;
    let ones = tens | ((twos - tens * 10) << 8);
    ones | 0x3030_3030_3030_3030
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(write: impl Fn(&mut Pen)) -> String {
        let mut pen = Pen::new(u64::MAX);
        pen.reserve(64);
        pen.literal(b"<");
        write(&mut pen);
        pen.literal(b">");
        String::from_utf8(pen.written().to_vec()).unwrap()
    }

    #[test]
    fn numbers_of_every_length_are_whole() {
        let mut value: u64 = 1;
        for length in 1..=20 {
            for value in [value - 1, value, value + 1, value.wrapping_mul(9) + 8] {
                assert_eq!(
                    written(|p| p.number(value)),
                    format!("<{value}>"),
                    "{length} digits"
                );
            }
            value = value.wrapping_mul(10);
        }
        assert_eq!(written(|p| p.number(u64::MAX)), format!("<{}>", u64::MAX));
        for value in [0, -1, 10, i32::MIN, i32::MAX] {
            assert_eq!(written(|p| p.signed(value)), format!("<{value}>"));
        }
    }

    #[test]
    fn a_number_that_comes_again_is_the_same_text() {
        let mut pen = Pen::new(1 << 53);
        let (mut again, mut expected) = (Again::default(), String::new());
        for value in [
            0,
            0,
            7,
            u64::MAX,
            u64::MAX,
            0,
            12_345_678_901,
            12_345_678_901,
        ] {
            pen.reserve(64);
            pen.number_again(value, &mut again);
            pen.literal(b",");
            expected += &match value {
                u64::MAX => format!("\"{value}\","),
                _ => format!("{value},"),
            };
        }
        assert_eq!(pen.written(), expected.as_bytes());
    }

    #[test]
    fn numbers_above_the_limit_stand_in_quotes() {
        let mut pen = Pen::new(99);
        pen.reserve(64);
        pen.number(99);
        pen.number(100);
        pen.number(u64::MAX);
        assert_eq!(pen.written(), b"99\"100\"\"18446744073709551615\"");
    }

    #[test]
    fn each_group_of_four_digits_is_exact() {
        for n in 0..10_000u64 {
            let text = format!("{n:04}{:04}", 9_999 - n);
            assert_eq!(
                eight_digits(n * 10_000 + (9_999 - n)).to_le_bytes(),
                text.as_bytes()
            );
        }
    }

    #[test]
    fn addresses_are_lower_case_hex() {
        for (value, text) in [
            (0, "0x0"),
            (0xF, "0xf"),
            (0x10, "0x10"),
            (u64::MAX, "0xffffffffffffffff"),
        ] {
            assert_eq!(written(|p| p.hex(value)), format!("<\"{text}\">"));
        }
    }

    #[test]
    fn room_is_made_for_text_of_any_length() {
        let long = "x".repeat(100_000);
        assert_eq!(written(|p| p.text(long.as_bytes())), format!("<{long}>"));
    }

    proptest! {
        #[test]
        fn pieces_are_whole_whatever_their_length(text in "[a-z]{0,100}", value: u64) {
            let piece = Piece::new(text.as_bytes());
            prop_assert_eq!(piece.len(), text.len());
            let mut pen = Pen::new(u64::MAX);
            pen.reserve(3 * text.len() + 64);
            pen.piece(&piece);
            pen.number(value);
            pen.piece(&piece);
            pen.hex(value);
            let expected = format!("{text}{value}{text}\"{value:#x}\"");
            prop_assert_eq!(pen.written(), expected.as_bytes());
            pen.clear();
            prop_assert_eq!(pen.written(), b"");
        }
    }
}
