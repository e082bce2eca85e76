//! A subscription: the rings of a run read all the while with cursors of its own, for as long as the run lasts.
//!
//! Nobody knows of it but its own thread: rings are read as a fetch reads them, the registry is asked what belongs to
//! the run only where something has changed, and what the subscriber does not take in time goes round in the rings and
//! is counted. While it keeps up it holds the memory that it reads; once it does not, that goes as if it were not there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use nrt_trace_model::filter::TypeSet;
use nrt_trace_proto::v1::trace_part::Part;
use nrt_trace_proto::{FORMAT_VERSION, v1};
use nrt_trace_ring::Impossible;

use super::account::merged;
use super::fetch::{FetchJob, Machine, NAMES_BYTES, ProducerJob, clock_anchor};
use super::followed::{Begin, Followed, Look};
use super::ring::Chunk;
use crate::run::error::RunError;
use crate::strings::{Names, ProducerNames};

/// Time from the beginning of one round to that of the next.
const ROUND: Duration = Duration::from_millis(20);
/// How long a client may take for a part before the memory of the rings is no longer held for it.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long the end waits, after a run was stopped, for processes that do not say that they have let go.
const LINGER: Duration = Duration::from_secs(2);

/// What a subscriber wants.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wish {
    /// Where it begins.
    pub from: Begin,
    /// Types that it wants.
    pub types: TypeSet,
}

/// Why a subscription ended before its run.
#[derive(Debug)]
pub(crate) enum Stopped {
    /// Nobody reads the stream any more.
    ClientGone,
    /// The registry does not answer.
    Refused(RunError),
}

/// A part that was not taken.
#[derive(Debug)]
pub(crate) enum Untaken {
    /// There was no room for it in time.
    Full(Box<Part>),
    /// There will be none.
    Gone,
}

/// The subscriber's side, and what it needs of the daemon.
pub(crate) trait Link {
    /// Hands a part over, and waits for room so long; without a limit as long as there is a client.
    fn offer(&mut self, part: Part, wait: Option<Duration>) -> Result<(), Untaken>;
    /// Waits so long; false when the client is gone.
    fn pause(&mut self, time: Duration) -> bool;
    /// What belongs to run `run` now, and the number of that state; `None` if it is still `seen`.
    fn look(&mut self, run: u64, seen: u64) -> Result<Option<(u64, FetchJob)>, RunError>;
    /// What the run let go since the last look.
    fn parted(&mut self) -> Vec<ProducerJob>;
    /// Holds nothing of that until the next look.
    fn let_go(&mut self);
    /// Tells of words that can't be.
    fn quarantine(&mut self, producer: u32, impossible: Impossible);
    /// Counts what was delivered and lost.
    fn count(&mut self, delivered: u64, lost: u64);
}

/// Follows a run, which `job` describes in its state `seen`, to its end.
///
/// # Errors
/// [`Stopped`], before that.
pub(crate) fn run(
    link: &mut impl Link,
    wish: Wish,
    strings_from: usize,
    (mut seen, job): (u64, FetchJob),
) -> Result<(), Stopped> {
    let mut following = Following {
        id: job.lease.slot().id,
        names_sent: if strings_from > job.names.len() {
            0
        } else {
            strings_from
        },
        names: job.names.clone(),
        machine: job.machine.clone(),
        link,
        wish,
        run: None,
        away_at_first: away(&job),
        ended: job.ended,
        away: job.away,
        producers: BTreeMap::new(),
        rings: BTreeMap::new(),
        settled: BTreeMap::new(),
        told: BTreeMap::new(),
        delivered: 0,
    };
    let run = job.run.run_id;
    following.take(job)?;
    following.wish.from = Begin::First;
    let (mut ended_at, mut gone) = (None, false);
    loop {
        let began = Instant::now();
        let behind = following.round()?;
        if following.ended || gone {
            let since = *ended_at.get_or_insert(began);
            let late = began.saturating_duration_since(since) >= LINGER;
            let over = gone || late || following.has_ended();
            if over && following.is_known() {
                return following.finish();
            }
        }
        // A client that is gone needs no events either.
        if !behind && !following.link.pause(ROUND.saturating_sub(began.elapsed())) {
            return Err(Stopped::ClientGone);
        }
        let looked = following.link.look(run, seen);
        following.take_parted()?;
        match looked {
            Ok(Some((now, job))) => {
                seen = now;
                following.take(job)?;
            }
            // Too many requests wait: then the next round asks again.
            Ok(None) | Err(RunError::Busy) => {}
            Err(RunError::NoRun { .. }) => {
                gone = true;
                following.rings.values_mut().for_each(Followed::release);
            }
            Err(error) => return Err(Stopped::Refused(error)),
        }
    }
}

