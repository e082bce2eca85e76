//! Labelled steps of the daemon, for crash tests.

pub use nrt_trace_ring::step::set_hook;

/// Every label of this crate: attach, arm, read, commit, a new filter and stop, each in the order in which it goes on.
pub const LABELS: [&str; 24] = [
    "greet:taken",
    "greet:heard",
    "greet:made",
    "greet:sent",
    "lend:made",
    "lend:noted",
    "lend:sent",
    "lend:answered",
    "lend:opening",
    "lend:open",
    "lend:told",
    "read:begun",
    "read:chunk",
    "read:told",
    "read:delivered",
    "commit:asked",
    "commit:moved",
    "commit:done",
    "filter:set",
    "stop:noted",
    "stop:closed",
    "stop:asked",
    "stop:answered",
    "stop:counted",
];
