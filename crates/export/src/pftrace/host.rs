//! What is no event: clocks, ends of processes, losses, the host monitor, and rates of copies.

use std::io::{self, Write};

use hashbrown::HashMap;
use nrt_trace_proto::v1::trace_part::Part;
use nrt_trace_proto::v1::{
    ClockAnchor, FetchBegin, HostSample, Producer, ProducerAccount, ProducerState, RingAccount,
};

use super::field::event;
use super::rates::{Way, copied};
use super::stage::Perfetto;
use super::tracks::{Purpose, RingKey, TrackId, Unit};
use crate::clock::{Clock, STEPS_MAX, Step};
use crate::timeline::{Ended, Event};

/// Counters of the host monitor.
#[derive(Debug, Default)]
pub(super) struct Host {
    group: Option<TrackId>,
    name: String,
    counters: HashMap<String, TrackId>,
}

/// Moments that the trace speaks of.
#[derive(Debug, Default)]
pub(super) struct Moments {
    /// When capturing began, ns.
    started: u64,
    /// The latest event.
    latest: u64,
    clock: Clock,
    steps: Vec<Step>,
}

impl Moments {
    pub(super) fn latest(&mut self, time: u64) {
        self.latest = self.latest.max(time);
    }

    fn anchor(&mut self, anchor: ClockAnchor) {
        let step = self.clock.look(anchor);
        let room = self.steps.len() < STEPS_MAX;
        self.steps.extend(step.filter(|_| room));
    }
}

impl<W: Write> Perfetto<W> {
    /// Takes a part that is neither event nor name.
    pub(super) fn beside(&mut self, part: &Part) -> io::Result<()> {
        match part {
            Part::Begin(begin) => {
                self.fetch(begin);
                Ok(())
            }
            Part::End(end) => {
                if let Some(anchor) = end.clock {
                    self.anchor(anchor);
                }
                Ok(())
            }
            Part::Producer(producer) => self.producer(producer),
            Part::ProducerAccount(account) => self.without_ring(account),
            Part::HostInfo(info) => {
                self.host.name.clone_from(&info.instance_id);
                Ok(())
            }
            Part::HostSample(sample) => self.sample(sample),
            _ => Ok(()),
        }
    }

    fn fetch(&mut self, begin: &FetchBegin) {
        if let Some(anchor) = begin.clock {
            self.anchor(anchor);
        }
        if self.tracks.instance_id.is_empty() {
            self.tracks.instance_id.clone_from(&begin.instance_id);
        }
        if self.host.name.is_empty() {
            self.host.name.clone_from(&begin.host_name);
        }
        if let Some(run) = &begin.run
            && self.moments.started == 0
        {
            self.moments.started = run.started_ns;
        }
    }

    fn anchor(&mut self, anchor: ClockAnchor) {
        if self.output.anchor == ClockAnchor::default() {
            self.output.anchor = anchor;
        }
        self.moments.anchor(anchor);
    }

    fn producer(&mut self, producer: &Producer) -> io::Result<()> {
        self.tracks.producer(producer);
        let started = self.moments.started;
        if !self.options.grouping.by_process() || started == 0 {
            return Ok(());
        }
        let quarantined = producer.state() == ProducerState::Quarantined;
        // One that ended before would only stretch the time line.
        let ended = producer.ended_ns.filter(|ended| *ended >= started);
        let (time, what) = match ended {
            Some(ended) => (ended, "process ended"),
            None if quarantined => (started, "quarantined: nothing more is read from it"),
            None => return Ok(()),
        };
        let track = self.tracks.process(producer.producer_id);
        self.own(false, event::INSTANT, track, time, what, &[])
    }

    /// Events that had no ring.
    fn without_ring(&mut self, account: &ProducerAccount) -> io::Result<()> {
        if account.no_ring == 0 {
            return Ok(());
        }
        let track = self.tracks.process(account.producer_id);
        let name = format!("{} events had no ring", account.no_ring);
        let time = self.moment();
        let numbers = [("no_ring", account.no_ring)];
        self.own(false, event::INSTANT, track, time, &name, &numbers)
    }

