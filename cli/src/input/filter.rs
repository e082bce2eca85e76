//! Events that are left out of a trace.
//!
//! What an event that is left out tells of others (the model of an execution, a sync point) goes on as a correlation, so that
//! the times and models of those that stay are the same as without a filter.

use std::collections::{BTreeSet, HashMap, HashSet};

use nrt_trace_model::EventType;
use nrt_trace_model::correlation::{self, Fact};
use nrt_trace_model::filter::{TypeSet, parse_types};
use nrt_trace_proto::v1::trace_part::Part;
use nrt_trace_proto::v1::{Correlation, Correlations, Records, SyncPoint, TracePart};

use super::found::Found;
use crate::cli::FilterArgs;
use crate::error::Failure;
use crate::values::When;

/// Bytes of a packed record.
const RECORD_BYTES: usize = 112;

/// Where a record's words begin.
const TYPE: usize = 0;
const TIME: usize = 0x28;
const DATA: usize = 0x30;
const PHASE: usize = 0x58;

/// What stays.
#[derive(Debug)]
pub(crate) struct Filter {
    types: Option<TypeSet>,
    cores: Option<BTreeSet<u32>>,
    processes: HashSet<i32>,
    after: Option<When>,
    before: Option<When>,
    /// When capturing began, ns.
    started: Option<u64>,
    producers: HashMap<u32, (Option<i32>, Vec<u32>)>,
    found: Found,
}

impl Filter {
    /// What the arguments say.
    pub(crate) fn new(args: &FilterArgs) -> Result<Self, Failure> {
        let never = match (args.after, args.before) {
            (Some(When::Absolute(after)), Some(When::Absolute(before)))
            | (Some(When::Since(after)), Some(When::Since(before))) => after >= before,
            _ => false,
        };
        if never {
            let text = "no event can fit: the time of --after is to be before that of --before";
            return Err(Failure::Usage(text.to_owned()));
        }
        let types = match &args.events {
            None => None,
            Some(terms) if terms.0.is_empty() => None, // `all`
            Some(terms) => {
                Some(parse_types(&terms.0).map_err(|error| Failure::Usage(error.to_string()))?)
            }
        };
        Ok(Self {
            types,
            cores: (args.nc.as_ref())
                .filter(|list| !list.0.is_empty()) // `all`
                .map(|list| list.0.iter().copied().collect()),
            processes: args.process.iter().copied().collect(),
            after: args.after,
            before: args.before,
            started: None,
            producers: HashMap::new(),
            found: Found::default(),
        })
    }

    /// Whether anything is left out at all.
    pub(crate) fn any(&self) -> bool {
        self.types.is_some()
            || self.cores.is_some()
            || !self.processes.is_empty()
            || self.after.is_some()
            || self.before.is_some()
    }

    /// Which filter left everything out, and what it could have fitted.
    pub(crate) fn misfit(&self) -> String {
        let set = [
            !self.processes.is_empty(),
            self.cores.is_some(),
            self.types.is_some(),
            self.after.is_some() || self.before.is_some(),
        ];
        self.found.misfit(set, self.started)
    }

    /// What stays of a part: nothing, itself, or what an event told and the rest of the events.
    pub(crate) fn part(&mut self, part: TracePart) -> Result<Vec<TracePart>, Failure> {
        let stays = match &part.part {
            Some(Part::Begin(begin)) => {
                let started = begin.run.as_ref().map(|run| run.started_ns);
                self.started = self.started.or(started).filter(|started| *started > 0);
                true
            }
            Some(Part::Producer(producer)) => {
                let known = (producer.pid, producer.visible_cores.clone());
                self.producers.insert(producer.producer_id, known);
                self.has_process(producer.producer_id)
            }
            Some(Part::ProducerAccount(account)) => self.has_process(account.producer_id),
            Some(Part::Correlations(told)) => self.has_ring(told.producer_id, told.nc_idx),
            Some(Part::Account(account)) => self.has_ring(account.producer_id, account.nc_idx),
            Some(Part::Records(records)) => return self.records(records),
            Some(Part::HostSample(sample)) => self.in_time(sample.timestamp_ns)?,
            _ => true,
        };
        Ok(if stays { vec![part] } else { Vec::new() })
    }

