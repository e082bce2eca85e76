//! Packets on their way to the file.

use std::io::{self, Write};

use hashbrown::{HashMap, HashSet};
use nrt_trace_proto::v1::ClockAnchor;

use super::field::{self, PACKET, clock, interned, packet};
use super::tracks::{TrackId, Tracks};
use super::wire::{Open, Wire};

/// The sink gets pieces of about this size.
const PIECE_BYTES: usize = 128 * 1024;

/// Packets of a sequence before everything that they refer to is told again. From there on the file can be read without
/// what stands before. (About 600 KiB; telling again takes some 5 KiB.)
const PACKETS: u32 = 16_384;

/// Categories: where events come from, as Neuron's tools call it, and what is this program's own.
pub(crate) const CATEGORIES: [&str; 3] = ["neuron_rt", "neuron_hw", "nrt_trace"];

/// Positions in [`CATEGORIES`].
pub(crate) const SOFTWARE: u64 = 0;
pub(crate) const HARDWARE: u64 = 1;
pub(crate) const OWN: u64 = 2;

/// Room for all numbers of a packet: texts make room for themselves.
const PACKET_BYTES: usize = 1024;

/// Where packets go.
pub(crate) enum Sink<W: Write> {
    Plain(W),
    Zstd(Box<zstd::stream::write::Encoder<'static, W>>),
}

/// Texts that packets of a sequence refer to by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Category,
    Name,
    Key,
    Text,
}

/// A row of packets that build on each other. There is one for each ring, and one for the host.
#[derive(Debug, Default)]
pub(crate) struct Sequence {
    id: u32,
    /// Packets until everything is told again; 0 at the very start.
    left: u32,
    begun: bool,
    /// The track that events of this part are on unless they say another.
    usual: Option<TrackId>,
    /// Which part of the file this is: a new number each time that everything is told again.
    part: u64,
    /// What was told in this part.
    told: Told,
    /// What was told of plans, by position.
    pub(crate) plans: Vec<bool>,
    /// Numbers of texts in this part.
    pub(crate) texts: HashMap<u64, u64>,
}

/// Numbers of texts, for each kind. Nearly every one that events refer to is small, and is asked for several times an event: a
/// bit is looked up instead of a hash.
#[derive(Debug, Default)]
struct Told {
    /// Numbers below 128, by [`Kind`].
    low: [u128; 4],
    others: HashSet<(u8, u64)>,
}

impl Told {
    /// Whether it was not there.
    #[inline]
    fn insert(&mut self, kind: Kind, number: u64) -> bool {
        if number >= u128::BITS.into() {
            return self.others.insert((kind as u8, number));
        }
        let (known, bit) = (&mut self.low[kind as usize], 1 << number);
        let new = *known & bit == 0;
        *known |= bit;
        new
    }

    fn clear(&mut self) {
        self.low = [0; 4];
        self.others.clear();
    }
}

impl Sequence {
    pub(crate) fn new(id: u32) -> Self {
        Self {
            id,
            ..Self::default()
        }
    }
}

/// The file.
pub(crate) struct Output<W: Write> {
    sink: Sink<W>,
    wire: Wire,
    /// `InternedData` of the packet that is being written.
    fresh: Wire,
    parts: u64,
    /// The three clocks at the start, told in each part.
    pub(crate) anchor: ClockAnchor,
    pub(crate) bytes: u64,
}

impl<W: Write> Output<W> {
    pub(crate) fn new(sink: Sink<W>) -> Self {
        Self {
            sink,
            wire: Wire::default(),
            fresh: Wire::default(),
            parts: 0,
            anchor: ClockAnchor::default(),
            bytes: 0,
        }
    }

    /// Begins a packet of a sequence at a time; [`Output::end`] ends it.
    #[inline]
    pub(crate) fn begin(&mut self, sequence: &mut Sequence, time: u64) -> Open {
        // Whoever writes told the track before, which began the part.
        sequence.left = sequence.left.saturating_sub(1);
        self.wire.reserve(PACKET_BYTES);
        let packet = self.wire.open(PACKET);
        // Perfetto's times are signed.
        let time = time.min(i64::MAX.unsigned_abs());
        self.wire.number(packet::TIMESTAMP, time);
        self.wire.number(packet::SEQUENCE, sequence.id.into());
        self.wire.number(packet::FLAGS, packet::FLAG_NEEDS);
        packet
    }

    /// The packet's fields.
    #[inline]
    pub(crate) const fn wire(&mut self) -> &mut Wire {
        &mut self.wire
    }

    /// Ends a packet.
    #[inline]
    pub(crate) fn end(&mut self, packet: Open) -> io::Result<()> {
        if !self.fresh.is_empty() {
            self.wire.bytes(packet::INTERNED, self.fresh.written());
            self.fresh.clear();
        }
        self.wire.close(packet);
        if self.wire.written().len() >= PIECE_BYTES {
            self.write_out()
        } else {
            Ok(())
        }
    }

    /// The number of a text, which is told if this part has not got it yet.
    #[inline]
    pub(crate) fn intern(
        &mut self,
        sequence: &mut Sequence,
        kind: Kind,
        number: u64,
        text: impl FnOnce() -> String,
    ) -> u64 {
        if sequence.told.insert(kind, number) {
            self.tell(kind, number, &text());
        }
        number
    }

