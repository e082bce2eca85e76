//! A subscription, as its client sees it.

use std::collections::BTreeMap;
use std::time::Duration;

use nrt_trace_abi::record::{RECORD_BYTES, Record};
use nrt_trace_proto::v1;
use nrt_trace_proto::v1::trace_part::Part;
use tonic::{Status, Streaming};

use super::Client;

/// All that came so far, sorted.
pub(crate) struct Live {
    stream: Streaming<v1::TracePart>,
    pub(crate) begins: Vec<v1::FetchBegin>,
    pub(crate) producers: BTreeMap<u32, v1::Producer>,
    pub(crate) names: Vec<String>,
    pub(crate) records: BTreeMap<(u32, u32), Vec<Record>>,
    pub(crate) accounts: BTreeMap<(u32, u32), v1::RingAccount>,
    pub(crate) producer_accounts: BTreeMap<u32, v1::ProducerAccount>,
    pub(crate) end: Option<v1::FetchEnd>,
}

/// A subscription to the host's run.
pub(crate) fn subscription(from: v1::SubscribeFrom) -> v1::SubscribeRequest {
    v1::SubscribeRequest {
        from: from.into(),
        ..v1::SubscribeRequest::default()
    }
}

impl Live {
    /// Subscribes. When this returns, the daemon has found where to begin.
    pub(crate) fn new(client: &Client, request: v1::SubscribeRequest) -> Result<Self, Status> {
        let mut rpc = client.rpc.clone();
        let stream = client.runtime.block_on(rpc.subscribe(request))?;
        let mut live = Self {
            stream: stream.into_inner(),
            begins: Vec::new(),
            producers: BTreeMap::new(),
            names: Vec::new(),
            records: BTreeMap::new(),
            accounts: BTreeMap::new(),
            producer_accounts: BTreeMap::new(),
            end: None,
        };
        live.until(client, |live| !live.begins.is_empty());
        Ok(live)
    }

    /// Subscribes, and reads until it knows `producers` of the run: their rings are followed.
    pub(crate) fn of(client: &Client, request: v1::SubscribeRequest, producers: usize) -> Self {
        let mut live = Self::new(client, request).unwrap();
        live.until(client, |live| live.producer_accounts.len() >= producers);
        live
    }

    /// Reads until `enough`; a stream that ends before fails the test.
    #[track_caller]
    pub(crate) fn until(&mut self, client: &Client, enough: impl Fn(&Self) -> bool) {
        while !enough(self) {
            let part = self.next(client).unwrap();
            self.take(part.expect("the stream has not ended"));
        }
    }

    /// Reads to the end, and checks what every subscription promises.
    #[track_caller]
    pub(crate) fn finish(&mut self, client: &Client) {
        while let Some(part) = self.next(client).unwrap() {
            assert!(self.end.is_none(), "nothing comes after the end");
            self.take(part);
        }
        let end = self.end.expect("an end");
        let mut events = 0;
        for (ring, account) in &self.accounts {
            let records = self.records.get(ring).map_or(0, Vec::len) as u64;
            assert_eq!(
                (account.delivered, account.unread),
                (records, 0),
                "{account:?}"
            );
            events += records;
        }
        assert_eq!(end.events, events);
        assert_eq!(end.fetch_id, self.begins[0].fetch_id);
    }

    /// The next part; waits as long as only a failure takes.
    pub(crate) fn next(&mut self, client: &Client) -> Result<Option<v1::TracePart>, Status> {
        let next =
            async { tokio::time::timeout(Duration::from_secs(60), self.stream.message()).await };
        client.runtime.block_on(next).expect("a part in time")
    }

    fn take(&mut self, part: v1::TracePart) {
        match part.part.unwrap() {
            Part::Begin(begin) => self.begins.push(begin),
            Part::Producer(producer) => {
                self.producers.insert(producer.producer_id, producer);
            }
            Part::Strings(strings) => {
                assert_eq!(strings.first, self.names.len() as u64, "without a gap");
                self.names
                    .extend(strings.entries.into_iter().map(|entry| entry.text));
            }
            Part::Correlations(_) => {}
            Part::Records(records) => {
                let of = (records.producer_id, records.nc_idx);
                assert!(self.producers.contains_key(&of.0), "told before");
                let (packed, rest) = records.packed.as_chunks::<RECORD_BYTES>();
                assert!(rest.is_empty() && !packed.is_empty());
                let ring = self.records.entry(of).or_default();
                ring.extend(packed.iter().map(Record::from_bytes));
                assert!(ring.is_sorted_by(|a, b| a.seq() < b.seq()), "each once");
            }
            Part::Account(account) => {
                assert_eq!(
                    account.claimed,
                    account.delivered + account.lost + account.pending + account.unread,
                    "{account:?}"
                );
                self.accounts
                    .insert((account.producer_id, account.nc_idx), account);
            }
            Part::ProducerAccount(account) => {
                self.producer_accounts.insert(account.producer_id, account);
            }
            Part::End(end) => self.end = Some(end),
            Part::HostInfo(_) | Part::HostSample(_) => panic!("nobody asked for the host's"),
        }
    }

    /// Numbers of a ring's events, in the order in which they came.
    pub(crate) fn seqs(&self, producer: u32, nc: u32) -> Vec<u64> {
        let ring = self.records.get(&(producer, nc));
        ring.map_or_else(Vec::new, |ring| ring.iter().map(Record::seq).collect())
    }
}
