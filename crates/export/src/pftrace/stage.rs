//! What happened, as packets.

use std::io::{self, Write};

use hashbrown::HashMap;
use nrt_trace_abi::record::{PHASE_STOP, Record};
use nrt_trace_model::{EventType, strings};
use nrt_trace_proto::v1::trace_part::Part;

use super::PftraceOptions;
use super::field::{annotation, event};
use super::host::{Host, Moments};
use super::output::{CATEGORIES, HARDWARE, Kind, OWN, Output, SOFTWARE, Sequence};
use super::ring::Ring;
use super::tracks::{Purpose, TrackId, Tracks};
use crate::annotate::{Annotations, EXTRA, is_hardware};
use crate::json::plan::{Plans, Value};
use crate::timeline::{Ended, Event, Found, Names, RingOf, Stage};

/// Slices without an end, for each ring: the newest. They lie in each other on one track, and a track has room for 512.
const OPEN_SHOWN: usize = 256;

/// Writes a trace. See the [module above](super).
pub(super) struct Perfetto<W: Write> {
    pub(super) output: Output<W>,
    pub(super) tracks: Tracks,
    pub(super) options: PftraceOptions,
    annotations: Annotations,
    /// Of everything that is no ring's.
    pub(super) common: Sequence,
    sequences: u32,
    pub(super) ring: Option<Ring>,
    pub(super) host: Host,
    pub(super) moments: Moments,
    /// Numbers of names that spans gave themselves.
    spans: HashMap<u64, u64>,
}

/// What a packet of an event says.
#[derive(Clone, Copy)]
struct Said<'a> {
    kind: u64,
    track: TrackId,
    start: &'a Event,
    /// For a whole span.
    stop: Option<&'a Event>,
    /// What is missing, for an event without its partner.
    unmatched: Option<&'static str>,
    flows: &'a [u64],
}

impl<W: Write> Perfetto<W> {
    pub(super) fn new(output: Output<W>, options: PftraceOptions) -> Self {
        Self {
            output,
            tracks: Tracks::new(options.grouping.clone()),
            options,
            annotations: Annotations::new(),
            common: Sequence::new(1),
            sequences: 1,
            ring: None,
            host: Host::default(),
            moments: Moments::default(),
            spans: HashMap::new(),
        }
    }

    fn span(&mut self, start: &Event, stop: &Event, names: &Names) -> io::Result<()> {
        let (begin, end) = (start.time(), stop.time());
        let hardware = is_hardware(start.record.trace_type());
        let group = self.group(start, hardware);
        if end < begin {
            let track = self.tracks.unmatched(group);
            return self.say(
                &Said {
                    kind: event::INSTANT,
                    track,
                    start,
                    stop: Some(stop),
                    unmatched: Some("stop before start"),
                    flows: &[],
                },
                names,
            );
        }
        let track = self.tracks.lane(group, begin, end);
        let mut flows = [0; Ring::FLOWS];
        let count = self
            .ring
            .as_mut()
            .map_or(0, |ring| ring.flows(start, stop, &mut flows));
        self.say(
            &Said {
                kind: event::BEGIN,
                track,
                start,
                stop: Some(stop),
                unmatched: None,
                flows: &flows[..count],
            },
            names,
        )?;
        self.end_of(track, end)?;
        self.copied(begin, stop)
    }

    fn end_of(&mut self, track: TrackId, time: u64) -> io::Result<()> {
        let Some(ring) = &mut self.ring else {
            return Ok(());
        };
        // A part that begins just here would not know the track.
        self.output
            .track(&mut ring.sequence, &mut self.tracks, track)?;
        let packet = self.output.begin(&mut ring.sequence, time);
        let body = self.output.event(&ring.sequence, event::END, track);
        self.output.close(body);
        self.output.end(packet)
    }

