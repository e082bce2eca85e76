//! Payloads: what the record's 40-byte union holds for each event type and phase.
//!
//! Emitters build a struct (`payload::DeviceExecStart { .. }.to_data()`); exporters that write every type alike walk
//! the tables instead ([`layout`], [`PayloadLayout::fields`], [`PayloadLayout::json_keys`]). Both read the union as
//! five little-endian words, so no byte slice of a record is ever needed.

use crate::{EventType, Phase};

/// Bytes of the union.
pub const DATA_BYTES: usize = 40;

/// Refuses, at compile time, a field that does not stand aligned inside its payload of `size` bytes.
const fn fits<T>(offset: usize, size: usize) {
    let width = size_of::<T>();
    assert!(
        offset.is_multiple_of(width) && offset + width <= size && size <= DATA_BYTES,
        "a field's type does not fit its place"
    );
}

include!(concat!(env!("OUT_DIR"), "/payloads.rs"));

/// A payload struct.
pub trait Payload: Copy {
    /// Its event type, phases, fields and JSON keys.
    const LAYOUT: PayloadLayout;

    /// The union words that hold this payload.
    fn to_data(&self) -> [u64; 5];

    /// The payload in these union words.
    fn from_data(data: &[u64; 5]) -> Self;
}

/// A payload's fields, as a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PayloadLayout {
    /// Name of the struct.
    pub name: &'static str,
    /// Event type that it belongs to.
    pub event: EventType,
    /// Phases in which the union holds it.
    pub phases: &'static [Phase],
    /// Bytes used of the 40.
    pub size: usize,
    /// Fields, by offset.
    pub fields: &'static [Field],
    /// Keys of JSON's `data`, in their order.
    pub json_keys: &'static [JsonKey],
}

impl PayloadLayout {
    /// The field of this name.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find(|f| f.name == name)
    }
}

/// The payload of an event type in a phase; `None` if the union means nothing there.
#[must_use]
pub fn layout(event: EventType, phase: Phase) -> Option<&'static PayloadLayout> {
    BY_TYPE_AND_PHASE[event.index()][phase as usize].map(|i| &ALL[i])
}

/// A field of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub kind: FieldKind,
    /// Byte offset in the union, a multiple of its size.
    pub offset: usize,
}

impl Field {
    /// The field's value in these union words.
    #[inline]
    #[must_use]
    pub fn read(&self, data: &[u64; 5]) -> FieldValue {
        match self.kind {
            FieldKind::Bool => FieldValue::Bool(FieldType::get(data, self.offset)),
            FieldKind::U8 => FieldValue::Unsigned(u8::get(data, self.offset).into()),
            FieldKind::U16 => FieldValue::Unsigned(u16::get(data, self.offset).into()),
            FieldKind::U32 => FieldValue::Unsigned(u32::get(data, self.offset).into()),
            FieldKind::U64 => FieldValue::Unsigned(FieldType::get(data, self.offset)),
            FieldKind::I32 => FieldValue::Signed(FieldType::get(data, self.offset)),
        }
    }
}

/// Type of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// One byte, false if zero.
    Bool,
    /// 8 bits.
    U8,
    /// 16 bits.
    U16,
    /// 32 bits.
    U32,
    /// 64 bits.
    U64,
    /// 32 bits, signed.
    I32,
}

/// Value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldValue {
    /// Of a [`FieldKind::Bool`].
    Bool(bool),
    /// Of an unsigned field of any size.
    Unsigned(u64),
    /// Of a [`FieldKind::I32`].
    Signed(i32),
}

/// A key of JSON's `data`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JsonKey {
    /// The key.
    pub name: &'static str,
    /// Position in [`PayloadLayout::fields`]; `None` if the value comes from another event of the same execution.
    pub field: Option<usize>,
    /// How the value is written.
    pub rendering: Rendering,
}

/// How a JSON value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rendering {
    /// As number or boolean.
    Plain,
    /// As number, with the key `model_name` after it if the id is a known string's.
    ModelId,
    /// As a name of [`crate::names::algorithm`].
    Algorithm,
    /// As a name of [`crate::names::usage_type`].
    UsageType,
    /// As a name of [`crate::names::mem_type`].
    MemType,
    /// As the string `0x…`.
    Hex,
}

/// A type that a field can have.
trait FieldType: Sized {
    fn get(data: &[u64; 5], offset: usize) -> Self;
    fn put(self, data: &mut [u64; 5], offset: usize);
}

macro_rules! unsigned_fields {
    ($($t:ty),*) => {$(
        impl FieldType for $t {
            #[inline]
            fn get(data: &[u64; 5], offset: usize) -> Self {
                let bytes = (data[offset / 8] >> (offset % 8 * 8)).to_le_bytes();
                Self::from_le_bytes(*bytes.first_chunk().expect("a field is no wider than a word"))
            }

            #[inline]
            fn put(self, data: &mut [u64; 5], offset: usize) {
                data[offset / 8] |= u64::from(self) << (offset % 8 * 8);
            }
        }
    )*};
}
unsigned_fields!(u8, u16, u32, u64);

impl FieldType for i32 {
    #[inline]
    fn get(data: &[u64; 5], offset: usize) -> Self {
        u32::get(data, offset).cast_signed()
    }

    #[inline]
    fn put(self, data: &mut [u64; 5], offset: usize) {
        self.cast_unsigned().put(data, offset);
    }
}

impl FieldType for bool {
    #[inline]
    fn get(data: &[u64; 5], offset: usize) -> Self {
        u8::get(data, offset) != 0
    }

    #[inline]
    fn put(self, data: &mut [u64; 5], offset: usize) {
        u8::from(self).put(data, offset);
    }
}

#[cfg(test)]
mod edges;
#[cfg(test)]
mod tests;
