//! What the daemon says, as JSON, in one vocabulary: a key means the same wherever it stands.
//!
//! Keys are those of the API's messages, but that a number of things is `…_count`, and a plural always a list. Times and run
//! ids are strings, because they don't fit the numbers of JavaScript and jq. `docs/commands.md` lists them all, and a test
//! holds every command to it.

use nrt_trace_proto::v1;
use nrt_trace_proto::v1::ProducerState;
use serde_json::{Value, json};

/// A run.
pub(crate) fn run(run: &v1::Run) -> Value {
    let past: Vec<Value> = run.past_filters.iter().map(past_filter).collect();
    json!({
        "run_id": run_id(run.run_id),
        "token": run.token,
        "started_ns": run.started_ns.to_string(),
        "stopped_ns": run.stopped_ns.map(|ns| ns.to_string()),
        "max_events_per_nc": run.max_events_per_nc,
        "nc": run.nc,
        "events": run.events,
        "filter_change_count": run.filter_changes,
        "past_filters": past,
        "forgotten": run.forgotten.as_ref().map(account),
        "forgotten_producer_count": run.forgotten_processes,
    })
}

fn past_filter(past: &v1::PastFilter) -> Value {
    json!({ "until_ns": past.until_ns.to_string(), "nc": past.nc, "events": past.events })
}

/// A ring's account.
pub(crate) fn account(account: &v1::RingAccount) -> Value {
    json!({
        "producer_id": account.producer_id,
        "nc_idx": account.nc_idx,
        "claimed": account.claimed,
        "delivered": account.delivered,
        "unread": account.unread,
        "pending": account.pending,
        "lost": account.lost,
        "overwritten": account.overwritten,
        "dropped_in_flight": account.dropped_in_flight,
        "dropped_lapped": account.dropped_lapped,
        "dropped_seq": account.dropped_seq,
        "abandoned": account.abandoned,
        "skipped": account.skipped,
        "exact": account.exact,
    })
}

/// A process.
pub(crate) fn producer(producer: &v1::Producer) -> Value {
    json!({
        "producer_id": producer.producer_id,
        "pid": producer.pid,
        "ns_pid": producer.ns_pid,
        "uid": producer.uid,
        "gid": producer.gid,
        "name": producer.name,
        "comm": producer.comm,
        "cmdline": producer.cmdline,
        "exe": producer.exe,
        "exe_claimed": producer.exe_claimed,
        "state": state(producer.state()),
        "attached_ns": producer.attached_ns.to_string(),
        "ended_ns": producer.ended_ns.map(|ns| ns.to_string()),
        "worker_gid": producer.worker_gid,
        "visible_cores": producer.visible_cores,
        "token": producer.token,
        "armed_from_ns": producer.armed_from_ns.map(|ns| ns.to_string()),
        "rings": producer.rings,
        "run_id": (producer.run_id != 0).then(|| run_id(producer.run_id)),
        "not_captured": (!producer.not_captured.is_empty()).then_some(&producer.not_captured),
    })
}

/// Whether a process has its rings.
pub(crate) fn armed(producer: &v1::ArmedProducer) -> Value {
    json!({
        "producer_id": producer.producer_id,
        "pid": producer.pid,
        "name": producer.name,
        "armed": producer.armed,
        "segment_bytes": producer.segment_bytes,
        "refused": (!producer.refused.is_empty()).then_some(&producer.refused),
    })
}

/// What a process does, in a word.
pub(crate) fn state(state: ProducerState) -> &'static str {
    match state {
        ProducerState::Unspecified => "unknown",
        ProducerState::Attached => "attached",
        ProducerState::Capturing => "capturing",
        ProducerState::Dead => "dead",
        ProducerState::Detached => "detached",
        ProducerState::Quarantined => "quarantined",
        ProducerState::Away => "away",
    }
}

/// A run's number as it is printed everywhere.
pub(crate) fn run_id(number: u64) -> String {
    format!("{number:016x}")
}
