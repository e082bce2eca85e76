//! What a run captures: of which cores, which event types; and what it captured before that was changed.

use std::collections::VecDeque;

use nrt_trace_model::filter::TypeSet;
use nrt_trace_proto::v1;

use super::cores::CoreFilter;
use crate::state::PastFilterRecord;

/// Past filters that are kept: whoever changes one every second must not make every fetch longer.
const MAX_PAST: usize = 16;

/// Which events a run captures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Filter {
    /// Host cores.
    pub cores: CoreFilter,
    /// Event types.
    pub types: TypeSet,
}

impl Filter {
    /// Host cores as messages have them: none for all.
    pub(crate) fn nc(&self) -> Vec<u32> {
        self.cores.cores().to_vec()
    }

    /// Event types as messages have them: none for all.
    pub(crate) fn events(&self) -> Vec<String> {
        if self.types == TypeSet::ALL {
            return Vec::new();
        }
        self.types.iter().map(|t| t.name().to_owned()).collect()
    }

    /// Event types that pass of the NC of index `nc` of a process with these visible cores.
    pub(crate) fn types_of(&self, visible: &[u16], nc: usize) -> TypeSet {
        if self.cores.passes(visible, nc) {
            self.types
        } else {
            TypeSet::EMPTY
        }
    }
}

/// The filters that a run had.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PastFilters {
    /// With the moment at which another one took its place, `CLOCK_REALTIME` ns; oldest first.
    last: VecDeque<(u64, Filter)>,
    changes: u32,
}

impl PastFilters {
    /// Notes that `filter` held until `until_ns`.
    pub(crate) fn push(&mut self, until_ns: u64, filter: Filter) {
        if self.last.len() == MAX_PAST {
            self.last.pop_front();
        }
        self.last.push_back((until_ns, filter));
        self.changes = self.changes.saturating_add(1);
    }

    /// How many there were.
    pub(crate) fn changes(&self) -> u32 {
        self.changes
    }

    /// As messages.
    pub(crate) fn messages(&self) -> Vec<v1::PastFilter> {
        let message = |(until_ns, filter): &(u64, Filter)| v1::PastFilter {
            until_ns: *until_ns,
            nc: filter.nc(),
            events: filter.events(),
        };
        self.last.iter().map(message).collect()
    }

    /// What is written down of them.
    pub(crate) fn records(&self) -> Vec<PastFilterRecord> {
        let record = |(until_ns, filter): &(u64, Filter)| PastFilterRecord {
            until_ns: *until_ns,
            cores: filter.nc(),
            types: filter.types.bits(),
        };
        self.last.iter().map(record).collect()
    }

    /// What was written down; `None` if it can't be.
    pub(crate) fn restored(changes: u32, records: &[PastFilterRecord]) -> Option<Self> {
        let past = |record: &PastFilterRecord| {
            let filter = Filter {
                cores: CoreFilter::new(&record.cores).ok()?,
                types: TypeSet::from_bits(record.types),
            };
            Some((record.until_ns, filter))
        };
        Some(Self {
            last: records.iter().map(past).collect::<Option<_>>()?,
            changes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_filters_are_kept_and_all_are_counted() {
        let mut past = PastFilters::default();
        for at in 1..=20 {
            let filter = Filter {
                cores: CoreFilter::new(&[at]).unwrap(),
                types: TypeSet::HARDWARE,
            };
            past.push(at.into(), filter);
        }
        let messages = past.messages();
        assert_eq!((past.changes(), messages.len()), (20, 16));
        assert_eq!((messages[0].until_ns, &messages[0].nc[..]), (5, &[5][..]));
        assert_eq!(messages[15].until_ns, 20);
        assert_eq!(PastFilters::restored(20, &past.records()), Some(past));
    }
}
