//! Event times, whatever the daemon does with the clock: a daemon that this test plays stops in the middle of an update,
//! updates without a pause, lets a minute pass, is replaced by one whose clock is behind, or says that the counter must not be used.
//!
//! Every event carries what the test's own clock said right before it, and the next event's word is the bound above. An
//! error is what lies outside of the two: a thread that is taken off its CPU in between widens the bounds, and is not
//! mistaken for an error.
//!
//! A process has one tracer, so this is one test.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "helpers of tests, and figures that a failure is read with"
)]

mod support;

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nrt_trace_abi::clock::ClockParams;
use nrt_trace_abi::layout::{SegmentLayout, control, strings};
use nrt_trace_abi::message::{Arm, Armed, Disarm, Disarmed, Go, Hello, Message, Welcome};
use nrt_trace_abi::record::Record;
use nrt_trace_abi::{ABI_VERSION, MAX_NCS, gate};
use nrt_trace_client::{Event, EventType, Options, Tracer};
use nrt_trace_ring::{Cursor, Reader};
use nrt_trace_shm::clock::{TscClock, realtime_ns, tsc};
use nrt_trace_shm::control::{BYTES, ControlPage};
use nrt_trace_shm::strings::StringReader;
use nrt_trace_shm::{ReadMapping, WriteMapping, memfd, socket};
use zerocopy::IntoBytes;

use crate::support::{PATIENCE, poll, receive};

/// Events of a ring.
const CAP: u64 = 1 << 18;

/// Lines of a made-up clock: as many as its times have room for.
const LINES: u64 = 1 << 19;

/// The daemon's end of one attach, with two rings.
struct Daemon {
    fd: OwnedFd,
    _names: StringReader,
    layout: SegmentLayout,
    rings: ReadMapping,
    cursors: [Cursor; 2],
}

impl Daemon {
    /// Welcomes the next program with this page.
    fn welcome(listener: &OwnedFd, page: &OwnedFd, run_follows: u32) -> (OwnedFd, StringReader) {
        let fd = poll(|| socket::accept(listener).ok());
        let _hello: Hello = receive(&fd);
        let (names, names_fd) = StringReader::create(strings::DEFAULT_BYTES).unwrap();
        let welcome = Welcome {
            header: Welcome::header(),
            producer_id: 1,
            run_follows,
            orphan_keep_s: 600,
            reserved: 0,
            string_bytes: strings::DEFAULT_BYTES,
        };
        let files = [page.as_fd(), names_fd.as_fd()];
        socket::send(&fd, welcome.as_bytes(), &files).unwrap();
        (fd, names)
    }

    /// Takes the place of this one, as the next daemon, with this page.
    fn restart(&mut self, listener: &OwnedFd, page: &OwnedFd) {
        // The library comes back when its connection has ended.
        self.fd = memfd::create("nothing", 4096).unwrap();
        (self.fd, self._names) = Self::welcome(listener, page, Welcome::RUN_GOES_ON);
    }

    /// Welcomes the next program with this page, and arms it.
    fn accept(listener: &OwnedFd, page: &OwnedFd) -> Self {
        let (fd, names) = Self::welcome(listener, page, 1);
        let layout = SegmentLayout::new(CAP, [0, 1]).unwrap();
        let segment = memfd::create("test", layout.bytes()).unwrap();
        memfd::write_words(&segment, &layout.header([1, 2], 1, 1)).unwrap();
        memfd::seal_size(&segment).unwrap();
        let arm = Arm {
            header: Arm::header(),
            generation: 1,
            segment_bytes: layout.bytes(),
        };
        socket::send(&fd, arm.as_bytes(), &[segment.as_fd()]).unwrap();
        let armed: Armed = receive(&fd);
        assert_eq!(armed.errno, 0);
        let rings = ReadMapping::map(&segment, layout.bytes()).unwrap();
        Self {
            fd,
            _names: names,
            layout,
            rings,
            cursors: Default::default(),
        }
    }

