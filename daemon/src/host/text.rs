//! Numbers in the kernel's texts, read with patience: one that makes no sense is missing, the others stay.

/// How many values made no sense.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bad(pub u64);

impl Bad {
    /// A number; `None`, and counted, if it is none, or beyond what any counter reaches: a counter that was decremented below
    /// 0 shows as a number near 2^64.
    pub(crate) fn number(&mut self, word: &[u8]) -> Option<u64> {
        let number = str::from_utf8(word).ok().and_then(|word| word.parse().ok());
        let number = number.filter(|number| *number < 1 << 63);
        self.0 += u64::from(number.is_none());
        number
    }

    /// A number with a point.
    pub(crate) fn decimal(&mut self, word: &[u8]) -> Option<f32> {
        let number = str::from_utf8(word).ok().and_then(|word| word.parse().ok());
        let number = number.filter(|number: &f32| number.is_finite() && *number >= 0.0);
        self.0 += u64::from(number.is_none());
        number
    }

    /// Counts a value that is not there, or of the wrong form, where `value` is none.
    pub(crate) fn expect<T>(&mut self, value: Option<T>) -> Option<T> {
        self.0 += u64::from(value.is_none());
        value
    }
}

/// Lines, without their ends.
pub(crate) fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
}

/// Words of a line.
pub(crate) fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_number_is_counted() {
        let mut bad = Bad::default();
        assert_eq!(bad.number(b"42"), Some(42));
        assert_eq!(bad.number(b"9223372036854775807"), Some(i64::MAX as u64));
        for word in [
            "-1",
            "x",
            "",
            "18446744073709551615",
            "1234567890123456789012",
        ] {
            assert_eq!(bad.number(word.as_bytes()), None, "{word}");
        }
        assert_eq!(bad.number(&[0xff]), None);
        assert_eq!(bad.0, 6);
        assert_eq!(bad.decimal(b"0.25"), Some(0.25));
        assert_eq!(
            (bad.decimal(b"-1"), bad.decimal(b"nan"), bad.0),
            (None, None, 8)
        );
    }
}
