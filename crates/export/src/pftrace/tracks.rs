//! The tracks of a trace: what they are called, what they belong to, and their descriptors.
//!
//! ```text
//!  process trainer                       a group, with the grouping by process
//!  ├─ worker 0, NC 0 (neuron_hw)         hardware events; overlapping spans on lanes of the same name
//!  ├─ thread 4711
//!  │  └─ worker 0, NC 0 (neuron_rt)      software events
//!  ├─ NC 0 copy in, NC 0 copy out        counters
//!  └─ NC 0 losses
//!  host build-7                          counters of the host monitor
//! ```

use hashbrown::HashMap;
use nrt_trace_proto::v1::Producer;

use super::field::track;
use super::group::{GroupKey, Grouping};
use super::wire::Wire;
use crate::lanes::Lanes;

/// Groups of lanes that are told apart by thread; a process that makes up more thread ids than that has the rest on one.
const GROUPS_MAX: usize = 16_384;

/// Position of a track; its uuid is one more.
pub(crate) type TrackId = u32;

/// A track.
#[derive(Debug)]
pub(crate) struct Track {
    /// `TrackDescriptor`, encoded.
    pub(crate) descriptor: Vec<u8>,
    pub(crate) parent: Option<TrackId>,
    /// Part of the file that has the descriptor.
    pub(crate) told_in: u64,
}

/// Lanes of one kind of events.
#[derive(Debug)]
pub(crate) struct LaneGroup {
    name: String,
    parent: TrackId,
    lanes: Lanes,
    tracks: Vec<TrackId>,
    unmatched: Option<TrackId>,
}

/// What tells lane groups apart; what the grouping leaves out is the same everywhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Shared {
    process: Option<u32>,
    thread: Option<u64>,
    nc: Option<u32>,
    worker: Option<i32>,
}

/// What a lane group is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Purpose {
    Software,
    Hardware,
    /// What is missing in a ring.
    Losses,
}

/// A ring, as far as tracks need it.
#[derive(Clone, Debug)]
pub(crate) struct RingKey {
    pub(crate) producer_id: u32,
    pub(crate) nc_idx: u32,
    pub(crate) worker_gid: i32,
}

/// All tracks so far.
#[derive(Debug)]
pub(crate) struct Tracks {
    grouping: Grouping,
    pub(crate) instance_id: String,
    pub(crate) tracks: Vec<Track>,
    groups: Vec<LaneGroup>,
    by_key: HashMap<(Shared, Purpose), usize>,
    processes: HashMap<u32, TrackId>,
    producers: HashMap<u32, Producer>,
    threads: HashMap<(u32, u64), TrackId>,
    primaries: HashMap<Shared, TrackId>,
    named: HashMap<(Option<TrackId>, String), TrackId>,
}

impl Tracks {
    pub(crate) fn new(grouping: Grouping) -> Self {
        Self {
            grouping,
            instance_id: String::new(),
            tracks: Vec::new(),
            groups: Vec::new(),
            by_key: HashMap::new(),
            processes: HashMap::new(),
            producers: HashMap::new(),
            threads: HashMap::new(),
            primaries: HashMap::new(),
            named: HashMap::new(),
        }
    }

    /// Takes note of a process.
    pub(crate) fn producer(&mut self, producer: &Producer) {
        self.producers
            .insert(producer.producer_id, producer.clone());
    }

