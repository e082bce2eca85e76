//! Makes the `:authority` of a header block one that a URI may have, without moving a byte.
//!
//! A gRPC client of a unix socket has no host to name: many send the socket's path, as it is or percent-encoded, and the
//! HTTP/2 library of the server refuses that as malformed. The value means nothing to this server, but it can't be cut
//! out: the sender's compression table has it, and so has ours to have one of the same length. Its bytes are replaced in
//! place, each by one that takes as many bits.
//!
//! RFC 7541: §5.1 integers, §5.2 strings, §6 representations, appendix A (`:authority` is entry 1), appendix B (the
//! Huffman code, in which codes of one length follow each other).

/// Number of codes of each length, from 5 bits on.
const CODES: [u32; 26] = [
    10, 26, 32, 6, 0, 5, 3, 2, 6, 2, 3, 0, 0, 0, 3, 8, 13, 26, 29, 12, 4, 15, 19, 29, 0, 4,
];
/// Bits of the shortest code.
const SHORTEST: u32 = 5;
/// Codes of 6 bits that no authority may have, ` %/`, and the one of `-` in their place.
const BAD_OF_6: [u32; 3] = [0x14, 0x15, 0x18];
const DASH: u32 = 0x16;
/// The code of `:`, 7 bits, and the one of `k` in its place.
const COLON: u32 = 0x5C;
const LETTER: u32 = 0x75;

/// Replaces what must not be in the authority of a header block, or of the beginning of one. What can't be understood is
/// left as it is: the HTTP/2 library judges it.
pub(super) fn mend_authority(block: &mut [u8]) {
    let mut at = 0;
    while let Some(field) = next_field(block, &mut at) {
        if field.is_authority {
            let value = &mut block[field.value];
            if field.huffman {
                mend_huffman(value);
            } else {
                mend_raw(value);
            }
        }
    }
}

/// A literal field of a header block.
struct Field {
    is_authority: bool,
    huffman: bool,
    /// Where its value lies.
    value: std::ops::Range<usize>,
}

/// The next literal field; `at` moves behind it. None at the end, and where there is nothing that can be read.
fn next_field(block: &[u8], at: &mut usize) -> Option<Field> {
    loop {
        let first = *block.get(*at)?;
        // What an index or a size update says was said in full before.
        let prefix = match first {
            0x80.. => 7,
            0x40.. => 6,
            0x20.. => 5,
            _ => 4,
        };
        let number = integer(block, at, prefix)?;
        if prefix == 7 || prefix == 5 {
            continue;
        }
        let is_authority = match number {
            0 => {
                let (huffman, name) = string(block, at)?;
                // In Huffman's code nobody has been seen to send it.
                !huffman && &block[name] == b":authority"
            }
            entry => entry == 1,
        };
        let (huffman, value) = string(block, at)?;
        return Some(Field {
            is_authority,
            huffman,
            value,
        });
    }
}

fn string(block: &[u8], at: &mut usize) -> Option<(bool, std::ops::Range<usize>)> {
    let huffman = block.get(*at)? & 0x80 != 0;
    let bytes = integer(block, at, 7)?;
    let end = at.checked_add(bytes).filter(|end| *end <= block.len())?;
    let range = *at..end;
    *at = end;
    Some((huffman, range))
}

