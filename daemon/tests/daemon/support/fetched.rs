//! What a fetch delivered, checked against what every fetch promises.

use std::collections::BTreeMap;

use nrt_trace_abi::record::{RECORD_BYTES, Record};
use nrt_trace_proto::v1;
use nrt_trace_proto::v1::trace_part::Part;

/// All parts of a fetch, sorted.
#[derive(Debug, Default)]
pub(crate) struct Fetched {
    pub(crate) begin: Option<v1::FetchBegin>,
    pub(crate) producers: Vec<v1::Producer>,
    pub(crate) names: Vec<v1::StringEntry>,
    pub(crate) first_name: Option<u64>,
    pub(crate) records: BTreeMap<(u32, u32), Vec<Record>>,
    pub(crate) correlations: Vec<v1::Correlations>,
    pub(crate) accounts: BTreeMap<(u32, u32), v1::RingAccount>,
    pub(crate) producer_accounts: BTreeMap<u32, v1::ProducerAccount>,
    pub(crate) end: Option<v1::FetchEnd>,
    /// Producers whose events may say anything of themselves.
    hostile: Vec<u32>,
}

impl Fetched {
    /// A fetch that reads hostile producers too.
    pub(crate) fn among(hostile: &[u32]) -> Self {
        Self {
            hostile: hostile.to_vec(),
            ..Self::default()
        }
    }

    pub(crate) fn take(&mut self, part: v1::TracePart) {
        let part = part.part.unwrap();
        assert!(self.end.is_none(), "a part after the end: {part:?}");
        assert_eq!(
            self.begin.is_some(),
            !matches!(part, Part::Begin(_)),
            "one beginning, first"
        );
        match part {
            Part::Begin(begin) => self.begin = Some(begin),
            Part::Producer(producer) => self.producers.push(producer),
            Part::Strings(strings) => {
                let first = *self.first_name.get_or_insert(strings.first);
                assert_eq!(
                    strings.first,
                    first + self.names.len() as u64,
                    "names without a gap"
                );
                self.names.extend(strings.entries);
            }
            Part::Correlations(correlations) => self.correlations.push(correlations),
            Part::Records(records) => self.take_records(&records),
            Part::Account(account) => {
                let of = (account.producer_id, account.nc_idx);
                assert_eq!(
                    account.claimed,
                    account.delivered + account.lost + account.pending + account.unread,
                    "{account:?}"
                );
                assert_eq!(
                    self.accounts.insert(of, account),
                    None,
                    "one account a ring"
                );
            }
            Part::ProducerAccount(account) => {
                self.producer_accounts.insert(account.producer_id, account);
            }
            Part::End(end) => self.end = Some(end),
            Part::HostInfo(_) | Part::HostSample(_) => panic!("nobody asked for the host's"),
        }
    }

    fn take_records(&mut self, records: &v1::Records) {
        assert!(records.packed.len() <= 1 << 20 && !records.packed.is_empty());
        let (packed, rest) = records.packed.as_chunks::<RECORD_BYTES>();
        assert!(rest.is_empty());
        assert_eq!(
            self.producers.last().unwrap().producer_id,
            records.producer_id,
            "the producer comes first"
        );
        let ring = self
            .records
            .entry((records.producer_id, records.nc_idx))
            .or_default();
        for record in packed.iter().map(Record::from_bytes) {
            assert_eq!(record.producer_id(), records.producer_id);
            if self.hostile.contains(&records.producer_id) {
                ring.push(record);
                continue;
            }
            assert_eq!(record.nc_idx(), records.nc_idx);
            assert!(
                ring.last().is_none_or(|last| last.seq() < record.seq()),
                "in the order of seq"
            );
            ring.push(record);
        }
    }

    /// What holds for every whole fetch.
    pub(crate) fn check(&self) {
        let (begin, end) = (self.begin.as_ref().unwrap(), self.end.as_ref().unwrap());
        assert_eq!(begin.format_version, 1);
        assert_eq!(begin.fetch_id, end.fetch_id);
        assert_eq!(begin.producers as usize, self.producers.len());
        assert_eq!(
            end.events,
            self.records
                .values()
                .map(|ring| ring.len() as u64)
                .sum::<u64>()
        );
        assert!(begin.clock.unwrap().realtime_ns > 0 && end.clock.unwrap().monotonic_ns > 0);
        assert!(
            self.producers
                .is_sorted_by_key(|producer| producer.producer_id),
            "attach order"
        );
        for (ring, records) in &self.records {
            assert!(self.accounts[ring].delivered >= records.len() as u64);
        }
    }

    pub(crate) fn id(&self) -> u64 {
        self.begin.as_ref().unwrap().fetch_id
    }

    pub(crate) fn end(&self) -> &v1::FetchEnd {
        self.end.as_ref().unwrap()
    }

    /// Sequence numbers of a ring's records.
    pub(crate) fn seqs(&self, producer: u32, nc: u32) -> Vec<u64> {
        self.records
            .get(&(producer, nc))
            .map_or_else(Vec::new, |ring| ring.iter().map(Record::seq).collect())
    }
}