    /// The group of lanes that events of this kind are drawn on.
    pub(crate) fn group(&mut self, ring: &RingKey, thread: u64, purpose: Purpose) -> usize {
        let crowded = self.groups.len() >= GROUPS_MAX;
        let thread = (purpose == Purpose::Software && !crowded).then_some(thread);
        let keys = [&self.grouping.primary[..], &self.grouping.secondary[..]].concat();
        let mut shared = shared(&keys, ring, thread);
        if purpose == Purpose::Losses {
            // Losses are a ring's.
            shared.process = Some(ring.producer_id);
            shared.nc = Some(ring.nc_idx);
        }
        if let Some(group) = self.by_key.get(&(shared, purpose)) {
            return *group;
        }
        let parent = self.parent(ring, thread, purpose);
        let name = self.name(ring, thread, purpose);
        self.groups.push(LaneGroup {
            name,
            parent,
            lanes: Lanes::default(),
            tracks: Vec::new(),
            unmatched: None,
        });
        self.by_key.insert((shared, purpose), self.groups.len() - 1);
        self.groups.len() - 1
    }

    /// The lane of a span, which is written now.
    #[inline]
    pub(crate) fn lane(&mut self, group: usize, begin: u64, end: u64) -> TrackId {
        let lane = self.groups[group].lanes.place(begin, end);
        if let Some(track) = self.groups[group].tracks.get(lane) {
            return *track;
        }
        self.next_lane(group)
    }

    #[cold]
    fn next_lane(&mut self, group: usize) -> TrackId {
        let LaneGroup { name, parent, .. } = &self.groups[group];
        let (name, parent) = (name.clone(), *parent);
        let track = self.plain(Some(parent), &name, |_| {});
        self.groups[group].tracks.push(track);
        track
    }

    /// The lane for what has no duration.
    #[inline]
    pub(crate) fn first_lane(&mut self, group: usize) -> TrackId {
        match self.groups[group].tracks.first() {
            Some(track) => *track,
            None => self.next_lane(group),
        }
    }

    /// The track for what has no partner.
    pub(crate) fn unmatched(&mut self, group: usize) -> TrackId {
        if let Some(track) = self.groups[group].unmatched {
            return track;
        }
        let LaneGroup { name, parent, .. } = &self.groups[group];
        let (name, parent) = (format!("{name} unmatched"), *parent);
        let track = self.plain(Some(parent), &name, |_| {});
        self.groups[group].unmatched = Some(track);
        track
    }

    /// The track of a process, or what stands for it.
    pub(crate) fn process(&mut self, producer_id: u32) -> TrackId {
        if let Some(track) = self.processes.get(&producer_id) {
            return *track;
        }
        let track = if let Some(producer) = self.producers.get(&producer_id).cloned() {
            self.new_process(&producer)
        } else {
            self.plain(None, &format!("producer {producer_id}"), |_| {})
        };
        self.processes.insert(producer_id, track);
        track
    }

    fn new_process(&mut self, producer: &Producer) -> TrackId {
        // Names and arguments are what the process says they are; a line of text is enough of them.
        let name = named(&producer.name, &producer.comm);
        let Some(pid) = producer.pid.filter(|pid| *pid > 0) else {
            // A number of its own would meet a real pid.
            let name = format!("producer {} {name}", producer.producer_id);
            return self.plain(None, &name, |_| {});
        };
        let instance = self.instance_id.clone();
        self.plain(None, &name, |wire| {
            wire.reserve(64);
            let process = wire.open(track::PROCESS);
            wire.number(track::PROCESS_PID, pid.unsigned_abs().into());
            for argument in producer.cmdline.iter().take(64) {
                wire.text(track::PROCESS_ARGUMENT, argument);
            }
            wire.text(track::PROCESS_NAME, &name);
            if !instance.is_empty() {
                wire.text(track::PROCESS_LABEL, &instance);
            }
            if let Some(ns_pid) = producer.ns_pid.filter(|ns_pid| *ns_pid != pid) {
                wire.text(
                    track::PROCESS_LABEL,
                    &format!("pid {ns_pid} in its namespace"),
                );
            }
            if producer.worker_gid >= 0 {
                wire.text(
                    track::PROCESS_LABEL,
                    &format!("worker {}", producer.worker_gid),
                );
            }
            wire.close(process);
        })
    }