    /// The latest moment that is known.
    fn moment(&self) -> u64 {
        let anchor = self.moments.clock.last.map_or(0, |last| last.realtime_ns);
        match self.moments.latest {
            0 => anchor.max(self.moments.started),
            latest => latest,
        }
    }

    /// Counts the bytes of a copy.
    #[inline]
    pub(super) fn copied(&mut self, begin: u64, stop: &Event) -> io::Result<()> {
        self.moments.latest(stop.time());
        let Some((way, bytes)) = copied(&stop.record) else {
            return Ok(());
        };
        let Some(ring) = &mut self.ring else {
            return Ok(());
        };
        let what = ["copy in", "copy out"][way as usize];
        let copies = &mut ring.copies[way as usize];
        let track = *copies
            .track
            .get_or_insert_with(|| self.tracks.counter(&ring.key, what, Unit::Named("B/s")));
        let mut given = Vec::new();
        let mut give = |time, rate| {
            given.push((time, rate));
            Ok::<(), io::Error>(())
        };
        copies.rate.copy(bytes, begin, stop.time(), &mut give)?;
        self.points(track, &given)
    }

    /// Gives out what is left of the ring's rates.
    pub(super) fn rates_out(&mut self) -> io::Result<()> {
        for way in [Way::In, Way::Out] {
            let Some(ring) = &mut self.ring else { break };
            let Some(track) = ring.copies[way as usize].track else {
                continue;
            };
            let mut given = Vec::new();
            ring.copies[way as usize].rate.give(0, |time, rate| {
                given.push((time, rate));
                Ok::<(), io::Error>(())
            })?;
            self.points(track, &given)?;
        }
        Ok(())
    }

    fn points(&mut self, track: TrackId, points: &[(u64, i64)]) -> io::Result<()> {
        for (time, rate) in points {
            let Some(ring) = &mut self.ring else { break };
            self.output
                .track(&mut ring.sequence, &mut self.tracks, track)?;
            let packet = self.output.begin(&mut ring.sequence, *time);
            let body = self.output.event(&ring.sequence, event::VALUE, track);
            self.output.wire().signed(event::COUNTER, *rate);
            self.output.close(body);
            self.output.end(packet)?;
        }
        Ok(())
    }

    /// Shows what is missing in a ring.
    pub(super) fn losses(
        &mut self,
        (producer_id, nc): (u32, u32),
        ended: &Ended,
    ) -> io::Result<()> {
        let account = ended.account.unwrap_or_default();
        let given_up = account.abandoned.min(account.lost);
        let lost = account.lost - given_up;
        let gaps = !self.options.filtered && !ended.gaps.is_empty();
        if lost == 0 && account.pending == 0 && !(gaps && account.lost + account.skipped == 0) {
            return Ok(());
        }
        let key = RingKey {
            producer_id,
            nc_idx: nc,
            worker_gid: self.ring.as_ref().map_or(-1, |ring| ring.key.worker_gid),
        };
        let group = self.tracks.group(&key, 0, Purpose::Losses);
        if gaps {
            for gap in &ended.gaps {
                let track = self.tracks.lane(group, gap.from_ns, gap.to_ns);
                let name = match gap.missing {
                    1 => "1 event missing".to_owned(),
                    n => format!("{n} events missing"),
                };
                let numbers = [
                    ("lost", gap.missing),
                    ("first_seq", gap.first),
                    ("last_seq", gap.first.saturating_add(gap.missing - 1)),
                ];
                self.own(true, event::BEGIN, track, gap.from_ns, &name, &numbers)?;
                self.end_own(track, gap.to_ns)?;
            }
        }
        let Some(account) = ended.account else {
            return Ok(());
        };
        let track = self.tracks.first_lane(group);
        let moment = self.moment();
        let (from, to) = ended.times.unwrap_or((moment, moment));
        let before = lost.saturating_sub(ended.missing);
        if before > 0 && !self.options.filtered {
            let name = format!("{before} events lost before or after");
            self.own(
                true,
                event::INSTANT,
                track,
                from,
                &name,
                &[("lost", before)],
            )?;
        }
        let name = format!("{lost} of {} events lost", account.claimed);
        self.own(
            true,
            event::INSTANT,
            track,
            to,
            &name,
            &numbers_of(&account),
        )
    }

