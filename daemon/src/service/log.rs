//! The log: to standard error, or to the journal with each field by itself where that is what standard error leads to.

use std::io;
use std::os::fd::AsFd;

use tracing_journald::{Priority, PriorityMappings};
use tracing_subscriber::filter::EnvFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::reload;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry};

use super::limit::{LeftOut, Limit};
use crate::config::LogLevel;

/// Variable that says what the log holds, target by target; it overrides the settings.
const OVERRIDE: &str = "RUST_LOG";
/// What the journal's fields begin with: `NRT_TRACE_PRODUCER`, `NRT_TRACE_PID` and so on.
const FIELDS: &str = "NRT_TRACE";

/// The journal's priorities. A notice is more than a step of a life cycle is.
const PRIORITIES: PriorityMappings = PriorityMappings {
    error: Priority::Error,
    warn: Priority::Warning,
    info: Priority::Informational,
    debug: Priority::Debug,
    trace: Priority::Debug,
};

/// The log of this process. Dropping it says what was left out last.
#[derive(Debug)]
pub(super) struct Log {
    /// None if another log was there first, or the environment decides.
    level: Option<reload::Handle<EnvFilter, Registry>>,
    _left_out: Option<LeftOut>,
}

impl Log {
    /// Begins it.
    pub(super) fn start(level: LogLevel) -> Self {
        let overridden = std::env::var_os(OVERRIDE).is_some_and(|value| !value.is_empty());
        let filter = if overridden {
            EnvFilter::from_default_env()
        } else {
            of(level)
        };
        let (filter, handle) = reload::Layer::new(filter);
        let limit = Limit::default();
        let (output, trouble) = output();
        let subscriber = tracing_subscriber::registry()
            .with(filter)
            .with(output.with_filter(limit.clone()));
        // A second call finds the first one's log in place.
        if subscriber.try_init().is_err() {
            return Self {
                level: None,
                _left_out: None,
            };
        }
        if let Some(error) = trouble {
            tracing::warn!("the journal can't be reached, the log goes to standard error: {error}");
        }
        Self {
            level: (!overridden).then_some(handle),
            _left_out: LeftOut::start(limit).ok(),
        }
    }

    /// Changes what it holds.
    pub(super) fn set_level(&self, level: LogLevel) {
        if let Some(handle) = &self.level {
            // It fails only when the log is gone.
            drop(handle.reload(of(level)));
        }
    }
}

fn of(level: LogLevel) -> EnvFilter {
    EnvFilter::new(level.to_string())
}

type Output<S> = Box<dyn Layer<S> + Send + Sync>;

/// Where it goes, and what kept it from the journal.
fn output<S>() -> (Output<S>, Option<io::Error>)
where
    S: tracing::Subscriber + for<'a> tracing_subscriber::registry::LookupSpan<'a>,
{
    let mut trouble = None;
    if leads_to_journal() {
        match tracing_journald::layer() {
            Ok(layer) => {
                let layer = layer
                    .with_field_prefix(Some(FIELDS.to_owned()))
                    .with_priority_mappings(PRIORITIES)
                    .with_syslog_identifier("nrt-traced".to_owned());
                return (Box::new(layer), None);
            }
            Err(error) => trouble = Some(error),
        }
    }
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(io::stderr)
        .with_ansi(false);
    (Box::new(lines), trouble)
}

/// Whether standard error is what the service manager connected with the journal: device and inode are told.
fn leads_to_journal() -> bool {
    let told = std::env::var("JOURNAL_STREAM").unwrap_or_default();
    let Ok(found) = rustix::fs::fstat(io::stderr().as_fd()) else {
        return false;
    };
    told == format!("{}:{}", found.st_dev, found.st_ino)
}
