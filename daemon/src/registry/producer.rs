//! An attached process.

use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Instant;

use nrt_trace_abi::message::{Hello, Message};
use nrt_trace_proto::v1;
use nrt_trace_shm::clock::realtime_ns;
use nrt_trace_shm::control::ControlPage;
use nrt_trace_shm::socket::Peer;
use nrt_trace_shm::{ShmError, socket};

use super::keep::KeptTable;
use crate::drain::segment::Segment;
use crate::handshake::KernelFacts;
use crate::run::Run;
use crate::run::share::Share;
use crate::state::ProducerRecord;
use crate::strings::ProducerNames;

/// Packets that wait for a socket at a time. A producer that answers never has more than three.
const OUTBOX: usize = 8;

/// Where a producer is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    /// Its Hello was good; its command line is being read until then at most, and then it is welcomed.
    Introducing {
        /// When it is welcomed at the latest.
        until: Instant,
    },
    /// Connected.
    Attached,
    /// The connection is gone, the process lives.
    Detached,
    /// The process ended.
    Dead,
    /// It was attached to an earlier daemon, and has not come back yet.
    Away {
        /// When it is given up.
        until: Instant,
    },
}

/// What a producer's rings are doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// It has none.
    Idle,
    /// The segment was sent, the answer is awaited; the gates are closed.
    Arming {
        /// The run.
        run: u64,
        /// The number that the answer must carry.
        generation: u64,
    },
    /// The gates are open.
    Open {
        /// The run.
        run: u64,
        /// The number that the gates carry.
        generation: u64,
    },
    /// The gates are closed, the answer is awaited.
    Closing {
        /// The run.
        run: u64,
        /// The number that the answer must carry.
        generation: u64,
        /// Until when a stop waits for the answer; `None` if nobody waits any more.
        until: Option<Instant>,
        /// The answer to the Arm is still on its way, and comes first.
        arm_unanswered: bool,
    },
}

impl Phase {
    /// The run that has its rings, unless they are being given up.
    pub(crate) fn run(self) -> Option<u64> {
        match self {
            Self::Arming { run, .. } | Self::Open { run, .. } => Some(run),
            Self::Idle | Self::Closing { .. } => None,
        }
    }
}

/// Descriptors that go with a packet.
#[derive(Debug)]
enum Descriptors {
    None,
    Pair([OwnedFd; 2]),
    Segment(Arc<Segment>),
}

/// An attached process.
#[derive(Debug)]
pub(crate) struct Producer {
    /// Its number: never used twice.
    pub id: u32,
    /// What is told of it; state, rings and run are filled in when it is.
    info: v1::Producer,
    /// Host cores of its own indices; none when not known.
    pub visible: Vec<u16>,
    /// Its user.
    pub uid: u32,
    /// When it started, in the kernel's ticks.
    start_ticks: Option<u64>,
    /// The connection.
    pub socket: Option<OwnedFd>,
    /// Readable when the process has ended.
    pub pidfd: Option<OwnedFd>,
    /// Its control page.
    pub page: Arc<ControlPage>,
    /// The files of page and names, until they are sent.
    pub page_files: Option<[OwnedFd; 2]>,
    /// Its names.
    pub names: Arc<ProducerNames>,
    /// Where it is in its life.
    pub life: Life,
    /// What its rings are doing.
    pub phase: Phase,
    /// Whether its words were impossible.
    pub quarantined: bool,
    /// Its tables of names, where the service manager keeps them: the one it has, and perhaps an earlier one.
    pub(super) tables: Vec<KeptTable>,
    /// The last run that covers it and has no rings of it, and why.
    pub not_captured: Option<(u64, String)>,
    /// Messages that no honest library sends.
    pub strikes: u32,
    outbox: VecDeque<(Vec<u8>, Descriptors)>,
}

/// Whether a connection can still be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Link {
    /// Yes.
    Up,
    /// No: the peer is gone, or does not read.
    Down,
}

impl Producer {
    /// A process that said `hello`.
    pub(crate) fn new(
        id: u32,
        hello: &Hello,
        peer: Peer,
        facts: KernelFacts,
        page: Arc<ControlPage>,
        names: Arc<ProducerNames>,
    ) -> Self {
        let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
        let said_name = text(hello.name());
        let exe_claimed = facts.exe.is_none();
        let facts_start = facts.start_ticks;
        let info = v1::Producer {
            producer_id: id,
            pid: peer.pid,
            ns_pid: facts.ns_pid,
            uid: peer.uid,
            gid: peer.gid,
            name: if said_name.is_empty() {
                facts.comm.clone()
            } else {
                said_name
            },
            comm: facts.comm,
            exe: facts.exe.unwrap_or_else(|| text(hello.exe())),
            exe_claimed,
            attached_ns: realtime_ns(),
            worker_gid: hello.worker_gid,
            visible_cores: hello
                .visible()
                .iter()
                .map(|core| u32::from(*core))
                .collect(),
            token: text(hello.token()),
            ..v1::Producer::default()
        };
        Self {
            id,
            info,
            visible: hello.visible().to_vec(),
            uid: peer.uid,
            start_ticks: facts_start,
            socket: None,
            pidfd: None,
            page,
            page_files: None,
            names,
            life: Life::Attached,
            phase: Phase::Idle,
            quarantined: false,
            tables: Vec::new(),
            not_captured: None,
            strikes: 0,
            outbox: VecDeque::new(),
        }
    }

