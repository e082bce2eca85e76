//! The trace collector: programs attach to it, it hands them rings to write to, reads the rings, and serves what it read.
//!
//! ```text
//!  programs ──producer.sock──▶ registry thread ◀── commands ── gRPC (control.sock) ◀── nrt-tracectl and others
//!      │                        owns every producer and run            │
//!      ▼                                                               ▼
//!   shared rings ◀──────────── reads, never writes ────────── one thread per fetch
//! ```
//!
//! | module | what |
//! |---|---|
//! | [`config`] | settings: command line, environment, file |
//! | `access` | who may use a socket |
//! | `listen` | the two sockets, made under a lock |
//! | `handshake` | what a program says of itself, and what the kernel says of it |
//! | `registry` | the thread that owns producers and runs: attach, arm, disarm, death |
//! | `run` | captures: scope, filters, start, stop, what is consumed |
//! | `drain` | reading rings: segments, cursors, correlations, the fetch stream |
//! | `strings` | names, merged |
//! | `clock` | the clock of each control page |
//! | `memory` | memory ahead of the rings, and its freeing |
//! | `pulse` | whether a thread still comes round |
//! | `ration` | lines of the log that peers can cause |
//! | `host` | the host monitor: what machine and processes use, once a period |
//! | `rpc` | the control API |
//! | [`service`] | what the binary adds: a log, signals, an exit status |
//!
//! The binary `nrt-traced` is a shell around [`Daemon::start`]; the command line tool starts the same daemon inside
//! itself when none is running. The library installs no logger and no signal handler.

#![forbid(unsafe_code)]

mod access;
mod clock;
pub mod config;
mod daemon;
mod drain;
mod failpoint;
mod handshake;
mod host;
mod listen;
mod memory;
mod metrics;
mod pulse;
mod ration;
mod registry;
mod rpc;
mod run;
pub mod service;
mod state;
#[cfg(feature = "steps")]
pub mod step;
mod strings;
mod ticker;

pub use config::{Allocate, Budgets, Config, ConfigError, Flags, HostSettings, LogLevel, one_line};
pub use daemon::{Daemon, Running};
pub use host::Retention;
pub use listen::StartError;
