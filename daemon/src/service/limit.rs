//! A limit for each kind of line, so that no peer can fill a disk, and a line that says how many were left out.
//!
//! Of lines that a place in the program writes, so many go out in a row, and then so many each second. Errors always do: no
//! peer can cause one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tracing::callsite::Identifier;
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Filter};

use crate::listen::StartError;
use crate::ration::Talk;
use crate::ticker::Ticker;

/// Time between two looks at what was left out.
const LOOK: Duration = Duration::from_secs(10);

/// The limit, shared by the log and by who tells what was left out.
#[derive(Clone, Debug, Default)]
pub(super) struct Limit(Arc<Mutex<HashMap<Identifier, Kind>>>);

/// Lines that one place writes.
#[derive(Debug)]
struct Kind {
    metadata: &'static Metadata<'static>,
    talk: Talk,
}

impl Limit {
    /// A panic while it was locked left it valid: every change is one step.
    fn lock(&self) -> MutexGuard<'_, HashMap<Identifier, Kind>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn may(&self, metadata: &'static Metadata<'static>, now: Instant) -> bool {
        if *metadata.level() == Level::ERROR {
            return true;
        }
        let mut kinds = self.lock();
        let kind = (kinds.entry(metadata.callsite())).or_insert_with(|| Kind {
            metadata,
            talk: Talk::new(now),
        });
        kind.talk.may(now)
    }

    /// Says how many lines were left out since this was last called, if any were.
    fn tell(&self) {
        let mut total = 0;
        let mut places = Vec::new();
        for kind in self.lock().values_mut() {
            let left_out = kind.talk.take_left_out();
            if left_out > 0 {
                total += left_out;
                let (file, line) = (kind.metadata.file(), kind.metadata.line());
                places.push(format!("{}:{}", file.unwrap_or("?"), line.unwrap_or(0)));
            }
        }
        if total > 0 {
            places.sort();
            let places = places.join(" ");
            tracing::warn!(places, "{total} lines of the log were left out");
        }
    }
}

impl<S: Subscriber> Filter<S> for Limit {
    fn enabled(&self, _: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        true
    }

    fn event_enabled(&self, event: &Event<'_>, _: &Context<'_, S>) -> bool {
        self.may(event.metadata(), Instant::now())
    }
}

/// The thread that tells what was left out; it does so a last time when it is dropped.
#[derive(Debug)]
pub(super) struct LeftOut {
    limit: Limit,
    _ticker: Ticker,
}

impl LeftOut {
    /// Starts it.
    pub(super) fn start(limit: Limit) -> Result<Self, StartError> {
        let inner = limit.clone();
        let ticker = Ticker::start("nrt-log", LOOK, move || inner.tell())?;
        Ok(Self {
            limit,
            _ticker: ticker,
        })
    }
}

impl Drop for LeftOut {
    fn drop(&mut self) {
        self.limit.tell();
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use tracing_subscriber::Layer;
    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    #[derive(Clone, Default)]
    struct Page(Arc<Mutex<Vec<u8>>>);

    impl Write for Page {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_kind_of_line_has_its_burst_and_the_rest_is_counted() {
        let (page, limit) = (Page::default(), Limit::default());
        let writer = page.clone();
        let lines = tracing_subscriber::fmt::layer().with_writer(move || writer.clone());
        let log = tracing_subscriber::registry().with(lines.with_filter(limit.clone()));
        tracing::subscriber::with_default(log, || {
            for _ in 0..10_000 {
                tracing::info!("of a peer");
            }
            tracing::info!("of another");
            for _ in 0..1000 {
                tracing::error!("of nobody");
            }
            limit.tell();
            limit.tell();
        });
        let text = String::from_utf8(page.0.lock().unwrap().clone()).unwrap();
        let count = |what: &str| text.lines().filter(|line| line.contains(what)).count();
        let told = count("of a peer");
        // A busy machine takes seconds for them, each of which has some more.
        assert!((256..5000).contains(&told), "{told}");
        let said = format!("{} lines of the log were left out", 10_000 - told);
        assert_eq!(count(&said), 1, "{text}");
        assert_eq!(count("left out"), 1);
        assert_eq!((count("of another"), count("of nobody")), (1, 1000));
    }
}