    /// Says that the gates are open.
    fn go(&self, tracer: Tracer) {
        let go = Go {
            header: Go::header(),
            generation: 1,
        };
        socket::send(&self.fd, go.as_bytes(), &[]).unwrap();
        assert!(tracer.wait_armed(PATIENCE));
    }

    /// Ends the run and the connection, once the gates are closed.
    fn end(self) {
        let disarm = Disarm {
            header: Disarm::header(),
            generation: 1,
        };
        socket::send(&self.fd, disarm.as_bytes(), &[]).unwrap();
        let disarmed: Disarmed = receive(&self.fd);
        assert_eq!(disarmed.quiescent, 1);
    }

    /// The events of `nc` since the last look.
    fn read(&mut self, nc: usize) -> Vec<Record> {
        let first = self.layout.ring_word(nc).unwrap();
        let words = &self.rings.words()[first..first + self.layout.ring_words()];
        let reader = Reader::new(words, *self.layout.geometry()).unwrap();
        let cursor = &mut self.cursors[nc];
        let until = reader.begin(cursor).unwrap();
        let mut records = Vec::new();
        let mut take = |record: &Record| records.push(*record);
        let _progress = reader.read(cursor, until, usize::MAX, &mut take).unwrap();
        assert_eq!(cursor.lost(), 0, "the ring is large enough");
        records
    }
}

/// Emits `count` events on `nc`, each with what `clock` says right before it.
fn emit(tracer: Tracer, nc: u32, count: u64, clock: fn() -> u64) {
    for _ in 0..count {
        let event = Event::instant(EventType::Generic, nc).data([clock(), 0, 0, 0, 0]);
        assert!(tracer.emit(event).is_some());
    }
}

/// For each event but the last: its time, and the clock's bounds.
fn bounds(records: &[Record]) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
    let bound = |record: &Record| record.data()[0];
    records
        .windows(2)
        .map(move |pair| (pair[0].timestamp_ns(), bound(&pair[0]), bound(&pair[1])))
}

/// How far each event's time is outside of its bounds, ns, ascending. Times of one thread must never run backwards.
fn errors(records: &[Record]) -> Vec<u64> {
    assert!(records.is_sorted_by_key(Record::timestamp_ns), "backwards");
    let mut errors: Vec<u64> = bounds(records)
        .map(|(time, above, below)| above.saturating_sub(time).max(time.saturating_sub(below)))
        .collect();
    errors.sort_unstable();
    errors
}

fn at_share(sorted: &[u64], share: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "an index of a list of less than a million"
    )]
    let at = (sorted.len() as f64 * share) as usize;
    sorted[at.min(sorted.len() - 1)]
}

/// How far each line is off after a minute if it is the last one, ns, ascending: by its rate, against that of them all.
fn drifts(lines: &[ClockParams]) -> Vec<u64> {
    const MINUTE: u128 = 60_000_000_000;
    let (first, last) = (lines[0], lines[lines.len() - 1]);
    let (ns, ticks) = (last.base_ns - first.base_ns, last.base_tsc - first.base_tsc);
    let rate = (u128::from(ns) << ClockParams::FRACTION_BITS) / u128::from(ticks);
    let mut drifts: Vec<u64> = lines
        .iter()
        .map(|line| u128::from(line.mult).abs_diff(rate) * MINUTE / rate)
        .map(|drift| u64::try_from(drift).unwrap())
        .collect();
    drifts.sort_unstable();
    drifts
}

/// Says that its thread has ended, in whatever way.
struct SetAtEnd<'a>(&'a AtomicBool);

impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A control page that is written word by word.
struct Page {
    words: WriteMapping,
    fd: OwnedFd,
}

impl Page {
    fn new() -> Self {
        let fd = memfd::create("test", BYTES).unwrap();
        let words = WriteMapping::map(&fd, BYTES).unwrap();
        memfd::seal_writes(&fd).unwrap();
        let page = Self { words, fd };
        page.set(control::MAGIC, control::MAGIC_VALUE);
        page.set(control::ABI, u64::from(ABI_VERSION));
        page.set(control::PRODUCER_ID, 1);
        page
    }

