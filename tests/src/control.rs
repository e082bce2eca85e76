//! The control API, for tests that make thousands of calls: one connection, every call under the deadline.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::io;

use hyper_util::rt::TokioIo;
use nrt_trace_abi::record::{RECORD_BYTES, Record};
use nrt_trace_export::{JsonOptions, JsonWriter};
use nrt_trace_proto::v1::trace_control_client::TraceControlClient;
use nrt_trace_proto::v1::trace_part::Part;
use nrt_trace_proto::v1::{self, TracePart};
use tokio::net::UnixStream;
use tokio::runtime::{Builder, Runtime};
use tonic::transport::{Channel, Endpoint};
use tonic::{Response, Status};

use crate::document::Document;
use crate::host::Host;
use crate::payload;
use crate::wait::{DEADLINE, until};

/// A connection to a daemon.
#[derive(Debug)]
pub struct Control {
    runtime: Runtime,
    grpc: TraceControlClient<Channel>,
}

/// An event of a fetch, by what it says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Numbered {
    /// Its ring's number for it.
    pub seq: u64,
    /// The emitting thread's number.
    pub thread: u64,
    /// The event's number in its thread.
    pub number: u64,
}

/// One ring of a fetch.
#[derive(Clone, Debug)]
pub struct RingFetch {
    /// The events, as they came.
    pub events: Vec<Numbered>,
    /// The ring's account.
    pub account: v1::RingAccount,
}

/// A whole fetch.
#[derive(Clone, Debug)]
pub struct Fetched(Vec<TracePart>);

impl Control {
    /// Connects to the host's daemon.
    ///
    /// # Panics
    ///
    /// If there is none.
    #[must_use]
    pub fn connect(host: &Host) -> Self {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let path = host.control_socket();
        let connector = tower::service_fn(move |_| {
            let path = path.clone();
            async move { UnixStream::connect(path).await.map(TokioIo::new) }
        });
        let channel = runtime
            .block_on(Endpoint::from_static("http://nrt-trace").connect_with_connector(connector))
            .expect("the daemon answers");
        Self {
            runtime,
            grpc: TraceControlClient::new(channel),
        }
    }

    /// Starts a run for the processes that carry `token`, and waits at most `wait_ms` for those that are there.
    ///
    /// # Errors
    ///
    /// What the daemon says.
    pub fn try_start(
        &mut self,
        token: &str,
        cap: u64,
        wait_ms: u32,
    ) -> Result<v1::StartResponse, Status> {
        let request = v1::StartRequest {
            token: token.to_owned(),
            max_events_per_nc: Some(cap),
            arm_timeout_ms: Some(wait_ms),
            ..Default::default()
        };
        let Self { runtime, grpc } = self;
        in_time(runtime, grpc.start(request))
    }

    /// Has a token's run capture all types of all cores from now on.
    ///
    /// # Errors
    ///
    /// What the daemon says.
    pub fn try_capture_all(&mut self, token: &str) -> Result<v1::SetFilterResponse, Status> {
        let request = v1::SetFilterRequest {
            token: token.to_owned(),
            nc: Some(v1::NcFilter::default()),
            events: Some(v1::TypeFilter::default()),
            arm_timeout_ms: Some(100),
        };
        let Self { runtime, grpc } = self;
        in_time(runtime, grpc.set_filter(request))
    }

    /// Stops a token's run.
    ///
    /// # Errors
    ///
    /// What the daemon says.
    pub fn try_stop(&mut self, token: &str) -> Result<v1::StopResponse, Status> {
        let request = v1::StopRequest {
            token: token.to_owned(),
            discard: false,
        };
        let Self { runtime, grpc } = self;
        in_time(runtime, grpc.stop(request))
    }

    /// Fetches what is unread of a token's run, and commits it.
    ///
    /// # Errors
    ///
    /// What the daemon says.
    pub fn try_fetch(&mut self, token: &str) -> Result<Fetched, Status> {
        let request = v1::FetchRequest {
            token: token.to_owned(),
            ..Default::default()
        };
        let Self { runtime, grpc } = self;
        let mut stream = in_time(runtime, grpc.fetch(request))?;
        let mut parts = Vec::new();
        let next = async {
            while let Some(part) = stream.message().await? {
                parts.push(part);
            }
            Ok(Response::new(()))
        };
        in_time(runtime, next)?;
        let Some(Part::End(end)) = parts.last().and_then(|part| part.part.as_ref()) else {
            return Err(Status::data_loss("the stream has no end"));
        };
        let fetch_id = end.fetch_id;
        in_time(runtime, grpc.commit(v1::CommitRequest { fetch_id }))?;
        Ok(Fetched(parts))
    }

