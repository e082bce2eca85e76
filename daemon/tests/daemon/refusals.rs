//! What calls are refused with: the codes that `control.proto` names for each, and the runtime's code beside them.

use std::collections::BTreeSet;

use nrt_trace_proto::v1;
use nrt_trace_proto::v1::trace_control_client::TraceControlClient;
use tonic::transport::Channel;
use tonic::{Code, Status};

use crate::support::{Host, fetch, host_run};

type Rpc = TraceControlClient<Channel>;

/// What was called, and how it was refused.
struct Refused {
    called: BTreeSet<(&'static str, &'static str)>,
}

impl Refused {
    /// Notes how a call ended, which has to be with this code, that its comment names, and the runtime's.
    #[track_caller]
    fn note<T>(
        &mut self,
        call: &'static str,
        result: Result<T, Status>,
        (code, name, nrt): (Code, &'static str, &str),
    ) {
        let Err(status) = result else {
            panic!("{call} was not refused");
        };
        assert_eq!(status.code(), code, "{call}: {status}");
        let carried = status.metadata().get("nrt-status");
        assert!(
            carried.is_some_and(|value| value == nrt),
            "{call}: {status:?}"
        );
        let comment = comment(call);
        assert!(comment.contains(name), "{call}, {name}: {comment}");
        self.called.insert((call, name));
    }
}

/// What `control.proto` says of a call.
fn comment(call: &str) -> String {
    const PROTO: &str = include_str!("../../../proto/nrt/trace/v1/control.proto");
    let (before, _) = PROTO.split_once(&format!("rpc {call}(")).unwrap();
    let lines = before.lines().rev().skip(1);
    let mut lines: Vec<&str> = lines
        .take_while(|line| line.trim_start().starts_with("//"))
        .collect();
    lines.reverse();
    assert!(!lines.is_empty(), "{call} has a comment");
    lines.join("\n")
}

const INVALID: (Code, &str, &str) = (Code::InvalidArgument, "INVALID_ARGUMENT", "2");
const NOT_FOUND: (Code, &str, &str) = (Code::NotFound, "NOT_FOUND", "3");
const PRECONDITION: (Code, &str, &str) = (Code::FailedPrecondition, "FAILED_PRECONDITION", "1");

fn long() -> String {
    "x".repeat(129)
}

async fn of_runs(rpc: &mut Rpc, refused: &mut Refused) {
    for request in [
        v1::StartRequest {
            token: long(),
            ..host_run(64)
        },
        v1::StartRequest {
            nc: vec![256],
            ..host_run(64)
        },
        v1::StartRequest {
            arm_timeout_ms: Some(10_001),
            ..host_run(64)
        },
        host_run(0),
    ] {
        refused.note("Start", rpc.start(request).await, INVALID);
    }
    let stop = |token: String| v1::StopRequest {
        token,
        discard: false,
    };
    refused.note("Stop", rpc.stop(stop(long())).await, INVALID);
    refused.note("Stop", rpc.stop(stop(String::new())).await, PRECONDITION);
    let events = Some(v1::TypeFilter::default());
    let filter = v1::SetFilterRequest {
        events,
        ..v1::SetFilterRequest::default()
    };
    refused.note("SetFilter", rpc.set_filter(filter.clone()).await, NOT_FOUND);
    for request in [
        v1::SetFilterRequest {
            token: long(),
            ..filter
        },
        v1::SetFilterRequest::default(),
    ] {
        refused.note("SetFilter", rpc.set_filter(request).await, INVALID);
    }
    let token = Some(long());
    let list = rpc.list_producers(v1::ListProducersRequest { token }).await;
    refused.note("ListProducers", list, INVALID);
    let commit = rpc.commit(v1::CommitRequest { fetch_id: 7 }).await;
    refused.note("Commit", commit, NOT_FOUND);
    let id = vec![1; 4097];
    let strings = rpc.get_strings(v1::GetStringsRequest {
        id,
        ..v1::GetStringsRequest::default()
    });
    refused.note("GetStrings", strings.await, INVALID);
}

async fn of_streams(rpc: &mut Rpc, refused: &mut Refused) {
    for request in [
        v1::FetchRequest {
            token: long(),
            ..fetch()
        },
        v1::FetchRequest {
            nc: vec![256],
            ..fetch()
        },
        v1::FetchRequest {
            process: vec![0],
            ..fetch()
        },
    ] {
        let v1::FetchRequest {
            token, nc, process, ..
        } = request.clone();
        refused.note("Fetch", rpc.fetch(request).await, INVALID);
        let snapshot = v1::SnapshotRequest {
            token: token.clone(),
            nc: nc.clone(),
            process: process.clone(),
            ..v1::SnapshotRequest::default()
        };
        refused.note("Snapshot", rpc.snapshot(snapshot).await, INVALID);
        let subscribe = v1::SubscribeRequest {
            token,
            nc,
            process,
            ..v1::SubscribeRequest::default()
        };
        refused.note("Subscribe", rpc.subscribe(subscribe).await, INVALID);
    }
    refused.note("Fetch", rpc.fetch(fetch()).await, NOT_FOUND);
    let snapshot = rpc.snapshot(v1::SnapshotRequest::default()).await;
    refused.note("Snapshot", snapshot, NOT_FOUND);
    let subscribe = rpc.subscribe(v1::SubscribeRequest::default()).await;
    refused.note("Subscribe", subscribe, NOT_FOUND);
}

async fn of_the_host_monitor(rpc: &mut Rpc, refused: &mut Refused) {
    let watch = |start, period_ms| v1::WatchHostStatsRequest { start, period_ms };
    let off = rpc.watch_host_stats(watch(false, None)).await;
    refused.note("WatchHostStats", off, PRECONDITION);
    let never = rpc.watch_host_stats(watch(true, Some(1))).await;
    refused.note("WatchHostStats", never, INVALID);
    let start = |period_ms| v1::StartHostRequest {
        period_ms: Some(period_ms),
        ..v1::StartHostRequest::default()
    };
    refused.note("StartHost", rpc.start_host(start(1)).await, INVALID);
    rpc.start_host(start(200)).await.unwrap();
    refused.note("StartHost", rpc.start_host(start(300)).await, PRECONDITION);
}

/// Every code that one call at an idle daemon can be refused with. That comments name no others, `proto/tests/contract.rs` sees to.
#[test]
fn each_call_is_refused_with_the_codes_of_its_comment() {
    let mut host = Host::new();
    let mut refused = Refused {
        called: BTreeSet::new(),
    };
    let client = &mut *host;
    client.runtime.block_on(async {
        of_runs(&mut client.rpc, &mut refused).await;
        of_streams(&mut client.rpc, &mut refused).await;
        of_the_host_monitor(&mut client.rpc, &mut refused).await;
    });
    // A second start, while the first run is on.
    host.start(host_run(64)).unwrap();
    let again = host.start(host_run(64));
    refused.note("Start", again, PRECONDITION);
    assert_eq!(refused.called.len(), 19, "{:?}", refused.called);
}
