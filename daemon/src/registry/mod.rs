//! The registry: one thread that owns every producer and every run.
//!
//! | file | what |
//! |---|---|
//! | `command` | how other threads ask it |
//! | `producer` | an attached process: connection, life, phase, outbox |
//! | `attach` | from a connection to a welcomed producer |
//! | `arming` | rings and gates: arm, open, close |
//! | `ending` | closed connections, ended processes, quarantine |
//! | `capture` | start and stop, with their waiting for producers |
//! | `filter` | what a run captures, changed while it goes on |
//! | `budget` | how much anybody may have, and who was refused |
//! | `own` | captures that a process asks for itself |
//! | `consume` | fetch and commit, and letting go of what was consumed |
//! | `late` | claims that come after the rings were let go |
//! | `keep` | memory that outlives this daemon, and its end |
//! | `resume` | going on where an earlier daemon stopped |
//! | `answers` | status and lists |
//!
//! It waits in one place, for sockets, pidfds, requests and the next deadline. Nothing else makes it wait: sends are
//! non-blocking, what a producer does not take waits in a short outbox, a process's memory is never read from here.
//! So a stopped or hostile producer costs itself its events and nobody anything.

mod answers;
mod arming;
mod attach;
mod budget;
mod capture;
pub(crate) mod command;
mod consume;
mod ending;
mod filter;
mod keep;
mod late;
mod own;
mod producer;
mod resume;

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nrt_trace_proto::v1;
use nrt_trace_shm::clock::realtime_ns;
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::time::Timespec;

use crate::access::Access;
use crate::clock::Clock;
use crate::config::Config;
use crate::drain::fetch::Machine;
use crate::drain::segment::Segment;
use crate::handshake::CommandLines;
use crate::host::{CPrograms, Members};
use crate::listen::StartError;
use crate::memory::Memory;
use crate::ration::{Refusals, Talk};
use crate::run::Run;
use crate::run::tally::Tally;
use crate::state::{FromManager, Spool, StateFile, Store};
use crate::strings::Names;
use attach::Visitor;
use capture::Wait;
use command::{Command, Handle};
use keep::KeptTable;
use late::Late;
use producer::{Life, Link, Phase, Producer};

/// Time between two rounds of what has no deadline: budgets, forgotten runs.
const ROUND: Duration = Duration::from_secs(1);
/// Time between two tries to send what a socket had no room for.
const MAIL: Duration = Duration::from_millis(20);
/// Time after which a change is written down at the latest that no promise waits for. Writing takes as long for many
/// changes as for one.
const WRITTEN_WITHIN: Duration = Duration::from_millis(20);

/// The thread's own state.
#[derive(Debug)]
pub(crate) struct Registry {
    config: Arc<Config>,
    handle: Handle,
    clock: Clock,
    memory: Memory,
    names: Arc<Names>,
    machine: Arc<Machine>,
    /// What the host monitor knows of the producers.
    members: Members,
    c_programs: CPrograms,
    command_lines: CommandLines,
    epoll: OwnedFd,
    listener: OwnedFd,
    access: Access,
    /// When to listen again, after descriptors ran out.
    deaf_until: Option<Instant>,
    visitors: BTreeMap<u64, Visitor>,
    /// By number, which is the order of attach.
    producers: BTreeMap<u32, Producer>,
    /// The last producers that ended and have nothing left to read.
    former: VecDeque<v1::Producer>,
    runs: Vec<Run>,
    waits: Vec<Wait>,
    next: Next,
    counts: Counts,
    /// What became of the events of runs that are no more.
    counted: Tally,
    /// What was last told of all.
    told: Tally,
    /// What was refused.
    refusals: Refusals,
    /// Lines about processes that come and go.
    talk: Talk,
    /// Descriptors that this process may have.
    descriptors: i32,
    next_round: Instant,
    started_ns: u64,
    /// Where it is written down what a next daemon needs; `None` for a daemon that has no next one.
    state: Option<StateFile>,
    /// Whether that is out of date, and nothing depends on it yet.
    changed: bool,
    /// When it is written again, if it is out of date.
    write_at: Option<Instant>,
    /// How often that changed, or may have.
    revision: u64,
    /// What the service manager keeps for a next daemon.
    store: Store,
    /// Files of what ended processes left, where it does not.
    spool: Option<Spool>,
    /// Rings to be freed, and tables of names that nobody need keep, once no record names them.
    to_free: Vec<Arc<Segment>>,
    to_forget: Vec<KeptTable>,
    /// Rings that were let go, in which claims may come.
    late: Vec<Late>,
    /// Producers whose rings are made, and to be sent at the end of this round.
    to_lend: Vec<u32>,
    boot_id: String,
}

/// Numbers to be given out.
#[derive(Debug)]
struct Next {
    visitor: u64,
    producer: u32,
    generation: u64,
    fetch: u64,
}