    /// As [`Control::try_start`].
    ///
    /// # Panics
    ///
    /// If it fails.
    pub fn start(&mut self, token: &str, cap: u64, wait_ms: u32) -> v1::StartResponse {
        self.try_start(token, cap, wait_ms).expect("a start")
    }

    /// Starts a run as this request says.
    ///
    /// # Panics
    ///
    /// If it fails.
    pub fn start_as(&mut self, request: v1::StartRequest) -> v1::StartResponse {
        let Self { runtime, grpc } = self;
        in_time(runtime, grpc.start(request)).expect("a start")
    }

    /// Events that a process has claimed numbers for, over all runs that there are.
    ///
    /// # Panics
    ///
    /// If the daemon does not say.
    pub fn claimed(&mut self, pid: u32) -> u64 {
        let Self { runtime, grpc } = self;
        let everybody = v1::ListProducersRequest { token: None };
        let producers = in_time(runtime, grpc.list_producers(everybody)).expect("a list");
        let status = in_time(runtime, grpc.get_status(v1::GetStatusRequest {})).expect("a status");
        let mine = |producer: &v1::Producer| producer.pid == Some(pid.cast_signed());
        let ids: BTreeSet<u32> = (producers.producers.iter())
            .filter(|producer| mine(producer))
            .map(|producer| producer.producer_id)
            .collect();
        let accounts = status.runs.iter().flat_map(|run| &run.accounts);
        let mine = accounts.filter(|account| ids.contains(&account.producer_id));
        mine.map(|account| account.claimed).sum()
    }

    /// As [`Control::try_stop`].
    ///
    /// # Panics
    ///
    /// If it fails.
    pub fn stop(&mut self, token: &str) -> v1::StopResponse {
        self.try_stop(token).expect("a stop")
    }

    /// As [`Control::try_fetch`].
    ///
    /// # Panics
    ///
    /// If it fails, or the trace can't be read: every fetch is also written as a document, and that one read strictly.
    pub fn fetch(&mut self, token: &str) -> Fetched {
        let fetched = self.try_fetch(token).expect("a fetch");
        let events = fetched.document().expect("a document").events.len();
        assert_eq!(
            events,
            fetched.records().count(),
            "the document has them all"
        );
        fetched
    }

    /// The processes that carry `token`.
    ///
    /// # Panics
    ///
    /// If the daemon does not say.
    pub fn producers(&mut self, token: &str) -> Vec<v1::Producer> {
        let request = v1::ListProducersRequest {
            token: Some(token.to_owned()),
        };
        let Self { runtime, grpc } = self;
        in_time(runtime, grpc.list_producers(request))
            .expect("a list")
            .producers
    }

    /// Waits until the process is in the state, as the daemon sees it, and returns its number.
    ///
    /// # Panics
    ///
    /// If it is not by the deadline.
    pub fn until_state(&mut self, token: &str, pid: u32, wanted: &[v1::ProducerState]) -> u32 {
        until("the daemon to see what became of a process", || {
            let producers = self.producers(token);
            let mine = producers
                .iter()
                .find(|p| p.pid == Some(pid.cast_signed()) && wanted.contains(&p.state()))?;
            Some(mine.producer_id)
        })
    }
}

fn in_time<T>(
    runtime: &Runtime,
    call: impl Future<Output = Result<Response<T>, Status>>,
) -> Result<T, Status> {
    let answer = runtime.block_on(async { tokio::time::timeout(DEADLINE, call).await });
    answer
        .expect("the daemon answers by the deadline")
        .map(Response::into_inner)
}

impl Fetched {
    /// The ring that a process has: its pid's.
    ///
    /// # Panics
    ///
    /// If there is not exactly one, or an event is torn.
    #[must_use]
    pub fn ring(&self, pid: u32) -> RingFetch {
        let producer = |part: &Part| match part {
            Part::Producer(p) if p.pid == Some(pid.cast_signed()) => Some(p.producer_id),
            _ => None,
        };
        let id = only(self.parts().filter_map(producer));
        let account = |part: &Part| match part {
            Part::Account(account) if account.producer_id == id => Some(*account),
            _ => None,
        };
        let events = self.records().filter(|r| r.producer_id() == id);
        RingFetch {
            events: events.map(|record| numbered(&record)).collect(),
            account: only(self.parts().filter_map(account)),
        }
    }

