//! The emit path: gate, enter, claim, stamp, leave.

use std::sync::atomic::{Ordering, fence};

use nrt_trace_abi::clock::ClockParams;
use nrt_trace_abi::layout::control;
use nrt_trace_abi::record::Draft;
use nrt_trace_abi::{MAX_NCS, gate};
use nrt_trace_ring::{LoadWord, Outcome, step};
use nrt_trace_shm::rings::prefetch;
use nrt_trace_shm::threads::{self, Inside, Outermost, Within};
use nrt_trace_shm::{ReadWord, clock};

use crate::process::{self, CONTROL, TSC_FORBIDDEN};

/// Records an event if somebody wants it, and returns the tracking id that was recorded, or 0 if nothing was.
///
/// The typed front is [`crate::Tracer::emit`]; this one takes the numbers as they stand in the record. A `tracking_id`
/// of 0 asks for an id of the event's own. An `nc` of 256 or more is counted and recorded as 0; a `trace_type` of 46 or
/// more is not recorded.
///
/// Gates are asked in the order capturing, NC, type, by one load: the daemon keeps the answer to all of them in the
/// NC's word of the control page.
#[inline]
pub fn emit_raw(trace_type: u32, phase: u32, nc: u32, tracking_id: u64, data: &[u64; 5]) -> u64 {
    let Some(word) = gate_words().get(nc as usize) else {
        return out_of_range(trace_type, phase, tracking_id, data, None);
    };
    // Relaxed: the word says all it has to say by itself.
    let gate = word.get();
    if !gate::passes(gate, trace_type) {
        return 0;
    }
    record(trace_type, phase, nc, tracking_id, data, gate)
}

/// [`emit_raw`], for an event that belongs to an asynchronous request.
#[inline]
pub fn emit_raw_with_seq(
    trace_type: u32,
    phase: u32,
    nc: u32,
    tracking_id: u64,
    data: &[u64; 5],
    nrta_seq_id: u64,
) -> u64 {
    let Some(word) = gate_words().get(nc as usize) else {
        return out_of_range(trace_type, phase, tracking_id, data, Some(&nrta_seq_id));
    };
    let gate = word.get();
    if !gate::passes(gate, trace_type) {
        return 0;
    }
    record_with_seq(trace_type, phase, nc, tracking_id, data, gate, nrta_seq_id)
}

/// Where the address of the control page stands, for the C header's inline gate, which loads it and then a word of it.
#[must_use]
pub const fn control_page() -> *const *const u64 {
    CONTROL.place()
}

/// The gate words: word `nc` has a bit for each enabled type.
#[inline]
fn gate_words() -> &'static [ReadWord; MAX_NCS] {
    CONTROL.words_at::<{ control::GATES }, MAX_NCS>()
}

/// The part of an emit whose gate is open.
///
/// With the C calling convention, and its first five arguments where the C ABI's own function has them: that one's
/// whole work is then the gate and a jump, without a frame. Whatever is unusual happens in a call at the very end, so that
/// nothing has to be saved for it.
#[inline(never)]
extern "C" fn record(
    trace_type: u32,
    phase: u32,
    nc: u32,
    tracking_id: u64,
    data: &[u64; 5],
    gate: u64,
) -> u64 {
    match enter() {
        Some(inside) => Emit::new(trace_type, phase, nc, tracking_id, data, gate, None)
            .store(&inside, || inside.kept_clock().ns_at(clock::tsc())),
        None => record_otherwise(trace_type, phase, nc, tracking_id, data, gate),
    }
}

/// [`record`] for a thread's first event, for the first with new clock parameters, without a time stamp counter, and in
/// a signal handler that interrupted an emit.
#[cold]
#[inline(never)]
extern "C" fn record_otherwise(
    trace_type: u32,
    phase: u32,
    nc: u32,
    tracking_id: u64,
    data: &[u64; 5],
    gate: u64,
) -> u64 {
    Emit::new(trace_type, phase, nc, tracking_id, data, gate, None).store_otherwise()
}

/// [`record`] of an event that belongs to an asynchronous request.
#[inline(never)]
extern "C" fn record_with_seq(
    trace_type: u32,
    phase: u32,
    nc: u32,
    tracking_id: u64,
    data: &[u64; 5],
    gate: u64,
    nrta_seq_id: u64,
) -> u64 {
    let seq = Some(nrta_seq_id);
    let emit = Emit::new(trace_type, phase, nc, tracking_id, data, gate, seq);
    match enter() {
        Some(inside) => emit.store(&inside, || inside.kept_clock().ns_at(clock::tsc())),
        None => emit.store_otherwise(),
    }
}

/// Records an event whose NC index was 256 or more as one of NC 0, and counts it.
#[cold]
#[inline(never)]
extern "C" fn out_of_range(
    trace_type: u32,
    phase: u32,
    tracking_id: u64,
    data: &[u64; 5],
    nrta_seq_id: Option<&u64>,
) -> u64 {
    let gate = gate_words()[0].get();
    if !gate::passes(gate, trace_type) {
        return 0;
    }
    if let Some(inside) = threads::enter(process::instance())
        && let Some(segment) = process::segment().get(&inside)
        && segment.gate_generation == gate::generation(gate)
    {
        segment.count_out_of_range();
    }
    let seq = nrta_seq_id.copied();
    Emit::new(trace_type, phase, 0, tracking_id, data, gate, seq).store_otherwise()
}

