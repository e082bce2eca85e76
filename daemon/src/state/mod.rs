//! What a daemon writes down so that the next one can go on: runs, who is in them, how far each ring was consumed.
//!
//! | file | what |
//! |---|---|
//! | `record` | what is written |
//! | `file` | the file: written as a whole or not at all, and looked at with suspicion |
//! | `store` | descriptors that the service manager keeps |
//! | `spool` | files of what ended processes left unread, where none does |
//!
//! The rings themselves are not in the record. Their producers keep the descriptors and hand them back to the next daemon,
//! and the service manager keeps them where there is one. Taken is only what this record names, from whoever it comes.

mod file;
mod record;
mod spool;
mod store;

pub(crate) use file::{Found, StateFile};
pub(crate) use record::{
    AskedRecord, EndRecord, FileId, PastFilterRecord, ProducerRecord, RingRecord, RunRecord,
    ShareRecord, State, TableRecord, TallyRecord,
};
pub(crate) use spool::{Label, Left, Spool};
pub(crate) use store::{FromManager, Store};