/// What happened since the start.
#[derive(Debug, Default)]
struct Counts {
    refused: u64,
    quarantined: u64,
    attached: u64,
}

/// What an epoll event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Listener,
    Wake,
    Visitor(u64),
    Connection(u32),
    Process(u32),
}

impl Source {
    fn data(self) -> EventData {
        EventData::new_u64(match self {
            Self::Listener => 0,
            Self::Wake => 1,
            Self::Visitor(id) => id << 3 | 2,
            Self::Connection(id) => u64::from(id) << 3 | 3,
            Self::Process(id) => u64::from(id) << 3 | 4,
        })
    }

    fn of(data: EventData) -> Option<Self> {
        let data = data.u64();
        let producer = u32::try_from(data >> 3).ok()?;
        Some(match data & 7 {
            0 => Self::Listener,
            1 => Self::Wake,
            2 => Self::Visitor(data >> 3),
            3 => Self::Connection(producer),
            4 => Self::Process(producer),
            _ => return None,
        })
    }
}

/// What a registry is given.
#[derive(Debug)]
pub(crate) struct Parts {
    /// Settings.
    pub config: Arc<Config>,
    /// Its door.
    pub handle: Handle,
    /// Clocks of the control pages.
    pub clock: Clock,
    /// Memory of the segments.
    pub memory: Memory,
    /// All names.
    pub names: Arc<Names>,
    /// Host and instance.
    pub machine: Arc<Machine>,
    /// The attached processes, for the host monitor.
    pub members: Members,
    /// Answers C programs that ask for the host monitor's ticks.
    pub c_programs: CPrograms,
    /// The producer socket.
    pub listener: OwnedFd,
    /// Who may use it.
    pub access: Access,
    /// The service manager, and what it handed over.
    pub manager: FromManager,
}

impl Registry {
    /// A registry without producers.
    pub(crate) fn new(parts: Parts) -> Result<Self, StartError> {
        let failed = |errno: Errno| StartError::System {
            what: "wait for sockets",
            source: errno.into(),
        };
        let Parts {
            config,
            handle,
            clock,
            memory,
            names,
            machine,
            members,
            c_programs,
            listener,
            access,
            manager,
        } = parts;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(failed)?;
        epoll::add(&epoll, &listener, Source::Listener.data(), EventFlags::IN).map_err(failed)?;
        epoll::add(
            &epoll,
            handle.wake_fd(),
            Source::Wake.data(),
            EventFlags::IN,
        )
        .map_err(failed)?;
        let state =
            (config.resume && !config.embedded).then(|| StateFile::in_folder(&config.state_dir));
        let store = match state {
            Some(_) => Store::new(manager),
            None => Store::unused(manager),
        };
        let spool = match state {
            Some(_) => Spool::in_folder(&config.state_dir)?,
            None => None,
        };
        let mut registry = Self {
            state,
            changed: false,
            write_at: None,
            revision: 0,
            store,
            spool,
            to_free: Vec::new(),
            to_forget: Vec::new(),
            late: Vec::new(),
            to_lend: Vec::new(),
            boot_id: resume::boot_id(),
            config,
            handle,
            clock,
            memory,
            names,
            machine,
            members,
            c_programs,
            command_lines: CommandLines::default(),
            epoll,
            listener,
            access,
            deaf_until: None,
            visitors: BTreeMap::new(),
            producers: BTreeMap::new(),
            former: VecDeque::new(),
            runs: Vec::new(),
            waits: Vec::new(),
            next: Next {
                visitor: 0,
                producer: 1,
                // Another beginning for each daemon: a gate never fits a segment that an earlier one gave.
                generation: random() >> 16,
                fetch: random() >> 1,
            },
            counts: Counts::default(),
            counted: Tally::default(),
            told: Tally::default(),
            refusals: Refusals::default(),
            talk: Talk::new(Instant::now()),
            descriptors: budget::descriptor_limit(),
            next_round: Instant::now() + ROUND,
            started_ns: realtime_ns(),
        };
        registry.take_up();
        Ok(registry)
    }

    /// Runs until the door is told to end.
    pub(crate) fn run(mut self) {
        let mut events = Vec::with_capacity(64);
        let pulse = self.handle.pulse();
        while !self.handle.is_ending() {
            pulse.beat();
            crate::failpoint::at("registry");
            let timeout = self.time_left(Instant::now());
            match epoll::wait(&self.epoll, spare_capacity(&mut events), Some(&timeout)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => {
                    tracing::error!("can't wait for producers any more: {errno}");
                    break;
                }
            }
            for event in events.drain(..) {
                self.dispatch(event.data);
            }
            self.expire(Instant::now());
            self.lend();
            self.write_soon(Instant::now());
            self.store.flush();
        }
        self.close_all();
    }

