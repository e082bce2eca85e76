//! Which cores a run captures, translated for each process.
//!
//! A filter names host cores. A process that knows its visible cores has its index `k` on host core `visible[k]`; one
//! that does not is filtered by its own indices.

use nrt_trace_abi::{MAX_NCS, gate};

use super::error::RunError;

/// The host cores of a filter; none named: all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CoreFilter {
    /// Ascending, each once.
    cores: Vec<u32>,
    /// A process's own indices instead, a bit each.
    own: Option<[u64; MAX_NCS / 64]>,
}

impl CoreFilter {
    /// A filter by the indices of the one process that it is for, a bit each.
    pub(crate) fn own(ncs: [u64; MAX_NCS / 64]) -> Self {
        Self {
            cores: Vec::new(),
            own: Some(ncs),
        }
    }

    /// A filter of the cores in `list`.
    pub(crate) fn new(list: &[u32]) -> Result<Self, RunError> {
        if let Some(core) = list.iter().find(|core| **core as usize >= MAX_NCS) {
            return Err(RunError::invalid(format_args!(
                "there is no NeuronCore {core}; allowed: 0 to 255"
            )));
        }
        let mut cores = list.to_vec();
        cores.sort_unstable();
        cores.dedup();
        Ok(Self { cores, own: None })
    }

    /// The cores named, ascending; none for all.
    pub(crate) fn cores(&self) -> &[u32] {
        &self.cores
    }

    fn passes_core(&self, core: u32) -> bool {
        self.cores.is_empty() || self.cores.binary_search(&core).is_ok()
    }

    /// Whether the NC of index `nc` of a process with these visible cores passes.
    pub(crate) fn passes(&self, visible: &[u16], nc: usize) -> bool {
        if let Some(own) = &self.own {
            return own
                .get(nc / 64)
                .is_some_and(|bits| bits >> (nc % 64) & 1 != 0);
        }
        match visible.get(nc) {
            Some(core) => self.passes_core(u32::from(*core)),
            // An index beyond the visible cores is no host core: only "all" lets it pass.
            None if !visible.is_empty() => self.cores.is_empty(),
            None => u32::try_from(nc).is_ok_and(|nc| self.passes_core(nc)),
        }
    }

    /// Indices that get a ring in a process with these visible cores, or that many when it knows none.
    pub(crate) fn rings(&self, visible: &[u16], default_cores: u32) -> Vec<usize> {
        let mut rings: Vec<usize> = indices(visible, default_cores)
            .filter(|nc| self.passes(visible, *nc))
            .collect();
        if rings.is_empty() && self.own.is_some() {
            // A process may ask for nothing: then it has a ring whose gate stays closed.
            rings.push(0);
        }
        rings
    }

    /// Indices that would have a ring but for this filter.
    pub(crate) fn closed(&self, visible: &[u16], default_cores: u32) -> Vec<usize> {
        indices(visible, default_cores)
            .filter(|nc| !self.passes(visible, *nc))
            .collect()
    }

    /// The gate words of a process with these visible cores, for the types of the bit set `types`.
    ///
    /// An NC that passes but has no ring gets an open gate too, so that the process counts its events as such.
    pub(crate) fn gates(&self, visible: &[u16], types: u64, generation: u64) -> [u64; MAX_NCS] {
        let open = gate::open(types, generation);
        std::array::from_fn(|nc| if self.passes(visible, nc) { open } else { 0 })
    }
}

/// The NC indices of a process.
fn indices(visible: &[u16], default_cores: u32) -> std::ops::Range<usize> {
    let count = if visible.is_empty() {
        default_cores as usize
    } else {
        visible.len()
    };
    0..count.min(MAX_NCS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(cores: &[u32]) -> CoreFilter {
        CoreFilter::new(cores).unwrap()
    }

    #[test]
    fn host_cores_become_the_processs_own_indices() {
        let visible = [8, 9, 10];
        assert_eq!(filter(&[]).rings(&visible, 8), [0, 1, 2]);
        assert_eq!(filter(&[10, 8, 8, 3]).rings(&visible, 8), [0, 2]);
        assert_eq!(filter(&[0]).rings(&visible, 8), [0; 0]);
        assert_eq!(filter(&[]).rings(&[], 3), [0, 1, 2], "cores not known");
        assert_eq!(filter(&[1, 7, 9]).rings(&[], 8), [1, 7]);
        assert_eq!(filter(&[10, 8, 3]).closed(&visible, 8), [1]);
        assert_eq!(filter(&[]).closed(&[], 8), [0; 0]);
    }

    #[test]
    fn gates_agree_with_rings_and_stay_open_where_a_ring_is_missing() {
        let open = |gates: [u64; MAX_NCS]| {
            (0..MAX_NCS)
                .filter(|nc| gates[*nc] != 0)
                .collect::<Vec<_>>()
        };
        assert_eq!(open(filter(&[]).gates(&[8, 9], 1, 5)).len(), MAX_NCS);
        assert_eq!(open(filter(&[9]).gates(&[8, 9], 1, 5)), [1]);
        assert_eq!(open(filter(&[9, 200]).gates(&[], 1, 5)), [9, 200]);
        assert_eq!(filter(&[]).gates(&[], 0b101, 5)[255], gate::open(0b101, 5));
    }

    #[test]
    fn a_core_that_cannot_be_is_refused_with_what_is_allowed() {
        let message = CoreFilter::new(&[3, 256]).unwrap_err().to_string();
        assert!(
            message.contains("256") && message.contains("0 to 255"),
            "{message}"
        );
    }

    #[test]
    fn a_processs_own_filter_goes_by_its_own_indices() {
        let own = CoreFilter::own([0b101, 0, 0, 1 << 63]);
        assert_eq!(own.rings(&[8, 9, 10], 8), [0, 2]);
        assert_eq!(own.closed(&[8, 9, 10], 8), [1]);
        let gates = own.gates(&[8, 9, 10], 1, 5);
        let open: Vec<_> = (0..MAX_NCS).filter(|nc| gates[*nc] != 0).collect();
        assert_eq!(open, [0, 2, 255]);
        let none = CoreFilter::own([0; 4]);
        assert_eq!(
            none.rings(&[8, 9], 8),
            [0],
            "a ring that nothing comes into"
        );
        assert_eq!(none.gates(&[8, 9], 1, 5), [0; MAX_NCS]);
    }
}
