//! A whole fetch: the parts of a trace in their order, into a channel that the client's pace bounds.

use std::collections::BTreeSet;
use std::sync::Arc;

use nrt_trace_abi::SEQ_MAX;
use nrt_trace_abi::record::RECORD_BYTES;
use nrt_trace_proto::v1::trace_part::Part;
use nrt_trace_proto::{FORMAT_VERSION, v1};
use nrt_trace_ring::{Account, Cursor, Impossible, step};
use nrt_trace_shm::clock::anchor;

use super::account::{is_settled, merged, ring_account, without_ring};
use super::asked::Asked;
use super::ring::{self, Learned};
use super::segment::Segment;
use super::slot::{Consumed, Lease, Outcome};
use crate::strings::{Names, ProducerNames};

/// More events than a ring has: as many as there are may have been read.
const UNKNOWN: u64 = SEQ_MAX;
/// Bytes of names in one message.
pub(super) const NAMES_BYTES: usize = 1 << 20;

/// What a fetch shall read: everything it needs, so that it shares nothing with the registry while it runs.
#[derive(Debug)]
pub(crate) struct FetchJob {
    /// Its place in the run.
    pub lease: Lease,
    /// The run.
    pub run: v1::Run,
    /// Whether the run had ended when the fetch began.
    pub ended: bool,
    /// Producers that have not come back from an earlier daemon.
    pub away: u32,
    /// Producers in attach order.
    pub producers: Vec<ProducerJob>,
    /// Events of each ring at most.
    pub max_events_per_nc: u64,
    /// Give the events up instead of sending them.
    pub discard: bool,
    /// Names that the client has.
    pub strings_from: usize,
    /// Host and instance.
    pub machine: Arc<Machine>,
    /// All names.
    pub names: Arc<Names>,
}

/// Which machine this is.
#[derive(Debug)]
pub(crate) struct Machine {
    /// Its host name.
    pub host_name: String,
    /// Its name in traces.
    pub instance_id: String,
}

/// A producer's part of a fetch.
#[derive(Debug)]
pub(crate) struct ProducerJob {
    /// What is told of it.
    pub info: v1::Producer,
    /// Whether the caller wants it.
    pub selected: bool,
    /// Its table of names.
    pub names: Arc<ProducerNames>,
    /// What it has in the run, oldest first: several where it came back into the run.
    pub parts: Vec<PartJob>,
}

/// The rings that a producer had at a time.
#[derive(Debug)]
pub(crate) struct PartJob {
    /// Their memory; `None` when it never had any, or all was consumed.
    pub segment: Option<Arc<Segment>>,
    /// The rings.
    pub rings: Vec<RingJob>,
    /// The accounts of rings that are no more.
    pub settled: Vec<v1::RingAccount>,
    /// Events that have no ring, as counted so far.
    pub unplaced: [u64; 2],
    /// Whether anybody may still write.
    pub certainty: Certainty,
}

/// A ring's part of a fetch.
#[derive(Debug)]
pub(crate) struct RingJob {
    /// NC, the process's own index.
    pub nc: usize,
    /// The number of its first event, less one.
    pub first: u64,
    /// Whether the caller wants it.
    pub selected: bool,
    /// Where to begin.
    pub cursor: Cursor,
    /// What earlier fetches learned.
    pub known: Arc<Learned>,
    /// Events that earlier fetches passed by.
    pub skipped: u64,
    /// Which of its events are the run's.
    pub asked: Asked,
}

impl ProducerJob {
    /// Its events that have no ring, counted since the run began: for an NC without one, and with an index out of range.
    pub(super) fn unplaced(&self) -> [u64; 2] {
        let mut sums = [0u64; 2];
        for part in &self.parts {
            let segment = part.segment.as_ref();
            let counted = segment.map_or([0; 2], |segment| segment.unplaced());
            for (sum, more) in sums.iter_mut().zip(counted.iter().zip(part.unplaced)) {
                *sum = sum.saturating_add(*more.0).saturating_add(more.1);
            }
        }
        sums
    }

