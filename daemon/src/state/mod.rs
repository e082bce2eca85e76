//! What a daemon writes down so that the next one can go on: runs, who is in them, how far each ring was consumed.
//!
//! | file | what |
//! |---|---|
//! | `record` | what is written |
//! | `file` | the file: written as a whole or not at all, and looked at with suspicion |
//!
//! The rings themselves are in no file. Their producers keep the descriptors and hand them back to the next daemon, which
//! takes only what this record names.

mod file;
mod record;

pub(crate) use file::{Found, StateFile};
pub(crate) use record::{
    AskedRecord, FileId, PastFilterRecord, ProducerRecord, RingRecord, RunRecord, ShareRecord,
    State,
};