    #[cold]
    fn tell(&mut self, kind: Kind, number: u64, text: &str) {
        let field = match kind {
            Kind::Category => interned::CATEGORY,
            Kind::Name => interned::NAME,
            Kind::Key => interned::KEY,
            Kind::Text => interned::TEXT,
        };
        // A name of nothing is drawn as nothing.
        let text = if text.is_empty() { "(empty)" } else { text };
        self.fresh.reserve(64);
        let entry = self.fresh.open(field);
        self.fresh.number(interned::ID, number);
        self.fresh.text(interned::VALUE, text);
        self.fresh.close(entry);
    }

    /// Tells of a track, and of what it belongs to, if this part has not got it yet.
    #[inline]
    pub(crate) fn track(
        &mut self,
        sequence: &mut Sequence,
        tracks: &mut Tracks,
        track: TrackId,
    ) -> io::Result<()> {
        if sequence.left == 0 {
            self.begin_part(sequence, track);
        }
        if tracks.tracks[track as usize].told_in == sequence.part {
            return Ok(());
        }
        self.tell_track(sequence, tracks, track)
    }

    #[cold]
    fn tell_track(
        &mut self,
        sequence: &mut Sequence,
        tracks: &mut Tracks,
        track: TrackId,
    ) -> io::Result<()> {
        let Some(known) = tracks.tracks.get_mut(track as usize) else {
            return Ok(());
        };
        if known.told_in == sequence.part {
            return Ok(());
        }
        known.told_in = sequence.part;
        if let Some(parent) = known.parent {
            self.tell_track(sequence, tracks, parent)?;
        }
        self.wire.reserve(PACKET_BYTES);
        let packet = self.wire.open(PACKET);
        self.wire.number(packet::SEQUENCE, sequence.id.into());
        self.wire
            .bytes(packet::TRACK, &tracks.tracks[track as usize].descriptor);
        self.end(packet)
    }

    /// Tells from here on everything anew.
    #[cold]
    fn begin_part(&mut self, sequence: &mut Sequence, usual: TrackId) {
        self.parts += 1;
        sequence.usual = Some(usual);
        sequence.part = self.parts;
        sequence.left = PACKETS;
        sequence.told.clear();
        sequence.plans.clear();
        sequence.texts.clear();
        let anchor = self.anchor;
        self.snapshot(sequence.id, &anchor, true);
        self.wire.reserve(PACKET_BYTES);
        let packet = self.wire.open(PACKET);
        self.wire.number(packet::SEQUENCE, sequence.id.into());
        self.wire.number(packet::FLAGS, packet::FLAG_CLEARED);
        if !std::mem::replace(&mut sequence.begun, true) {
            self.wire.number(packet::FIRST_ON_SEQUENCE, 1);
        }
        let defaults = self.wire.open(packet::DEFAULTS);
        self.wire.number(packet::TIMESTAMP_CLOCK, clock::REALTIME);
        let events = self.wire.open(packet::TRACK_EVENT);
        self.wire
            .number(field::event::TRACK, super::tracks::uuid(usual));
        self.wire.close(events);
        self.wire.close(defaults);
        self.wire.close(packet);
    }

    /// Tells what three clocks said at one moment.
    pub(crate) fn snapshot(&mut self, sequence: u32, anchor: &ClockAnchor, with_realtime: bool) {
        self.wire.reserve(PACKET_BYTES);
        let packet = self.wire.open(PACKET);
        self.wire.number(packet::SEQUENCE, sequence.into());
        let snapshot = self.wire.open(packet::CLOCK_SNAPSHOT);
        for (id, time) in [
            (clock::REALTIME, anchor.realtime_ns),
            (clock::MONOTONIC, anchor.monotonic_ns),
            (clock::BOOTTIME, anchor.boottime_ns),
        ] {
            // A clock that was not read says nothing.
            if (id == clock::REALTIME && !with_realtime) || time == 0 {
                continue;
            }
            let one = self.wire.open(clock::CLOCKS);
            self.wire.number(clock::ID, id);
            self.wire.number(clock::TIME, time);
            self.wire.close(one);
        }
        self.wire.number(clock::PRIMARY, clock::REALTIME);
        self.wire.close(snapshot);
        self.wire.close(packet);
    }

    /// Completes the file and gives the sink back, flushed.
    pub(crate) fn finish(mut self) -> io::Result<W> {
        self.write_out()?;
        let mut writer = match self.sink {
            Sink::Plain(writer) => writer,
            Sink::Zstd(encoder) => encoder.finish()?,
        };
        writer.flush()?;
        Ok(writer)
    }

    fn write_out(&mut self) -> io::Result<()> {
        let bytes = self.wire.written();
        self.bytes += bytes.len() as u64;
        match &mut self.sink {
            Sink::Plain(writer) => writer.write_all(bytes)?,
            Sink::Zstd(encoder) => encoder.write_all(bytes)?,
        }
        self.wire.clear();
        Ok(())
    }

    /// Begins a `TrackEvent`.
    #[inline]
    pub(crate) fn event(&mut self, sequence: &Sequence, kind: u64, track: TrackId) -> Open {
        let event = self.wire.open(packet::TRACK_EVENT);
        self.wire.number(field::event::KIND, kind);
        if sequence.usual != Some(track) {
            self.wire
                .number(field::event::TRACK, super::tracks::uuid(track));
        }
        event
    }

    /// Ends a message inside a packet.
    #[inline]
    pub(crate) fn close(&mut self, open: Open) {
        self.wire.close(open);
    }
}
