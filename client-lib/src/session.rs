//! A connection to the daemon: attach, arm, disarm.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nrt_trace_abi::message::{
    self, Arm, Armed, BadMessage, Disarm, Disarmed, Go, Hello, MAX_BYTES, MAX_HANDED_BACK, Message,
    OwnAnswer, Refuse, Welcome,
};
use nrt_trace_ring::step;
use nrt_trace_shm::distant::Distant;
use nrt_trace_shm::publish::Retired;
use nrt_trace_shm::{ShmError, control, memfd, socket, threads};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use zerocopy::IntoBytes;

use crate::ahead::Ahead;
use crate::names::{self, SharedNames};
use crate::process::{self, CONTROL, Status};
use crate::segment::{self, BadSegment, Segment};
use crate::tracer::Options;
use crate::{environment, log, own};

/// How long the daemon may take to answer Hello.
const WELCOME_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a Disarm waits for threads to leave; the daemon waits 100 ms for the answer.
const LEAVE_TIMEOUT: Duration = Duration::from_millis(80);
/// Housekeeping period.
const TICK: Duration = Duration::from_secs(1);
/// How long a process lives before it is got ready for what most that end sooner have no use for.
const QUIET: Duration = Duration::from_millis(100);
/// `errno` of an answer for which there is none better.
const EINVAL: u32 = 22;

/// Why a connection did not come about, or ended.
#[derive(Debug)]
pub(crate) enum Ended {
    Closed,
    Shm(ShmError),
    Message(BadMessage),
    /// The wrong number of descriptors came with a message.
    Descriptors(usize),
    Refused(String),
    Timeout,
}

impl Ended {
    /// Whether it was for want of descriptors.
    pub(crate) fn is_no_descriptors(&self) -> bool {
        matches!(self, Self::Shm(ShmError::NoDescriptors { .. }))
    }
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Closed => write!(f, "the daemon closed it"),
            Self::Shm(error) => write!(f, "{error}"),
            Self::Message(error) => write!(f, "{error}"),
            Self::Descriptors(count) => write!(f, "{count} descriptors came with a message"),
            Self::Refused(reason) => write!(f, "the daemon refuses: {reason}"),
            Self::Timeout => write!(f, "the daemon did not answer"),
        }
    }
}

impl From<ShmError> for Ended {
    fn from(error: ShmError) -> Self {
        Self::Shm(error)
    }
}

impl From<BadMessage> for Ended {
    fn from(error: BadMessage) -> Self {
        Self::Message(error)
    }
}

/// What outlives a connection.
#[derive(Debug)]
pub(crate) struct Kept {
    /// Segments that a thread may still be writing.
    retired: Vec<Retired<Segment>>,
    /// String tables that a thread may still be writing.
    retired_names: Vec<Retired<SharedNames>>,
    /// Whether the kernel has barriers for this process; not asked yet at first.
    barriers: Option<bool>,
    /// How long to go on without a daemon, as the last one said.
    orphan_keep: Duration,
    alone_since: Option<Instant>,
    /// A daemon's page and rings are in place that nobody has taken away.
    is_orphan: bool,
    /// Pages of the published segment that are still to be entered.
    ahead: Option<Ahead>,
    /// The rings of the last runs, for a next daemon: it has no others to go on with.
    held: VecDeque<Distant>,
    /// The run whose rings are published; 0 for none.
    armed: u64,
    /// When this was made.
    begun: Instant,
    /// Last housekeeping.
    kept_at: Instant,
}

impl Kept {
    /// At most so many mappings wait to be taken back; more are left in place for good.
    const MOST: usize = 64;

    pub(crate) fn new() -> Self {
        Self {
            retired: Vec::new(),
            retired_names: Vec::new(),
            barriers: None,
            orphan_keep: Duration::from_secs(600),
            alone_since: None,
            is_orphan: false,
            ahead: None,
            held: VecDeque::new(),
            armed: 0,
            begun: Instant::now(),
            kept_at: Instant::now(),
        }
    }

