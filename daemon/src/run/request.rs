//! What a client asks for, checked.

use std::time::Duration;

use nrt_trace_model::filter::{TypeSet, parse_types};
use nrt_trace_proto::v1;

use super::cores::CoreFilter;
use super::error::RunError;
use crate::config::{Config, MAX_ARM_TIMEOUT_MS, MIN_EVENTS_PER_NC};
use crate::drain::follow::Wish;
use crate::drain::followed::Begin;

/// Longest token, in bytes: a producer's Hello has room for no more.
const MAX_TOKEN_BYTES: usize = 128;

/// A start, checked.
#[derive(Debug)]
pub(crate) struct StartSpec {
    /// Token of the scope; empty for the host.
    pub token: String,
    /// Slots of each ring.
    pub cap: u64,
    /// Host cores.
    pub cores: CoreFilter,
    /// Event types.
    pub types: TypeSet,
    /// Refuse to give up unread events.
    pub keep: bool,
    /// How long to wait for producers.
    pub timeout: Duration,
    /// Things worth telling.
    pub warnings: Vec<String>,
}

/// A change of filters, checked.
#[derive(Debug)]
pub(crate) struct FilterSpec {
    /// Token of the scope; empty for the host.
    pub token: String,
    /// Host cores, if they change.
    pub cores: Option<CoreFilter>,
    /// Event types, if they change.
    pub types: Option<TypeSet>,
    /// How long to wait for producers that get other rings.
    pub timeout: Duration,
}

/// A fetch, checked.
#[derive(Debug)]
pub(crate) struct FetchSpec {
    /// Token of the scope; empty for the host.
    pub token: String,
    /// Host cores wanted.
    pub cores: CoreFilter,
    /// Pids wanted; empty for all.
    pub pids: Vec<i32>,
    /// Events of each ring at most.
    pub max_events_per_nc: u64,
    /// Give the events up instead of sending them.
    pub discard: bool,
    /// Names that the client has.
    pub strings_from: usize,
}

impl StartSpec {
    /// Checks a request.
    pub(crate) fn new(request: v1::StartRequest, config: &Config) -> Result<Self, RunError> {
        let mut warnings = Vec::new();
        let cap = match request.max_events_per_nc {
            None => config.default_max_events_per_nc,
            Some(cap) => capacity(cap, config, &mut warnings)?,
        };
        Ok(Self {
            token: token(request.token)?,
            cap,
            cores: CoreFilter::new(&request.nc)?,
            types: parse_types(&request.events).map_err(RunError::invalid)?,
            keep: request.keep,
            timeout: timeout(request.arm_timeout_ms, config)?,
            warnings,
        })
    }
}

impl FilterSpec {
    /// Checks a request.
    pub(crate) fn new(request: v1::SetFilterRequest, config: &Config) -> Result<Self, RunError> {
        let v1::SetFilterRequest {
            token,
            nc,
            events,
            arm_timeout_ms,
        } = request;
        if nc.is_none() && events.is_none() {
            return Err(RunError::invalid(
                "neither nc nor events is given; give the one that is to change, or both",
            ));
        }
        let types = events.map(|filter| parse_types(&filter.events).map_err(RunError::invalid));
        Ok(Self {
            token: self::token(token)?,
            cores: nc.map(|filter| CoreFilter::new(&filter.nc)).transpose()?,
            types: types.transpose()?,
            timeout: timeout(arm_timeout_ms, config)?,
        })
    }
}

impl FetchSpec {
    /// Checks a request.
    pub(crate) fn new(request: &v1::FetchRequest) -> Result<Self, RunError> {
        if let Some(pid) = request.process.iter().find(|pid| **pid <= 0) {
            return Err(RunError::invalid(format_args!(
                "{pid} is no pid; allowed: 1 and above"
            )));
        }
        Ok(Self {
            token: token(request.token.clone())?,
            cores: CoreFilter::new(&request.nc)?,
            pids: request.process.clone(),
            max_events_per_nc: match request.max_events_per_nc {
                0 => u64::MAX,
                max => max,
            },
            discard: request.discard,
            strings_from: usize::try_from(request.strings_from).unwrap_or(usize::MAX),
        })
    }

    /// Checks a request for a snapshot, which reads as a fetch does.
    pub(crate) fn of_snapshot(request: v1::SnapshotRequest) -> Result<Self, RunError> {
        let v1::SnapshotRequest {
            token,
            nc,
            process,
            strings_from,
        } = request;
        Self::new(&v1::FetchRequest {
            token,
            nc,
            process,
            strings_from,
            ..v1::FetchRequest::default()
        })
    }
}

/// A subscription, checked.
#[derive(Debug)]
pub(crate) struct SubscribeSpec {
    /// The rings that it reads.
    pub rings: FetchSpec,
    /// What it wants of them.
    pub wish: Wish,
}

