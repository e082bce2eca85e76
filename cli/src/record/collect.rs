//! Moves events from the daemon to the growing file, fetch by fetch, and consumes them there.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use nrt_trace_proto::v1;
use nrt_trace_proto::v1::trace_part::Part;

use super::growing::GrowingFile;
use super::pace::Pace;
use super::rate::Rate;
use crate::client::Client;
use crate::error::Failure;

/// Bytes of a packed record.
const RECORD_BYTES: usize = 112;

/// What a recording has got so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Got {
    /// Events.
    pub(crate) events: u64,
    /// Events that are lost for good.
    pub(crate) lost: u64,
    /// Events of its run that another reader consumed.
    pub(crate) elsewhere: u64,
}

/// One fetch, judged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fetched {
    /// Events that it brought.
    pub(crate) events: u64,
    /// Whether the run has ended and nothing is left.
    pub(crate) run_ended: bool,
    /// Processes that have not come back to a daemon that started anew.
    pub(crate) away: u32,
    /// How long to wait before the next.
    pub(crate) wait: Duration,
}

/// Fetches into a growing file.
#[derive(Debug)]
pub(crate) struct Collector {
    client: Client,
    token: String,
    growing: GrowingFile,
    known: Known,
    pace: Pace,
    rate: Rate,
    last: Instant,
    events: u64,
    /// The fetch that is written, perhaps in part, and was not heard to be consumed.
    open: Option<OpenFetch>,
}

/// A fetch until its commit is answered. If the connection breaks before that, nobody knows whether it was consumed, until
/// the daemon's next life says how far its cursors are.
#[derive(Debug)]
struct OpenFetch {
    /// Where it begins in the growing file.
    mark: u64,
    /// Events before it.
    events: u64,
    /// For each ring that it had events of: how many were delivered before, if its account came.
    before: HashMap<(u32, u32), u64>,
    /// Its end, once all of it came and it may be consumed.
    whole: Option<v1::FetchEnd>,
    /// What it brought that is noted as written.
    noted: Vec<Noted>,
}

#[derive(Clone, Copy, Debug)]
enum Noted {
    Producer(u32),
    Ring((u32, u32)),
    Process(u32),
}

/// What the growing file holds already: a fetch repeats every process and every account, mostly unchanged.
#[derive(Debug, Default)]
struct Known {
    strings: u64,
    producers: HashMap<u32, v1::Producer>,
    rings: HashMap<(u32, u32), v1::RingAccount>,
    processes: HashMap<u32, v1::ProducerAccount>,
}

impl Collector {
    /// A collector for the run of `token`, whose rings have `capacity` slots.
    pub(crate) fn new(client: Client, token: String, capacity: u64, growing: GrowingFile) -> Self {
        Self {
            client,
            token,
            growing,
            known: Known::default(),
            pace: Pace::new(capacity),
            rate: Rate::default(),
            last: Instant::now(),
            events: 0,
            open: None,
        }
    }

    /// What has come until now.
    pub(crate) fn got(&self) -> Got {
        let lost = |account: &v1::RingAccount| account.lost.saturating_sub(account.abandoned);
        let delivered = self.known.rings.values().map(|account| account.delivered);
        Got {
            events: self.events,
            lost: self.known.rings.values().map(lost).sum(),
            elsewhere: delivered.sum::<u64>().saturating_sub(self.events),
        }
    }

    /// How fast events came.
    pub(crate) fn rate(&self) -> Rate {
        self.rate
    }

    /// Bytes of the growing file.
    pub(crate) fn bytes(&self) -> u64 {
        self.growing.bytes()
    }

    /// Takes a tick of the host monitor, which is consumed by nobody.
    pub(crate) fn take_tick(&mut self, parts: Vec<Part>) -> Result<(), Failure> {
        for part in parts {
            self.growing.part(part)?;
        }
        self.growing.keep()
    }

    /// The growing file, for the end.
    pub(crate) fn into_growing(self) -> GrowingFile {
        self.growing
    }

