//! The control API `nrt.trace.v1` (messages, client, server), generated from the `.proto` files beside this crate.

#![forbid(unsafe_code)]

/// `nrt.trace.v1`.
#[expect(
    missing_docs,
    clippy::doc_markdown,
    reason = "generated code; its documentation is in the .proto files"
)]
#[cfg_attr(
    feature = "grpc",
    expect(
        unused_qualifications,
        clippy::missing_errors_doc,
        clippy::allow_attributes,
        clippy::allow_attributes_without_reason,
        reason = "generated code of client and server"
    )
)]
pub mod v1 {
    include!(concat!(env!("OUT_DIR"), "/nrt.trace.v1.rs"));
}

/// The `.proto` files as a serialized `google.protobuf.FileDescriptorSet`, for reflection.
pub const FILE_DESCRIPTOR_SET: &[u8] =
    include_bytes!(concat!(env!("OUT_DIR"), "/nrt.trace.v1.bin"));

/// Version of the [`v1::TracePart`] stream, in [`v1::FetchBegin::format_version`].
pub const FORMAT_VERSION: u32 = 1;

/// Metadata of a refused call: the code that Neuron's runtime would have returned (`NRT_STATUS`), in decimal digits.
pub const STATUS_METADATA: &str = "nrt-status";
