//! Payloads as keys and values, worked out once from the layout tables.

use hashbrown::HashMap;
use nrt_trace_abi::record::Record;
use nrt_trace_model::payload::{self, PayloadLayout};
use nrt_trace_model::{Category, EventType, Phase};

use crate::json::plan::{Bits, Plans, Value};
use crate::json::text;
use crate::timeline::{Event, Names};

/// Keys besides those of payloads.
pub(crate) const EXTRA: [&str; 22] = [
    "nrta_seq_id",
    "tracking_id",
    "model_name",
    "stop_model_name",
    "unmatched",
    "duration_ns",
    "timestamp_ns",
    "lost",
    "first_seq",
    "last_seq",
    "claimed",
    "delivered",
    "pending",
    "unread",
    "overwritten",
    "dropped_in_flight",
    "dropped_lapped",
    "dropped_seq",
    "abandoned",
    "no_ring",
    "monotonic_ns",
    "boottime_ns",
];

/// A key of a payload.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key {
    /// Position in [`Annotations::keys`].
    pub(crate) key: u32,
    /// The same with `stop_` in front, for what a stop says differently from its start.
    pub(crate) at_stop: u32,
    pub(crate) value: Value,
}

/// All keys, and those of each type and phase.
#[derive(Debug)]
pub(crate) struct Annotations {
    pub(crate) keys: Vec<String>,
    places: HashMap<String, u32>,
    by_plan: Vec<Vec<Key>>,
}

impl Annotations {
    pub(crate) fn new() -> Self {
        let mut all = Self {
            keys: Vec::new(),
            places: HashMap::new(),
            by_plan: vec![Vec::new(); Plans::COUNT],
        };
        for key in EXTRA {
            all.place(key);
        }
        for event in EventType::ALL {
            for phase in Phase::ALL {
                if let Some(layout) = payload::layout(event, phase) {
                    let keys = all.of(layout);
                    all.by_plan[Plans::position(event.value(), phase.value())] = keys;
                }
            }
        }
        all
    }

    /// Keys of the payload of this type and phase.
    #[inline]
    pub(crate) fn at(&self, trace_type: u32, phase: u32) -> &[Key] {
        &self.by_plan[Plans::position(trace_type, phase)]
    }

    /// Gives what a start's payload says, and what its stop's says besides or differently: the key's position, the value, and
    /// where it stands.
    #[inline]
    pub(crate) fn visit(
        &self,
        start: &Event,
        stop: Option<&Event>,
        mut give: impl FnMut(u32, Value, &[u64; 5], Option<u64>),
    ) {
        let (kind, data) = (start.record.trace_type(), start.record.data());
        let of_start = self.at(kind, start.record.phase());
        for key in of_start {
            give(key.key, key.value, &data, start.resolved.model_id);
        }
        let Some(stop) = stop else { return };
        let after = stop.record.data();
        for key in self.at(kind, stop.record.phase()) {
            let at_start = of_start.iter().find(|other| other.key == key.key);
            let same = at_start.is_some_and(|other| match (bits(other.value), bits(key.value)) {
                (Some(a), Some(b)) => a.get(&data) == b.get(&after),
                _ => true,
            });
            if !same {
                let place = if at_start.is_some() {
                    key.at_stop
                } else {
                    key.key
                };
                give(place, key.value, &after, stop.resolved.model_id);
            }
        }
    }

    /// Position of a key, which is added if it is new.
    pub(crate) fn place(&mut self, key: &str) -> u32 {
        if let Some(place) = self.places.get(key) {
            return *place;
        }
        let place = u32::try_from(self.keys.len()).expect("a few hundred keys");
        self.keys.push(key.to_owned());
        self.places.insert(key.to_owned(), place);
        place
    }

    fn of(&mut self, layout: &'static PayloadLayout) -> Vec<Key> {
        let keys = layout.json_keys.iter();
        keys.map(|key| Key {
            key: self.place(key.name),
            at_stop: self.place(&format!("stop_{}", key.name)),
            value: Value::of(key.field.map(|i| &layout.fields[i]), key.rendering),
        })
        .collect()
    }
}

/// The bits that a value stands in; `None` for what another event told.
const fn bits(value: Value) -> Option<Bits> {
    match value {
        Value::Unsigned(bits)
        | Value::Signed(bits)
        | Value::Bool(bits)
        | Value::Hex(bits)
        | Value::Name(bits, _)
        | Value::Model(bits) => Some(bits),
        Value::ModelOfExecution => None,
    }
}

/// Appends what `visit` gives as a JSON object.
pub(crate) fn json(
    out: &mut Vec<u8>,
    annotations: &Annotations,
    start: &Event,
    stop: Option<&Event>,
    names: &Names,
) {
    let mut between = b'{';
    let mut key = |out: &mut Vec<u8>, key: &str| {
        out.push(std::mem::replace(&mut between, b','));
        text::string(out, key);
        out.push(b':');
    };
    annotations.visit(start, stop, |place, value, data, model| {
        let name = &annotations.keys[place as usize];
        let mut model_of = |out: &mut Vec<u8>, id: u64| {
            key(out, name);
            out.extend_from_slice(id.to_string().as_bytes());
            if let Some(text) = names.get(&id) {
                key(out, &name.replace("model_id", "model_name"));
                text::string(out, text);
            }
        };
        match value {
            Value::Model(bits) => return model_of(out, bits.get(data)),
            Value::ModelOfExecution => return model.map_or((), |id| model_of(out, id)),
            _ => {}
        }
        key(out, name);
        match value {
            Value::Unsigned(bits) => out.extend_from_slice(bits.get(data).to_string().as_bytes()),
            #[expect(clippy::cast_possible_truncation, reason = "a 32-bit field")]
            Value::Signed(bits) => {
                let number = (bits.get(data) as u32).cast_signed();
                out.extend_from_slice(number.to_string().as_bytes());
            }
            Value::Bool(bits) => {
                let word: &[u8] = if bits.get(data) == 0 {
                    b"false"
                } else {
                    b"true"
                };
                out.extend_from_slice(word);
            }
            Value::Hex(bits) => {
                out.extend_from_slice(format!("\"{:#x}\"", bits.get(data)).as_bytes());
            }
            Value::Name(bits, name) => text::string(out, name(bits.get(data))),
            Value::Model(_) | Value::ModelOfExecution => {}
        }
    });
    if between == b'{' {
        out.push(b'{');
    }
    out.push(b'}');
}

/// The name under which a span is shown: its type's, or the one that a `generic` span carries.
pub(crate) fn shown_name(record: &Record, names: &Names) -> String {
    match EventType::from_value(record.trace_type()) {
        None => format!("unknown_{}", record.trace_type()),
        Some(EventType::Generic) => match names.get(&record.data()[0]) {
            Some(name) if name.is_empty() => "(empty)".to_owned(),
            Some(name) => name.to_string(),
            None => EventType::Generic.name().to_owned(),
        },
        Some(kind) => kind.name().to_owned(),
    }
}

/// Whether an event comes from the device.
#[inline]
pub(crate) fn is_hardware(trace_type: u32) -> bool {
    EventType::from_value(trace_type).is_some_and(|kind| kind.category() == Category::Hardware)
}
