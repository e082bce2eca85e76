//! The record.

use nrt_trace_proto::v1;

/// Everything. Protobuf, as the rest of what the daemon says; the layout belongs to this program alone.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct State {
    /// The machine's boot that it holds for: memory ends with it.
    #[prost(string, tag = "1")]
    pub boot_id: String,
    /// The next producer's number: none is used twice.
    #[prost(uint32, tag = "2")]
    pub next_producer: u32,
    /// The last generation that was given out.
    #[prost(uint64, tag = "3")]
    pub generation: u64,
    /// Runs, oldest first.
    #[prost(message, repeated, tag = "4")]
    pub runs: Vec<RunRecord>,
    /// Producers that a run holds something of.
    #[prost(message, repeated, tag = "5")]
    pub producers: Vec<ProducerRecord>,
    /// What became of the events of runs that are no more.
    #[prost(message, optional, tag = "6")]
    pub counted: Option<TallyRecord>,
}

/// A run of the host or of a token.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct RunRecord {
    /// Its number.
    #[prost(uint64, tag = "1")]
    pub id: u64,
    /// Its token; empty for the host.
    #[prost(string, tag = "2")]
    pub token: String,
    /// `CLOCK_REALTIME` ns.
    #[prost(uint64, tag = "3")]
    pub started_ns: u64,
    /// `CLOCK_REALTIME` ns; absent while it captures.
    #[prost(uint64, optional, tag = "4")]
    pub stopped_ns: Option<u64>,
    /// Slots of each ring.
    #[prost(uint64, tag = "5")]
    pub cap: u64,
    /// Host cores captured; none: all.
    #[prost(uint32, repeated, tag = "6")]
    pub cores: Vec<u32>,
    /// Event types captured, a bit each.
    #[prost(uint64, tag = "7")]
    pub types: u64,
    /// Its producers' parts.
    #[prost(message, repeated, tag = "8")]
    pub shares: Vec<ShareRecord>,
    /// How often its filter was changed.
    #[prost(uint32, tag = "9")]
    pub filter_changes: u32,
    /// Filters that it had before.
    #[prost(message, repeated, tag = "10")]
    pub past_filters: Vec<PastFilterRecord>,
    /// What is left of rings that producers had in it before, oldest first.
    #[prost(message, repeated, tag = "11")]
    pub earlier: Vec<ShareRecord>,
    /// Accounts of processes that were forgotten, summed.
    #[prost(message, optional, tag = "12")]
    pub forgotten: Option<v1::RingAccount>,
    /// How many there were.
    #[prost(uint32, tag = "13")]
    pub forgotten_processes: u32,
    /// What became of the events of parts that are no more.
    #[prost(message, optional, tag = "14")]
    pub counted: Option<TallyRecord>,
    /// What became of those of earlier runs of the scope.
    #[prost(message, optional, tag = "15")]
    pub before: Option<TallyRecord>,
}

/// A filter that a run had.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct PastFilterRecord {
    /// When another one took its place, `CLOCK_REALTIME` ns.
    #[prost(uint64, tag = "1")]
    pub until_ns: u64,
    /// Host cores captured; none: all.
    #[prost(uint32, repeated, tag = "2")]
    pub cores: Vec<u32>,
    /// Event types captured, a bit each.
    #[prost(uint64, tag = "3")]
    pub types: u64,
}

/// A producer's part of a run.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ShareRecord {
    /// The producer.
    #[prost(uint32, tag = "1")]
    pub producer: u32,
    /// The memory of its rings; absent when it was let go.
    #[prost(message, optional, tag = "2")]
    pub file: Option<FileId>,
    /// Rings with memory.
    #[prost(message, repeated, tag = "3")]
    pub rings: Vec<RingRecord>,
    /// Accounts of rings without.
    #[prost(message, repeated, tag = "4")]
    pub settled: Vec<v1::RingAccount>,
    /// Events for NCs without a ring, and with an index out of range.
    #[prost(uint64, repeated, tag = "5")]
    pub unplaced: Vec<u64>,
    /// When the gates opened, `CLOCK_REALTIME` ns.
    #[prost(uint64, optional, tag = "6")]
    pub armed_from_ns: Option<u64>,
    /// Whether nobody can write the rings any more.
    #[prost(bool, tag = "7")]
    pub quiet: bool,
    /// Whether its words were impossible.
    #[prost(bool, tag = "8")]
    pub quarantined: bool,
    /// Whether it can have no rings in this run.
    #[prost(bool, tag = "9")]
    pub barred: bool,
    /// Where the numbers of rings whose memory is gone ended.
    #[prost(message, repeated, tag = "10")]
    pub ends: Vec<EndRecord>,
    /// What became of the events of rings that are no more, and of those without a ring.
    #[prost(message, optional, tag = "11")]
    pub counted: Option<TallyRecord>,
}

