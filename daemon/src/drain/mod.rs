//! Reading rings.

pub(crate) mod account;
pub(crate) mod correlations;
pub(crate) mod segment;
