//! What is printed and written, and where.
//!
//! | module | what |
//! |---|---|
//! | [`answer`] | what the daemon says, for programs |
//! | [`tell`] | lines on standard error: errors, warnings, notes |
//! | [`table`] | columns for people |
//! | [`human`] | counts, bytes, times as people write them |
//! | [`target`] | where a trace goes: which format, which file, whether it can be written |
//! | [`mod@file`] | a file that appears whole or not at all |
//! | [`document`] | trace parts into a format |
//! | [`split`] | one document for each process |
//! | [`tally`] | events and losses per process and core |
//! | [`census`] | events per process and type |
//! | [`interrupt`] | what a signal leaves of a trace that is being written |
//! | [`progress`] | the line that shows how a recording goes |
//! | [`reader`] | whether anybody reads it |

pub(crate) mod answer;
pub(crate) mod census;
pub(crate) mod document;
pub(crate) mod file;
pub(crate) mod human;
pub(crate) mod interrupt;
pub(crate) mod progress;
pub(crate) mod reader;
pub(crate) mod split;
pub(crate) mod table;
pub(crate) mod tally;
pub(crate) mod target;
pub(crate) mod tell;