    fn set(&self, at: usize, value: u64) {
        self.words.words()[at].store(value, Ordering::Release);
    }

    fn open(&self, open: bool) {
        let gate = if open {
            gate::open(gate::ALL_TYPES, 1)
        } else {
            0
        };
        (0..MAX_NCS).for_each(|nc| self.set(control::GATES + nc, gate));
        self.set(control::STATE, u64::from(open) | 1 << 1);
    }

    /// The stores of an update to `line`, in their order, each with whether the new line holds after it.
    fn update(&self, line: ClockParams) -> [(usize, u64, bool); 5] {
        let next = self.words.words()[control::CLOCK_SELECT].load(Ordering::Relaxed) + 1;
        let copy = control::CLOCK_COPY[usize::from(next & 1 == 1)];
        [
            (copy, line.base_tsc, false),
            (copy + 1, line.base_ns, false),
            (copy + 2, line.mult, false),
            (control::CLOCK_SELECT, next, true),
            (control::CLOCK_MODE, control::CLOCK_MODE_TSC, true),
        ]
    }
}

/// Line number `n` of a made-up clock, such that no mixture of two lines gives a time on either: bases far apart, and
/// now one, now two nanoseconds a tick.
fn line(n: u64, start: u64) -> ClockParams {
    ClockParams {
        base_tsc: start - ((n % 256) << 24),
        base_ns: n << 44,
        mult: (1 + n % 2) << 32,
    }
}

/// Which line each time is on; it must be on one.
fn lines_of(records: &[Record], start: u64) -> Vec<u64> {
    let on = |(time, from, to): (u64, u64, u64)| {
        // A line's times are less than 2^44 ns, five hours, above its base.
        let n = time >> 44;
        let line = line(n, start);
        let range = line.ns_at(from)..=line.ns_at(to);
        assert!(range.contains(&time), "{time:#x} is on no line");
        n
    };
    let lines: Vec<u64> = bounds(records).map(on).collect();
    assert!(lines.is_sorted(), "a thread went back to an older line");
    lines
}

/// The daemon is stopped, or killed, after each store of an update: threads that know the last line and threads that
/// know none go on with it, or with the new one once the update is whole. Nobody waits.
fn the_latch_is_left_at_every_step(tracer: Tracer, listener: &OwnedFd) {
    let page = Page::new();
    let mut daemon = Daemon::accept(listener, &page.fd);
    let start = tsc();
    let first = line(1, start);
    for (at, value, _) in page.update(first) {
        page.set(at, value);
    }
    page.open(true);
    daemon.go(tracer);
    for n in 1..6 {
        emit(tracer, 0, 10, tsc);
        assert_eq!(lines_of(&daemon.read(0), start), [n; 9]);
        for (step, (at, value, is_new)) in page.update(line(n + 1, start)).into_iter().enumerate() {
            page.set(at, value);
            emit(tracer, 0, 10, tsc);
            std::thread::scope(|scope| drop(scope.spawn(|| emit(tracer, 1, 10, tsc))));
            let expected = [n + u64::from(is_new); 9];
            assert_eq!(
                lines_of(&daemon.read(0), start),
                expected,
                "after store {step}"
            );
            assert_eq!(
                lines_of(&daemon.read(1), start),
                expected,
                "after store {step}"
            );
        }
    }
    // From the counter to the system's clock: no line can be mistaken for that one.
    let next = page.words.words()[control::CLOCK_SELECT].load(Ordering::Relaxed) + 1;
    page.set(control::CLOCK_MODE, control::CLOCK_MODE_SYSTEM);
    page.set(control::CLOCK_SELECT, next);
    emit(tracer, 0, 1000, realtime_ns);
    assert_eq!(
        *errors(&daemon.read(0)).last().unwrap(),
        0,
        "it is the same clock"
    );
    page.open(false);
    daemon.end();
}

