//! A small traced program: emits numbered events with a checksum, and ends as it is told.
//!
//! It prints one line of JSON for every batch of events: `{"recorded":n,"refused":m}`; before the first, if it is
//! interactive, `ready`, once it has attached.

#![forbid(unsafe_code)]

use std::io::{self, BufRead, Write};
use std::process::{self, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use clap::{Parser, ValueEnum};
use nrt_trace_client::{Event, EventType, Options, Tracer};
use nrt_trace_model::filter::parse_nc_list;
use nrt_trace_tests::payload;
use rustix::process::{Signal, getpid, kill_process};

#[derive(Debug, Parser)]
struct Cli {
    /// Events of each thread; 0 for no end
    #[arg(short = 'n', long, default_value_t = 1000)]
    events: u64,
    /// Threads; numbers of a thread go on from batch to batch
    #[arg(short, long, default_value_t = 1)]
    threads: u64,
    /// Events a second of each thread; 0 for as fast as it goes
    #[arg(short, long, default_value_t = 0)]
    rate: u64,
    /// NeuronCores: thread k uses the k-th of the list, round and round
    #[arg(long, default_value = "0", value_parser = parse_list)]
    nc: NcList,
    /// Name under which to attach
    #[arg(long, default_value = "probe")]
    name: String,
    /// Names a model and records an execution of it, with its own start and stop, before the first event
    #[arg(long)]
    model: Option<String>,
    /// Gives each of the first so many events a name of 64 bytes that no other event of any process has
    #[arg(long, default_value_t = 0)]
    names: u64,
    /// Emit a batch for each line on stdin, up to its end, in place of one at once
    #[arg(long)]
    interactive: bool,
    /// Emit as fast as it goes until stdin ends, on one thread, and say how often that slept meanwhile:
    /// `{"recorded":n,"refused":m,"slept":k}`
    #[arg(long)]
    busy: bool,
    /// Wait for the end of stdin before ending
    #[arg(long)]
    linger: bool,
    /// How to end
    #[arg(long, value_enum, default_value = "return")]
    end: End,
    /// Exit status, where the end has one
    #[arg(long, default_value_t = 0)]
    status: u8,
}

#[derive(Clone, Debug)]
struct NcList(Vec<u32>);

fn parse_list(text: &str) -> Result<NcList, String> {
    parse_nc_list(text).map(NcList).map_err(|e| e.to_string())
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum End {
    Return,
    Exit,
    Abort,
    Kill,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let tracer = Tracer::attach(Options::named(&cli.name));
    match run(&cli, tracer) {
        Ok(()) => end(cli.end, cli.status),
        Err(error) => {
            let _closed = writeln!(io::stderr(), "probe: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: &Cli, tracer: Tracer) -> io::Result<()> {
    if let Some(model) = &cli.model {
        let id = tracer.intern(cli.nc.0[0], model);
        drop(tracer.span(EventType::ExecuteApi, cli.nc.0[0], [id.0, 0, 0, 0, 0]));
    }
    if cli.busy {
        return emit_busily(cli, tracer);
    }
    if cli.interactive {
        writeln!(io::stdout(), "ready")?;
        for (batch, line) in (0..).zip(io::stdin().lock().lines()) {
            line?;
            emit_batch(cli, tracer, batch)?;
        }
        return Ok(());
    }
    emit_batch(cli, tracer, 0)?;
    if cli.linger {
        io::copy(&mut io::stdin().lock(), &mut io::sink())?;
    }
    Ok(())
}

/// Emits the events of batch number `batch` on every thread.
fn emit_batch(cli: &Cli, tracer: Tracer, batch: u64) -> io::Result<()> {
    let recorded = Arc::new(AtomicU64::new(0));
    let threads: Vec<_> = (0..cli.threads)
        .zip(cli.nc.0.iter().copied().cycle())
        .map(|(number, nc)| {
            let (events, rate, recorded) = (cli.events, cli.rate, Arc::clone(&recorded));
            let names = cli.names;
            thread::spawn(move || {
                let first = batch * events + 1;
                let last = if events == 0 {
                    u64::MAX
                } else {
                    first + events - 1
                };
                let named = emit_named(tracer, nc, first..=last.min(names));
                let rest = emit(tracer, number, nc, first.max(names + 1)..=last, rate);
                recorded.fetch_add(named + rest, Ordering::Relaxed);
            })
        })
        .collect();
    for thread in threads {
        thread
            .join()
            .map_err(|_| io::Error::other("a thread panicked"))?;
    }
    let recorded = recorded.load(Ordering::Relaxed);
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "{{\"recorded\":{recorded},\"refused\":{}}}",
        cli.events * cli.threads - recorded
    )?;
    out.flush()
}

/// Emits events with names of their own, and returns how many were recorded.
fn emit_named(tracer: Tracer, nc: u32, numbers: std::ops::RangeInclusive<u64>) -> u64 {
    let pid = process::id();
    let events = numbers.map(|number| {
        let id = tracer.intern(nc, &format!("{pid:0>10}{number:0>54}"));
        Event::instant(EventType::ExecuteApi, nc).data([id.0, 0, 0, 0, 0])
    });
    let recorded = events.filter(|event| tracer.emit(*event).is_some());
    recorded.count() as u64
}

/// Emits until stdin ends. The first events, which may have to wait for pages of the rings and of the program, are not
/// counted as slept.
fn emit_busily(cli: &Cli, tracer: Tracer) -> io::Result<()> {
    const FIRST: u64 = 100_000;
    let end = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&end);
    thread::spawn(move || {
        let _ended = io::copy(&mut io::stdin().lock(), &mut io::sink());
        flag.store(true, Ordering::Relaxed);
    });
    let nc = cli.nc.0[0];
    let mut recorded = emit(tracer, 0, nc, 1..=FIRST, 0);
    let (before, mut number) = (sleeps()?, FIRST);
    while !end.load(Ordering::Relaxed) {
        recorded += emit(tracer, 0, nc, number + 1..=number + 1000, 0);
        number += 1000;
    }
    let slept = sleeps()? - before;
    let refused = number - recorded;
    writeln!(
        io::stdout(),
        "{{\"recorded\":{recorded},\"refused\":{refused},\"slept\":{slept}}}"
    )
}

/// How often this thread went to sleep so far.
fn sleeps() -> io::Result<u64> {
    let status = std::fs::read_to_string("/proc/thread-self/status")?;
    let count = (status.lines()).find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    let count = count.and_then(|count| count.trim().parse().ok());
    count.ok_or_else(|| io::Error::other("no count of switches"))
}

/// Emits the events of one thread, and returns how many were recorded.
fn emit(
    tracer: Tracer,
    thread: u64,
    nc: u32,
    numbers: std::ops::RangeInclusive<u64>,
    rate: u64,
) -> u64 {
    let (began, first) = (Instant::now(), *numbers.start());
    let mut recorded = 0;
    for number in numbers {
        let event =
            Event::stop(EventType::DmaMemAlloc, nc, None).data(payload::numbered(thread, number));
        recorded += u64::from(tracer.emit(event).is_some());
        if let Some(due) = ((number - first) * 1_000_000_000).checked_div(rate)
            && let Some(early) = Duration::from_nanos(due).checked_sub(began.elapsed())
        {
            thread::park_timeout(early);
        }
    }
    recorded
}

fn end(how: End, status: u8) -> ExitCode {
    match how {
        End::Return => ExitCode::from(status),
        #[expect(clippy::exit, reason = "this way of ending is what is tried")]
        End::Exit => process::exit(i32::from(status)),
        End::Abort => process::abort(),
        End::Kill => match kill_process(getpid(), Signal::KILL) {
            Ok(()) | Err(_) => ExitCode::FAILURE,
        },
    }
}
