//! Random numbers that can be had again.

/// A sequence that its seed decides (`SplitMix64`).
pub(crate) struct Random(u64);

impl Random {
    /// With the seed of `NRT_TEST_SEED`, else of the clock; it is printed, for the failure to be had again.
    #[expect(clippy::print_stdout, reason = "shown with a failure")]
    pub(crate) fn new() -> Self {
        let given = std::env::var("NRT_TEST_SEED").ok();
        let seed = given.map_or_else(nrt_trace_shm::clock::realtime_ns, |seed| {
            seed.parse().unwrap()
        });
        println!("NRT_TEST_SEED={seed}");
        Self(seed)
    }

    /// Any number.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// An index of a slice of `len`.
    pub(crate) fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).unwrap()
    }

    /// A sequence of its own.
    pub(crate) fn fork(&mut self) -> Self {
        Self(self.next())
    }
}
