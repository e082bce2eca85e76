//! What the product does for its users, end to end, on the built programs.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod activation;
mod bad_input;
mod c_program;
mod cases;
mod checks;
mod daemon;
mod demo;
mod descriptors;
mod doctor;
mod fd_store;
mod fetch;
mod fetch_twice;
mod filters;
mod killed;
mod limits;
mod noticed;
mod own;
mod record;
mod record_apart;
mod record_restart;
mod restart;
mod short_lived;
mod spool;
mod subscribe;
mod surroundings;
mod workload;