    /// A tick of the host monitor.
    fn sample(&mut self, sample: &HostSample) -> io::Result<()> {
        self.anchor(ClockAnchor {
            realtime_ns: sample.timestamp_ns,
            monotonic_ns: sample.monotonic_ns,
            boottime_ns: sample.boottime_ns,
        });
        let time = sample.timestamp_ns;
        for cpu in &sample.cpus {
            if let Some(util) = cpu.util {
                let name = format!("CPU {} busy", cpu.cpu_id);
                self.host_counter(&name, Unit::Named("%"), time, Number::Real(util.into()))?;
            }
        }
        if let Some(used) = sample.memory.and_then(|memory| memory.used_bytes) {
            self.host_counter("memory used", Unit::Bytes, time, Number::Whole(used))?;
        }
        for producer in &sample.producers {
            if let Some(rss) = producer.rss_bytes {
                let id = producer.pid.map_or_else(
                    || format!("producer {}", producer.producer_id),
                    |pid| pid.to_string(),
                );
                let name = format!("resident memory of {id} {}", producer.name);
                self.host_counter(&name, Unit::Bytes, time, Number::Whole(rss))?;
            }
        }
        Ok(())
    }

    fn host_counter(&mut self, name: &str, unit: Unit, time: u64, value: Number) -> io::Result<()> {
        let host = &mut self.host;
        let tracks = &mut self.tracks;
        let group = *host
            .group
            .get_or_insert_with(|| tracks.top(format!("host {}", host.name).trim_end()));
        let track = match host.counters.get(name) {
            Some(track) => *track,
            None => {
                let track = tracks.counter_of(group, name, unit);
                host.counters.insert(name.to_owned(), track);
                track
            }
        };
        self.output.track(&mut self.common, tracks, track)?;
        let packet = self.output.begin(&mut self.common, time);
        let body = self.output.event(&self.common, event::VALUE, track);
        match value {
            Number::Whole(value) => self.output.wire().number(event::COUNTER, value),
            Number::Real(value) => self.output.wire().double(event::DOUBLE_COUNTER, value),
        }
        self.output.close(body);
        self.output.end(packet)
    }

    /// What stands at the end of the file: steps of the clock, and the clocks there.
    pub(super) fn last_words(&mut self) -> io::Result<()> {
        let steps = std::mem::take(&mut self.moments.steps);
        if self.output.anchor == ClockAnchor::default() {
            return Ok(());
        }
        let mut highest = self.output.anchor.realtime_ns;
        if !steps.is_empty() {
            let track = self.tracks.top("clock");
            for Step { after, moved, .. } in &steps {
                let sign = if *moved < 0 { "back" } else { "forward" };
                let name = format!("clock set {sign} by {} ns", moved.unsigned_abs());
                let numbers = [
                    ("monotonic_ns", after.monotonic_ns),
                    ("boottime_ns", after.boottime_ns),
                ];
                let time = after.realtime_ns;
                self.own(false, event::INSTANT, track, time, &name, &numbers)?;
            }
        }
        let last = self.moments.clock.last;
        for anchor in steps.iter().map(|step| step.after).chain(last) {
            // Perfetto takes no trace clock that goes back.
            let forward = anchor.realtime_ns > highest;
            highest = highest.max(anchor.realtime_ns);
            self.output.snapshot(1, &anchor, forward);
        }
        Ok(())
    }
}

#[derive(Clone, Copy)]
enum Number {
    Whole(u64),
    Real(f64),
}

fn numbers_of(account: &RingAccount) -> [(&'static str, u64); 10] {
    [
        ("claimed", account.claimed),
        ("delivered", account.delivered),
        ("lost", account.lost),
        ("pending", account.pending),
        ("unread", account.unread),
        ("overwritten", account.overwritten),
        ("dropped_in_flight", account.dropped_in_flight),
        ("dropped_lapped", account.dropped_lapped),
        ("dropped_seq", account.dropped_seq),
        ("abandoned", account.abandoned),
    ]
}