    /// Goes on with another connection, to a daemon that started anew. `status` is what it says of the run: whether the
    /// last fetch was consumed shows there, and if it was not, its events come again and what was written of them goes.
    pub(crate) fn resume(
        &mut self,
        client: Client,
        status: Option<&v1::RunStatus>,
    ) -> Result<(), Failure> {
        self.client = client;
        // Positions in its merged table are others.
        self.known.strings = 0;
        if let Some(open) = &self.open
            && let Some(end) = open.consumed(status)
        {
            self.open = None;
            // Without its end it reads as one that was broken off and comes again.
            return self.growing.part(Part::End(end));
        }
        self.take_back()
    }

    /// Takes back what was written of a fetch that was not consumed: its events come again.
    fn take_back(&mut self) -> Result<(), Failure> {
        let Some(open) = self.open.take() else {
            return Ok(());
        };
        self.growing.take_back(open.mark)?;
        self.events = open.events;
        self.known.strings = 0; // names may have come with it
        for noted in open.noted {
            self.known.forget(noted);
        }
        Ok(())
    }

    /// One fetch: into the growing file, then committed. After a failure other than [`Failure::Busy`] there must be no
    /// other one before [`Collector::resume`]: events that came but were not committed would come again.
    pub(crate) async fn fetch(&mut self) -> Result<Fetched, Failure> {
        let elapsed = self.last.elapsed();
        self.last = Instant::now();
        let (events, end) = self.stream().await?;
        self.rate.add(events, elapsed, self.got().lost);
        let accounts: Vec<v1::RingAccount> = self.known.rings.values().copied().collect();
        Ok(Fetched {
            events,
            run_ended: end.run_ended,
            away: end.away,
            wait: self.pace.next(&accounts, elapsed),
        })
    }

    async fn stream(&mut self) -> Result<(u64, v1::FetchEnd), Failure> {
        let request = v1::FetchRequest {
            token: self.token.clone(),
            strings_from: self.known.strings,
            ..v1::FetchRequest::default()
        };
        let mut parts = self.client.fetch(request).await?;
        let mut begin = None;
        let before = self.events;
        let mut end = None;
        while let Some(part) = parts.next().await? {
            match &part {
                Part::Begin(_) => begin = Some(part),
                Part::End(closing) => end = Some(*closing),
                _ if self.known.has(&part) => {}
                _ => {
                    if let Part::Records(records) = &part {
                        self.events += (records.packed.len() / RECORD_BYTES) as u64;
                    }
                    // The frame of a fetch that brings nothing new is nothing new either.
                    if let Some(opening) = begin.take() {
                        self.open = Some(OpenFetch::at(self.growing.mark()?, before));
                        self.growing.part(opening)?;
                    }
                    self.known.add(&part);
                    if let Some(open) = &mut self.open {
                        open.note(&part);
                    }
                    self.growing.part(part)?;
                }
            }
        }
        let Some(end) = end else {
            return Err(Failure::Failed(
                "the daemon ended a fetch in the middle".to_owned(),
            ));
        };
        let anything = begin.is_none();
        self.growing.keep()?;
        // Nothing new needs no commit, but for the last one, with which the run is over for the daemon.
        if anything || end.run_ended {
            if let Some(open) = &mut self.open {
                open.whole = Some(end);
            }
            match self.client.commit_or_void(end.fetch_id).await {
                Ok(()) => self.open = None,
                Err(failure) => {
                    // Somebody else has begun a fetch, which made this one void.
                    if matches!(failure, Failure::Busy(_)) {
                        self.take_back()?;
                    }
                    return Err(failure);
                }
            }
        }
        if anything {
            self.growing.part(Part::End(end))?;
        }
        Ok((self.events - before, end))
    }
}

impl OpenFetch {
    fn at(mark: u64, events: u64) -> Self {
        Self {
            mark,
            events,
            before: HashMap::new(),
            whole: None,
            noted: Vec::new(),
        }
    }

    fn note(&mut self, part: &Part) {
        match part {
            Part::Producer(producer) => self.noted.push(Noted::Producer(producer.producer_id)),
            Part::ProducerAccount(account) => self.noted.push(Noted::Process(account.producer_id)),
            Part::Records(records) => {
                let came = (records.packed.len() / RECORD_BYTES) as u64;
                let ring = (records.producer_id, records.nc_idx);
                *self.before.entry(ring).or_insert(0) += came;
            }
            Part::Account(account) => {
                let ring = (account.producer_id, account.nc_idx);
                self.noted.push(Noted::Ring(ring));
                if let Some(came) = self.before.get_mut(&ring) {
                    // What had come stands in it until here, and what came before from here on.
                    *came = account.delivered.saturating_sub(*came);
                }
            }
            _ => {}
        }
    }