    /// A counter beside the tracks of a ring's group.
    pub(crate) fn counter(&mut self, ring: &RingKey, what: &str, unit: Unit) -> TrackId {
        let parent = self.primary(ring, None);
        let name = format!("{} {what}", self.ring_name(ring));
        self.counter_of(parent, &name, unit)
    }

    /// A counter of this name in a group.
    pub(crate) fn counter_of(&mut self, parent: TrackId, name: &str, unit: Unit) -> TrackId {
        self.named_track(Some(parent), name, |wire| {
            wire.reserve(64);
            let counter = wire.open(track::COUNTER);
            match unit {
                Unit::Bytes => wire.number(track::COUNTER_UNIT, track::UNIT_BYTES),
                Unit::Named(name) => wire.text(track::COUNTER_UNIT_NAME, name),
            }
            wire.close(counter);
        })
    }

    /// A group at the top that is no process.
    pub(crate) fn top(&mut self, name: &str) -> TrackId {
        self.named_track(None, name, |_| {})
    }

    fn named_track(
        &mut self,
        parent: Option<TrackId>,
        name: &str,
        more: impl FnOnce(&mut Wire),
    ) -> TrackId {
        let key = (parent, name.to_owned());
        if let Some(track) = self.named.get(&key) {
            return *track;
        }
        let track = self.plain(parent, name, more);
        self.named.insert(key, track);
        track
    }

    /// What the lanes of a kind belong to.
    fn parent(&mut self, ring: &RingKey, thread: Option<u64>, purpose: Purpose) -> TrackId {
        let primary = self.primary(ring, thread);
        let Some(thread) = thread.filter(|_| self.grouping.by_thread()) else {
            return primary;
        };
        if purpose != Purpose::Software {
            return primary;
        }
        if let Some(track) = self.threads.get(&(ring.producer_id, thread)) {
            return *track;
        }
        let track = self.new_thread(ring, thread, primary);
        self.threads.insert((ring.producer_id, thread), track);
        track
    }

    fn new_thread(&mut self, ring: &RingKey, thread: u64, primary: TrackId) -> TrackId {
        let producer = self.producers.get(&ring.producer_id);
        let pid = producer.and_then(|p| p.pid).filter(|pid| *pid > 0);
        // The emitter's word: a kernel's thread id is a positive 32-bit number.
        let tid = i32::try_from(thread).ok().filter(|tid| *tid > 0);
        let (Some(pid), Some(tid)) = (pid, tid) else {
            return self.named_track(Some(primary), &format!("thread {thread}"), |_| {});
        };
        // The kernel's name of a process is that of its first thread.
        let comm = producer.map(|p| p.comm.clone()).unwrap_or_default();
        self.push(Some(primary), |wire| {
            wire.reserve(64);
            let thread = wire.open(track::THREAD);
            wire.number(track::THREAD_PID, pid.unsigned_abs().into());
            wire.number(track::THREAD_TID, tid.unsigned_abs().into());
            if tid == pid && !comm.is_empty() {
                wire.text(track::THREAD_NAME, &comm);
            }
            wire.close(thread);
        })
    }

    /// The group that a ring's tracks are in.
    pub(crate) fn primary(&mut self, ring: &RingKey, thread: Option<u64>) -> TrackId {
        let keys = self.grouping.primary.clone();
        let id = shared(&keys, ring, thread);
        if let Some(track) = self.primaries.get(&id) {
            return *track;
        }
        let by_process = self.grouping.by_process();
        let rest: Vec<GroupKey> = keys
            .into_iter()
            .filter(|key| !by_process || !matches!(key, GroupKey::ProcessId | GroupKey::InstanceId))
            .collect();
        let process = by_process.then(|| self.process(ring.producer_id));
        let track = match (process, self.words(&rest, ring, thread)) {
            (Some(process), name) if name.is_empty() => process,
            (None, name) if name.is_empty() => self.named_track(None, "trace", |_| {}),
            (process, name) => self.named_track(process, &name, |_| {}),
        };
        self.primaries.insert(id, track);
        track
    }

