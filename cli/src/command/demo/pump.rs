//! Up to which rate a recording loses nothing: a process that emits at a given rate, faster each time.

use std::path::Path;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use nrt_trace_client::{Event, EventType, Options, Tracer};

use crate::cli::DemoPumpArgs;
use crate::error::Failure;
use crate::output::human;
use crate::record::{Destination, Plan, Session};

/// Rates that are tried, events per second.
const RATES: [u64; 8] = [
    500_000, 1_000_000, 2_000_000, 3_000_000, 4_000_000, 6_000_000, 8_000_000, 12_000_000,
];

/// How long each is kept up.
const DURATION: Duration = Duration::from_secs(1);

/// The threads emit this often, each time what is due: so a rate is even, and not a burst a second.
const TICK: Duration = Duration::from_millis(1);

/// Tries one rate after the other until something is lost or the rate is not reached, and says which held.
pub(super) async fn rate_line(session: &mut Session, program: &Path) -> Result<String, Failure> {
    let mut best = None;
    let mut end = String::new();
    for rate in RATES {
        let outcome = session
            .record(plan(program, rate), Destination::nowhere()?)
            .await?;
        if outcome.signal.is_some() || outcome.failure.is_some() || outcome.status() != 0 {
            end = ", then it broke off".to_owned();
            break;
        }
        let claimed = outcome.events + outcome.lost;
        if outcome.lost > 0 {
            let (at, lost) = (
                human::rate(claimed, DURATION),
                human::percent(outcome.lost, claimed),
            );
            end = format!("; at {at} {lost} were lost");
            break;
        }
        best = best.max(Some(outcome.events));
        // The machine is too busy to emit as fast as that.
        if outcome.events < rate / 10 * 9 {
            break;
        }
    }
    let held = match best {
        Some(events) => format!("no loss at {}", human::rate(events, DURATION)),
        None => "no rate without a loss was found".to_owned(),
    };
    Ok(format!(
        "sustained  {held} from two threads of a process, kept up for a second{end}"
    ))
}

fn plan(program: &Path, rate: u64) -> Plan {
    let numbers = [
        "--rate".into(),
        rate.to_string().into(),
        "--threads".into(),
        "2".into(),
    ];
    let mut command = vec![program.into(), "demo-pump".into()];
    command.extend(numbers);
    Plan {
        command,
        ..Plan::default()
    }
}

/// The hidden verb that emits. Its status says whether it was armed at all.
pub(crate) fn pump(args: &DemoPumpArgs) -> ExitCode {
    let tracer = Tracer::attach(Options::named("pump"));
    if !tracer.wait_armed(Duration::from_secs(2)) {
        return ExitCode::FAILURE;
    }
    let per_thread = args.rate / u64::from(args.threads.max(1));
    let started = Instant::now();
    let threads =
        (0..args.threads).map(|nc| thread::spawn(move || emit(tracer, nc, per_thread, started)));
    for thread in threads.collect::<Vec<_>>() {
        // A thread that panicked has said why, and its events are missing from the count.
        let _said_already = thread.join();
    }
    ExitCode::SUCCESS
}

fn emit(tracer: Tracer, nc: u32, rate: u64, started: Instant) {
    let mut emitted = 0;
    loop {
        let elapsed = started.elapsed().min(DURATION);
        let due = rate * u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX) / 1_000_000;
        for _ in emitted..due {
            let _recorded = tracer.emit(Event::instant(EventType::Generic, nc));
        }
        emitted = emitted.max(due);
        if elapsed == DURATION {
            return;
        }
        thread::sleep(TICK);
    }
}
