//! What comes out, as other programs read it: JSON in other languages' readers, spans from other languages, and the
//! documents that say what is kept of the original.

#![expect(clippy::unwrap_used, reason = "tests: a helper fails by panicking")]

mod fidelity;
mod json_cases;
mod languages;
mod neuron_cases;
mod strict;
