//! The JSON document of a fetch: the parts that a daemon would send, made here and written by the same writer.

use std::any::Any;
use std::io;

use nrt_trace_abi::record::{RECORD_BYTES, Record};
use nrt_trace_client::own::{self, Events, Names};
use nrt_trace_export::{JsonOptions, JsonWriter, Memory, ProcessIdMode};
use nrt_trace_model::Status;
use nrt_trace_proto::FORMAT_VERSION;
use nrt_trace_proto::v1::trace_part::Part;
use nrt_trace_proto::v1::{FetchBegin, Producer, Records, StringEntry, Strings, TracePart};

use crate::buffer::Text;

/// Records that are read at a time.
const CHUNK: usize = 4096;

/// What the writer needs besides the text: its tables, a chunk, the executions that it remembers and the events that it
/// holds of one ring. That much must be to be had before anything is read, since out of memory in the middle of it would
/// end the process.
const WORKING_BYTES: usize = 24 << 20;

/// Writes the document of `events`. Exactly Neuron's keys: there is one process, and it knows which.
pub(crate) fn write(events: &mut Events<'_>) -> Result<Text, Status> {
    let mut working = Vec::<u8>::new();
    working
        .try_reserve_exact(WORKING_BYTES)
        .map_err(|_| Status::Resource)?;
    drop(working);

    let text = Text::new().ok_or(Status::Resource)?;
    let memory: Option<Box<Memory>> = events
        .memo
        .take()
        .and_then(|memo: Box<dyn Any + Send>| memo.downcast().ok());
    let options = JsonOptions {
        process_id: ProcessIdMode::Never,
        ..JsonOptions::default()
    };
    let mut writer = JsonWriter::remembering(
        text,
        options,
        memory.map_or_else(Memory::default, |memory| *memory),
    );
    let (text, memory) = parts(events, &mut writer)
        .and_then(|()| writer.finish_remembering())
        .map_err(|_| Status::Resource)?; // the text is the only thing that can fail
    *events.memo = Some(Box::new(memory));
    Ok(text)
}

fn parts(events: &mut Events<'_>, writer: &mut JsonWriter<Text>) -> io::Result<()> {
    let mut send = |part| writer.part(&TracePart { part: Some(part) });
    send(Part::Begin(FetchBegin {
        format_version: FORMAT_VERSION,
        producers: 1,
        ..FetchBegin::default()
    }))?;
    send(Part::Producer(Producer {
        worker_gid: own::worker_gid(),
        ..Producer::default()
    }))?;
    let mut names = Names::new();
    let mut chunk = Vec::with_capacity(CHUNK);
    while let Some(nc_idx) = events.next_chunk(CHUNK, &mut chunk) {
        // A name is published before the event that uses it: looked for after the event was read, it is there.
        let mut entries = Vec::new();
        names.more(|id, text| {
            entries.push(StringEntry {
                id,
                text: text.to_owned(),
            });
        });
        if !entries.is_empty() {
            send(Part::Strings(Strings { first: 0, entries }))?;
        }
        let mut packed = Vec::with_capacity(chunk.len() * RECORD_BYTES);
        chunk
            .iter()
            .map(Record::to_bytes)
            .for_each(|bytes| packed.extend_from_slice(&bytes));
        send(Part::Records(Records {
            producer_id: 0,
            nc_idx,
            packed: packed.into(),
        }))?;
    }
    Ok(())
}
