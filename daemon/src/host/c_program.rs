//! The ticks for programs in C, over the producer socket: see `nrt_trace_abi::host_stats`.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use nrt_trace_abi::host_stats::{DATA_BYTES, HostStatsHead, MAX_CPUS, tick_bytes};
use nrt_trace_abi::message::{Refuse, refuse};
use nrt_trace_shm::ShmError;
use nrt_trace_shm::socket::{self, Peer};
use rustix::event::{PollFd, PollFlags};
use rustix::time::Timespec;
use zerocopy::IntoBytes;

use super::members::Member;
use super::monitor::HostMonitor;
use super::tick::Tick;

/// Answers at a time. Each has a thread, which a process that does not read keeps for [`PATIENCE_S`].
const MAX_ANSWERS: usize = 8;
/// Seconds for which a process may leave a packet unread.
const PATIENCE_S: i64 = 2;

/// Answers processes that ask for the ticks.
#[derive(Clone, Debug)]
pub(crate) struct CPrograms {
    monitor: HostMonitor,
    busy: Arc<AtomicUsize>,
}

impl CPrograms {
    /// Answers with what `monitor` keeps.
    pub(crate) fn new(monitor: HostMonitor) -> Self {
        Self {
            monitor,
            busy: Arc::default(),
        }
    }

    /// Answers in a thread of its own: nobody waits for the process that asked.
    pub(crate) fn answer(&self, socket: OwnedFd, peer: Peer) {
        // Relaxed: a count.
        let taken = self.busy.fetch_add(1, Ordering::Relaxed);
        let (monitor, busy) = (self.monitor.clone(), Place(self.busy.clone()));
        if taken >= MAX_ANSWERS {
            let refusal = Refuse::new(refuse::BUDGET, "others ask for the host monitor's ticks");
            // The peer sees the connection close in any case.
            drop(socket::send(&socket, refusal.as_bytes(), &[]));
            return;
        }
        let answering = std::thread::Builder::new()
            .name("nrt-host-c".to_owned())
            .spawn(move || {
                // A process that went away, or does not read, needs no answer.
                drop(give(&monitor, &socket, peer));
                drop(busy);
            });
        if let Err(error) = answering {
            tracing::warn!("no thread for a C program's question: {error}");
        }
    }
}

/// One of the answers that may be under way.
struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn give(monitor: &HostMonitor, socket: &OwnedFd, peer: Peer) -> Result<(), ShmError> {
    let ticks: Vec<Arc<Tick>> = monitor.look(|history| history.all().cloned().collect());
    let (state, info) = (monitor.state(), monitor.info().unwrap_or_default());
    let cores = ticks.iter().flat_map(|tick| tick.cores.iter());
    let cpus = cores.map(|core| u32::from(core.id()) + 1).max();
    let cpus = cpus.unwrap_or(info.cpus).min(MAX_CPUS);
    let mut head = HostStatsHead::new(&info.cpu_name);
    head.cpus = cpus;
    head.period_ms = state.period_ms;
    head.mem_capacity = info.mem_capacity_bytes.unwrap_or(0);
    head.samples = ticks.len() as u64;
    head.max_samples = state.max_samples.max(head.samples);
    head.saturated = u32::from(state.saturated);
    send(socket, head.as_bytes())?;
    let asker = asker(&ticks, peer);
    let mut bytes = Vec::with_capacity(DATA_BYTES + tick_bytes(cpus));
    for tick in &ticks {
        append(&mut bytes, tick, asker.as_deref(), cpus);
        while bytes.len() >= DATA_BYTES {
            send(socket, &bytes[..DATA_BYTES])?;
            bytes.drain(..DATA_BYTES);
        }
    }
    if bytes.is_empty() {
        return Ok(());
    }
    send(socket, &bytes)
}

/// The member that the asking process is now: its newest attach.
fn asker(ticks: &[Arc<Tick>], peer: Peer) -> Option<Arc<Member>> {
    let rows = ticks.iter().rev().flat_map(|tick| tick.rows.iter().rev());
    let mut members = rows.map(super::tick::Row::member);
    members.find(|member| Some(member.pid) == peer.pid).cloned()
}

fn append(bytes: &mut Vec<u8>, tick: &Tick, asker: Option<&Member>, cpus: u32) {
    // It may have attached several times: after a restart of the daemon it had another number.
    let same = |member: &Member, asker: &Member| {
        member.pid == asker.pid && member.started == asker.started
    };
    let resident = asker.and_then(|asker| {
        let mut rows = tick.rows.iter().filter(|row| same(row.member(), asker));
        rows.find_map(super::tick::Row::rss_bytes)
    });
    let resident = resident.and_then(|bytes| i64::try_from(bytes).ok());
    bytes.extend(tick.moment.realtime.to_le_bytes());
    bytes.extend(resident.unwrap_or(-1).to_le_bytes());
    let mut cores = tick.cores.iter().peekable();
    for cpu in 0..cpus {
        let core = cores.next_if(|core| u32::from(core.id()) == cpu);
        let util = core.and_then(super::tick::Core::util);
        bytes.extend(util.unwrap_or(f32::NAN).to_le_bytes());
    }
}

/// Sends a packet, waiting for room for a while.
fn send(socket: &OwnedFd, packet: &[u8]) -> Result<(), ShmError> {
    loop {
        match socket::send(socket, packet, &[]) {
            Err(ShmError::WouldBlock) => {
                let patience = Timespec {
                    tv_sec: PATIENCE_S,
                    tv_nsec: 0,
                };
                let mut fds = [PollFd::from_borrowed_fd(socket.as_fd(), PollFlags::OUT)];
                match rustix::event::poll(&mut fds, Some(&patience)) {
                    Ok(0) => return Err(ShmError::WouldBlock),
                    Ok(_) | Err(rustix::io::Errno::INTR) => {}
                    Err(errno) => {
                        return Err(ShmError::Os {
                            what: "wait for a C program",
                            source: errno.into(),
                        });
                    }
                }
            }
            sent => return sent,
        }
    }
}
