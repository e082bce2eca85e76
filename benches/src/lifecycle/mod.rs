//! What the lives of processes, runs and the daemon cost those who live on.

pub(crate) mod attach;
pub(crate) mod filter;
pub(crate) mod restart;
pub(crate) mod sustained;

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anyhow::Result;
use nrt_trace_client::{Event, EventType, Options, Tracer};
use nrt_trace_tests::payload;
use rustix::time::{ClockId, clock_gettime};

use crate::soak::account::{Batch, Books};
use crate::world::World;

/// Attaches this process, which has one NeuronCore.
fn attach(name: &str) -> Tracer {
    Tracer::attach(Options::named(name).cores(&[0]))
}

/// A numbered event, which shows if it is torn.
fn numbered(number: u64) -> Event {
    Event::stop(EventType::DmaMemAlloc, 0, None).data(payload::numbered(0, number))
}

/// Becomes true when standard input ends.
fn end_of_input() -> Arc<AtomicBool> {
    let ended = Arc::new(AtomicBool::new(false));
    let flag = ended.clone();
    thread::spawn(move || {
        // Whatever comes, its end is the end.
        drop(std::io::stdin().lock().read_to_end(&mut Vec::new()));
        flag.store(true, Ordering::Relaxed);
    });
    ended
}

/// A clock's time, ns.
fn now(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    let part = |part: i64| u64::try_from(part).unwrap_or(0);
    part(time.tv_sec) * 1_000_000_000 + part(time.tv_nsec)
}

/// Fetches what is unread, and notes it.
fn fetch(world: &mut World, books: &mut Books) -> Result<bool> {
    let batch = Batch::of(&world.fetch(0)?)?;
    let ended = batch.ended;
    world.commit(batch.fetch_id)?;
    books.take(batch)?;
    Ok(ended)
}

/// The value that so many of a hundred do not exceed; the numbers are sorted.
fn percentile(sorted: &[u64], percent: usize) -> u64 {
    let at = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
    sorted.get(at).copied().unwrap_or(0)
}
