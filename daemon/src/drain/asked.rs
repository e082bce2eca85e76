//! What a run had asked for, claim by claim.
//!
//! A ring holds what its run's filter lets through, and nothing has to be passed by, unless the process captures itself
//! too and shares the ring: then its events stand among the run's. Which are whose depends on the filter that the run had
//! when they were emitted. That is noted by claim numbers: the counter is read before the gates change, so that what an
//! added type brings is all behind it. An emit that is under way at that moment may record an event of a type that was just
//! taken out: it counts as the process's own.

use std::ops::Range;

use nrt_trace_model::filter::TypeSet;

use crate::state::AskedRecord;

/// Changes that are remembered of a ring that nobody fetches from.
const MAX_PHASES: usize = 256;

/// From which claim on a run asked for which types; before the first, for all that is there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Asked(Vec<(u64, TypeSet)>);

impl Asked {
    /// Whether anything is to be passed by, now or in what is unread.
    pub(crate) fn is_restricted(&self) -> bool {
        !self.0.is_empty()
    }

    /// From claim `from` on, the run asks for `types` only.
    pub(crate) fn change(&mut self, from: u64, types: TypeSet) {
        match self.0.last_mut() {
            Some((_, last)) if *last == types => return,
            Some((at, last)) if *at >= from => *last = types,
            _ => self.0.push((from, types)),
        }
        if self.0.len() > MAX_PHASES {
            // Rather an event too many than one too few.
            let (_, oldest) = self.0.remove(0);
            self.0[0].1 = self.0[0].1.union(oldest);
        }
    }

    /// What the run had asked for at claim `n`, and for which claims that holds.
    pub(crate) fn at(&self, n: u64) -> (TypeSet, Range<u64>) {
        let next = self.0.partition_point(|(from, _)| *from <= n);
        let end = self.0.get(next).map_or(u64::MAX, |(from, _)| *from);
        match next.checked_sub(1).and_then(|at| self.0.get(at)) {
            Some((from, types)) => (*types, *from..end),
            None => (TypeSet::ALL, 0..end),
        }
    }

    /// The same, for a reader that wants `types` only.
    pub(crate) fn within(&self, types: TypeSet) -> Self {
        let others = TypeSet::ALL.without(types);
        if others.is_empty() {
            return self.clone();
        }
        let both = |(from, asked): &(u64, TypeSet)| (*from, asked.without(others));
        let first = (self.0.first().is_none_or(|(from, _)| *from > 0)).then_some((0, types));
        Self(first.into_iter().chain(self.0.iter().map(both)).collect())
    }

    /// Forgets what held for claims below `n` only: they are consumed.
    pub(crate) fn forget_below(&mut self, n: u64) {
        let next = self.0.partition_point(|(from, _)| *from <= n);
        self.0.drain(..next.saturating_sub(1));
    }

    /// What is written down of it.
    pub(crate) fn records(&self) -> Vec<AskedRecord> {
        let record = |(from, types): &(u64, TypeSet)| AskedRecord {
            from: *from,
            types: types.bits(),
        };
        self.0.iter().map(record).collect()
    }

    /// What was written down; `None` if it is in no order.
    pub(crate) fn restored(records: &[AskedRecord]) -> Option<Self> {
        let in_order = records.is_sorted_by(|a, b| a.from < b.from);
        let phase = |record: &AskedRecord| (record.from, TypeSet::from_bits(record.types));
        in_order.then(|| Self(records.iter().map(phase).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn types(bits: u64) -> TypeSet {
        TypeSet::from_bits(bits)
    }

    #[test]
    fn each_claim_has_the_filter_of_its_time() {
        let mut asked = Asked::default();
        assert!(!asked.is_restricted());
        assert_eq!(asked.at(7), (TypeSet::ALL, 0..u64::MAX));
        asked.change(10, types(1));
        asked.change(15, types(1));
        asked.change(20, types(3));
        asked.change(20, types(2));
        assert_eq!(asked.at(9), (TypeSet::ALL, 0..10));
        assert_eq!(asked.at(10), (types(1), 10..20));
        assert_eq!(asked.at(20), (types(2), 20..u64::MAX));
        assert_eq!(Asked::restored(&asked.records()), Some(asked.clone()));
        asked.forget_below(20);
        assert_eq!(asked.at(20), (types(2), 20..u64::MAX));
        assert_eq!(asked.records().len(), 1);
    }

    #[test]
    fn many_changes_take_bounded_memory_and_hide_nothing() {
        let mut asked = Asked::default();
        for n in 0..1000 {
            asked.change(n, types(1 << (n % 46)));
        }
        assert_eq!(asked.records().len(), MAX_PHASES);
        assert!(
            asked
                .at(800)
                .0
                .contains(nrt_trace_model::EventType::ALL[800 % 46])
        );
        let oldest = asked.records()[0].from;
        assert_eq!(
            asked.at(oldest).0,
            TypeSet::ALL,
            "what came before is in it"
        );
    }

    #[test]
    fn a_reader_gets_what_both_it_and_the_run_asked_for() {
        let mut asked = Asked::default();
        assert_eq!(asked.within(TypeSet::ALL), asked);
        assert_eq!(asked.within(types(2)).at(7), (types(2), 0..u64::MAX));
        asked.change(10, types(3));
        asked.change(20, types(1));
        let both = asked.within(types(2));
        assert_eq!(both.at(9), (types(2), 0..10));
        assert_eq!(both.at(10), (types(2), 10..20));
        assert_eq!(both.at(20), (types(0), 20..u64::MAX));
    }

    #[test]
    fn a_record_out_of_order_is_none() {
        let record = |from| AskedRecord { from, types: 1 };
        assert_eq!(Asked::restored(&[record(5), record(5)]), None);
    }
}