    /// The rings of a process in which there were events, by its pid; one that attached twice may have several.
    ///
    /// # Panics
    ///
    /// If an event is torn.
    #[must_use]
    pub fn rings(&self, pid: u32) -> Vec<RingFetch> {
        let producer = |part: &Part| match part {
            Part::Producer(p) if p.pid == Some(pid.cast_signed()) => Some(p.producer_id),
            _ => None,
        };
        let ids: BTreeSet<u32> = self.parts().filter_map(producer).collect();
        let account = |part: &Part| match part {
            Part::Account(account) if ids.contains(&account.producer_id) => Some(*account),
            _ => None,
        };
        let used = self.parts().filter_map(account).filter(|a| a.claimed > 0);
        used.map(|account| {
            let events = self.records().filter(|record| {
                record.producer_id() == account.producer_id && record.nc_idx() == account.nc_idx
            });
            RingFetch {
                events: events.map(|record| numbered(&record)).collect(),
                account,
            }
        })
        .collect()
    }

    /// The account of a process by its pid, over all its attaches, with what the run has of those that were forgotten.
    #[must_use]
    pub fn sum(&self, pid: u32) -> v1::RingAccount {
        let producer = |part: &Part| match part {
            Part::Producer(p) if p.pid == Some(pid.cast_signed()) => Some(p.producer_id),
            _ => None,
        };
        let ids: BTreeSet<u32> = self.parts().filter_map(producer).collect();
        let account = |part: &Part| match part {
            Part::Account(account) if ids.contains(&account.producer_id) => Some(*account),
            Part::Begin(begin) => begin.run.as_ref()?.forgotten,
            _ => None,
        };
        let add = |sum: v1::RingAccount, one: v1::RingAccount| v1::RingAccount {
            claimed: sum.claimed + one.claimed,
            delivered: sum.delivered + one.delivered,
            lost: sum.lost + one.lost,
            pending: sum.pending + one.pending,
            unread: sum.unread + one.unread,
            abandoned: sum.abandoned + one.abandoned,
            ..sum
        };
        (self.parts().filter_map(account)).fold(v1::RingAccount::default(), add)
    }

    /// All names that the daemon knows.
    #[must_use]
    pub fn names(&self) -> BTreeSet<&str> {
        let entries = self.parts().filter_map(|part| match part {
            Part::Strings(strings) => Some(&strings.entries),
            _ => None,
        });
        entries.flatten().map(|entry| entry.text.as_str()).collect()
    }

    /// The fetch as a JSON document.
    ///
    /// # Errors
    ///
    /// If the exporter refuses the stream.
    pub fn document(&self) -> io::Result<Document> {
        let mut bytes = Vec::new();
        let mut writer = JsonWriter::new(&mut bytes, JsonOptions::default());
        for part in &self.0 {
            writer.part(part)?;
        }
        writer.finish()?;
        Ok(Document::parse(&bytes))
    }

    fn parts(&self) -> impl Iterator<Item = &Part> {
        self.0.iter().filter_map(|part| part.part.as_ref())
    }

    fn records(&self) -> impl Iterator<Item = Record> {
        let chunks = self.parts().filter_map(|part| match part {
            Part::Records(records) => Some(&records.packed[..]),
            _ => None,
        });
        chunks.flat_map(|bytes| {
            bytes
                .as_chunks::<RECORD_BYTES>()
                .0
                .iter()
                .map(Record::from_bytes)
        })
    }
}

fn only<T: Debug>(found: impl Iterator<Item = T>) -> T {
    let mut found: Vec<T> = found.collect();
    assert_eq!(found.len(), 1, "one of them: {found:?}");
    found.remove(0)
}

/// Number and thread of an event that holds together.
fn numbered(record: &Record) -> Numbered {
    let data = record.data();
    let (number, thread) = (data[0], data[2]);
    assert_eq!(
        data,
        payload::numbered(thread, number),
        "an event is torn: {record:?}"
    );
    Numbered {
        seq: record.seq(),
        thread,
        number,
    }
}
