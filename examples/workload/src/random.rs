//! A deterministic generator: every replica, and the reference that checks them, makes the same numbers from a seed.

/// The generator known as `SplitMix64`.
#[derive(Clone, Debug)]
pub(crate) struct Random {
    state: u64,
}

impl Random {
    /// A generator whose numbers are unrelated for different `(seed, stream)`.
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        let mut random = Self { state: seed };
        let base = random.bits();
        Self {
            state: base ^ stream.wrapping_mul(0xD134_2543_DE82_EF95),
        }
    }

    fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Uniform in `-1.0..1.0`.
    #[expect(clippy::cast_precision_loss, reason = "24 bits are exact in an f32")]
    pub(crate) fn symmetric(&mut self) -> f32 {
        (self.bits() >> 40) as f32 * (2.0 / (1u32 << 24) as f32) - 1.0
    }

    /// Fills `out` with numbers of `-scale..scale`.
    pub(crate) fn fill(&mut self, out: &mut [f32], scale: f32) {
        for x in out {
            *x = self.symmetric() * scale;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_repeat_by_seed_and_stay_in_range() {
        let draw = |seed, stream| {
            let mut out = [0.0; 1000];
            Random::new(seed, stream).fill(&mut out, 0.5);
            out
        };
        assert_eq!(draw(1, 2), draw(1, 2));
        assert_ne!(draw(1, 2), draw(1, 3));
        assert_ne!(draw(1, 2), draw(2, 2));
        assert!(draw(1, 2).iter().all(|x| (-0.5..0.5).contains(x)));
        let mean = draw(1, 2).iter().sum::<f32>() / 1000.0;
        assert!(mean.abs() < 0.03, "{mean}");
    }
}