    /// Takes the published segment away; true if no thread can be writing it any more.
    fn retire_segment(&mut self) -> bool {
        self.ahead = None;
        segment::tell_of_misplaced();
        self.armed = 0;
        let Some(old) = process::segment().replace(None) else {
            return true;
        };
        self.retired.push(old);
        // Before the time for the threads begins: it may take as long itself.
        let _registered = self.can_unmap();
        self.collect(Instant::now() + LEAVE_TIMEOUT);
        self.retired.is_empty()
    }

    /// Keeps a run's rings for a next daemon. The daemon takes the memory behind them back when it has no more use for
    /// it, so that a descriptor is all that is held.
    fn hold(&mut self, generation: u64, fd: Distant) {
        if self.held.len() == MAX_HANDED_BACK {
            self.held.pop_front();
        }
        self.held.push_back(fd);
        self.armed = generation;
    }

    /// Descriptors ran out: those that are held only for a next daemon give way.
    pub(crate) fn let_go(&mut self) {
        self.held.clear();
    }

    /// A capture without a daemon may have taken the place of a run's rings: then nobody goes on with them.
    fn forget_replaced(&mut self) {
        let inside = threads::enter(process::instance());
        let published = inside
            .as_ref()
            .and_then(|inside| process::segment().get(inside));
        if published.is_none_or(|segment| segment.gate_generation != self.armed & 0xFFFF) {
            self.armed = 0;
        }
    }

    /// Whether what is taken away can be unmapped. The first call registers the process for barriers, and where it has
    /// several threads, as with this one it has, the kernel lets a grace period pass first: 15 ms and more. So it comes when
    /// there is nothing else to do, or something to unmap, and keeps no process from being attached, or from its end if that
    /// is near.
    fn can_unmap(&mut self) -> bool {
        *self.barriers.get_or_insert_with(|| {
            let barriers = threads::barriers_work();
            if !barriers {
                log::write(
                    log::WARN,
                    "membarrier is refused here: old segments stay mapped",
                );
            }
            barriers
        })
    }

    /// Unmaps what nobody uses any more.
    fn collect(&mut self, deadline: Instant) {
        if self.retired.is_empty() && self.retired_names.is_empty() {
            return;
        }
        if self.can_unmap() {
            self.retired = std::mem::take(&mut self.retired)
                .into_iter()
                .filter_map(|old| old.reclaim(deadline).err())
                .collect();
            self.retired_names = std::mem::take(&mut self.retired_names)
                .into_iter()
                .filter_map(|old| old.reclaim(deadline).err())
                .collect();
        }
        self.retired.truncate(Self::MOST);
        self.retired_names.truncate(Self::MOST);
    }

    /// How long to wait for a message before the next tick.
    fn pause(&self) -> Duration {
        let tick = if self.barriers.is_some() { TICK } else { QUIET };
        (self.ahead.as_ref()).map_or(tick, |ahead| ahead.pause().min(tick))
    }

    fn tick(&mut self) {
        if let Some(ahead) = &mut self.ahead
            && let Some(inside) = threads::enter(process::instance())
            && let Some(segment) = process::segment().get(&inside)
            && !ahead.follow(segment, CONTROL.words())
        {
            self.ahead = None;
        }
        if self.begun.elapsed() >= QUIET {
            let _registered = self.can_unmap();
        }
        if self.kept_at.elapsed() < TICK {
            return;
        }
        self.kept_at = Instant::now();
        segment::tell_of_misplaced();
        self.collect(Instant::now());
        threads::sweep();
    }

    /// Called while the process has rings of its own making: the pages of a daemon's need not be entered any more.
    pub(crate) fn rest(&mut self) {
        self.ahead = None;
        self.tick();
    }

    /// Called while there is no connection: after the time that the daemon told, stop capturing and unmap.
    pub(crate) fn without_daemon(&mut self, now: Instant) {
        let since = *self.alone_since.get_or_insert(now);
        if now.duration_since(since) >= self.orphan_keep && self.is_orphan {
            self.is_orphan = false;
            log::write(log::WARN, "no daemon came back: capturing stops");
            CONTROL.clear();
            self.retire_segment();
        }
        self.tick();
    }
}

/// An attached connection.
#[derive(Debug)]
pub(crate) struct Session {
    /// Shared with threads that ask the daemon for something.
    fd: Arc<Distant>,
}