    fn instant(&mut self, found: &Event, names: &Names) -> io::Result<()> {
        let hardware = is_hardware(found.record.trace_type());
        let group = self.group(found, hardware);
        let track = self.tracks.first_lane(group);
        let mut flows = [0; Ring::FLOWS];
        let count = self
            .ring
            .as_mut()
            .map_or(0, |ring| ring.flows(found, found, &mut flows));
        self.say(
            &Said {
                kind: event::INSTANT,
                track,
                start: found,
                stop: None,
                unmatched: None,
                flows: &flows[..count],
            },
            names,
        )
    }

    fn unmatched(
        &mut self,
        found: &Event,
        kind: u64,
        what: &'static str,
        names: &Names,
    ) -> io::Result<()> {
        let hardware = is_hardware(found.record.trace_type());
        let group = self.group(found, hardware);
        let track = self.tracks.unmatched(group);
        self.say(
            &Said {
                kind,
                track,
                start: found,
                stop: None,
                unmatched: Some(what),
                flows: &[],
            },
            names,
        )
    }

    #[inline]
    fn group(&mut self, found: &Event, hardware: bool) -> usize {
        let thread = if hardware {
            0
        } else {
            found.record.thread_id()
        };
        let Some(ring) = &mut self.ring else {
            return 0;
        };
        if let Some(group) = ring.group(thread, hardware) {
            return group;
        }
        let purpose = if hardware {
            Purpose::Hardware
        } else {
            Purpose::Software
        };
        let group = self.tracks.group(&ring.key, thread, purpose);
        ring.keep_group(thread, hardware, group);
        group
    }

    /// Writes the packet of an event.
    fn say(&mut self, said: &Said<'_>, names: &Names) -> io::Result<()> {
        let Self {
            output,
            tracks,
            annotations,
            ring: Some(ring),
            spans,
            ..
        } = self
        else {
            return Ok(());
        };
        let record = &said.start.record;
        let time = said.start.time();
        output.track(&mut ring.sequence, tracks, said.track)?;
        let packet = output.begin(&mut ring.sequence, time);
        let name = name(output, &mut ring.sequence, spans, record, names);
        let category = if is_hardware(record.trace_type()) {
            HARDWARE
        } else {
            SOFTWARE
        };
        let body = output.event(&ring.sequence, said.kind, said.track);
        output.wire().number(event::NAME, name);
        category_of(output, &mut ring.sequence, category);
        let mut writer = Writer {
            output,
            sequence: &mut ring.sequence,
            annotations,
            names,
        };
        writer.payload(said.start, said.stop);
        if let Some(id) = record.nrta_seq_id() {
            writer.unsigned("nrta_seq_id", id);
        }
        if record.tracking_id() != record.id() && said.start.record.phase() != PHASE_STOP {
            writer.unsigned("tracking_id", record.tracking_id());
        }
        if let Some(what) = said.unmatched {
            writer.word("unmatched", what);
            if let Some(stop) = said.stop {
                let before = i128::from(stop.time()) - i128::from(time);
                writer.signed("duration_ns", before);
            }
        }
        if time > i64::MAX.unsigned_abs() {
            writer.unsigned("timestamp_ns", time);
        }
        for flow in said.flows {
            output.wire().fixed(event::FLOW, *flow);
        }
        output.close(body);
        output.end(packet)
    }

