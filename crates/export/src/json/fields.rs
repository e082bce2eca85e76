//! The keys of an event, while it is being read.

use std::borrow::Cow;
use std::fmt;

use nrt_trace_model::Phase;
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, Unexpected, Visitor,
};
use serde_json::Value;

use super::event::{EventName, JsonEvent, key};

/// Reads one event.
pub(super) struct EventSeed;

impl<'de> DeserializeSeed<'de> for EventSeed {
    type Value = JsonEvent;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<JsonEvent, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for EventSeed {
    type Value = JsonEvent;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<JsonEvent, A::Error> {
        let mut fields = Fields::default();
        while let Some(Key(key)) = map.next_key::<Key>()? {
            match key {
                Field::EventType => once(&mut fields.event_type, map.next_value()?, "event_type")?,
                Field::Phase => once(&mut fields.phase, map.next_value()?, "phase")?,
                Field::Id => once(&mut fields.id, map.next_value()?, "id")?,
                Field::NcIdx => once(&mut fields.nc_idx, map.next_value()?, "nc_idx")?,
                Field::NcLocalId => {
                    once(&mut fields.nc_local_id, map.next_value()?, "nc_local_id")?;
                }
                Field::TrackingId => {
                    once(&mut fields.tracking_id, map.next_value()?, "tracking_id")?;
                }
                Field::ThreadId => once(&mut fields.thread_id, map.next_value()?, "thread_id")?,
                Field::WorkerGid => once(&mut fields.worker_gid, map.next_value()?, "worker_gid")?,
                Field::Data => once(&mut fields.data, map.next_value()?, "data")?,
                Field::TimestampNs => {
                    once(&mut fields.timestamp_ns, map.next_value()?, "timestamp_ns")?;
                }
                Field::NrtaSeqId => {
                    once(&mut fields.nrta_seq_id, map.next_value()?, "nrta_seq_id")?;
                }
                Field::Name => once(&mut fields.name, map.next_value()?, "name")?,
                Field::TrackingName => {
                    once(
                        &mut fields.tracking_name,
                        map.next_value()?,
                        "tracking_name",
                    )?;
                }
                Field::ProcessId => once(&mut fields.process_id, map.next_value()?, "process_id")?,
                Field::HostNcIdx => {
                    once(&mut fields.host_nc_idx, map.next_value()?, "host_nc_idx")?;
                }
                Field::Other(name) => fields.more.push((name, map.next_value()?)),
            }
        }
        fields.event()
    }
}

fn once<T, E: Error>(place: &mut Option<T>, value: T, key: &'static str) -> Result<(), E> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(E::duplicate_field(key)),
    }
}

#[derive(Default)]
struct Fields {
    event_type: Option<EventName>,
    phase: Option<PhaseName>,
    id: Option<Whole<u64>>,
    nc_idx: Option<Whole<u32>>,
    nc_local_id: Option<Whole<u64>>,
    tracking_id: Option<Whole<u64>>,
    thread_id: Option<Whole<u64>>,
    worker_gid: Option<Whole<i32>>,
    data: Option<Data>,
    timestamp_ns: Option<Whole<u64>>,
    nrta_seq_id: Option<Whole<u64>>,
    name: Option<String>,
    tracking_name: Option<String>,
    process_id: Option<Whole<i64>>,
    host_nc_idx: Option<Whole<u32>>,
    more: Vec<(String, Value)>,
}

impl Fields {
    /// The event; without what it is, where and when, it can't be one.
    fn event<E: Error>(self) -> Result<JsonEvent, E> {
        let missing = E::missing_field;
        Ok(JsonEvent {
            event_type: self.event_type.ok_or_else(|| missing("event_type"))?,
            phase: self.phase.ok_or_else(|| missing("phase"))?.0,
            id: self.id.map_or(0, |n| n.0),
            nc_idx: self.nc_idx.ok_or_else(|| missing("nc_idx"))?.0,
            nc_local_id: self.nc_local_id.map_or(0, |n| n.0),
            tracking_id: self.tracking_id.ok_or_else(|| missing("tracking_id"))?.0,
            thread_id: self.thread_id.map_or(0, |n| n.0),
            worker_gid: self.worker_gid.map_or(-1, |n| n.0),
            data: self.data.unwrap_or_default().0,
            timestamp_ns: self.timestamp_ns.ok_or_else(|| missing("timestamp_ns"))?.0,
            nrta_seq_id: self.nrta_seq_id.map(|n| n.0),
            name: self.name,
            tracking_name: self.tracking_name,
            process_id: self.process_id.map(|n| n.0),
            host_nc_idx: self.host_nc_idx.map(|n| n.0),
            more: self.more,
        })
    }
}

