//! Random choices that a seed repeats.

use std::env;
use std::io::{self, Write};
use std::time::{SystemTime, UNIX_EPOCH};

/// The variable that repeats a run's random choices.
pub const SEED: &str = "NRT_TRACE_TEST_SEED";

/// `SplitMix64`.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// For the test `test`: from the seed in the environment, else from the time. The seed is told on standard error,
    /// past what the test runner captures, so that it stands in the log of every run.
    ///
    /// # Panics
    ///
    /// If the variable is no number.
    #[must_use]
    pub fn roll(test: &str) -> Self {
        let seed = match env::var(SEED) {
            Ok(text) => text.parse().expect("a seed is a number"),
            Err(_) => SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |time| u64::from(time.subsec_nanos()) ^ time.as_secs()),
        };
        let _unheard = writeln!(io::stderr(), "{test}: {SEED}={seed}");
        Self(seed)
    }

    /// From a seed.
    #[must_use]
    pub const fn of(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `sides`.
    pub fn below(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        let sides = sides as u64;
        usize::try_from((z ^ (z >> 31)) % sides).expect("below a length")
    }

    /// One of them.
    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }
}
