//! How each (type, phase) is written, worked out once from the layout tables.

use nrt_trace_model::payload::{self, Field, FieldKind, PayloadLayout, Rendering};
use nrt_trace_model::{EventType, Phase, names};

use super::pen::Piece;
use super::text;

/// One row a type and one for all unknown types.
const TYPES: usize = EventType::ALL.len() + 1;
/// One column a phase and one for all unknown phases.
const PHASES: usize = Phase::ALL.len() + 1;

/// No number, address or name of a value is longer, with the key of a model's name beside its number.
const VALUE_BYTES: usize = 48;

/// No event has more besides head, data and what is its ring's: six numbers and the keys between them, the keys of
/// names, and for an unknown type its number and the rest of the head.
const FIXED_BYTES: usize = 400;

/// Plans of all events.
#[derive(Debug)]
pub(crate) struct Plans {
    plans: Vec<Plan>,
}

/// How an event is written.
#[derive(Debug)]
pub(crate) struct Plan {
    /// `{"event_type":"…","phase":"…","id":`; for unknown types it stops before the type's number.
    pub(crate) head: Piece,
    /// Keys of `data`.
    pub(crate) keys: Vec<Key>,
    /// Whether the union means nothing here although the type has payloads, or type or phase are unknown.
    pub(crate) gated: bool,
    /// Bytes of an event at most, apart from what its ring and its names add.
    pub(crate) room: usize,
}

/// A key of `data`.
#[derive(Debug)]
pub(crate) struct Key {
    /// `{"key":` for the first, else `,"key":`.
    pub(crate) prefix: Piece,
    pub(crate) value: Value,
}

/// Where a value comes from, and how it is written.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Value {
    Unsigned(Bits),
    Signed(Bits),
    Bool(Bits),
    Hex(Bits),
    Name(Bits, fn(u64) -> &'static str),
    Model(Bits),
    /// The model that another event of the execution told.
    ModelOfExecution,
}

/// Some bits of the union.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bits {
    word: usize,
    shift: u32,
    mask: u64,
}

impl Bits {
    fn of(field: &Field) -> Self {
        let bits = match field.kind {
            FieldKind::Bool | FieldKind::U8 => 8,
            FieldKind::U16 => 16,
            FieldKind::U32 | FieldKind::I32 => 32,
            FieldKind::U64 => 64,
        };
        let shift = u32::try_from(field.offset % 8 * 8).expect("below 64");
        Self {
            word: field.offset / 8,
            shift,
            mask: u64::MAX >> (64 - bits),
        }
    }

    /// The bits of these union words.
    #[inline]
    pub(crate) fn get(self, data: &[u64; 5]) -> u64 {
        (data[self.word] >> self.shift) & self.mask
    }
}

impl Plans {
    pub(crate) fn new() -> Self {
        let kinds = EventType::ALL.into_iter().map(Some).chain([None]);
        let phases = || Phase::ALL.into_iter().map(Some).chain([None]);
        let plans = kinds
            .flat_map(|kind| phases().map(move |phase| Plan::new(kind, phase)))
            .collect();
        Self { plans }
    }

    /// Position of the plan for a record's type and phase.
    #[inline]
    pub(crate) fn position(trace_type: u32, phase: u32) -> usize {
        let row = usize::try_from(trace_type).map_or(TYPES - 1, |t| t.min(TYPES - 1));
        let column = usize::try_from(phase).map_or(PHASES - 1, |p| p.min(PHASES - 1));
        row * PHASES + column
    }

    #[inline]
    pub(crate) fn at(&self, position: usize) -> &Plan {
        &self.plans[position]
    }

    /// Number of plans.
    pub(crate) const COUNT: usize = TYPES * PHASES;
}

impl Plan {
    fn new(kind: Option<EventType>, phase: Option<Phase>) -> Self {
        let mut head = b"{\"event_type\":\"".to_vec();
        let phase_name = phase.map_or("unknown", Phase::name);
        if let Some(kind) = kind {
            head.extend_from_slice(kind.name().as_bytes());
            head.extend_from_slice(Self::after_type(phase_name).as_bytes());
        } else {
            head.extend_from_slice(b"unknown_");
        }
        let layout = kind
            .zip(phase)
            .and_then(|(kind, phase)| payload::layout(kind, phase));
        let keys = layout.map_or_else(Vec::new, Key::all);
        let has_payloads = |kind| {
            Phase::ALL
                .iter()
                .any(|p| payload::layout(kind, *p).is_some())
        };
        let gated = layout.is_none() && (phase.is_none() || kind.is_none_or(has_payloads));
        let head = Piece::new(&head);
        let values = keys
            .iter()
            .map(|k| k.prefix.len() + VALUE_BYTES)
            .sum::<usize>();
        let room = head.len() + values + FIXED_BYTES;
        Self {
            head,
            keys,
            gated,
            room,
        }
    }

    /// What stands between the type's name and the id.
    pub(crate) fn after_type(phase_name: &str) -> String {
        format!("\",\"phase\":\"{phase_name}\",\"id\":")
    }
}

impl Key {
    fn all(layout: &'static PayloadLayout) -> Vec<Self> {
        let mut keys = Vec::new();
        for key in layout.json_keys {
            let mut prefix = vec![if keys.is_empty() { b'{' } else { b',' }];
            text::string(&mut prefix, key.name);
            prefix.push(b':');
            let field = key.field.map(|i| &layout.fields[i]);
            keys.push(Self {
                prefix: Piece::new(&prefix),
                value: Value::of(field, key.rendering),
            });
        }
        let leading = keys.first().map(|k| k.value);
        debug_assert!(
            !matches!(leading, Some(Value::ModelOfExecution)),
            "the key that opens the object may not be left out"
        );
        keys
    }
}

impl Value {
    pub(crate) fn of(field: Option<&Field>, rendering: Rendering) -> Self {
        let Some(field) = field else {
            return Self::ModelOfExecution;
        };
        let bits = Bits::of(field);
        match (rendering, field.kind) {
            (Rendering::ModelId, _) => Self::Model(bits),
            (Rendering::Algorithm, _) => Self::Name(bits, names::algorithm),
            (Rendering::UsageType, _) => Self::Name(bits, names::usage_type),
            (Rendering::MemType, _) => Self::Name(bits, names::mem_type),
            (Rendering::Hex, _) => Self::Hex(bits),
            (Rendering::Plain, FieldKind::Bool) => Self::Bool(bits),
            (Rendering::Plain, FieldKind::I32) => Self::Signed(bits),
            (Rendering::Plain, _) => Self::Unsigned(bits),
        }
    }
}