impl Session {
    /// Says Hello and takes what the daemon shares.
    pub(crate) fn attach(fd: Distant, options: &Options, keep: &mut Kept) -> Result<Self, Ended> {
        let session = Self { fd: Arc::new(fd) };
        step::at("attach:connected");
        let mut hello = hello(options);
        keep.forget_replaced();
        hello.armed_generation = keep.armed;
        keep.held.retain(Distant::is_there);
        let rings: Result<Vec<_>, _> = keep.held.iter().map(Distant::get).collect();
        socket::send(session.fd.get()?, hello.as_bytes(), &rings?)?;
        step::at("attach:hello");
        if !session.readable(WELCOME_TIMEOUT)? {
            return Err(Ended::Timeout);
        }
        let mut buffer = [0; MAX_BYTES];
        let (packet, fds) = session.receive(&mut buffer)?;
        if message::kind_of(packet)? == Refuse::KIND {
            let refuse: Refuse = message::parse(packet)?;
            return Err(Ended::Refused(
                refuse.text().unwrap_or("(no reason)").to_owned(),
            ));
        }
        let welcome: Welcome = message::parse(packet)?;
        step::at("attach:welcome");
        let Ok([page, table]) = <[Distant; 2]>::try_from(fds) else {
            return Err(Ended::Descriptors(0));
        };
        memfd::check(page.get()?, control::BYTES)?;
        let table = SharedNames::map(table.get()?, welcome.string_bytes)?;

        let goes_on = welcome.run_follows == Welcome::RUN_GOES_ON && keep.armed != 0;
        // One page takes the other's place between two emits. Either its gates are open for the rings that are there, or
        // they are closed, and then what an earlier daemon left goes.
        CONTROL.map(page.get()?)?;
        step::at("attach:page");
        keep.alone_since = None;
        keep.is_orphan = true;
        keep.orphan_keep = Duration::from_secs(welcome.orphan_keep_s.into());
        own::parted();
        if !goes_on {
            keep.retire_segment();
            process::new_instance();
        }
        keep.retired_names
            .extend(process::names().replace(Some(Box::new(table))));
        step::at("attach:names");
        names::share_all();
        step::at("attach:shared");
        own::connected(&session.fd);
        process::set_status(match welcome.run_follows {
            0 => Status::Attached,
            _ if goes_on => Status::Armed,
            _ => Status::Arming,
        });
        log::write(
            log::DEBUG,
            &format!("attached as producer {}", welcome.producer_id),
        );
        Ok(session)
    }

    /// Does what the daemon asks for, until the connection ends.
    pub(crate) fn serve(&self, keep: &mut Kept) -> Ended {
        let mut buffer = [0; MAX_BYTES];
        loop {
            match self.readable(keep.pause()) {
                Ok(false) => keep.tick(),
                Ok(true) => {
                    let handled = self
                        .receive(&mut buffer)
                        .and_then(|(packet, fds)| self.handle(packet, fds, keep));
                    if let Err(ended) = handled {
                        return ended;
                    }
                }
                Err(ended) => return ended,
            }
        }
    }

    fn handle(&self, packet: &[u8], fds: Vec<Distant>, keep: &mut Kept) -> Result<(), Ended> {
        match message::kind_of(packet)? {
            Arm::KIND => {
                let arm: Arm = message::parse(packet)?;
                let Ok([fd]) = <[Distant; 1]>::try_from(fds) else {
                    return Err(Ended::Descriptors(0));
                };
                self.arm(&arm, fd, keep)
            }
            Go::KIND => {
                message::parse::<Go>(packet)?;
                step::at("arm:go");
                process::set_status(Status::Armed);
                Ok(())
            }
            Disarm::KIND => {
                let disarm: Disarm = message::parse(packet)?;
                process::set_status(Status::Attached);
                step::at("disarm:received");
                let quiescent = keep.retire_segment();
                step::at("disarm:left");
                log::write(
                    log::DEBUG,
                    &format!("run {} ended, quiescent: {quiescent}", disarm.generation),
                );
                let answer = Disarmed {
                    header: Disarmed::header(),
                    generation: disarm.generation,
                    quiescent: u32::from(quiescent),
                    reserved: 0,
                };
                Ok(socket::send(self.fd.get()?, answer.as_bytes(), &[])?)
            }
            OwnAnswer::KIND => {
                own::answered(message::parse(packet)?);
                Ok(())
            }
            // Attached, but a run that covers this process goes on without it.
            Refuse::KIND => {
                let refuse: Refuse = message::parse(packet)?;
                // Nothing will be recorded: nobody need wait for it.
                process::set_status(Status::Attached);
                let reason = refuse.text().unwrap_or("(no reason)");
                log::write(log::WARN, &format!("not captured: {reason}"));
                Ok(())
            }
            kind => Err(Ended::Message(BadMessage::Kind { kind })),
        }
    }