impl SubscribeSpec {
    /// Checks a request.
    pub(crate) fn new(request: v1::SubscribeRequest) -> Result<Self, RunError> {
        let v1::SubscribeRequest {
            token,
            from,
            nc,
            process,
            events,
            strings_from,
        } = request;
        let from = match v1::SubscribeFrom::try_from(from) {
            Ok(v1::SubscribeFrom::Unspecified | v1::SubscribeFrom::Now) => Begin::Now,
            Ok(v1::SubscribeFrom::Oldest) => Begin::Oldest,
            Ok(v1::SubscribeFrom::Unread) => Begin::Unread,
            Err(unknown) => {
                return Err(RunError::invalid(format_args!(
                    "from is {}; allowed: 1 (now), 2 (oldest), 3 (unread)",
                    unknown.0
                )));
            }
        };
        let rings = FetchSpec::new(&v1::FetchRequest {
            token,
            nc,
            process,
            strings_from,
            ..v1::FetchRequest::default()
        })?;
        let types = parse_types(&events).map_err(RunError::invalid)?;
        Ok(Self {
            rings,
            wish: Wish { from, types },
        })
    }
}

/// A token, if a producer can carry it.
pub(crate) fn token(token: String) -> Result<String, RunError> {
    if token.len() > MAX_TOKEN_BYTES {
        return Err(RunError::invalid(format_args!(
            "the token has {} bytes; allowed: at most {MAX_TOKEN_BYTES}",
            token.len()
        )));
    }
    Ok(token)
}

fn timeout(ms: Option<u32>, config: &Config) -> Result<Duration, RunError> {
    let ms = ms.unwrap_or(config.arm_timeout_ms);
    if ms > MAX_ARM_TIMEOUT_MS {
        return Err(RunError::invalid(format_args!(
            "arm_timeout_ms is {ms}; allowed: 0 to {MAX_ARM_TIMEOUT_MS}"
        )));
    }
    Ok(Duration::from_millis(ms.into()))
}

fn capacity(cap: u64, config: &Config, warnings: &mut Vec<String>) -> Result<u64, RunError> {
    let range = nrt_trace_abi::geometry::CAPACITY_RANGE;
    if !range.contains(&cap) {
        return Err(RunError::invalid(format_args!(
            "max_events_per_nc is {cap}; allowed: {MIN_EVENTS_PER_NC} to {} (1 to {} become {MIN_EVENTS_PER_NC})",
            range.end(),
            MIN_EVENTS_PER_NC - 1
        )));
    }
    if cap < MIN_EVENTS_PER_NC && !config.test_small_rings {
        warnings.push(format!(
            "max_events_per_nc is {cap}, below {MIN_EVENTS_PER_NC}: using {MIN_EVENTS_PER_NC}"
        ));
        return Ok(MIN_EVENTS_PER_NC);
    }
    Ok(cap)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(request: v1::StartRequest) -> Result<StartSpec, RunError> {
        StartSpec::new(request, &Config::default())
    }

    fn cap(max_events_per_nc: Option<u64>) -> Result<(u64, usize), String> {
        start(v1::StartRequest {
            max_events_per_nc,
            ..Default::default()
        })
        .map(|spec| (spec.cap, spec.warnings.len()))
        .map_err(|error| error.to_string())
    }

    #[test]
    fn capacities_are_taken_as_they_are_but_for_the_smallest() {
        assert_eq!(cap(None), Ok((0x10_0000, 0)));
        assert_eq!(cap(Some(1)), Ok((1024, 1)));
        assert_eq!(cap(Some(1023)), Ok((1024, 1)));
        assert_eq!(cap(Some(1024)), Ok((1024, 0)));
        assert_eq!(cap(Some(1025)), Ok((1025, 0)));
        assert_eq!(cap(Some(4_000_000)), Ok((4_000_000, 0)));
        for refused in [0, (1 << 32) + 1, u64::MAX] {
            let message = cap(Some(refused)).unwrap_err();
            assert!(message.contains("1024 to 4294967296"), "{message}");
        }
        let small = Config {
            test_small_rings: true,
            ..Config::default()
        };
        let request = v1::StartRequest {
            max_events_per_nc: Some(4),
            ..Default::default()
        };
        assert_eq!(StartSpec::new(request, &small).unwrap().cap, 4);
    }

    #[test]
    fn bad_filters_are_refused_by_name() {
        let cases = [
            (
                v1::StartRequest {
                    events: vec!["nrt_exceute".into()],
                    ..Default::default()
                },
                "nrt_exceute",
            ),
            (
                v1::StartRequest {
                    events: vec!["hardware".into(), "^hardware".into()],
                    ..Default::default()
                },
                "nothing",
            ),
            (
                v1::StartRequest {
                    nc: vec![256],
                    ..Default::default()
                },
                "256",
            ),
            (
                v1::StartRequest {
                    arm_timeout_ms: Some(10_001),
                    ..Default::default()
                },
                "10000",
            ),
            (
                v1::StartRequest {
                    token: "x".repeat(129),
                    ..Default::default()
                },
                "128",
            ),
        ];
        for (request, part) in cases {
            let message = start(request).unwrap_err().to_string();
            assert!(message.contains(part), "{message}");
        }
    }

    #[test]
    fn a_fetch_takes_all_unless_told() {
        let spec = FetchSpec::new(&v1::FetchRequest::default()).unwrap();
        assert_eq!(
            (spec.max_events_per_nc, spec.strings_from, spec.discard),
            (u64::MAX, 0, false)
        );
        let request = v1::FetchRequest {
            process: vec![0],
            ..Default::default()
        };
        FetchSpec::new(&request).unwrap_err();
    }
}
