//! The log: to standard error, or to the journal with each field by itself where that is what standard error leads to.

use std::io::{self, Write};
use std::os::fd::AsFd;

use tracing_subscriber::filter::EnvFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::reload;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry};

use super::journal::{self, Journal};
use super::limit::{LeftOut, Limit};
use super::outlet::Outlet;
use crate::config::LogLevel;

/// Variable that says what the log holds, target by target; it overrides the settings.
const OVERRIDE: &str = "RUST_LOG";

/// The log of this process. Dropping it says what was left out last, and waits a moment for the last lines to be written.
#[derive(Debug)]
pub(super) struct Log {
    /// None if another log was there first, or the environment decides.
    level: Option<reload::Handle<EnvFilter, Registry>>,
    left_out: Option<LeftOut>,
    outlet: Option<Outlet>,
}

impl Drop for Log {
    fn drop(&mut self) {
        self.left_out = None;
        self.outlet.iter().for_each(Outlet::flush);
    }
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
        let (output, outlet, trouble) = output();
        let subscriber = tracing_subscriber::registry()
            .with(filter)
            .with(output.with_filter(limit.clone()));
        // A second call finds the first one's log in place.
        if subscriber.try_init().is_err() {
            return Self {
                level: None,
                left_out: None,
                outlet: None,
            };
        }
        if let Some(error) = trouble {
            tracing::warn!("the log goes to standard error as it is: {error}");
        }
        Self {
            level: (!overridden).then_some(handle),
            left_out: LeftOut::start(limit).ok(),
            outlet,
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

/// Where it goes, by which way, and what was in the way of the better one.
fn output<S>() -> (Output<S>, Option<Outlet>, Option<io::Error>)
where
    S: tracing::Subscriber + for<'a> tracing_subscriber::registry::LookupSpan<'a>,
{
    let mut trouble = None;
    if leads_to_journal() {
        let outlet = journal::connect()
            .and_then(|socket| Outlet::start(move |entry| socket.send(entry).map(drop)));
        match outlet {
            Ok(outlet) => return (Box::new(Journal(outlet.clone())), Some(outlet), None),
            Err(error) => trouble = Some(error),
        }
    }
    let lines = tracing_subscriber::fmt::layer().with_ansi(false);
    match Outlet::start(|line| io::stderr().write_all(line)) {
        Ok(outlet) => {
            let writer = outlet.clone();
            let lines = lines.with_writer(move || writer.clone());
            (Box::new(lines), Some(outlet), trouble)
        }
        // No thread is to be had: better lines that may wait than none.
        Err(error) => (Box::new(lines.with_writer(io::stderr)), None, Some(error)),
    }
}

/// What a line at standard error begins with that is an error: where that leads to the journal, a priority by which it is found.
pub(super) fn error_mark() -> &'static str {
    if leads_to_journal() { "<3>" } else { "" }
}

/// Whether standard error is what the service manager connected with the journal: device and inode are told.
fn leads_to_journal() -> bool {
    let told = std::env::var("JOURNAL_STREAM").unwrap_or_default();
    let Ok(found) = rustix::fs::fstat(io::stderr().as_fd()) else {
        return false;
    };
    told == format!("{}:{}", found.st_dev, found.st_ino)
}
