//! The control API `nrt.trace.v1` (messages, client, server), generated from the `.proto` files beside this crate.

#![forbid(unsafe_code)]

/// `nrt.trace.v1`.
#[expect(
    missing_docs,
    unused_qualifications,
    clippy::missing_errors_doc,
    clippy::doc_markdown,
    clippy::allow_attributes,
    clippy::allow_attributes_without_reason,
    reason = "generated code; its documentation is in the .proto files"
)]
pub mod v1 {
    tonic::include_proto!("nrt.trace.v1");
}

/// Version of the [`v1::TracePart`] stream, in [`v1::FetchBegin::format_version`].
pub const FORMAT_VERSION: u32 = 1;

/// Metadata of a refused call: the code that Neuron's runtime would have returned (`NRT_STATUS`), in decimal digits.
pub const STATUS_METADATA: &str = "nrt-status";
