//! The document as serde's derive writes it: what a program gets that declares structs and calls `serde_json`.

use std::io;

use nrt_trace_model::names;
use serde::Serialize;

use super::mix::model_name;

include!(concat!(env!("OUT_DIR"), "/derived.rs"));

/// What other events told of one, worked out beforehand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    pub(crate) model: Option<u64>,
    pub(crate) timestamp_ns: u64,
}

/// An event with Neuron's eleven keys and our twelfth.
#[derive(Debug, Serialize)]
pub(crate) struct Event {
    pub(crate) event_type: &'static str,
    pub(crate) phase: &'static str,
    pub(crate) id: u64,
    pub(crate) nc_idx: u32,
    pub(crate) nc_local_id: u64,
    pub(crate) tracking_id: u64,
    pub(crate) thread_id: u64,
    pub(crate) worker_gid: i32,
    pub(crate) data: Data,
    pub(crate) timestamp_ns: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) nrta_seq_id: Option<u64>,
    pub(crate) process_id: i64,
}

/// The whole document.
#[derive(Debug, Serialize)]
pub(crate) struct Document<'a> {
    pub(crate) events: &'a [Event],
    pub(crate) data_version: u32,
}

/// Writes the document in pieces as large as our writer's.
pub(crate) fn write<W: io::Write>(events: &[Event], out: W) -> io::Result<W> {
    let mut out = io::BufWriter::with_capacity(128 * 1024, out);
    let document = Document {
        events,
        data_version: 2,
    };
    serde_json::to_writer(&mut out, &document)?;
    out.into_inner().map_err(io::IntoInnerError::into_error)
}

fn bytes_at<const N: usize>(data: &[u8; 40], offset: usize) -> [u8; N] {
    std::array::from_fn(|i| data[offset + i])
}

fn u64_at(data: &[u8; 40], offset: usize) -> u64 {
    u64::from_le_bytes(bytes_at(data, offset))
}

fn u32_at(data: &[u8; 40], offset: usize) -> u32 {
    u32::from_le_bytes(bytes_at(data, offset))
}

fn i32_at(data: &[u8; 40], offset: usize) -> i32 {
    i32::from_le_bytes(bytes_at(data, offset))
}

fn u16_at(data: &[u8; 40], offset: usize) -> u16 {
    u16::from_le_bytes(bytes_at(data, offset))
}

fn u8_at(data: &[u8; 40], offset: usize) -> u8 {
    data[offset]
}

fn bool_at(data: &[u8; 40], offset: usize) -> bool {
    data[offset] != 0
}
