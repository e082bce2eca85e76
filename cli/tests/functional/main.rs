//! The program from outside: what it prints, what it leaves on the disk, how it ends.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod connect;
mod convert;
mod demo;
mod doctor;
mod fake;
mod fetch;
mod help;
mod host;
mod interrupt;
mod manners;
mod place;
mod record;
mod shown;
mod signals;
mod split;
mod start_stop;
mod strings;
mod summary;
mod terminal;
mod tool;
mod usage;
mod view;
mod vocabulary;
