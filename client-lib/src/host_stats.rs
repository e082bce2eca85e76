//! What the daemon's host monitor has sampled: busy shares of the machine's CPUs, and this process's memory.
//!
//! A question of its own on the producer socket: it needs no attach, and does not start the background thread.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use nrt_trace_abi::host_stats::{
    DATA_BYTES, HostStatsAsk, HostStatsHead, MAX_CPUS, TICK_HEAD_BYTES, tick_bytes,
};
use nrt_trace_abi::message::{self, Message, Refuse};
use nrt_trace_shm::{ShmError, socket};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use zerocopy::IntoBytes;

use crate::environment;

/// How long the daemon may take for each packet.
const PATIENCE: Duration = Duration::from_secs(5);
/// More than any daemon keeps.
const MAX_BYTES: usize = 1 << 32;

/// Why there are no samples.
#[derive(Debug)]
#[non_exhaustive]
pub enum HostStatsError {
    /// There is no daemon.
    NoDaemon(ShmError),
    /// The daemon does not answer in time.
    Timeout,
    /// The daemon refuses: too many ask at a time, or it is of another version.
    Refused(String),
    /// What came is no answer.
    Protocol,
    /// There is not enough memory for the answer.
    Memory,
}

impl std::fmt::Display for HostStatsError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoDaemon(error) => write!(f, "no daemon: {error}"),
            Self::Timeout => f.write_str("the daemon does not answer"),
            Self::Refused(reason) => write!(f, "the daemon refuses: {reason}"),
            Self::Protocol => f.write_str("the daemon's answer makes no sense"),
            Self::Memory => f.write_str("not enough memory for the host monitor's samples"),
        }
    }
}

impl std::error::Error for HostStatsError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::NoDaemon(error) => Some(error),
            Self::Timeout | Self::Refused(_) | Self::Protocol | Self::Memory => None,
        }
    }
}

/// The samples that the daemon keeps.
#[derive(Clone, Debug)]
pub struct HostStats {
    head: HostStatsHead,
    bytes: Vec<u8>,
}

/// One sample.
#[derive(Clone, Copy, Debug)]
pub struct HostTick<'a>(&'a [u8]);

impl HostStats {
    /// CPUs of the machine: the highest number plus 1.
    #[must_use]
    pub fn cpus(&self) -> u32 {
        self.head.cpus
    }

    /// Name of the CPU.
    #[must_use]
    pub fn cpu_name(&self) -> &str {
        self.head.cpu_name().unwrap_or_default()
    }

    /// Total memory of the machine, bytes.
    #[must_use]
    pub fn mem_capacity(&self) -> Option<u64> {
        Some(self.head.mem_capacity).filter(|bytes| *bytes > 0)
    }

    /// Time between two samples.
    #[must_use]
    pub fn period(&self) -> Duration {
        Duration::from_millis(self.head.period_ms.into())
    }

    /// How many samples the daemon keeps at most.
    #[must_use]
    pub fn max_samples(&self) -> u64 {
        self.head.max_samples
    }

    /// Whether it takes no more.
    #[must_use]
    pub fn is_saturated(&self) -> bool {
        self.head.saturated != 0
    }

    /// The samples, oldest first.
    pub fn samples(&self) -> impl ExactSizeIterator<Item = HostTick<'_>> {
        self.bytes
            .chunks_exact(tick_bytes(self.head.cpus))
            .map(HostTick)
    }
}

impl HostTick<'_> {
    fn word(self, at: usize) -> u64 {
        let bytes = self.0.get(at..at + 8).and_then(|b| b.first_chunk());
        bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }

    /// When it was taken, `CLOCK_REALTIME` ns.
    #[must_use]
    pub fn timestamp_ns(self) -> u64 {
        self.word(0)
    }

    /// Resident memory of this process, bytes; `None` where it was not sampled, as before it attached.
    #[must_use]
    pub fn rss_bytes(self) -> Option<u64> {
        u64::try_from(self.word(8).cast_signed()).ok()
    }

    /// Busy share of a CPU, percent; `None` where not known, as of one that is off.
    #[must_use]
    pub fn util(self, cpu: usize) -> Option<f32> {
        let at = TICK_HEAD_BYTES + cpu * size_of::<f32>();
        let bytes = self.0.get(at..)?.first_chunk()?;
        Some(f32::from_le_bytes(*bytes)).filter(|util| !util.is_nan())
    }
}

/// Asks the daemon at `NRT_TRACE_PRODUCER_SOCKET`, else at the default place, for the samples that it keeps. A monitor that
/// is off has none, or those of its last run.
///
/// # Errors
/// [`HostStatsError`].
pub fn host_stats() -> Result<HostStats, HostStatsError> {
    let path = environment::producer_socket(None);
    let connection = socket::connect(&path).map_err(HostStatsError::NoDaemon)?;
    socket::send(&connection, HostStatsAsk::new().as_bytes(), &[])
        .map_err(HostStatsError::NoDaemon)?;
    let mut packet = [0; message::MAX_BYTES];
    let length = receive(&connection, &mut packet)?;
    let head = head(&packet[..length])?;
    let samples = usize::try_from(head.samples).map_err(|_| HostStatsError::Protocol)?;
    let expected = samples.checked_mul(tick_bytes(head.cpus));
    let expected = expected.filter(|bytes| *bytes <= MAX_BYTES);
    let expected = expected.ok_or(HostStatsError::Protocol)?;
    let mut bytes = Vec::new();
    let room = expected + DATA_BYTES;
    bytes
        .try_reserve_exact(room)
        .map_err(|_| HostStatsError::Memory)?;
    while bytes.len() < expected {
        let have = bytes.len();
        bytes.resize(have + DATA_BYTES, 0);
        let length = receive(&connection, &mut bytes[have..])?;
        bytes.truncate(have + length);
    }
    if bytes.len() != expected {
        return Err(HostStatsError::Protocol);
    }
    Ok(HostStats { head, bytes })
}

fn head(packet: &[u8]) -> Result<HostStatsHead, HostStatsError> {
    if message::kind_of(packet) == Ok(Refuse::KIND) {
        let refuse: Refuse = message::parse(packet).map_err(|_| HostStatsError::Protocol)?;
        let reason = refuse.text().unwrap_or("(no reason)").to_owned();
        return Err(HostStatsError::Refused(reason));
    }
    let head: HostStatsHead = message::parse(packet).map_err(|_| HostStatsError::Protocol)?;
    if head.cpus > MAX_CPUS {
        return Err(HostStatsError::Protocol);
    }
    Ok(head)
}

/// Receives a packet; its length, which is not 0.
fn receive(connection: &OwnedFd, packet: &mut [u8]) -> Result<usize, HostStatsError> {
    let patience = Timespec {
        tv_sec: PATIENCE.as_secs().cast_signed(),
        tv_nsec: 0,
    };
    loop {
        let mut fds = [PollFd::from_borrowed_fd(connection.as_fd(), PollFlags::IN)];
        match poll(&mut fds, Some(&patience)) {
            Ok(0) => return Err(HostStatsError::Timeout),
            Err(rustix::io::Errno::INTR) => {}
            Ok(_) | Err(_) => break,
        }
    }
    match socket::receive(connection, packet) {
        Ok(received) if received.bytes > 0 => Ok(received.bytes),
        Ok(_) | Err(_) => Err(HostStatsError::Protocol),
    }
}