    /// Writes a packet of this program's own: an instant, or the begin of a slice.
    pub(super) fn own(
        &mut self,
        of_ring: bool,
        kind: u64,
        track: TrackId,
        time: u64,
        name: &str,
        numbers: &[(&'static str, u64)],
    ) -> io::Result<()> {
        const NAME_ITSELF: u32 = 23;
        let Self {
            output,
            tracks,
            annotations,
            ring,
            common,
            ..
        } = self;
        let sequence = match ring {
            Some(ring) if of_ring => &mut ring.sequence,
            _ => common,
        };
        output.track(sequence, tracks, track)?;
        let packet = output.begin(sequence, time);
        let body = output.event(sequence, kind, track);
        output.wire().text(NAME_ITSELF, name);
        category_of(output, sequence, OWN);
        let names = Names::new();
        let mut writer = Writer {
            output,
            sequence,
            annotations,
            names: &names,
        };
        for (key, number) in numbers {
            writer.unsigned(key, *number);
        }
        output.close(body);
        output.end(packet)
    }

    pub(super) fn end_own(&mut self, track: TrackId, time: u64) -> io::Result<()> {
        self.end_of(track, time)
    }

    pub(super) fn finish(mut self) -> io::Result<W> {
        self.last_words()?;
        self.output.finish()
    }
}

impl<W: Write> Stage for Perfetto<W> {
    fn begin(&mut self, ring: RingOf<'_>) -> io::Result<()> {
        self.sequences += 1;
        self.ring = Some(Ring::new(ring, Sequence::new(self.sequences)));
        Ok(())
    }

    #[inline]
    fn found(&mut self, found: Found<'_>, names: &Names) -> io::Result<()> {
        match found {
            Found::Span { start, stop } => self.span(start, stop, names),
            Found::Instant(found) => {
                self.moments.latest(found.time());
                self.instant(found, names)
            }
            Found::LostStart(start) => self.unmatched(start, event::INSTANT, "start", names),
            Found::OpenStart { start, left } => {
                let kind = if left < OPEN_SHOWN {
                    event::BEGIN
                } else {
                    event::INSTANT
                };
                self.unmatched(start, kind, "start", names)
            }
            Found::LostStop(stop) => self.unmatched(stop, event::INSTANT, "stop", names),
        }
    }

    fn end(&mut self, ring: (u32, u32), ended: &Ended) -> io::Result<()> {
        self.rates_out()?;
        self.losses(ring, ended)?;
        self.ring = None;
        Ok(())
    }

    fn other(&mut self, part: &Part) -> io::Result<()> {
        self.beside(part)
    }
}

/// Annotations of one packet.
struct Writer<'a, W: Write> {
    output: &'a mut Output<W>,
    sequence: &'a mut Sequence,
    annotations: &'a Annotations,
    names: &'a Names,
}

impl<W: Write> Writer<'_, W> {
    /// What the start's payload says, and what the stop's says besides or differently.
    #[inline]
    fn payload(&mut self, start: &Event, stop: Option<&Event>) {
        let kind = start.record.trace_type();
        self.ready(kind, start.record.phase());
        if let Some(stop) = stop {
            self.ready(kind, stop.record.phase());
        }
        let annotations = self.annotations;
        annotations.visit(start, stop, |place, value, data, model| {
            self.value(place, value, data, model);
        });
    }

    /// Tells the keys of a type and phase, once in each part.
    #[inline]
    fn ready(&mut self, trace_type: u32, phase: u32) {
        let position = Plans::position(trace_type, phase);
        if self.sequence.plans.get(position) != Some(&true) {
            self.sequence.plans.resize(Plans::COUNT, false);
            self.sequence.plans[position] = true;
            for key in self.annotations.at(trace_type, phase) {
                for place in [key.key, key.at_stop] {
                    self.key(place);
                }
            }
        }
    }

    fn key(&mut self, place: u32) {
        let keys = &self.annotations.keys;
        self.output
            .intern(self.sequence, Kind::Key, u64::from(place) + 1, || {
                keys[place as usize].clone()
            });
    }

    #[inline]
    fn value(&mut self, place: u32, value: Value, data: &[u64; 5], model: Option<u64>) {
        let (field, number) = match value {
            Value::Unsigned(bits) => (annotation::UNSIGNED, bits.get(data)),
            #[expect(clippy::cast_possible_truncation, reason = "a 32-bit field")]
            Value::Signed(bits) => (
                annotation::SIGNED,
                i64::from((bits.get(data) as u32).cast_signed()).cast_unsigned(),
            ),
            Value::Bool(bits) => (annotation::BOOL, u64::from(bits.get(data) != 0)),
            Value::Hex(bits) => (annotation::POINTER, bits.get(data)),
            Value::Name(bits, name) => {
                let text = name(bits.get(data));
                // Beyond 50 bits: no id of a name is there.
                let number = strings::get_id(text.as_bytes()) | 1 << 51;
                (annotation::TEXT, self.text(number, || text.to_owned()))
            }
            Value::Model(bits) => return self.model(place, bits.get(data)),
            Value::ModelOfExecution => match model {
                Some(model) => return self.model(place, model),
                None => return,
            },
        };
        self.one(place, field, number);
    }

