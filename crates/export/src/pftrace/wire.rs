//! Protocol buffers by hand: the few kinds of fields that the trace has, written straight into one buffer.
//!
//! A generated encoder asks each message for its length first and allocates for what is repeated. Here a message is
//! opened with room for a length of one byte, and closed; only what turns out longer than 127 bytes is moved.

/// Room that [`Wire::reserve`] leaves beside what was asked for: no number reaches further.
const SLACK: usize = 32;

/// An opened message: where its length stands.
#[derive(Debug)]
#[must_use]
pub(crate) struct Open(usize);

/// A buffer of encoded fields.
#[derive(Debug, Default)]
pub(crate) struct Wire {
    buffer: Vec<u8>,
    at: usize,
}

impl Wire {
    /// What has been written.
    pub(crate) fn written(&self) -> &[u8] {
        &self.buffer[..self.at]
    }

    /// Forgets what has been written.
    pub(crate) const fn clear(&mut self) {
        self.at = 0;
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.at == 0
    }

    /// Makes room for this many bytes of numbers, tags and lengths.
    #[inline]
    pub(crate) fn reserve(&mut self, bytes: usize) {
        let end = self.at + bytes + SLACK;
        if self.buffer.len() < end {
            self.buffer.resize(end.next_multiple_of(4096), 0);
        }
    }

    /// A field of type uint64, uint32, enum or bool, and int64 where it is not negative.
    #[inline]
    pub(crate) fn number(&mut self, field: u32, value: u64) {
        self.tag(field, 0);
        self.varint(value);
    }

    /// A field of type int64 or int32.
    #[inline]
    pub(crate) fn signed(&mut self, field: u32, value: i64) {
        self.number(field, value.cast_unsigned());
    }

    /// A field of type fixed64.
    #[inline]
    pub(crate) fn fixed(&mut self, field: u32, value: u64) {
        self.tag(field, 1);
        self.put(&value.to_le_bytes());
        self.at += 8;
    }

    /// A field of type double.
    pub(crate) fn double(&mut self, field: u32, value: f64) {
        self.fixed(field, value.to_bits());
    }

    /// A field of type string or bytes, or a message that is encoded already. Makes room itself.
    pub(crate) fn bytes(&mut self, field: u32, bytes: &[u8]) {
        self.reserve(bytes.len() + 16);
        self.tag(field, 2);
        self.varint(bytes.len() as u64);
        self.raw(bytes);
    }

    /// [`Wire::bytes`] of a text.
    pub(crate) fn text(&mut self, field: u32, text: &str) {
        self.bytes(field, text.as_bytes());
    }

    /// Bytes as they are. Makes room itself.
    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        self.reserve(bytes.len());
        self.buffer[self.at..self.at + bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
    }

    /// Opens a field that is a message.
    #[inline]
    pub(crate) fn open(&mut self, field: u32) -> Open {
        self.tag(field, 2);
        self.at += 1;
        Open(self.at)
    }

    /// Closes the message that was opened last.
    #[inline]
    pub(crate) fn close(&mut self, Open(body): Open) {
        let length = self.at - body;
        if let Ok(short @ 0..128) = u8::try_from(length) {
            self.buffer[body - 1] = short;
        } else {
            self.close_long(body, length);
        }
    }

    #[cold]
    #[expect(clippy::cast_possible_truncation, reason = "seven bits at a time")]
    fn close_long(&mut self, body: usize, length: usize) {
        let bits = 64 - (length as u64).leading_zeros() as usize;
        let bytes = bits.div_ceil(7);
        self.reserve(bytes);
        self.buffer.copy_within(body..self.at, body + bytes - 1);
        // One by one: what follows stands already, and a whole block would go over it.
        for byte in 0..bytes {
            let more = if byte + 1 < bytes { 0x80 } else { 0 };
            self.buffer[body - 1 + byte] = (length >> (7 * byte)) as u8 & 0x7F | more;
        }
        self.at += bytes - 1;
    }

    #[inline]
    fn tag(&mut self, field: u32, kind: u32) {
        self.varint(u64::from(field << 3 | kind));
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "seven bits at a time")]
    fn varint(&mut self, value: u64) {
        if value < 0x80 {
            self.buffer[self.at] = value as u8;
            self.at += 1;
            return;
        }
        let mut bytes = [0u8; 10];
        let mut rest = value;
        let mut length = 0;
        while rest >= 0x80 {
            bytes[length] = rest as u8 | 0x80;
            rest >>= 7;
            length += 1;
        }
        bytes[length] = rest as u8;
        self.put(&bytes);
        self.at += length + 1;
    }

    #[inline]
    fn put<const N: usize>(&mut self, bytes: &[u8; N]) {
        self.buffer[self.at..self.at + N].copy_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests {
    use prost::Message as _;
    use prost::bytes::Bytes;

    use super::*;

    #[derive(Clone, PartialEq, prost::Message)]
    struct Inner {
        #[prost(string, tag = "2")]
        text: String,
        #[prost(int64, tag = "300")]
        signed: i64,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    struct Outer {
        #[prost(uint64, repeated, packed = "false", tag = "1")]
        numbers: Vec<u64>,
        #[prost(fixed64, tag = "47")]
        fixed: u64,
        #[prost(double, tag = "44")]
        double: f64,
        #[prost(message, optional, tag = "11")]
        inner: Option<Inner>,
    }

    #[test]
    fn what_is_written_is_what_a_generated_decoder_reads() {
        for length in [0, 1, 100, 120, 127, 128, 129, 5000, 20_000, 3_000_000] {
            let expected = Outer {
                numbers: (0..64)
                    .map(|bit| 1 << bit)
                    .chain([0, u64::MAX, 127, 128])
                    .collect(),
                fixed: 0x0102_0304_0506_0708,
                double: -0.125,
                inner: Some(Inner {
                    text: "x".repeat(length),
                    signed: -5,
                }),
            };
            let mut wire = Wire::default();
            wire.reserve(2000);
            for number in &expected.numbers {
                wire.number(1, *number);
            }
            wire.fixed(47, expected.fixed);
            wire.double(44, expected.double);
            let inner = wire.open(11);
            wire.text(2, &expected.inner.as_ref().unwrap().text);
            wire.signed(300, -5);
            wire.close(inner);
            let read = Outer::decode(Bytes::copy_from_slice(wire.written())).unwrap();
            assert_eq!(read, expected, "{length}");
        }
    }
}