    /// Makes it one of a reader that has read nothing so far: all that the rings hold comes, and what they hold no more is
    /// lost.
    pub(crate) fn start_over(&mut self) {
        for ring in self.parts.iter_mut().flat_map(|part| &mut part.rings) {
            ring.cursor = Cursor::restore(ring.first, [], 0, 0, 0);
            // Reading holds it, and must hold no fetch up.
            ring.known = Arc::new(ring.known.copy());
            ring.skipped = 0;
        }
    }
}

/// What is known of a producer's threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Certainty {
    /// Some may be inside an emit.
    Open,
    /// Every one was seen outside an emit after the gates were closed.
    Quiescent,
    /// The process ended; one may have been inside an emit.
    Ended,
    /// Its words are not to be believed.
    Quarantined,
}

impl Certainty {
    /// Whether `account` has no doubt in it.
    pub(crate) fn is_exact(self, account: &Account) -> bool {
        match self {
            Self::Open | Self::Quarantined => false,
            Self::Quiescent => true,
            Self::Ended => is_settled(account),
        }
    }
}

/// Why a fetch breaks off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BrokenOff {
    /// Nobody reads the stream any more.
    ClientGone,
    /// A new start of the scope gave the run's events up.
    RunGone,
}

/// Runs `job`: `send` takes each part and waits for the client, `quarantine` is told of words that can't be.
///
/// # Errors
/// [`BrokenOff`]; nothing is consumed then.
pub(crate) fn run(
    job: FetchJob,
    send: impl FnMut(Part) -> Result<(), BrokenOff>,
    quarantine: impl FnMut(u32, Impossible),
) -> Result<(), BrokenOff> {
    let FetchJob {
        lease, producers, ..
    } = &job;
    let mut fetch = Fetch {
        job: &job,
        names_sent: if job.strings_from > job.names.len() {
            0
        } else {
            job.strings_from
        },
        outcome: Outcome::default(),
        events: 0,
        left: 0,
        send,
        quarantine,
    };
    fetch.begin()?;
    step::at("read:begun");
    for producer in producers {
        fetch.producer(producer)?;
    }
    let end = Part::End(v1::FetchEnd {
        fetch_id: lease.slot().id,
        events: fetch.events,
        clock: Some(clock_anchor()),
        run_ended: job.ended && fetch.left == 0 && job.away == 0,
        left: fetch.left,
        away: job.away,
    });
    // Delivered before the end is told, so that a commit that follows the end finds it.
    let Fetch {
        outcome, mut send, ..
    } = fetch;
    job.lease.deliver(outcome);
    step::at("read:delivered");
    send(end)
}

struct Fetch<'a, S, Q> {
    job: &'a FetchJob,
    names_sent: usize,
    outcome: Outcome,
    events: u64,
    left: u64,
    send: S,
    quarantine: Q,
}

