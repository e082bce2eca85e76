//! Trace documents from [`TracePart`](nrt_trace_proto::v1::TracePart)s: JSON, the native file, a summary.
//!
//! ```text
//!  Fetch stream ──▶ parts ──┬──▶ JsonWriter ────▶ .json     one fetch, or a regrouped recording
//!                           ├──▶ NativeWriter ──▶ .nrtt     lossless; NativeReader reads it back
//!                           ├──▶ PftraceWriter ─▶ .pftrace  for Perfetto: tracks, slices, flows, counters
//!                           ├──▶ ChromeWriter ──▶ .json     for other viewers; CsvWriter: the same as a table
//!                           ├──▶ Summary ───────▶ report    counts, durations, loss account, warnings
//!                           └──▶ HostWriter ────▶ .json     the host monitor's cpu_util and mem_usage
//!
//!  .json, ours or another version's ──▶ read_json ──▶ JsonEvents, one by one; import_json makes a native file of them
//!  a recording: .nrtt of many fetches ──▶ Spool (index) ──▶ parts of one ordered fetch ──▶ any of the above
//! ```
//!
//! Everything streams: memory is bounded by numbers in this crate and does not grow with the events of a trace.

#![forbid(unsafe_code)]

#[cfg(feature = "pftrace")]
mod annotate;
#[cfg(feature = "pftrace")]
pub mod chrome;
#[cfg(any(feature = "native", feature = "pftrace"))]
mod clock;
#[cfg(feature = "pftrace")]
pub mod csv;
mod format;
#[cfg(feature = "host")]
pub mod host;
#[cfg(all(feature = "native", feature = "read"))]
mod import;
pub mod json;
#[cfg(feature = "pftrace")]
mod lanes;
#[cfg(feature = "native")]
pub mod native;
#[cfg(feature = "pftrace")]
pub mod pftrace;
mod printable;
mod recent;
mod resolve;
#[cfg(feature = "summary")]
pub mod summary;
#[cfg(feature = "pftrace")]
mod timeline;

#[cfg(feature = "pftrace")]
pub use chrome::ChromeWriter;
#[cfg(feature = "pftrace")]
pub use csv::CsvWriter;
pub use format::{Format, UnknownFormat};
#[cfg(feature = "host")]
pub use host::HostWriter;
#[cfg(all(feature = "native", feature = "read"))]
pub use import::{Imported, import_json};
#[cfg(feature = "read")]
pub use json::{JsonError, JsonEvent, read_json};
pub use json::{JsonOptions, JsonWriter, Memory, ProcessIdMode};
#[cfg(feature = "native")]
pub use native::{NativeError, NativeReader, NativeWriter, Spool};
#[cfg(feature = "pftrace")]
pub use pftrace::{GroupKey, Grouping, PftraceOptions, PftraceWriter};
pub use printable::printable;
#[cfg(feature = "summary")]
pub use summary::{DurationStats, ProcessReport, Report, RingReport, Summary, Totals, TypeReport};
