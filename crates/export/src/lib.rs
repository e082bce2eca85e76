//! Trace documents from [`TracePart`](nrt_trace_proto::v1::TracePart)s: JSON, the native file, a summary.
//!
//! ```text
//!  Fetch stream ──▶ parts ──┬──▶ JsonWriter ────▶ .json     one fetch, or a regrouped recording
//!                           ├──▶ NativeWriter ──▶ .nrtt     lossless; NativeReader reads it back
//!                           ├──▶ Summary ───────▶ report    counts, durations, loss account, warnings
//!                           └──▶ HostWriter ────▶ .json     the host monitor's cpu_util and mem_usage
//!
//!  .json, ours or another version's ──▶ read_json ──▶ JsonEvents, one by one
//!  a recording: .nrtt of many fetches ──▶ Spool (index) ──▶ parts of one ordered fetch ──▶ any of the above
//! ```
//!
//! Everything streams: memory is bounded by numbers in this crate and does not grow with the events of a trace.

#![forbid(unsafe_code)]

mod format;
#[cfg(feature = "host")]
pub mod host;
pub mod json;
#[cfg(feature = "native")]
pub mod native;
mod recent;
mod resolve;
#[cfg(feature = "summary")]
pub mod summary;

pub use format::{Format, UnknownFormat};
#[cfg(feature = "host")]
pub use host::HostWriter;
#[cfg(feature = "read")]
pub use json::{JsonError, JsonEvent, read_json};
pub use json::{JsonOptions, JsonWriter, Memory, ProcessIdMode};
#[cfg(feature = "native")]
pub use native::{NativeError, NativeReader, NativeWriter, Spool};
#[cfg(feature = "summary")]
pub use summary::{DurationStats, ProcessReport, Report, RingReport, Summary, Totals, TypeReport};
