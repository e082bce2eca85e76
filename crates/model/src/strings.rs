//! Ids of interned names.

use std::hash::Hasher;

use siphasher::sip::SipHasher13;

/// Bits of a string id, as of every id that can stand in `tracking_id`.
pub const ID_BITS: u32 = 50;

/// Id 0, which no string has.
pub const INVALID_ID: u64 = 0;

/// What [`INVALID_ID`] reads as.
pub const INVALID_NAME: &str = "Invalid interned string";

/// The id of a string: SipHash-1-3 with key 0 over the bytes and a closing 0xFF (so hashes Rust's `str`), cut to
/// [`ID_BITS`], plus one. It depends on nothing else, so every process gives a name the same id.
#[must_use]
pub fn get_id(bytes: &[u8]) -> u64 {
    let mut hasher = SipHasher13::new();
    hasher.write(bytes);
    hasher.write_u8(0xFF);
    (hasher.finish() & ((1 << ID_BITS) - 1)) + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_neurons() {
        let vectors: [(&str, u64); 10] = [
            ("", 121_655_548_788_208),
            ("a", 933_183_196_555_764),
            ("abc", 528_815_857_739_038),
            ("model", 402_710_577_667_408),
            ("file.neff", 605_291_374_318_702),
            ("input0", 549_549_689_270_190),
            ("hello world", 540_227_844_098_000),
            ("model.neff", 566_264_322_956_826),
            ("_unknown_", 202_982_732_869_795),
            ("日本語", 830_970_404_915_775),
        ];
        for (name, id) in vectors {
            assert_eq!(get_id(name.as_bytes()), id, "{name:?}");
        }
    }

    #[test]
    fn bytes_that_are_no_utf8_have_an_id_too() {
        let id = get_id(&[0xFF, 0xFE]);
        assert!(id != INVALID_ID && id <= 1 << ID_BITS);
    }
}