fn away(job: &FetchJob) -> BTreeSet<u32> {
    let away = v1::ProducerState::Away;
    let producers = job.producers.iter().map(|producer| &producer.info);
    producers
        .filter(|info| info.state() == away)
        .map(|info| info.producer_id)
        .collect()
}

/// A ring: its producer, its generation, its NC.
type Key = (u32, u64, usize);

struct Following<'a, L> {
    link: &'a mut L,
    wish: Wish,
    id: u64,
    /// As it was last told.
    run: Option<v1::Run>,
    /// Producers whose rings were there before the subscriber, though they could not be read yet.
    away_at_first: BTreeSet<u32>,
    ended: bool,
    away: u32,
    names: Arc<Names>,
    names_sent: usize,
    machine: Arc<Machine>,
    producers: BTreeMap<u32, Member>,
    rings: BTreeMap<Key, Followed>,
    /// Accounts of rings that are no more, by producer and NC.
    settled: BTreeMap<(u32, u32), v1::RingAccount>,
    /// Accounts as they were last told.
    told: BTreeMap<(u32, u32), v1::RingAccount>,
    delivered: u64,
}

/// A producer, as it was last told.
struct Member {
    info: v1::Producer,
    names: Arc<ProducerNames>,
    account: v1::ProducerAccount,
    /// Whether the run still knows it.
    here: bool,
}