enum Field {
    EventType,
    Phase,
    Id,
    NcIdx,
    NcLocalId,
    TrackingId,
    ThreadId,
    WorkerGid,
    Data,
    TimestampNs,
    NrtaSeqId,
    Name,
    TrackingName,
    ProcessId,
    HostNcIdx,
    Other(String),
}

/// A key of an event.
struct Key(Field);

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        text(deserializer, "a key", |key| {
            Ok(Self(match key {
                "event_type" => Field::EventType,
                "phase" => Field::Phase,
                "id" => Field::Id,
                "nc_idx" => Field::NcIdx,
                "nc_local_id" => Field::NcLocalId,
                "tracking_id" => Field::TrackingId,
                "thread_id" => Field::ThreadId,
                "worker_gid" => Field::WorkerGid,
                "data" => Field::Data,
                "timestamp_ns" => Field::TimestampNs,
                "nrta_seq_id" => Field::NrtaSeqId,
                "name" => Field::Name,
                "tracking_name" => Field::TrackingName,
                "process_id" => Field::ProcessId,
                "host_nc_idx" => Field::HostNcIdx,
                other => Field::Other(other.to_owned()),
            }))
        })
    }
}

impl<'de> Deserialize<'de> for EventName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        text(deserializer, "an event name", |name| Ok(Self::new(name)))
    }
}

struct PhaseName(Option<Phase>);

impl<'de> Deserialize<'de> for PhaseName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        text(deserializer, "a phase", |name| {
            Ok(Self(Phase::ALL.into_iter().find(|p| p.name() == name)))
        })
    }
}

/// The keys and values of `data`.
#[derive(Default)]
struct Data(Vec<(Cow<'static, str>, Value)>);

impl<'de> Deserialize<'de> for Data {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs;
        impl<'de> Visitor<'de> for Pairs {
            type Value = Data;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with the event's data")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Data, A::Error> {
                let mut pairs = Vec::new();
                while let Some(DataKey(key)) = map.next_key::<DataKey>()? {
                    pairs.push((key, map.next_value()?));
                }
                Ok(Data(pairs))
            }
        }
        deserializer.deserialize_map(Pairs)
    }
}

struct DataKey(Cow<'static, str>);

impl<'de> Deserialize<'de> for DataKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        text(deserializer, "a key", |name| Ok(Self(key(name))))
    }
}

/// A whole number that fits `T`, or a string of its digits.
struct Whole<T>(T);

impl<'de, T: TryFrom<i128>> Deserialize<'de> for Whole<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Number<T>(std::marker::PhantomData<T>);
        impl<T: TryFrom<i128>> Visitor<'_> for Number<T> {
            type Value = Whole<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let bits = 8 * size_of::<T>();
                write!(f, "a whole number of at most {bits} bits, or its digits")
            }

            fn visit_u64<E: Error>(self, value: u64) -> Result<Whole<T>, E> {
                let fits = T::try_from(value.into()).ok();
                fits.map(Whole)
                    .ok_or_else(|| E::invalid_value(Unexpected::Unsigned(value), &self))
            }

            fn visit_i64<E: Error>(self, value: i64) -> Result<Whole<T>, E> {
                let fits = T::try_from(value.into()).ok();
                fits.map(Whole)
                    .ok_or_else(|| E::invalid_value(Unexpected::Signed(value), &self))
            }

            fn visit_str<E: Error>(self, digits: &str) -> Result<Whole<T>, E> {
                let plain = !digits.starts_with('+');
                let value = digits.parse::<i128>().ok().filter(|_| plain);
                value
                    .and_then(|value| T::try_from(value).ok())
                    .map(Whole)
                    .ok_or_else(|| E::invalid_value(Unexpected::Str(digits), &self))
            }
        }
        deserializer.deserialize_any(Number(std::marker::PhantomData))
    }
}

/// What `read` makes of a string, which need not be copied for that.
fn text<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    what: &'static str,
    read: impl FnOnce(&str) -> Result<T, D::Error>,
) -> Result<T, D::Error> {
    struct Text<F, T>(&'static str, F, std::marker::PhantomData<T>);
    impl<T, F: FnOnce(&str) -> T> Visitor<'_> for Text<F, T> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
            Ok((self.1)(text))
        }
    }
    deserializer.deserialize_str(Text(what, read, std::marker::PhantomData))?
}