/// Where the numbers of a ring ended.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub(crate) struct EndRecord {
    /// The process's own index.
    #[prost(uint32, tag = "1")]
    pub nc: u32,
    /// The next number.
    #[prost(uint64, tag = "2")]
    pub next: u64,
}

/// Which memory it is, so that no other is taken for it.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub(crate) struct FileId {
    /// Device of the anonymous file.
    #[prost(uint64, tag = "1")]
    pub device: u64,
    /// Its inode.
    #[prost(uint64, tag = "2")]
    pub inode: u64,
    /// The random number in its header.
    #[prost(uint64, tag = "3")]
    pub nonce: u64,
    /// The number that its gates carry.
    #[prost(uint64, tag = "4")]
    pub generation: u64,
}

/// How far one ring was consumed.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct RingRecord {
    /// The process's own index.
    #[prost(uint32, tag = "1")]
    pub nc: u32,
    /// The next claim to look at.
    #[prost(uint64, tag = "2")]
    pub next: u64,
    /// Claims below that are still open.
    #[prost(uint64, repeated, tag = "3")]
    pub pending: Vec<u64>,
    /// Events delivered.
    #[prost(uint64, tag = "4")]
    pub delivered: u64,
    /// Events that are gone.
    #[prost(uint64, tag = "5")]
    pub lost: u64,
    /// Of those, given up on request.
    #[prost(uint64, tag = "6")]
    pub abandoned: u64,
    /// Events passed by, which only the process's own capture asked for.
    #[prost(uint64, tag = "7")]
    pub skipped: u64,
    /// Events claimed when this was written.
    #[prost(uint64, tag = "8")]
    pub claimed: u64,
    /// The number of its first event, less one.
    #[prost(uint64, tag = "9")]
    pub first: u64,
    /// What the run had asked for, where the process's own capture shared the ring.
    #[prost(message, repeated, tag = "10")]
    pub asked: Vec<AskedRecord>,
    /// What became of its events, as it was last counted.
    #[prost(message, optional, tag = "11")]
    pub counted: Option<TallyRecord>,
}

/// Counters of what became of events.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct TallyRecord {
    /// Events that claimed a number.
    #[prost(uint64, tag = "1")]
    pub recorded: u64,
    /// Consumed by a fetch.
    #[prost(uint64, tag = "2")]
    pub delivered: u64,
    /// Passed by.
    #[prost(uint64, tag = "3")]
    pub skipped: u64,
    /// Lost, by cause.
    #[prost(uint64, repeated, tag = "4")]
    pub lost: Vec<u64>,
    /// Without a ring.
    #[prost(uint64, repeated, tag = "5")]
    pub unplaced: Vec<u64>,
}

/// From which claim on a run asked for which types only.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub(crate) struct AskedRecord {
    /// The claim's number.
    #[prost(uint64, tag = "1")]
    pub from: u64,
    /// Event types, a bit each.
    #[prost(uint64, tag = "2")]
    pub types: u64,
}

/// A process that a run holds something of.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ProducerRecord {
    /// What is told of it.
    #[prost(message, optional, tag = "1")]
    pub info: Option<v1::Producer>,
    /// When it started, in the kernel's ticks since boot; with the pid it names one process. Absent: not known.
    #[prost(uint64, optional, tag = "2")]
    pub start_ticks: Option<u64>,
    /// Whether it had ended.
    #[prost(bool, tag = "3")]
    pub ended: bool,
    /// Its tables of names that the service manager keeps.
    #[prost(message, repeated, tag = "4")]
    pub tables: Vec<TableRecord>,
}

/// A table of names.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub(crate) struct TableRecord {
    /// Its number: none is used twice.
    #[prost(uint64, tag = "1")]
    pub number: u64,
    /// Device of the anonymous file.
    #[prost(uint64, tag = "2")]
    pub device: u64,
    /// Its inode.
    #[prost(uint64, tag = "3")]
    pub inode: u64,
    /// Its size.
    #[prost(uint64, tag = "4")]
    pub bytes: u64,
}