    /// Its end, if the daemon counts the events of this fetch as delivered. Of a ring that it knows no more all was consumed:
    /// nothing else makes it forget one.
    fn consumed(&self, status: Option<&v1::RunStatus>) -> Option<v1::FetchEnd> {
        let accounts = status.map_or(&[][..], |status| &status.accounts);
        let at_old_place = |account: &v1::RingAccount| {
            let ring = (account.producer_id, account.nc_idx);
            self.before.get(&ring) == Some(&account.delivered)
        };
        let stays = accounts.iter().any(at_old_place);
        self.whole.filter(|_| !stays)
    }
}

impl Known {
    /// Takes a note back, so that the same thing is written when it comes again.
    fn forget(&mut self, noted: Noted) {
        match noted {
            Noted::Producer(id) => drop(self.producers.remove(&id)),
            Noted::Ring(ring) => drop(self.rings.remove(&ring)),
            Noted::Process(id) => drop(self.processes.remove(&id)),
        }
    }

    /// Whether the growing file has this already, word for word.
    fn has(&self, part: &Part) -> bool {
        match part {
            Part::Producer(producer) => self.producers.get(&producer.producer_id) == Some(producer),
            Part::Account(account) => {
                self.rings.get(&(account.producer_id, account.nc_idx)) == Some(account)
            }
            Part::ProducerAccount(account) => {
                self.processes.get(&account.producer_id) == Some(account)
            }
            Part::Strings(strings) => strings.entries.is_empty(),
            Part::Correlations(correlations) => correlations.entries.is_empty(),
            Part::Records(records) => records.packed.is_empty(),
            Part::Begin(_) | Part::End(_) | Part::HostInfo(_) | Part::HostSample(_) => false,
        }
    }

    fn add(&mut self, part: &Part) {
        match part {
            Part::Producer(producer) => {
                self.producers
                    .insert(producer.producer_id, producer.clone());
            }
            Part::Account(account) => {
                self.rings
                    .insert((account.producer_id, account.nc_idx), *account);
            }
            Part::ProducerAccount(account) => {
                self.processes.insert(account.producer_id, *account);
            }
            Part::Strings(strings) => {
                self.strings = self
                    .strings
                    .max(strings.first + strings.entries.len() as u64);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(nc_idx: u32, events: usize) -> Part {
        Part::Records(v1::Records {
            producer_id: 1,
            nc_idx,
            packed: vec![0; events * RECORD_BYTES].into(),
        })
    }

    fn account(nc_idx: u32, delivered: u64) -> v1::RingAccount {
        v1::RingAccount {
            producer_id: 1,
            nc_idx,
            delivered,
            ..v1::RingAccount::default()
        }
    }

    /// A commit whose answer was lost with the daemon: the next daemon's cursors say whether it came to pass.
    #[test]
    fn the_next_daemons_cursors_say_what_became_of_a_commit() {
        let mut open = OpenFetch::at(0, 0);
        for part in [records(0, 2), records(0, 3), Part::Account(account(0, 105))] {
            open.note(&part);
        }
        open.note(&Part::Account(account(1, 7))); // a ring that had nothing new
        let of = |delivered| v1::RunStatus {
            accounts: vec![account(0, delivered), account(1, 7)],
            ..v1::RunStatus::default()
        };
        let half = open.consumed(Some(&of(105)));
        assert_eq!(half, None, "the half of it had come");
        let end = v1::FetchEnd {
            fetch_id: 3,
            ..v1::FetchEnd::default()
        };
        open.whole = Some(end);
        assert_eq!(open.consumed(Some(&of(105))), Some(end));
        assert_eq!(open.consumed(Some(&of(100))), None);
        let forgotten = open.consumed(None);
        assert_eq!(forgotten, Some(end), "told of in full, and forgotten");
    }
}
