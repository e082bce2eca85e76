//! Reading rings: a fetch walks them with cursors of its own, and what it consumed counts once it is committed.
//!
//! | file | what |
//! |---|---|
//! | `segment` | a segment as the daemon holds it |
//! | `ring` | one ring's turn: chunks of records with what they need |
//! | `fetch` | a whole fetch, in its own thread |
//! | `follow` | a subscription: a run's rings read all the while |
//! | `followed` | one ring of a subscription |
//! | `parting` | what a run let go between two looks of a subscription |
//! | `heads` | the claim counters of rings whose other memory is given back |
//! | `slot` | the one fetch of a run: under way, delivered, given up |
//! | `correlations` | what earlier events said about executions |
//! | `account` | accounts as messages |
//! | `asked` | which of a shared ring's events are the run's |
//!
//! Nothing here takes a lock that the registry thread or a producer could wait on, and nothing is ever written to a
//! ring. A fetch that ends early leaves no trace; the next one starts at the old cursors.

pub(crate) mod account;
pub(crate) mod asked;
pub(crate) mod correlations;
pub(crate) mod fetch;
pub(crate) mod follow;
pub(crate) mod followed;
pub(crate) mod heads;
pub(crate) mod parting;
pub(crate) mod ring;
pub(crate) mod segment;
pub(crate) mod slot;
