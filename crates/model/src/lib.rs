//! What the events of Neuron's system trace mean: types, payloads, names, filters, string ids.
//!
//! Numbers and pure functions only. `events.toml` beside this crate is the one source of the 46 event types and their
//! 52 payloads; the build script checks it and makes the enum, the payload structs and the layout tables from it.
//!
//! | module | what |
//! |---|---|
//! | [`event`] | [`EventType`], [`Phase`], [`Category`] |
//! | [`payload`] | a struct for each payload; the layouts as tables, for exporters |
//! | [`correlation`] | what one event says about others of the same execution |
//! | [`filter`] | event filters and NeuronCore lists as users write them |
//! | [`names`] | names of algorithms, memory kinds, data types |
//! | [`status`] | status codes of the runtime, their names and priorities |
//! | [`strings`] | ids of interned names |

#![forbid(unsafe_code)]

pub mod correlation;
pub mod event;
pub mod filter;
pub mod names;
pub mod payload;
pub mod status;
pub mod strings;

pub use event::{Category, EventType, Phase};
pub use status::Status;
