//! Parts of traces, short to write.

use nrt_trace_abi::record::{Draft, Record};
use nrt_trace_export::{JsonOptions, JsonWriter};
use nrt_trace_proto::v1::{
    Correlations, FetchBegin, FetchEnd, Producer, Records, RingAccount, StringEntry, Strings,
    TracePart, trace_part::Part,
};

pub(crate) fn part(part: Part) -> TracePart {
    TracePart { part: Some(part) }
}

pub(crate) fn begin(fetch_id: u64, producers: u32) -> TracePart {
    part(Part::Begin(FetchBegin {
        format_version: 1,
        fetch_id,
        producers,
        ..FetchBegin::default()
    }))
}

pub(crate) fn end(fetch_id: u64, events: u64) -> TracePart {
    part(Part::End(FetchEnd {
        fetch_id,
        events,
        ..FetchEnd::default()
    }))
}

pub(crate) fn process(producer_id: u32, pid: i32) -> Producer {
    Producer {
        producer_id,
        pid: Some(pid),
        worker_gid: -1,
        name: format!("worker {producer_id}"),
        ..Producer::default()
    }
}

pub(crate) fn producer(producer_id: u32, pid: i32) -> TracePart {
    part(Part::Producer(process(producer_id, pid)))
}

pub(crate) fn names(first: u64, entries: &[(u64, &str)]) -> TracePart {
    let entries = entries
        .iter()
        .map(|(id, text)| StringEntry {
            id: *id,
            text: (*text).to_owned(),
        })
        .collect();
    part(Part::Strings(Strings { first, entries }))
}

pub(crate) fn correlations(
    producer_id: u32,
    nc_idx: u32,
    entries: Vec<nrt_trace_proto::v1::Correlation>,
) -> TracePart {
    part(Part::Correlations(Correlations {
        producer_id,
        nc_idx,
        entries,
    }))
}

pub(crate) fn records(producer_id: u32, nc_idx: u32, records: &[Record]) -> TracePart {
    let packed: Vec<u8> = records.iter().flat_map(Record::to_bytes).collect();
    part(Part::Records(Records {
        producer_id,
        nc_idx,
        packed: packed.into(),
    }))
}

/// Everything claimed was delivered.
pub(crate) fn account(producer_id: u32, nc_idx: u32, claimed: u64) -> RingAccount {
    RingAccount {
        producer_id,
        nc_idx,
        claimed,
        delivered: claimed,
        exact: true,
        ..RingAccount::default()
    }
}

/// An event of type and phase as number `seq` of NC `nc`, at time `seq`.
pub(crate) fn event(
    trace_type: u32,
    phase: u32,
    nc: u32,
    seq: u64,
    tracking_id: u64,
    data: [u64; 5],
) -> Record {
    let draft = Draft {
        trace_type,
        phase,
        nc_idx: nc,
        thread_id: 77,
        tracking_id,
        timestamp_ns: seq,
        data,
        nrta_seq_id: None,
    };
    draft.finish(seq)
}

/// An instant `generic` event: it needs nothing and has no payload.
pub(crate) fn plain(nc: u32, seq: u64) -> Record {
    event(0, 2, nc, seq, 0, [0; 5])
}

pub(crate) fn json_with(parts: &[TracePart], options: JsonOptions) -> String {
    let mut writer = JsonWriter::new(Vec::new(), options);
    for part in parts {
        writer.part(part).unwrap();
    }
    String::from_utf8(writer.finish().unwrap()).unwrap()
}

pub(crate) fn json(parts: &[TracePart]) -> String {
    json_with(parts, JsonOptions::default())
}

/// The events of a document, parsed.
pub(crate) fn events(document: &str) -> Vec<serde_json::Value> {
    let document: serde_json::Value = serde_json::from_str(document).unwrap();
    assert_eq!(document["data_version"], 2);
    assert_eq!(document.as_object().unwrap().len(), 2);
    document["events"].as_array().unwrap().clone()
}