/// An integer whose first byte has `prefix` bits of it.
fn integer(block: &[u8], at: &mut usize, prefix: u32) -> Option<usize> {
    let mask = (1 << prefix) - 1;
    let first = usize::from(*block.get(*at)?) & mask;
    *at += 1;
    if first < mask {
        return Some(first);
    }
    let mut number = first;
    // Four bytes more are 2^28: above any frame.
    for shift in [0, 7, 14, 21] {
        let byte = usize::from(*block.get(*at)?);
        *at += 1;
        number += (byte & 0x7F) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

fn mend_raw(value: &mut [u8]) {
    let is_bad = |byte: &u8| matches!(byte, b' ' | b'%' | b'/');
    let colons = value.iter().filter(|byte| **byte == b':').count();
    // One colon is a host's before its port; the others are a path's or a scheme's.
    let colons_too = colons > 1 || value.iter().any(is_bad);
    for byte in value {
        if is_bad(byte) {
            *byte = b'-';
        } else if colons_too && *byte == b':' {
            *byte = b'k';
        }
    }
}

fn mend_huffman(value: &mut [u8]) {
    let (mut colons, mut bad) = (0, false);
    for_each_code(value, |bits, code| {
        colons += u32::from(bits == 7 && code == COLON);
        bad |= bits == 6 && BAD_OF_6.contains(&code);
        code
    });
    let colons_too = colons > 1 || bad;
    for_each_code(value, |bits, code| match bits {
        6 if BAD_OF_6.contains(&code) => DASH,
        7 if colons_too && code == COLON => LETTER,
        _ => code,
    });
}

/// Shows each code of a string to `replace`, with its length, and puts what that returns in its place.
fn for_each_code(value: &mut [u8], mut replace: impl FnMut(u32, u32) -> u32) {
    let end = value.len() * 8;
    let mut begin = 0;
    while let Some((bits, code)) = code_at(value, begin) {
        let new = replace(bits, code);
        for n in 0..bits as usize {
            let bit = begin + n;
            let mask = 0x80 >> (bit % 8);
            if new >> (bits as usize - 1 - n) & 1 == 1 {
                value[bit / 8] |= mask;
            } else {
                value[bit / 8] &= !mask;
            }
        }
        begin += bits as usize;
        debug_assert!(begin <= end, "a code ends within its string");
    }
}

/// The code that begins at a bit; none where only padding is left.
fn code_at(value: &[u8], begin: usize) -> Option<(u32, u32)> {
    let (mut code, mut first) = (0u32, 0u32);
    let mut bit = begin;
    let mut next = |code: &mut u32| {
        let byte = value.get(bit / 8)?;
        *code = *code << 1 | u32::from(byte >> (7 - bit % 8) & 1);
        bit += 1;
        Some(())
    };
    for _ in 1..SHORTEST {
        next(&mut code)?;
    }
    for (bits, count) in (SHORTEST..).zip(CODES) {
        next(&mut code)?;
        if code < first + count {
            return Some((bits, code));
        }
        first = (first + count) << 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lengths and codes of appendix B that the table must give.
    const SAMPLES: [(u32, u32); 12] = [
        (5, 0x0),          // '0'
        (5, 0x9),          // 't'
        (6, 0x14),         // ' '
        (6, 0x2D),         // 'u'
        (7, 0x5C),         // ':'
        (7, 0x7B),         // 'z'
        (8, 0xFD),         // 'Z'
        (10, 0x3F8),       // '!'
        (13, 0x1FFA),      // '@'
        (19, 0x7_FFF0),    // '\\'
        (28, 0xFFF_FFFD),  // among the last of its length
        (30, 0x3FFF_FFFE), // one before the end
    ];

    fn packed(codes: &[(u32, u32)]) -> Vec<u8> {
        let mut bits: Vec<u8> = Vec::new();
        for (length, code) in codes {
            bits.extend((0..*length).rev().map(|n| u8::from(code >> n & 1 == 1)));
        }
        while !bits.len().is_multiple_of(8) {
            bits.push(1);
        }
        let byte = |eight: &[u8]| eight.iter().fold(0, |byte, bit| byte << 1 | bit);
        bits.chunks(8).map(byte).collect()
    }

    fn codes(value: &[u8]) -> Vec<(u32, u32)> {
        let (mut begin, mut codes) = (0, Vec::new());
        while let Some((bits, code)) = code_at(value, begin) {
            codes.push((bits, code));
            begin += bits as usize;
        }
        codes
    }

    #[test]
    fn the_table_is_that_of_appendix_b() {
        assert_eq!(CODES.iter().sum::<u32>(), 257);
        assert_eq!(codes(&packed(&SAMPLES)), SAMPLES);
    }

    fn literal(value: &[u8], huffman: bool) -> Vec<u8> {
        let length = u8::try_from(value.len()).unwrap() | u8::from(huffman) << 7;
        // An index, a size update, and after it one more indexed field.
        [&[0x83, 0x3F, 0x21, 0x41, length], value, &[0x86]].concat()
    }

    fn mended(value: &[u8]) -> Vec<u8> {
        let mut block = literal(value, false);
        mend_authority(&mut block);
        block[5..5 + value.len()].to_vec()
    }

    #[test]
    fn what_a_host_may_be_stays_and_a_path_becomes_one() {
        for host in ["localhost", "localhost:50051", "nrt-trace", ""] {
            assert_eq!(mended(host.as_bytes()), host.as_bytes());
        }
        assert_eq!(mended(b"%2Frun%2Fx.sock"), b"-2Frun-2Fx.sock");
        assert_eq!(mended(b"unix:///run/x"), b"unixk---run-x");
        assert_eq!(mended(b"::1"), b"kk1");
    }

    #[test]
    fn in_huffmans_code_as_well() {
        let value = packed(&[(6, 0x15), (5, 0x2), (7, 0x5C), (6, 0x18), (6, 0x2D)]);
        let mut block = literal(&value, true);
        mend_authority(&mut block);
        let expected = [(6, 0x16), (5, 0x2), (7, 0x75), (6, 0x16), (6, 0x2D)];
        assert_eq!(codes(&block[5..5 + value.len()]), expected);
        assert_eq!(block.last(), Some(&0x86), "no other byte is touched");
    }

    #[test]
    fn a_name_in_full_and_other_fields() {
        let mut block = [
            &[0x00, 10][..],
            b":authority",
            &[2],
            b"/x",
            &[0x44, 2],
            b"/y",
        ]
        .concat();
        mend_authority(&mut block);
        assert!(block.ends_with(b"-x\x44\x02/y"), "{block:?}");
    }

    proptest::proptest! {
        /// Whatever comes: it ends, in bounds, and a second time nothing is left to do.
        #[test]
        fn any_bytes(mut block: Vec<u8>) {
            mend_authority(&mut block);
            let once = block.clone();
            mend_authority(&mut block);
            proptest::prop_assert_eq!(once, block);
        }
    }
}