    /// A process that was attached to an earlier daemon.
    pub(crate) fn away(
        info: v1::Producer,
        start_ticks: Option<u64>,
        until: Instant,
        page: Arc<ControlPage>,
        names: Arc<ProducerNames>,
    ) -> Self {
        let core = |core: &u32| u16::try_from(*core).unwrap_or(u16::MAX);
        Self {
            id: info.producer_id,
            visible: info.visible_cores.iter().map(core).collect(),
            uid: info.uid,
            start_ticks,
            info,
            socket: None,
            pidfd: None,
            page,
            page_files: None,
            names,
            life: Life::Away { until },
            phase: Phase::Idle,
            quarantined: false,
            tables: Vec::new(),
            not_captured: None,
            strikes: 0,
            outbox: VecDeque::new(),
        }
    }

    /// What is written down of it.
    pub(crate) fn record(&self) -> ProducerRecord {
        ProducerRecord {
            // Without its command line, which can be long, and is read again when it comes back.
            info: Some(v1::Producer {
                cmdline: Vec::new(),
                ..self.info.clone()
            }),
            start_ticks: self.start_ticks,
            ended: matches!(self.life, Life::Dead | Life::Detached),
            tables: self.tables.iter().map(|table| table.record).collect(),
        }
    }

    /// Whether it is this process, beyond doubt.
    pub(crate) fn is_process(&self, peer: &Peer, start_ticks: Option<u64>) -> bool {
        self.uid == peer.uid
            && self.info.pid.is_some()
            && self.info.pid == peer.pid
            && start_ticks.is_some()
            && self.start_ticks == start_ticks
    }

    /// Which process it is, if that is known: its pid, and when it was started.
    pub(crate) fn process(&self) -> Option<(i32, u64)> {
        Some((self.info.pid?, self.start_ticks?))
    }

    /// Notes that it is the one that an earlier daemon knew.
    pub(crate) fn came_back(&mut self, earlier: &Self) {
        self.info.attached_ns = earlier.info.attached_ns;
    }

    /// Token that it carries; empty for none.
    pub(crate) fn token(&self) -> &str {
        &self.info.token
    }

    /// Its pid, where it is visible.
    pub(crate) fn pid(&self) -> Option<i32> {
        self.info.pid
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        &self.info.name
    }

    /// Whether it is connected.
    pub(crate) fn is_connected(&self) -> bool {
        matches!(self.life, Life::Introducing { .. } | Life::Attached)
    }

    /// Whether it was attached to an earlier daemon, and has not come back yet.
    pub(crate) fn is_away(&self) -> bool {
        matches!(self.life, Life::Away { .. })
    }

    /// Notes its command line.
    pub(crate) fn set_command_line(&mut self, line: Vec<String>) {
        self.info.cmdline = line;
    }

    /// Notes that the connection or the process has come to an end.
    pub(crate) fn end(&mut self, life: Life) {
        self.life = life;
        self.phase = Phase::Idle;
        self.info.ended_ns.get_or_insert_with(realtime_ns);
        self.outbox.clear();
    }

    /// Sends a message, or keeps it until the socket has room.
    pub(crate) fn send<M: Message>(&mut self, message: &M) -> Link {
        self.push(message.as_bytes().to_vec(), Descriptors::None)
    }

    /// Sends a message with two descriptors.
    pub(crate) fn send_pair<M: Message>(&mut self, message: &M, descriptors: [OwnedFd; 2]) -> Link {
        self.push(message.as_bytes().to_vec(), Descriptors::Pair(descriptors))
    }

    /// Sends a message with a segment.
    pub(crate) fn send_segment<M: Message>(&mut self, message: &M, segment: Arc<Segment>) -> Link {
        self.push(message.as_bytes().to_vec(), Descriptors::Segment(segment))
    }

    fn push(&mut self, packet: Vec<u8>, descriptors: Descriptors) -> Link {
        if self.outbox.len() == OUTBOX {
            return Link::Down;
        }
        self.outbox.push_back((packet, descriptors));
        self.flush()
    }

    /// Sends what waits, as far as the socket has room.
    pub(crate) fn flush(&mut self) -> Link {
        let Some(socket) = &self.socket else {
            return Link::Down;
        };
        while let Some((packet, descriptors)) = self.outbox.front() {
            let sent = match descriptors {
                Descriptors::None => socket::send(socket, packet, &[]),
                Descriptors::Pair([a, b]) => socket::send(socket, packet, &[a.as_fd(), b.as_fd()]),
                Descriptors::Segment(segment) => socket::send(socket, packet, &[segment.fd()]),
            };
            match sent {
                Ok(()) => drop(self.outbox.pop_front()),
                Err(ShmError::WouldBlock) => return Link::Up,
                Err(_) => return Link::Down,
            }
        }
        Link::Up
    }

    /// Whether packets wait for the socket.
    pub(crate) fn has_mail(&self) -> bool {
        !self.outbox.is_empty()
    }

    /// What is told of it, as part of `run`.
    pub(crate) fn message(&self, run: Option<(&Run, &Share)>) -> v1::Producer {
        let state = match self.life {
            _ if self.quarantined => v1::ProducerState::Quarantined,
            Life::Dead => v1::ProducerState::Dead,
            Life::Detached => v1::ProducerState::Detached,
            Life::Away { .. } => v1::ProducerState::Away,
            Life::Introducing { .. } | Life::Attached => match self.phase {
                Phase::Open { .. } => v1::ProducerState::Capturing,
                _ => v1::ProducerState::Attached,
            },
        };
        v1::Producer {
            state: state.into(),
            run_id: run.map_or(0, |(run, _)| run.id),
            not_captured: (self.not_captured.as_ref())
                .filter(|(of, _)| run.is_some_and(|(run, _)| run.id == *of))
                .map(|(_, why)| why.clone())
                .unwrap_or_default(),
            rings: run.map(|(_, share)| share.ncs()).unwrap_or_default(),
            armed_from_ns: run.and_then(|(_, share)| share.armed_from_ns),
            ..self.info.clone()
        }
    }
}
