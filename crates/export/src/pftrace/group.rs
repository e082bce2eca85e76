//! How tracks are grouped.

/// Something by which tracks are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GroupKey {
    /// The machine: `instance_id`.
    InstanceId,
    /// The process: `process_id`.
    ProcessId,
    /// The thread that emitted: `thread_id`. Hardware events belong to no thread.
    ThreadId,
    /// The NeuronCore as the process sees it: `lnc_idx`.
    LncIdx,
    /// The worker's number: `worker_gid`.
    WorkerGid,
}

impl GroupKey {
    /// All keys; the last is for tracks inside a group only.
    pub const ALL: [Self; 5] = [
        Self::InstanceId,
        Self::ProcessId,
        Self::ThreadId,
        Self::LncIdx,
        Self::WorkerGid,
    ];

    /// The name that options take.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::InstanceId => "instance_id",
            Self::ProcessId => "process_id",
            Self::ThreadId => "thread_id",
            Self::LncIdx => "lnc_idx",
            Self::WorkerGid => "worker_gid",
        }
    }
}

/// What makes a group of tracks, and what makes a track in a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grouping {
    /// Keys that events of one group have in common.
    pub primary: Vec<GroupKey>,
    /// Keys that events of one track have in common besides.
    pub secondary: Vec<GroupKey>,
}

impl Default for Grouping {
    /// Groups by instance and process, tracks by worker, NeuronCore and thread.
    fn default() -> Self {
        Self {
            primary: vec![GroupKey::InstanceId, GroupKey::ProcessId],
            secondary: vec![GroupKey::WorkerGid, GroupKey::LncIdx, GroupKey::ThreadId],
        }
    }
}

impl Grouping {
    /// Whether groups are processes, which Perfetto knows as such.
    pub(crate) fn by_process(&self) -> bool {
        self.primary.contains(&GroupKey::ProcessId)
    }

    /// Whether threads are tracks of their processes.
    pub(crate) fn by_thread(&self) -> bool {
        self.by_process() && self.secondary.contains(&GroupKey::ThreadId)
    }
}