    fn pid(&self, producer_id: u32) -> Option<i32> {
        self.producers.get(&producer_id).and_then(|known| known.0)
    }

    fn has_process(&self, producer_id: u32) -> bool {
        let pid = self.pid(producer_id);
        self.processes.is_empty() || pid.is_some_and(|pid| self.processes.contains(&pid))
    }

    /// The host's core where it is known, else the process's own.
    fn core(&self, producer_id: u32, nc: u32) -> u32 {
        let known = self.producers.get(&producer_id);
        let host = usize::try_from(nc)
            .ok()
            .and_then(|at| known.and_then(|known| known.1.get(at)));
        host.copied().unwrap_or(nc)
    }

    fn has_ring(&self, producer_id: u32, nc: u32) -> bool {
        let core = self.core(producer_id, nc);
        let has = self
            .cores
            .as_ref()
            .is_none_or(|cores| cores.contains(&core));
        has && self.has_process(producer_id)
    }

    fn in_time(&self, time: u64) -> Result<bool, Failure> {
        let at = |when: Option<When>| match when {
            None => Ok(None),
            Some(When::Absolute(ns)) => Ok(Some(ns)),
            Some(When::Since(ns)) => match self.started {
                Some(started) => Ok(Some(started.saturating_add(ns))),
                None => Err(Failure::Usage(
                    "this trace does not say when capturing began: give the time as ns since 1970"
                        .to_owned(),
                )),
            },
        };
        let (after, before) = (at(self.after)?, at(self.before)?);
        Ok(after.is_none_or(|after| time >= after) && before.is_none_or(|before| time < before))
    }

    fn records(&mut self, records: &Records) -> Result<Vec<TracePart>, Failure> {
        let (producer_id, nc_idx) = (records.producer_id, records.nc_idx);
        let all = records.packed.as_chunks::<RECORD_BYTES>().0;
        if !all.is_empty() {
            self.found.process(self.pid(producer_id));
            if self.has_process(producer_id) {
                self.found.core(self.core(producer_id, nc_idx));
            }
        }
        if !self.has_ring(producer_id, nc_idx) {
            return Ok(Vec::new());
        }
        let mut packed = Vec::with_capacity(records.packed.len());
        let mut entries = Vec::new();
        for record in all {
            let (kind, time) = (u32_at(record, TYPE), u64_at(record, TIME));
            self.found.kind(kind);
            let wanted = self.types.is_none_or(|types| {
                EventType::from_value(kind).is_some_and(|kind| types.contains(kind))
            });
            if wanted {
                self.found.time(time);
            }
            if wanted && self.in_time(time)? {
                packed.extend_from_slice(record);
                continue;
            }
            let data = std::array::from_fn(|word| u64_at(record, DATA + 8 * word));
            if let Some((exec_id, fact)) = correlation::told_by(kind, u32_at(record, PHASE), &data)
            {
                entries.push(correlation_of(exec_id, fact));
            }
        }
        let mut parts = Vec::new();
        if !entries.is_empty() {
            parts.push(Part::Correlations(Correlations {
                producer_id,
                nc_idx,
                entries,
            }));
        }
        if !packed.is_empty() {
            parts.push(Part::Records(Records {
                producer_id,
                nc_idx,
                packed: packed.into(),
            }));
        }
        let part = |part| TracePart { part: Some(part) };
        Ok(parts.into_iter().map(part).collect())
    }
}

fn correlation_of(exec_id: u32, fact: Fact) -> Correlation {
    match fact {
        Fact::Model(model_id) => Correlation {
            exec_id,
            model_id: Some(model_id),
            sync: None,
        },
        Fact::Sync(sync) => Correlation {
            exec_id,
            model_id: None,
            sync: Some(SyncPoint {
                nc_timestamp_ns: sync.nc_timestamp_ns,
                cpu_timestamp_ns: sync.cpu_timestamp_ns,
            }),
        },
    }
}

fn u32_at(record: &[u8; RECORD_BYTES], at: usize) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|byte| record[at + byte]))
}

fn u64_at(record: &[u8; RECORD_BYTES], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|byte| record[at + byte]))
}