    fn dispatch(&mut self, data: EventData) {
        match Source::of(data) {
            Some(Source::Listener) => self.accept(),
            Some(Source::Wake) => {
                self.handle.hear();
                while let Some(command) = self.handle.next() {
                    self.obey(command);
                }
            }
            Some(Source::Visitor(id)) => self.hear_visitor(id),
            Some(Source::Connection(id)) => {
                self.hear_producer(id);
                self.changed = true;
            }
            Some(Source::Process(id)) => {
                self.process_ended(id);
                self.changed = true;
            }
            None => {}
        }
    }

    fn obey(&mut self, command: Command) {
        self.count_late(); // whatever is asked: it is told of
        match command {
            Command::Start(spec, reply) => self.start(spec, reply),
            Command::SetFilter(spec, reply) => self.set_filter(spec, reply),
            Command::Stop {
                token,
                discard,
                reply,
            } => self.stop(&token, discard, reply),
            // Whoever asked and went away needs no answer.
            Command::Fetch(spec, reply) => drop(reply.send(self.begin_fetch(&spec))),
            Command::Snapshot(spec, reply) => drop(reply.send(self.begin_snapshot(&spec))),
            Command::Follow {
                parting,
                run,
                seen,
                reply,
            } => drop(reply.send(self.look(&parting, run, seen))),
            Command::Commit(fetch_id, reply) => drop(reply.send(self.commit(fetch_id))),
            Command::Status(reply) => {
                self.write_what_is_told();
                drop(reply.send(Ok(self.status())));
            }
            Command::Producers(token, reply) => {
                self.write_what_is_told();
                drop(reply.send(Ok(self.list(token.as_deref()))));
            }
            Command::Totals(reply) => {
                let totals = self.totals();
                self.write_what_is_told();
                drop(reply.send(Ok(totals)));
            }
            Command::Reload(config) => self.config = config,
            Command::Names(reply) => drop(reply.send(Ok(self.name_tables()))),
            Command::Introduce(id, line) => self.introduced(id, Some(line)),
            Command::Quarantine(id, impossible) => {
                self.quarantine(id, impossible);
                self.changed = true;
            }
        }
    }

    /// Time until something is due.
    fn time_left(&self, now: Instant) -> Timespec {
        let of_producer = |producer: &Producer| match (producer.life, producer.phase) {
            (Life::Introducing { until }, _)
            | (
                _,
                Phase::Closing {
                    until: Some(until), ..
                },
            ) => Some(until),
            _ => producer.has_mail().then_some(now + MAIL),
        };
        let due = (self.producers.values().filter_map(of_producer))
            .chain(self.visitors.values().map(|visitor| visitor.until))
            .chain(self.waits.iter().map(|wait| wait.until))
            .chain(self.deaf_until)
            .chain(self.write_at)
            .chain(self.store.has_mail().then_some(now + MAIL))
            .chain([self.next_round]);
        let left = due
            .min()
            .map_or(ROUND, |due| due.saturating_duration_since(now));
        // One ms more, so that what is due then is due: the kernel's clock may round.
        let left = left + Duration::from_millis(1);
        Timespec::try_from(left).unwrap_or(Timespec {
            tv_sec: 1,
            tv_nsec: 0,
        })
    }

    /// Does what is due.
    fn expire(&mut self, now: Instant) {
        if self.deaf_until.is_some_and(|until| until <= now) {
            self.listen_again();
        }
        self.visitors.retain(|_, visitor| visitor.until > now);
        let ids: Vec<u32> = self.producers.keys().copied().collect();
        for id in ids {
            let Some(producer) = self.producers.get_mut(&id) else {
                continue;
            };
            if let Life::Introducing { until } = producer.life
                && until <= now
            {
                self.introduced(id, None);
            } else if let Phase::Closing {
                until: place @ Some(_),
                ..
            } = &mut producer.phase
                && place.is_some_and(|until| until <= now)
            {
                *place = None;
                tracing::warn!(
                    producer = id,
                    "no answer to the end of capturing: not quiescent"
                );
            } else if producer.has_mail() && producer.flush() == Link::Down {
                self.connection_lost(id);
            }
        }
        if self.next_round <= now {
            self.next_round = now + ROUND;
            self.count_late();
            self.keep_budgets();
            self.forget_runs(now);
            self.lose_the_late(now);
            self.tell_of_silence();
            let ended: Vec<u32> = self.ended().collect();
            self.spool_ended(ended, true);
            // What a process had claimed, should it end while there is no daemon, is then known to the second.
            self.changed |= self.runs.iter().any(Run::is_capturing);
        }
        self.settle_waits(now);
    }

    fn run_of(&self, token: &str) -> Option<&Run> {
        self.runs.iter().find(|run| run.has_scope(token))
    }

    fn run_mut(&mut self, id: u64) -> Option<&mut Run> {
        self.runs.iter_mut().find(|run| run.id == id)
    }
}

/// A random number.
fn random() -> u64 {
    let mut bytes = [0; 8];
    // It fails only for addresses that are not ours, and a wanting seed is no security matter.
    let _ = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    u64::from_ne_bytes(bytes)
}
