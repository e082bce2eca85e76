//! Every payload with values at the edges of each field, through the words of the union and back.
//!
//! What the struct does is compared with bytes that this file writes itself at the table's offsets.

use std::fmt::Debug;

use super::*;

/// The union as a record has it.
type Bytes = [u8; DATA_BYTES];

/// Values that a field's type just holds, as its bytes.
fn edges(kind: FieldKind) -> Vec<Vec<u8>> {
    match kind {
        FieldKind::Bool => vec![vec![0], vec![1]],
        FieldKind::U8 => [0, 1, 0x7F, 0x80, u8::MAX]
            .map(|n| n.to_le_bytes().to_vec())
            .into(),
        FieldKind::U16 => [0, 1, 0x7FFF, 0x8000, u16::MAX]
            .map(|n| n.to_le_bytes().to_vec())
            .into(),
        FieldKind::U32 => {
            let all = [0, 1, 0x7FFF_FFFF, 0x8000_0000, 0xDEAD_BEEF, u32::MAX];
            all.map(|n| n.to_le_bytes().to_vec()).into()
        }
        FieldKind::I32 => [0, 1, -1, i32::MIN, i32::MAX]
            .map(|n| n.to_le_bytes().to_vec())
            .into(),
        FieldKind::U64 => {
            let all = [
                0,
                1,
                u64::from(u32::MAX) + 1,
                (1 << 53) + 1,
                1 << 63,
                u64::MAX,
            ];
            all.map(|n| n.to_le_bytes().to_vec()).into()
        }
    }
}

fn words(bytes: &Bytes) -> [u64; 5] {
    std::array::from_fn(|i| {
        u64::from_le_bytes(bytes[8 * i..8 * i + 8].try_into().expect("eight bytes"))
    })
}

fn place(bytes: &mut Bytes, field: &Field, value: &[u8]) {
    bytes[field.offset..field.offset + value.len()].copy_from_slice(value);
}

/// What the table reads from a value's bytes.
fn value(kind: FieldKind, bytes: &[u8]) -> FieldValue {
    let mut wide = [0; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    let wide = u64::from_le_bytes(wide);
    match kind {
        FieldKind::Bool => FieldValue::Bool(wide != 0),
        #[expect(clippy::cast_possible_truncation, reason = "four bytes")]
        FieldKind::I32 => FieldValue::Signed((wide as u32).cast_signed()),
        _ => FieldValue::Unsigned(wide),
    }
}

/// Each edge of each field, with all the other fields at their least and then at their greatest.
fn edges_come_back<P: Payload + PartialEq + Debug>() {
    let layout = P::LAYOUT;
    let greatest = |field: &Field| edges(field.kind).pop().expect("there are edges");
    for others in [false, true] {
        for field in layout.fields {
            for edge in edges(field.kind) {
                let mut bytes = [0; DATA_BYTES];
                if others {
                    for other in layout.fields {
                        place(&mut bytes, other, &greatest(other));
                    }
                }
                place(&mut bytes, field, &edge);
                let context = format!("{}.{} = {edge:x?}", layout.name, field.name);
                let payload = P::from_data(&words(&bytes));
                assert_eq!(payload.to_data(), words(&bytes), "{context}");
                assert_eq!(
                    field.read(&words(&bytes)),
                    value(field.kind, &edge),
                    "{context}"
                );
            }
        }
    }
}

/// Bytes that belong to no field: read, they change nothing; written, they are zero.
fn padding_is_nothing<P: Payload + PartialEq + Debug>() {
    let mut noise = [0xA5; DATA_BYTES];
    for field in P::LAYOUT.fields {
        place(&mut noise, field, &edges(field.kind)[0]);
    }
    let payload = P::from_data(&words(&noise));
    assert_eq!(payload, P::from_data(&[0; 5]), "{}", P::LAYOUT.name);
    assert_eq!(payload.to_data(), [0; 5], "{}", P::LAYOUT.name);
}

/// The layout that a record's type and phase lead to is this payload's, in exactly its phases.
fn every_phase_leads_here<P: Payload>() {
    for phase in Phase::ALL {
        let found = layout(P::LAYOUT.event, phase);
        assert_eq!(
            found == Some(&P::LAYOUT),
            P::LAYOUT.phases.contains(&phase),
            "{} in {phase}",
            P::LAYOUT.name
        );
    }
}

#[test]
fn every_payload_round_trips_at_the_edges_of_each_field() {
    each_payload!(edges_come_back);
}

#[test]
fn no_payload_reads_or_writes_between_its_fields() {
    each_payload!(padding_is_nothing);
}

#[test]
fn type_and_phase_choose_the_payload() {
    each_payload!(every_phase_leads_here);
}