impl<S: FnMut(Part) -> Result<(), BrokenOff>, Q: FnMut(u32, Impossible)> Fetch<'_, S, Q> {
    fn send(&mut self, part: Part) -> Result<(), BrokenOff> {
        if self.job.lease.slot().is_cancelled() {
            return Err(BrokenOff::RunGone);
        }
        (self.send)(part)
    }

    fn begin(&mut self) -> Result<(), BrokenOff> {
        let selected = || {
            self.job
                .producers
                .iter()
                .filter(|producer| producer.selected)
        };
        let begin = v1::FetchBegin {
            format_version: FORMAT_VERSION,
            fetch_id: self.job.lease.slot().id,
            run: Some(self.job.run.clone()),
            clock: Some(clock_anchor()),
            host_name: self.job.machine.host_name.clone(),
            instance_id: self.job.machine.instance_id.clone(),
            producers: u32::try_from(selected().count()).unwrap_or(u32::MAX),
        };
        selected().for_each(|producer| producer.names.merge_into(&self.job.names));
        self.send(Part::Begin(begin))?;
        self.names()
    }

    /// Sends the names that came since the last time.
    fn names(&mut self) -> Result<(), BrokenOff> {
        while self.names_sent < self.job.names.len() {
            let entries = self.job.names.from(self.names_sent, NAMES_BYTES);
            let first = self.names_sent as u64;
            self.names_sent += entries.len();
            self.send(Part::Strings(v1::Strings { first, entries }))?;
        }
        Ok(())
    }

    fn producer(&mut self, producer: &ProducerJob) -> Result<(), BrokenOff> {
        if producer.selected {
            self.send(Part::Producer(producer.info.clone()))?;
        }
        let (id, parts) = (producer.info.producer_id, &producer.parts);
        let doubted = |part: &PartJob| part.certainty == Certainty::Quarantined;
        let mut believed = !parts.iter().any(doubted);
        let rings = || parts.iter().flat_map(|part| &part.rings);
        let mut settled: Vec<v1::RingAccount> = Vec::new();
        settled.extend(parts.iter().flat_map(|part| &part.settled));
        let ncs: BTreeSet<usize> = rings().map(|ring| ring.nc).collect();
        for nc in ncs {
            let selected = rings().any(|ring| ring.nc == nc && ring.selected);
            if producer.selected && selected {
                let index = u32::try_from(nc).unwrap_or(u32::MAX);
                let (mut accounts, rest): (Vec<_>, _) =
                    settled.into_iter().partition(|one| one.nc_idx == index);
                settled = rest;
                believed = self.rings_of(producer, nc, believed, &mut accounts)?;
                for account in merged(accounts.into_iter()) {
                    self.send(Part::Account(account))?;
                }
                step::at("read:told");
            } else {
                self.leave(producer, nc);
            }
        }
        if !producer.selected {
            return Ok(());
        }
        for account in merged(settled.into_iter()) {
            self.send(Part::Account(account))?;
        }
        if rings().all(|ring| ring.selected) {
            self.outcome.told.push(id);
        }
        let [no_ring, nc_out_of_range] = producer.unplaced();
        let (strings_full, strings_refused) = producer.names.counts();
        self.send(Part::ProducerAccount(v1::ProducerAccount {
            producer_id: id,
            no_ring,
            nc_out_of_range,
            strings_full,
            strings_refused,
        }))
    }

    /// Counts what is left of an NC that the caller does not want.
    fn leave(&mut self, producer: &ProducerJob, nc: usize) {
        for part in &producer.parts {
            for ring in part.rings.iter().filter(|ring| ring.nc == nc) {
                let reader = (part.segment.as_ref()).and_then(|segment| segment.reader(nc));
                let claimed = reader.and_then(|reader| reader.claimed(&ring.cursor).ok());
                let left = claimed.map_or(0, |tail| tail - ring.cursor.next());
                self.left = self.left.saturating_add(left);
            }
        }
    }

    /// The turn of an NC: of all rings that the producer had for it. The answer is whether the producer is still believed.
    fn rings_of(
        &mut self,
        producer: &ProducerJob,
        nc: usize,
        mut believed: bool,
        accounts: &mut Vec<v1::RingAccount>,
    ) -> Result<bool, BrokenOff> {
        let mut max = self.job.max_events_per_nc;
        for part in &producer.parts {
            for ring in part.rings.iter().filter(|ring| ring.nc == nc) {
                let (account, taken) = self.ring(producer, part, ring, max, &mut believed)?;
                accounts.push(account);
                max -= taken.min(max);
            }
        }
        Ok(believed)
    }

    /// One ring's turn: its account, and how many of at most `max` events it gave.
    fn ring(
        &mut self,
        producer: &ProducerJob,
        part: &PartJob,
        ring: &RingJob,
        max: u64,
        believed: &mut bool,
    ) -> Result<(v1::RingAccount, u64), BrokenOff> {
        let id = producer.info.producer_id;
        let nc_idx = u32::try_from(ring.nc).unwrap_or(u32::MAX);
        let told = |account: &Account, skipped, exact| {
            // Numbers begin where those of the NC's earlier ring ended.
            let account = Account {
                claimed: account.claimed.saturating_sub(ring.first),
                ..*account
            };
            ring_account(id, ring.nc, &account, skipped, exact)
        };
        let segment = part.segment.as_ref().filter(|_| *believed);
        let Some((segment, reader)) =
            segment.and_then(|segment| Some((segment, segment.reader(ring.nc)?)))
        else {
            let account = told(&without_ring(&ring.cursor), ring.skipped, false);
            return Ok((account, 0));
        };
        let slot = self.job.lease.slot();
        if self.job.discard || ring.asked.is_restricted() {
            // How many it is known of only when the ring was read: it is not lost before that is committed.
            slot.note_taken(UNKNOWN);
        }
        let turn = if self.job.discard {
            discard(&reader, &ring.cursor, max)
        } else {
            ring::read(
                &reader,
                id,
                &ring.cursor,
                &ring.known,
                &ring.asked,
                max,
                |chunk| {
                    step::at("read:chunk");
                    slot.note_taken((chunk.records.len() / RECORD_BYTES) as u64);
                    // A name is published before the event that uses it: looked for after the event was read, it is there.
                    producer.names.merge_into(&self.job.names);
                    self.names()?;
                    if !chunk.correlations.is_empty() {
                        let entries = chunk.correlations;
                        self.send(Part::Correlations(v1::Correlations {
                            producer_id: id,
                            nc_idx,
                            entries,
                        }))?;
                    }
                    self.send(Part::Records(v1::Records {
                        producer_id: id,
                        nc_idx,
                        packed: chunk.records.into(),
                    }))
                },
            )?
        };
        let account = turn
            .impossible
            .map_or_else(|| reader.account(&turn.cursor), Err);
        let skipped = ring.skipped + turn.skipped;
        *believed = account.is_ok();
        let message = match &account {
            Ok(account) => told(account, skipped, part.certainty.is_exact(account)),
            Err(impossible) => {
                (self.quarantine)(id, *impossible);
                told(&without_ring(&turn.cursor), skipped, false)
            }
        };
        self.events += turn.delivered;
        self.left = self.left.saturating_add(turn.left);
        let given_up = turn.cursor.abandoned() - ring.cursor.abandoned();
        self.outcome.consumed.push(Consumed {
            producer_id: id,
            generation: segment.generation(),
            nc: ring.nc,
            cursor: turn.cursor,
            learned: turn.learned,
            skipped: turn.skipped,
        });
        Ok((message, turn.delivered + given_up))
    }
}

/// A turn that gives the oldest `max` events up.
fn discard<W: nrt_trace_ring::LoadWord>(
    reader: &nrt_trace_ring::Reader<'_, W>,
    cursor: &Cursor,
    max: u64,
) -> ring::Turn {
    let mut cursor = cursor.clone();
    let given_up = reader.begin(&mut cursor).and_then(|until| {
        let to = until.min(cursor.next().saturating_add(max));
        reader.abandon(&mut cursor, to)?;
        Ok(until - to)
    });
    ring::Turn {
        cursor,
        learned: super::correlations::Correlations::default(),
        delivered: 0,
        skipped: 0,
        left: given_up.unwrap_or(0),
        impossible: given_up.err(),
    }
}

/// The three clocks as a message.
pub(crate) fn clock_anchor() -> v1::ClockAnchor {
    let now = anchor();
    v1::ClockAnchor {
        realtime_ns: now.realtime_ns,
        monotonic_ns: now.monotonic_ns,
        boottime_ns: now.boottime_ns,
    }
}
