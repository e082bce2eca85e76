//! Strings as JSON text.

/// Appends a string with its quotes. Quote, backslash and what is below 0x20 are escaped, in the short form where JSON
/// has one; everything else stands as it is, so that any JSON reader gives back the same text.
pub(crate) fn string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let mut plain = 0;
    for (i, byte) in text.bytes().enumerate() {
        let short = match byte {
            b'"' | b'\\' => byte,
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            0x08 => b'b',
            0x0C => b'f',
            0x00..0x20 => b'u',
            _ => continue,
        };
        out.extend_from_slice(&text.as_bytes()[plain..i]);
        plain = i + 1;
        out.extend_from_slice(&[b'\\', short]);
        if short == b'u' {
            out.extend_from_slice(&[
                b'0',
                b'0',
                digit_char(u64::from(byte >> 4)),
                digit_char(u64::from(byte & 0xF)),
            ]);
        }
    }
    out.extend_from_slice(&text.as_bytes()[plain..]);
    out.push(b'"');
}

/// The lowest four bits as a hexadecimal digit.
pub(crate) fn digit_char(digit: u64) -> u8 {
    b"0123456789abcdef"[usize::try_from(digit & 0xF).expect("four bits")]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(text: &str) -> String {
        let mut out = Vec::new();
        string(&mut out, text);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn every_byte_below_0x20_is_escaped_as_json_wants() {
        for byte in 0..0x20u8 {
            let text = char::from(byte).to_string();
            assert_eq!(written(&text), serde_json::to_string(&text).unwrap());
        }
        assert_eq!(
            written("a\"b\\c\u{7f}\u{2028}\u{2029}é😀"),
            "\"a\\\"b\\\\c\u{7f}\u{2028}\u{2029}é😀\""
        );
        assert_eq!(written(""), "\"\"");
    }

    proptest! {
        #[test]
        fn any_string_reads_back_as_itself(text in any::<String>()) {
            let read: String = serde_json::from_str(&written(&text)).unwrap();
            prop_assert_eq!(read, text);
        }
    }
}