    fn name(&self, ring: &RingKey, thread: Option<u64>, purpose: Purpose) -> String {
        let in_thread = self.grouping.by_thread();
        let keys: Vec<GroupKey> = self
            .grouping
            .secondary
            .iter()
            .copied()
            .filter(|key| *key != GroupKey::ThreadId || !in_thread)
            .collect();
        let source = match purpose {
            Purpose::Software => "neuron_rt",
            Purpose::Hardware => "neuron_hw",
            Purpose::Losses => return format!("{} losses", self.ring_name(ring)),
        };
        match self.words(&keys, ring, thread) {
            words if words.is_empty() => source.to_owned(),
            words => format!("{words} ({source})"),
        }
    }

    fn ring_name(&self, ring: &RingKey) -> String {
        let nc = ring.nc_idx;
        if self.grouping.by_process() {
            format!("NC {nc}")
        } else {
            format!("{}, NC {nc}", self.pid_words(ring.producer_id))
        }
    }

    fn pid_words(&self, producer_id: u32) -> String {
        match self.producers.get(&producer_id).and_then(|p| p.pid) {
            Some(pid) => format!("process {pid}"),
            None => format!("producer {producer_id}"),
        }
    }

    fn words(&self, keys: &[GroupKey], ring: &RingKey, thread: Option<u64>) -> String {
        let words = keys.iter().filter_map(|key| match key {
            GroupKey::InstanceId => Some(match self.instance_id.as_str() {
                "" => "unknown instance".to_owned(),
                instance => instance.to_owned(),
            }),
            GroupKey::ProcessId => Some(self.pid_words(ring.producer_id)),
            GroupKey::ThreadId => thread.map(|thread| format!("thread {thread}")),
            GroupKey::LncIdx => Some(format!("NC {}", ring.nc_idx)),
            GroupKey::WorkerGid => {
                (ring.worker_gid >= 0).then(|| format!("worker {}", ring.worker_gid))
            }
        });
        words.collect::<Vec<String>>().join(", ")
    }

    /// A track with a name.
    fn plain(
        &mut self,
        parent: Option<TrackId>,
        name: &str,
        more: impl FnOnce(&mut Wire),
    ) -> TrackId {
        self.push(parent, |wire| {
            wire.text(track::NAME, name);
            more(wire);
        })
    }

    fn push(&mut self, parent: Option<TrackId>, more: impl FnOnce(&mut Wire)) -> TrackId {
        let id = TrackId::try_from(self.tracks.len()).expect("fewer tracks than 2^32");
        let mut wire = Wire::default();
        wire.reserve(64);
        wire.number(track::UUID, uuid(id));
        if let Some(parent) = parent {
            wire.number(track::PARENT, uuid(parent));
        }
        more(&mut wire);
        self.tracks.push(Track {
            descriptor: wire.written().to_vec(),
            parent,
            told_in: 0,
        });
        id
    }
}

/// What a counter counts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Unit {
    Bytes,
    Named(&'static str),
}

/// The uuid of a track: 0 would be the track that every trace has.
#[inline]
pub(crate) const fn uuid(track: TrackId) -> u64 {
    track as u64 + 1
}

fn shared(keys: &[GroupKey], ring: &RingKey, thread: Option<u64>) -> Shared {
    let has = |key| keys.contains(&key);
    Shared {
        process: has(GroupKey::ProcessId).then_some(ring.producer_id),
        thread: thread.filter(|_| has(GroupKey::ThreadId)),
        nc: has(GroupKey::LncIdx).then_some(ring.nc_idx),
        worker: has(GroupKey::WorkerGid).then_some(ring.worker_gid),
    }
}

/// The first of the two that says something.
fn named(name: &str, comm: &str) -> String {
    [name, comm]
        .into_iter()
        .find(|text| !text.is_empty())
        .unwrap_or("(no name)")
        .to_owned()
}