/// Enters in the usual way, if the thread can.
#[inline]
fn enter() -> Option<Outermost> {
    step::at("emit:open");
    threads::enter_outermost(process::instance(), clock_selector())
}

/// What the caller says of an event, and what its gate said.
struct Emit<'a> {
    trace_type: u32,
    phase: u32,
    nc: u32,
    tracking_id: u64,
    data: &'a [u64; 5],
    gate: u64,
    nrta_seq_id: Option<u64>,
}

impl<'a> Emit<'a> {
    #[inline(always)]
    const fn new(
        trace_type: u32,
        phase: u32,
        nc: u32,
        tracking_id: u64,
        data: &'a [u64; 5],
        gate: u64,
        nrta_seq_id: Option<u64>,
    ) -> Self {
        Self {
            trace_type,
            phase,
            nc,
            tracking_id,
            data,
            gate,
            nrta_seq_id,
        }
    }

    #[cold]
    #[inline(never)]
    fn store_otherwise(&self) -> u64 {
        threads::enter(process::instance()).map_or(0, |inside| self.store(&inside, || now(&inside)))
    }

    /// Claims a place in the ring of the NC and writes the event there.
    #[inline(always)]
    fn store(&self, inside: &impl Within, now: impl FnOnce() -> u64) -> u64 {
        step::at("emit:entered");
        let Some(segment) = process::segment().get(inside) else {
            return 0;
        };
        if segment.gate_generation != gate::generation(self.gate) {
            return 0; // the gate is of a run that has ended, or whose segment is not here yet
        }
        #[expect(
            clippy::cast_possible_truncation,
            reason = "whoever has a gate has a number below 256"
        )]
        let Some(ring) = segment.ring(self.nc as u8) else {
            segment.count_no_ring();
            return 0;
        };
        let outcome = ring.push(|seq| {
            Draft {
                trace_type: self.trace_type,
                phase: self.phase,
                nc_idx: self.nc,
                thread_id: inside.tid(),
                tracking_id: self.tracking_id,
                timestamp_ns: now(),
                data: *self.data,
                nrta_seq_id: self.nrta_seq_id,
            }
            .finish(seq)
        });
        match outcome {
            Outcome::Stored { seq, tracking_id } => {
                if let Some(slot) = ring.ahead_of(seq) {
                    prefetch(slot);
                }
                tracking_id
            }
            Outcome::Dropped(_) => 0,
        }
    }
}

/// Which of the clock's copies holds: a number that changes with every refresh, and with the kind of clock.
#[inline]
fn clock_selector() -> u64 {
    // SYNC(clock): Acquire, so that a copy is read after the selector that points to it.
    LoadWord::load(&CONTROL.words()[control::CLOCK_SELECT], Ordering::Acquire)
}

/// `CLOCK_REALTIME` in ns: by the time stamp counter where the daemon says how.
fn now(inside: &Inside) -> u64 {
    // What the thread keeps under this selector it took when the counter was to be used; a page that says otherwise has
    // another selector.
    let kept = inside.clock(clock_selector());
    match kept.or_else(|| refresh(inside)) {
        Some(params) => params.ns_at(clock::tsc()),
        None => clock::realtime_ns(),
    }
}

/// Takes the clock's parameters from the page, if events are timed by the counter.
fn refresh(inside: &Inside) -> Option<ClockParams> {
    // SYNC(clock-mode): if the counter is to be used, the selector that is read next points to a line.
    let mode = LoadWord::load(&CONTROL.words()[control::CLOCK_MODE], Ordering::Acquire);
    if mode != control::CLOCK_MODE_TSC || TSC_FORBIDDEN.load(Ordering::Relaxed) {
        return None;
    }
    read_clock(inside)
}

/// Takes the clock's parameters from the page: at most two looks, then the thread's last ones. The daemon may be
/// stopped or killed in the middle of an update; nobody waits for it.
fn read_clock(inside: &Inside) -> Option<ClockParams> {
    let page = CONTROL.words();
    for _ in 0..2 {
        // SYNC(clock).
        let selector = LoadWord::load(&page[control::CLOCK_SELECT], Ordering::Acquire);
        let copy = control::CLOCK_COPY[usize::from(selector & 1 == 1)];
        let [base_tsc, base_ns, mult] = [0, 1, 2].map(|offset| page[copy + offset].get());
        // SYNC(clock-reuse): if a word above belongs to a later filling of the copy, the selector has moved.
        fence(Ordering::Acquire);
        if page[control::CLOCK_SELECT].get() == selector {
            let line = ClockParams {
                base_tsc,
                base_ns,
                mult,
            };
            let params = inside.last_clock().map_or(line, |(last, earlier)| {
                let tsc = clock::tsc();
                // One daemon's lines join. The next daemon's may lie a little behind where the thread has got to with the last
                // one, which nobody has corrected meanwhile. Then the thread's line begins later than now, and a refresh finds
                // it standing still.
                if control::is_of_another_page(last, selector) || earlier.base_tsc > tsc {
                    line.not_before(&earlier, tsc)
                } else {
                    line
                }
            });
            inside.keep_clock(selector, params);
            return Some(params);
        }
    }
    inside.last_clock().map(|(_, line)| line)
}