/// The daemon's own updates without any pause, on one CPU with the readers and on another: a thread's times are each on
/// one line, and the lines only go up.
fn the_latch_is_never_at_rest(tracer: Tracer, listener: &OwnedFd) {
    let (page, fd) = ControlPage::create(1).unwrap();
    let mut daemon = Daemon::accept(listener, &fd);
    let start = tsc();
    page.set_clock(Some(line(1, start)));
    page.set_gates(&[gate::open(gate::ALL_TYPES, 1); MAX_NCS]);
    daemon.go(tracer);
    let done = AtomicBool::new(false);
    // A thread that knows no line and finds the latch moving twice asks the system's clock, which is on no line of ours.
    let know_a_line = Barrier::new(3);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _done = SetAtEnd(&done);
            know_a_line.wait();
            for n in 2..LINES {
                page.set_clock(Some(line(n, start)));
                if n % 512 == 0 {
                    std::thread::yield_now();
                }
            }
        });
        for nc in 0..2 {
            let (done, know_a_line) = (&done, &know_a_line);
            scope.spawn(move || {
                emit(tracer, nc, 1, tsc);
                know_a_line.wait();
                for _ in (0..CAP / 100 - 1).take_while(|_| !done.load(Ordering::Relaxed)) {
                    emit(tracer, nc, 100, tsc);
                }
            });
        }
    });
    emit(tracer, 0, 10, tsc);
    let lines = lines_of(&daemon.read(0), start);
    assert_eq!(
        *lines.last().unwrap(),
        LINES - 1,
        "the newest line is taken up"
    );
    lines_of(&daemon.read(1), start);
    page.set_gates(&[0; MAX_NCS]);
    daemon.end();
}

/// The daemon's real clock, refreshed as the daemon does, on a machine that has more to do than it can: the error
/// against the system's clock. Then without a refresh.
fn the_error_stays_small(tracer: Tracer, listener: &OwnedFd, mut clock: TscClock) {
    let (page, fd) = ControlPage::create(1).unwrap();
    let mut daemon = Daemon::accept(listener, &fd);
    page.set_clock(Some(clock.refresh()));
    page.set_gates(&[gate::open(gate::ALL_TYPES, 1); MAX_NCS]);
    daemon.go(tracer);
    let (emitting, busy) = (AtomicBool::new(true), AtomicBool::new(true));
    let mut lines = Vec::new();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while busy.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        scope.spawn(|| {
            while busy.load(Ordering::Relaxed) {
                let line = clock.refresh();
                page.set_clock(Some(line));
                lines.push(line);
                std::thread::park_timeout(Duration::from_millis(10));
            }
        });
        let emitters = [0, 1].map(|nc| {
            let emitting = &emitting;
            scope.spawn(move || {
                while emitting.load(Ordering::Relaxed) {
                    emit(tracer, nc, 50, realtime_ns);
                    std::thread::park_timeout(Duration::from_micros(500));
                }
            })
        });
        std::thread::park_timeout(Duration::from_secs(2));
        emitting.store(false, Ordering::Relaxed);
        let ended = emitters.map(std::thread::ScopedJoinHandle::join);
        busy.store(false, Ordering::Relaxed);
        assert!(ended.iter().all(Result::is_ok));
    });
    let drifts = drifts(&lines);
    let (half, most) = (at_share(&drifts, 0.5), at_share(&drifts, 0.99));
    println!("lines a minute old: {half} ns off at half, {most} ns at p99");
    assert!(most < 1_000_000, "{most} ns");
    for nc in 0..2 {
        let errors = errors(&daemon.read(nc));
        let (most, worst) = (at_share(&errors, 0.999), errors[errors.len() - 1]);
        println!(
            "{} events: {most} ns at p99.9, {worst} ns at most",
            errors.len()
        );
        assert!(most < 1000, "{most} ns");
    }
    // Nobody refreshes any more, as after the daemon's death. An error grows with time: a minute's in the long form,
    // else a share of it.
    let long = std::env::var_os("NRT_TRACE_LONG_TESTS").is_some();
    let (seconds, allowed) = if long { (60, 1_000_000) } else { (3, 50_000) };
    std::thread::park_timeout(Duration::from_secs(seconds));
    emit(tracer, 0, 1000, realtime_ns);
    let errors = errors(&daemon.read(0));
    let half = at_share(&errors, 0.5);
    println!("after {seconds} s without a daemon: {half} ns");
    assert!(half < allowed, "{half} ns after {seconds} s");
    page.set_gates(&[0; MAX_NCS]);
    daemon.end();
}