impl<L: Link> Following<'_, L> {
    fn send(&mut self, part: Part) -> Result<(), Stopped> {
        let part = match self.link.offer(part, Some(PATIENCE)) {
            Ok(()) => return Ok(()),
            Err(Untaken::Gone) => return Err(Stopped::ClientGone),
            Err(Untaken::Full(part)) => *part,
        };
        self.rings.values_mut().for_each(Followed::let_go);
        self.link.let_go();
        let sent = self.link.offer(part, None);
        sent.map_err(|_| Stopped::ClientGone)
    }

    /// Takes over what belongs to the run now.
    fn take(&mut self, job: FetchJob) -> Result<(), Stopped> {
        (self.ended, self.away) = (job.ended, job.away);
        if self.run.as_ref() != Some(&job.run) {
            self.begin(&job)?;
            self.run = Some(job.run);
        }
        let mut here = BTreeSet::new();
        (self.producers.values_mut()).for_each(|member| member.here = false);
        for producer in job.producers {
            if producer.selected {
                self.take_rings(&producer, &mut here);
                self.tell_of(producer)?;
            }
        }
        let missing = self.rings.iter_mut().filter(|(key, _)| !here.contains(key));
        missing.for_each(|(_, ring)| ring.release());
        Ok(())
    }

    /// Takes over what the run had, and has no more. What it has is taken over after that, or was before: then these are not
    /// among it, and are released.
    fn take_parted(&mut self) -> Result<(), Stopped> {
        for producer in self.link.parted() {
            if producer.selected {
                self.take_rings(&producer, &mut BTreeSet::new());
                self.tell_of(producer)?;
            }
        }
        Ok(())
    }

    fn begin(&mut self, job: &FetchJob) -> Result<(), Stopped> {
        let selected = job.producers.iter().filter(|producer| producer.selected);
        let begin = v1::FetchBegin {
            format_version: FORMAT_VERSION,
            fetch_id: self.id,
            run: Some(job.run.clone()),
            clock: Some(clock_anchor()),
            host_name: self.machine.host_name.clone(),
            instance_id: self.machine.instance_id.clone(),
            producers: u32::try_from(selected.count()).unwrap_or(u32::MAX),
        };
        self.send(Part::Begin(begin))
    }

    fn take_rings(&mut self, producer: &ProducerJob, here: &mut BTreeSet<Key>) {
        let id = producer.info.producer_id;
        for part in &producer.parts {
            let Some(segment) = &part.segment else {
                continue;
            };
            for job in part.rings.iter().filter(|ring| ring.selected) {
                let key = (id, segment.generation(), job.nc);
                here.insert(key);
                let from = match self.wish.from {
                    Begin::First if self.away_at_first.contains(&id) => Begin::Now,
                    from => from,
                };
                let ring = self.rings.entry(key);
                let ring = ring.or_insert_with(|| Followed::new(segment, job, from));
                ring.renew(segment, job, part.certainty, self.wish.types);
            }
        }
        // Rings that it gets later are new.
        if producer.info.state() != v1::ProducerState::Away {
            self.away_at_first.remove(&id);
        }
    }

    /// Tells of a producer, and of its events without a ring, if there is news.
    fn tell_of(&mut self, producer: ProducerJob) -> Result<(), Stopped> {
        let id = producer.info.producer_id;
        let unplaced = producer.unplaced();
        let (strings_full, strings_refused) = producer.names.counts();
        let account = v1::ProducerAccount {
            producer_id: id,
            no_ring: unplaced[0],
            nc_out_of_range: unplaced[1],
            strings_full,
            strings_refused,
        };
        let last = self.producers.get(&id);
        let told = last.is_some_and(|member| member.info == producer.info);
        let counted = last.is_some_and(|member| member.account == account);
        if !told {
            self.send(Part::Producer(producer.info.clone()))?;
        }
        if !counted {
            self.send(Part::ProducerAccount(account))?;
        }
        let member = Member {
            info: producer.info,
            names: producer.names,
            account,
            here: true,
        };
        self.producers.insert(id, member);
        Ok(())
    }

    /// Reads every ring up to where it stood when its turn came. True if one was more than half full, so that the next
    /// round must not wait.
    fn round(&mut self) -> Result<bool, Stopped> {
        let mut behind = false;
        let keys: Vec<Key> = self.rings.keys().copied().collect();
        for key in keys {
            behind |= self.turn(key)?;
        }
        let gone = |member: &Member| !member.here;
        let gone: Vec<u32> = (self.producers.iter())
            .filter(|(id, member)| gone(member) && self.rings_of(**id).next().is_none())
            .map(|(id, _)| *id)
            .collect();
        gone.into_iter().try_for_each(|id| self.forget(id))?;
        Ok(behind)
    }

    /// A ring's turn. True if it was more than half full.
    fn turn(&mut self, key: Key) -> Result<bool, Stopped> {
        let Some(ring) = self.rings.get_mut(&key) else {
            return Ok(false);
        };
        let until = ring.claimed();
        let (behind, mut moved) = (ring.is_behind(until), false);
        while let Some(ring) = self.rings.get_mut(&key) {
            match ring.read(key.0) {
                Look::Nothing => break,
                Look::Impossible(impossible) => {
                    self.link.quarantine(key.0, impossible);
                    break;
                }
                Look::Records(chunks) => {
                    moved = true;
                    let reached = ring.has_reached(until);
                    for chunk in chunks {
                        self.send_chunk(key, chunk)?;
                    }
                    if reached {
                        break;
                    }
                }
            }
        }
        if moved {
            self.tell(of_nc(key))?;
        }
        self.fold(key)?;
        Ok(behind)
    }

    /// Keeps of a ring that is over its account only.
    fn fold(&mut self, key: Key) -> Result<(), Stopped> {
        let ring = self.rings.get(&key).filter(|ring| ring.is_over());
        let Some(account) = ring.and_then(|ring| ring.account(key.0)) else {
            return Ok(());
        };
        self.rings.remove(&key);
        let settled = self.settled.remove(&of_nc(key)).into_iter();
        let sum = merged(settled.chain([account]));
        self.settled
            .extend(sum.into_iter().map(|sum| (of_nc(key), sum)));
        self.tell(of_nc(key))
    }

    /// Forgets a producer that the run knows no more: its accounts are told.
    fn forget(&mut self, id: u32) -> Result<(), Stopped> {
        let mine = |key: &(u32, u32)| key.0 == id;
        let ncs: Vec<(u32, u32)> = (self.settled.keys().copied()).filter(mine).collect();
        for key in ncs {
            self.tell_anyway(key)?;
            self.settled.remove(&key);
            self.told.remove(&key);
        }
        self.producers.remove(&id);
        Ok(())
    }

    fn send_chunk(&mut self, key: Key, chunk: Chunk) -> Result<(), Stopped> {
        let (id, nc_idx) = of_nc(key);
        // A name is published before the event that uses it: looked for after the event was read, it is there.
        if let Some(member) = self.producers.get(&id) {
            member.names.merge_into(&self.names);
        }
        while self.names_sent < self.names.len() {
            let entries = self.names.from(self.names_sent, NAMES_BYTES);
            let first = self.names_sent as u64;
            self.names_sent += entries.len();
            self.send(Part::Strings(v1::Strings { first, entries }))?;
        }
        if !chunk.correlations.is_empty() {
            self.send(Part::Correlations(v1::Correlations {
                producer_id: id,
                nc_idx,
                entries: chunk.correlations,
            }))?;
        }
        self.send(Part::Records(v1::Records {
            producer_id: id,
            nc_idx,
            packed: chunk.records.into(),
        }))
    }

    /// Tells the account of a producer's NC, if it says something new of events that were read or lost.
    fn tell(&mut self, key: (u32, u32)) -> Result<(), Stopped> {
        let what = |account: &v1::RingAccount| {
            [
                account.delivered,
                account.lost,
                account.pending,
                account.skipped,
            ]
        };
        let last = self.told.get(&key).map_or([0; 4], what);
        match self.account(key) {
            Some(account) if what(&account) != last => self.tell_anyway(key),
            _ => Ok(()),
        }
    }

    fn tell_anyway(&mut self, key: (u32, u32)) -> Result<(), Stopped> {
        let Some(account) = self.account(key) else {
            return Ok(());
        };
        let last = self.told.insert(key, account).unwrap_or_default();
        let delivered = account.delivered.saturating_sub(last.delivered);
        self.delivered += delivered;
        (self.link).count(delivered, account.lost.saturating_sub(last.lost));
        self.send(Part::Account(account))
    }

    /// The account of all rings that a producer has had of an NC since the subscriber came; `None` while that of one is not
    /// known.
    fn account(&self, key: (u32, u32)) -> Option<v1::RingAccount> {
        let mine = self
            .rings_of(key.0)
            .filter(|(other, _)| of_nc(**other) == key);
        let live: Option<Vec<_>> = mine.map(|(_, ring)| ring.account(key.0)).collect();
        let settled = self.settled.get(&key).copied();
        merged(settled.into_iter().chain(live?)).pop()
    }

    fn rings_of(&self, id: u32) -> impl Iterator<Item = (&Key, &Followed)> {
        self.rings.range((id, 0, 0)..=(id, u64::MAX, usize::MAX))
    }

    /// Whether, of a run that was stopped, nobody writes any more or may come back.
    fn has_ended(&self) -> bool {
        self.away == 0 && !self.rings.values().any(Followed::may_be_written)
    }

    /// Whether every account is known: that of a ring whose memory is just going is not, for a moment.
    fn is_known(&self) -> bool {
        let mut rings = self.rings.iter();
        rings.all(|(key, ring)| ring.account(key.0).is_some())
    }

    /// Tells the final accounts.
    fn finish(mut self) -> Result<(), Stopped> {
        let keys: BTreeSet<(u32, u32)> = (self.rings.keys().map(|key| of_nc(*key)))
            .chain(self.settled.keys().copied())
            .collect();
        keys.into_iter().try_for_each(|key| self.tell_anyway(key))?;
        let accounts: Vec<_> = self
            .producers
            .values()
            .map(|member| member.account)
            .collect();
        for account in accounts {
            self.send(Part::ProducerAccount(account))?;
        }
        self.send(Part::End(v1::FetchEnd {
            fetch_id: self.id,
            events: self.delivered,
            clock: Some(clock_anchor()),
            run_ended: self.away == 0,
            left: 0,
            away: self.away,
        }))
    }
}

/// The producer and NC of a ring.
fn of_nc(key: Key) -> (u32, u32) {
    (key.0, u32::try_from(key.2).unwrap_or(u32::MAX))
}