    /// Maps a run's segment and publishes it; the gates open only after the daemon has our answer.
    fn arm(&self, arm: &Arm, fd: Distant, keep: &mut Kept) -> Result<(), Ended> {
        step::at("arm:received");
        keep.retire_segment();
        let mapped = (fd.get().map_err(BadSegment::Shm))
            .and_then(|fd| Segment::map(fd, arm.segment_bytes, arm.generation));
        let errno = match mapped {
            Ok(segment) => {
                log::write(
                    log::DEBUG,
                    &format!("run {}: {} bytes", arm.generation, arm.segment_bytes),
                );
                step::at("arm:mapped");
                keep.ahead = Ahead::start(&segment);
                own::armed(&segment);
                process::set_status(Status::Arming);
                keep.retired
                    .extend(process::segment().replace(Some(Box::new(segment))));
                keep.hold(arm.generation, fd);
                0
            }
            Err(BadSegment::Shm(error)) => {
                // Nothing will be recorded: nobody need wait for it.
                process::set_status(Status::Attached);
                log::write(log::WARN, &format!("the segment can't be mapped: {error}"));
                error
                    .raw_os_error()
                    .and_then(|errno| u32::try_from(errno).ok())
                    .unwrap_or(EINVAL)
            }
            Err(BadSegment::Header) => {
                process::set_status(Status::Attached);
                log::write(log::WARN, "the segment's header contradicts itself");
                EINVAL
            }
        };
        step::at("arm:published");
        let answer = Armed {
            header: Armed::header(),
            generation: arm.generation,
            errno,
            reserved: 0,
        };
        Ok(socket::send(self.fd.get()?, answer.as_bytes(), &[])?)
    }

    fn receive<'a>(&self, buffer: &'a mut [u8]) -> Result<(&'a [u8], Vec<Distant>), Ended> {
        let received = socket::receive(self.fd.get()?, buffer)?;
        let fds: Result<Vec<_>, _> = received.fds.into_iter().map(Distant::new).collect();
        let fds = fds?;
        if received.bytes == 0 {
            return Err(Ended::Closed);
        }
        Ok((&buffer[..received.bytes], fds))
    }

    /// Waits for a message, or for the end of the connection.
    fn readable(&self, timeout: Duration) -> Result<bool, Ended> {
        let timeout = Timespec {
            tv_sec: timeout.as_secs().cast_signed(),
            tv_nsec: timeout.subsec_nanos().into(),
        };
        let mut fds = [PollFd::from_borrowed_fd(self.fd.get()?, PollFlags::IN)];
        match poll(&mut fds, Some(&timeout)) {
            Ok(count) => Ok(count > 0),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(errno) => Err(Ended::Shm(ShmError::Os {
                what: "wait for the daemon",
                source: errno.into(),
            })),
        }
    }
}

fn hello(options: &Options) -> Hello {
    let mut hello = Hello::new();
    hello.claimed_pid = std::process::id();
    hello.worker_gid = environment::worker_gid();
    hello.set_visible(&environment::visible_cores(&options.cores));
    hello.set_name(&options.name);
    hello.set_token(&std::env::var("NRT_TRACE_TOKEN").unwrap_or_default());
    if let Ok(exe) = std::env::current_exe() {
        hello.set_exe(&exe.to_string_lossy());
    }
    hello
}
