//! Errors as gRPC statuses, and the process's own figures.

use nrt_trace_model::Status as NrtStatus;
use nrt_trace_proto::{STATUS_METADATA, v1};
use nrt_trace_shm::clock::clocksource;
use rustix::time::ClockId;
use tonic::{Code, Status};

use crate::drain::fetch::BrokenOff;
use crate::host::HostError;
use crate::run::error::RunError;

/// The one place that decides how an error reaches a client.
pub(super) fn of_error(error: &RunError) -> Status {
    let code = match error {
        RunError::AlreadyCapturing { .. }
        | RunError::Unread { .. }
        | RunError::NotCapturing { .. } => Code::FailedPrecondition,
        RunError::NoRun { .. } | RunError::NoFilter { .. } | RunError::NoSuchFetch { .. } => {
            Code::NotFound
        }
        RunError::FetchUnderWay => Code::Aborted,
        RunError::Invalid(_) => Code::InvalidArgument,
        RunError::Busy | RunError::Subscribers(_) => Code::ResourceExhausted,
        RunError::ShuttingDown => Code::Unavailable,
    };
    with_nrt(Status::new(code, error.to_string()), error.status())
}

/// A gRPC status that carries the runtime's code too, for clients that speak the runtime's language.
pub(super) fn with_nrt(mut status: Status, nrt: NrtStatus) -> Status {
    status
        .metadata_mut()
        .insert(STATUS_METADATA, nrt.code().into());
    status
}

/// The same for the host monitor's errors.
pub(super) fn of_host_error(error: &HostError) -> Status {
    let (code, nrt) = match error {
        HostError::OtherSettings { .. } | HostError::Off => {
            (Code::FailedPrecondition, NrtStatus::Failure)
        }
        HostError::Invalid(_) => (Code::InvalidArgument, NrtStatus::Invalid),
    };
    with_nrt(Status::new(code, error.to_string()), nrt)
}

/// Why a stream ends early.
pub(super) fn of_break(why: BrokenOff) -> Status {
    match why {
        BrokenOff::ClientGone => Status::cancelled("the client went away"),
        BrokenOff::RunGone => with_nrt(
            Status::aborted("a new start gave this run's events up"),
            NrtStatus::Closed,
        ),
    }
}

/// Fills in what the process knows of itself.
pub(super) fn fill_process(status: &mut v1::GetStatusResponse) {
    status.pid = i32::try_from(std::process::id()).unwrap_or(0);
    let cpu = rustix::time::clock_gettime(ClockId::ProcessCPUTime);
    status.cpu_ns = u64::try_from(cpu.tv_sec).unwrap_or(0) * 1_000_000_000
        + u64::try_from(cpu.tv_nsec).unwrap_or(0);
    status.rss_bytes = own_memory().unwrap_or(0);
    status.clocksource = clocksource().unwrap_or_default();
}

/// Resident bytes without the shared segments, which are counted apart.
fn own_memory() -> Option<u64> {
    let status = procfs::process::Process::myself().ok()?.status().ok()?;
    Some((status.rssanon? + status.rssfile?) * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_refusal_carries_the_runtimes_code() {
        let all = [
            (RunError::NotCapturing { scope: "x".into() }, 1),
            (RunError::invalid("x"), 2),
            (RunError::NoRun { scope: "x".into() }, 3),
            (RunError::Busy, 7),
            (RunError::ShuttingDown, 14),
        ];
        for (error, code) in all {
            let status = of_error(&error);
            let carried = status.metadata().get(STATUS_METADATA).unwrap();
            assert_eq!(carried.to_str().unwrap(), code.to_string(), "{error}");
        }
    }

    #[test]
    fn the_process_knows_itself() {
        let mut status = v1::GetStatusResponse::default();
        fill_process(&mut status);
        assert_eq!(u32::try_from(status.pid).unwrap(), std::process::id());
        assert!(status.cpu_ns > 0 && status.rss_bytes > 0, "{status:?}");
    }
}