    fn model(&mut self, place: u32, id: u64) {
        self.one(place, annotation::UNSIGNED, id);
        let names = self.names;
        if let Some(name) = names.get(&id) {
            let at_stop = self.annotations.keys[place as usize].starts_with("stop_");
            let key = extra(if at_stop {
                "stop_model_name"
            } else {
                "model_name"
            });
            self.key(key);
            let number = self.text(id, || name.to_string());
            self.one(key, annotation::TEXT, number);
        }
    }

    /// Number of a text in this part of the sequence: a short one, since it comes again and again.
    fn text(&mut self, id: u64, text: impl FnOnce() -> String) -> u64 {
        let known = &mut self.sequence.texts;
        let next = known.len() as u64 + 1;
        let number = *known.entry(id).or_insert(next);
        self.output.intern(self.sequence, Kind::Text, number, text)
    }

    fn one(&mut self, place: u32, field: u32, number: u64) {
        let wire = self.output.wire();
        let open = wire.open(event::ANNOTATION);
        wire.number(annotation::KEY, u64::from(place) + 1);
        wire.number(field, number);
        wire.close(open);
    }

    fn unsigned(&mut self, key: &'static str, number: u64) {
        let place = extra(key);
        self.key(place);
        self.one(place, annotation::UNSIGNED, number);
    }

    fn signed(&mut self, key: &'static str, number: i128) {
        let place = extra(key);
        self.key(place);
        let number = i64::try_from(number).unwrap_or(i64::MIN);
        self.one(place, annotation::SIGNED, number.cast_unsigned());
    }

    fn word(&mut self, key: &'static str, word: &'static str) {
        let place = extra(key);
        self.key(place);
        let number = strings::get_id(word.as_bytes()) | 1 << 51;
        let number = self.text(number, || word.to_owned());
        self.one(place, annotation::TEXT, number);
    }
}

/// Position of a key that is no payload's.
fn extra(key: &str) -> u32 {
    let place = EXTRA.iter().position(|extra| *extra == key);
    u32::try_from(place.expect("the key is in the table")).expect("a short table")
}

fn category_of<W: Write>(output: &mut Output<W>, sequence: &mut Sequence, category: u64) {
    let number = output.intern(sequence, Kind::Category, category + 1, || {
        CATEGORIES[usize::try_from(category).unwrap_or(0)].to_owned()
    });
    output.wire().number(event::CATEGORY, number);
}

/// Number of the name that a slice has: its type's, or the one that a `generic` span carries.
#[inline]
fn name<W: Write>(
    output: &mut Output<W>,
    sequence: &mut Sequence,
    spans: &mut HashMap<u64, u64>,
    record: &Record,
    names: &Names,
) -> u64 {
    let value = record.trace_type();
    let Some(kind) = EventType::from_value(value) else {
        // Beyond the numbers of types and below those of spans.
        let number = u64::from(value) + (1 << 32);
        return output.intern(sequence, Kind::Name, number, || format!("unknown_{value}"));
    };
    if kind == EventType::Generic
        && let Some(text) = names.get(&record.data()[0])
    {
        let next = spans.len() as u64 + 1 + EventType::ALL.len() as u64;
        let number = *spans.entry(record.data()[0]).or_insert(next);
        return output.intern(sequence, Kind::Name, number, || text.to_string());
    }
    output.intern(sequence, Kind::Name, u64::from(value) + 1, || {
        kind.name().to_owned()
    })
}
