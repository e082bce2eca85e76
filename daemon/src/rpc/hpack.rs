//! Makes the `:authority` of a header block one that a URI may have.
//!
//! A gRPC client of a unix socket has no host to name: many send the socket's path, as it is or percent-encoded, and the
//! HTTP/2 library of the server refuses that as malformed, and with it everything else that no URI has. The value means nothing
//! to this server, but it can't be cut out: the sender's compression table has it, and so has ours to have one of as many
//! characters (RFC 7541 §4.1 counts them). So each is replaced by another one: in place where that takes as many bits; a value
//! in Huffman's code with characters of 10 bits and more, which no host's name has, is written anew as it is.
//!
//! An empty value stays empty, and is refused: whatever stood in its place would be longer.
//!
//! RFC 7541: §5.1 integers, §5.2 strings, §6 representations, appendix A (`:authority` is entry 1), appendix B (the
//! Huffman code, in which codes of one length follow each other).

/// Number of codes of each length, from 5 bits on.
const CODES: [u32; 26] = [
    10, 26, 32, 6, 0, 5, 3, 2, 6, 2, 3, 0, 0, 0, 3, 8, 13, 26, 29, 12, 4, 15, 19, 29, 0, 4,
];
/// Bits of the shortest code.
const SHORTEST: u32 = 5;
/// Bits of the longest code that a value may have to be mended in place. The next longer ones are of `!"()?`.
const LONGEST_IN_PLACE: u32 = 8;
/// Codes of 6 bits that no authority may have, ` %/`, and the one of `-` in their place.
const BAD_OF_6: [u32; 3] = [0x14, 0x15, 0x18];
const DASH: u32 = 0x16;
/// The code of `:`, 7 bits, and the one of `k` in its place.
const COLON: u32 = 0x5C;
const LETTER: u32 = 0x75;

/// Replaces what must not be in the authority of a header block, or of the beginning of one. What can't be understood is
/// left as it is: the HTTP/2 library judges it.
pub(super) fn mend_authority(block: &mut Vec<u8>) {
    let mut at = 0;
    while let Some(field) = next_field(block, &mut at) {
        if !field.is_authority {
            continue;
        }
        let value = &mut block[field.value.clone()];
        if !field.huffman {
            mend_raw(value);
        } else if let Some(characters) = rare(value) {
            let string = plain(characters);
            at = field.string + string.len();
            block.splice(field.string..field.value.end, string);
        } else {
            mend_huffman(value);
        }
    }
}

/// A literal field of a header block.
struct Field {
    is_authority: bool,
    huffman: bool,
    /// Where its value begins, with its length before it.
    string: usize,
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
        let begin = *at;
        let (huffman, value) = string(block, at)?;
        return Some(Field {
            is_authority,
            huffman,
            string: begin,
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

/// Characters of a value in Huffman's code, if one of them is of more bits than can be replaced in place.
fn rare(value: &[u8]) -> Option<usize> {
    let (mut begin, mut characters, mut rare) = (0, 0, false);
    while let Some((bits, _)) = code_at(value, begin) {
        begin += bits as usize;
        characters += 1;
        rare |= bits > LONGEST_IN_PLACE;
    }
    rare.then_some(characters)
}

/// A string of so many characters that an authority may have, with its length before it.
fn plain(characters: usize) -> Vec<u8> {
    const MASK: usize = 0x7F;
    let mut string = Vec::with_capacity(characters + 4);
    if let Ok(short) = u8::try_from(characters)
        && characters < MASK
    {
        string.push(short);
    } else {
        string.push(0x7F);
        let mut rest = characters - MASK;
        while rest > MASK {
            string.push(0x80 | low_bits(rest));
            rest >>= 7;
        }
        string.push(low_bits(rest));
    }
    string.resize(string.len() + characters, b'-');
    string
}

/// The lowest seven bits.
fn low_bits(number: usize) -> u8 {
    number.to_le_bytes()[0] & 0x7F
}

fn mend_raw(value: &mut [u8]) {
    let may_stay = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~:".contains(byte);
    let colons = value.iter().filter(|byte| **byte == b':').count();
    // One colon is a host's before its port; the others are a path's or a scheme's.
    let colons_too = colons > 1 || !value.iter().all(may_stay);
    for byte in value {
        if !may_stay(byte) {
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

    /// Whether the server's library takes it.
    fn is_taken(value: &[u8]) -> bool {
        hyper::http::uri::Authority::try_from(value).is_ok()
    }

    #[test]
    fn what_a_host_may_be_stays_and_a_path_becomes_one() {
        for host in ["localhost", "localhost:50051", "nrt-trace", ""] {
            assert_eq!(mended(host.as_bytes()), host.as_bytes());
        }
        assert_eq!(mended(b"%2Frun%2Fx.sock"), b"-2Frun-2Fx.sock");
        assert_eq!(mended(b"unix:///run/x"), b"unixk---run-x");
        assert_eq!(mended(b"::1"), b"kk1");
        assert_eq!(mended(b"[::1]:80"), b"-kk1-k80");
        assert_eq!(mended("t\u{fc}r?x#y@z".as_bytes()), b"t--r-x-y-z");
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

    /// As many characters as there were, whatever bytes they take: the compression tables of both sides count them.
    #[test]
    fn rare_characters_in_huffmans_code_are_written_anew() {
        // `x#y`, and a longer one whose length takes a second byte, and a third.
        for (characters, length) in [
            (3, &[3][..]),
            (126, &[126]),
            (127, &[127, 0]),
            (255, &[127, 0x80, 1]),
        ] {
            let mut value = vec![(5, 0x3); characters];
            value[1] = (12, 0xFFA);
            let value = packed(&value);
            // Short enough that its own length is one byte, or as it is written by `plain`.
            let mut block = vec![0x83, 0x41];
            let mut prefix = plain(value.len());
            prefix.truncate(prefix.len() - value.len());
            prefix[0] |= 0x80;
            block.extend([&prefix[..], &value, &[0x41, 2], b"/y"].concat());
            mend_authority(&mut block);
            let expected = [
                &[0x83, 0x41],
                length,
                &vec![b'-'; characters],
                &[0x41, 2],
                b"-y",
            ];
            assert_eq!(block, expected.concat(), "{characters}");
        }
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

        /// Whatever a client calls the host, if it calls it anything: what comes of it is taken.
        #[test]
        fn any_name(value in proptest::collection::vec(proptest::prelude::any::<u8>(), 1..100)) {
            proptest::prop_assert!(is_taken(&mended(&value)), "{:?}", mended(&value));
        }
    }
}
