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
}

/// One fetch, judged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fetched {
    /// Events that it brought.
    pub(crate) events: u64,
    /// Whether the run has ended and nothing is left.
    pub(crate) run_ended: bool,
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
        }
    }

    /// What has come until now.
    pub(crate) fn got(&self) -> Got {
        let lost = |account: &v1::RingAccount| account.lost.saturating_sub(account.abandoned);
        Got {
            events: self.events,
            lost: self.known.rings.values().map(lost).sum(),
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

    /// One fetch: into the growing file, then committed. After a failure other than [`Failure::Busy`] there must be no
    /// other one: events that came but were not committed would come again.
    pub(crate) async fn fetch(&mut self) -> Result<Fetched, Failure> {
        let elapsed = self.last.elapsed();
        self.last = Instant::now();
        let (events, run_ended) = self.stream().await?;
        self.rate.add(events, elapsed, self.got().lost);
        let accounts: Vec<v1::RingAccount> = self.known.rings.values().copied().collect();
        Ok(Fetched {
            events,
            run_ended,
            wait: self.pace.next(&accounts, elapsed),
        })
    }

    async fn stream(&mut self) -> Result<(u64, bool), Failure> {
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
                        self.growing.part(opening)?;
                    }
                    self.known.add(&part);
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
            self.client.commit(end.fetch_id).await?;
        }
        if anything {
            self.growing.part(Part::End(end))?;
        }
        Ok((self.events - before, end.run_ended))
    }
}

impl Known {
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