/// The next daemon's line lies behind the last one's, which nobody has corrected meanwhile: a thread's time stands still until
/// it has caught up, and is exact from then on.
fn the_next_daemon_does_not_turn_time_back(
    tracer: Tracer,
    listener: &OwnedFd,
    clock: &mut TscClock,
) {
    const AHEAD_NS: u64 = 500_000;
    let gates = [gate::open(gate::ALL_TYPES, 1); MAX_NCS];
    let (page, fd) = ControlPage::create(1).unwrap();
    let mut daemon = Daemon::accept(listener, &fd);
    let line = clock.refresh();
    page.set_clock(Some(ClockParams {
        base_ns: line.base_ns + AHEAD_NS,
        ..line
    }));
    page.set_gates(&gates);
    daemon.go(tracer);
    emit(tracer, 0, 100, realtime_ns);
    // A page says when it was made, to 20 ms.
    let made = realtime_ns();
    poll(|| (realtime_ns() - made > 20_000_000).then_some(()));
    let (next, fd) = ControlPage::create(1).unwrap();
    next.set_clock(Some(clock.refresh()));
    next.set_gates(&gates);
    next.set_state(true, 1);
    daemon.restart(listener, &fd);
    let mut records = Vec::new();
    while !tracer.is_capturing() {
        emit(tracer, 0, 10, realtime_ns);
        records.append(&mut daemon.read(0));
    }
    // The daemon's refreshes come meanwhile.
    let replaced = realtime_ns();
    while realtime_ns() < replaced + 2 * AHEAD_NS {
        emit(tracer, 0, 10, realtime_ns);
        next.set_clock(Some(clock.refresh()));
    }
    emit(tracer, 0, 1000, realtime_ns);
    records.append(&mut daemon.read(0));
    let errors_of = |records| at_share(&errors(records), 0.5);
    let off = errors_of(&records[..100]);
    assert!(off.abs_diff(AHEAD_NS) < AHEAD_NS / 10, "{off} ns");
    assert!(records.is_sorted_by_key(Record::timestamp_ns), "backwards");
    let off = errors_of(&records[records.len() - 1000..]);
    assert!(off < 1000, "{off} ns");
    next.set_gates(&[0; MAX_NCS]);
    daemon.end();
}

/// A daemon that has no counter to go by: times are the system's, to the nanosecond.
fn the_system_clock_is_used_where_the_counter_is_not(tracer: Tracer, listener: &OwnedFd) {
    let (page, fd) = ControlPage::create(1).unwrap();
    let mut daemon = Daemon::accept(listener, &fd);
    page.set_clock(None);
    page.set_gates(&[gate::open(gate::ALL_TYPES, 1); MAX_NCS]);
    daemon.go(tracer);
    emit(tracer, 0, 10_000, realtime_ns);
    let records = daemon.read(0);
    assert_eq!(*errors(&records).last().unwrap(), 0, "it is the same clock");
    page.set_gates(&[0; MAX_NCS]);
    daemon.end();
}

/// Case T01.
#[test]
fn t01_event_times_hold_whatever_the_daemon_does() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.sock");
    let listener = socket::listen(&path, 0o600).unwrap();
    let tracer = Tracer::attach(Options::named("clock").cores(&[0, 1]).socket(&path));
    the_system_clock_is_used_where_the_counter_is_not(tracer, &listener);
    let Some(mut clock) = TscClock::calibrate() else {
        eprintln!("NOT RUN: the time stamp counter is not used on this machine");
        return;
    };
    the_latch_is_left_at_every_step(tracer, &listener);
    the_latch_is_never_at_rest(tracer, &listener);
    the_next_daemon_does_not_turn_time_back(tracer, &listener, &mut clock);
    the_error_stays_small(tracer, &listener, clock);
}
