//! The host monitor: what the machine and the attached processes use, once a period.
//!
//! ```text
//!  timerfd ──▶ Sampler ── reads ──▶ /proc/stat, meminfo, …, /proc/PID/…, cgroups   one tick: one time stamp, read once
//!                 │
//!                 ▼ a whole tick
//!              History (bounded) ◀── readers: snapshot, streams, C programs
//! ```
//!
//! | file | what |
//! |---|---|
//! | `monitor` | the thread; start, stop, streams that keep it going |
//! | `grid` | when ticks are due |
//! | `sampler` | one tick |
//! | `reader`, `text` | files kept open; numbers that may make no sense |
//! | `cpu`, `memory`, `pressure`, `traffic`, `frequency`, `facts` | one kind of file each |
//! | `process`, `cgroup` | the attached processes |
//! | `members` | which they are |
//! | `tick`, `history` | what is kept |
//! | `c_program` | the same for programs in C, on the producer socket |
//!
//! It shares no lock with the threads that read rings, and the registry only leaves a list for it.

mod c_program;
mod cgroup;
mod cpu;
mod facts;
mod frequency;
mod grid;
mod history;
mod members;
mod memory;
mod monitor;
mod pressure;
mod process;
mod reader;
mod sampler;
mod text;
mod tick;
mod traffic;

pub(crate) use c_program::CPrograms;
pub(crate) use history::History;
pub use history::Retention;
pub(crate) use members::{Member, Members};
pub(crate) use monitor::{Ever, HostError, HostMonitor, HostThread, Lease, Wish};
pub(crate) use process::start_of;
