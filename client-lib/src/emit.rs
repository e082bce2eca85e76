//! The emit path: gate, enter, claim, stamp, leave.

use std::sync::atomic::{Ordering, fence};

use nrt_trace_abi::clock::ClockParams;
use nrt_trace_abi::layout::control;
use nrt_trace_abi::record::Draft;
use nrt_trace_abi::{MAX_NCS, gate};
use nrt_trace_ring::{LoadWord, Outcome, step};
use nrt_trace_shm::threads::{self, Inside};
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
pub fn emit_raw(
    trace_type: u32,
    phase: u32,
    nc: u32,
    tracking_id: u64,
    data: &[u64; 5],
    nrta_seq_id: Option<u64>,
) -> u64 {
    let nc_idx = if (nc as usize) < MAX_NCS { nc } else { 0 };
    // Relaxed: the word says all it has to say by itself.
    let open = CONTROL.words()[control::GATES + nc_idx as usize].get();
    if !gate::passes(open, trace_type) {
        return 0;
    }
    record(open, nc, trace_type, phase, tracking_id, data, nrta_seq_id)
}

/// The gate words, for the C header's inline gate: word `nc` has a bit for each enabled type.
#[must_use]
pub fn gate_words() -> &'static [ReadWord] {
    &CONTROL.words()[control::GATES..control::GATES + MAX_NCS]
}

/// The part of an emit whose gate is open. A function of its own, so that the closed gate, which is what most programs
/// pass most of the time, needs no stack frame.
#[inline(never)]
fn record(
    open: u64,
    nc: u32,
    trace_type: u32,
    phase: u32,
    tracking_id: u64,
    data: &[u64; 5],
    nrta_seq_id: Option<u64>,
) -> u64 {
    let nc_idx = if (nc as usize) < MAX_NCS { nc } else { 0 };
    step::at("emit:open");
    let Some(inside) = threads::enter(process::instance()) else {
        return 0;
    };
    step::at("emit:entered");
    let Some(segment) = process::segment().get(&inside) else {
        return 0;
    };
    if segment.gate_generation != gate::generation(open) {
        return 0; // the gate is of a run that has ended, or whose segment is not here yet
    }
    if nc != nc_idx {
        segment.count_out_of_range();
    }
    let Some(ring) = segment.ring(nc_idx as usize) else {
        segment.count_no_ring();
        return 0;
    };
    let draft = Draft {
        trace_type,
        phase,
        nc_idx,
        thread_id: inside.tid(),
        tracking_id,
        timestamp_ns: 0,
        data: *data,
        nrta_seq_id,
    };
    match ring.push(&draft, || now(&inside)) {
        Outcome::Stored { tracking_id, .. } => tracking_id,
        Outcome::Dropped(_) => 0,
    }
}

/// `CLOCK_REALTIME` in ns: by the time stamp counter where the daemon says how.
#[inline]
fn now(inside: &Inside) -> u64 {
    let page = CONTROL.words();
    // SYNC(clock): Acquire, so that a copy is read after the selector that points to it.
    if LoadWord::load(&page[control::CLOCK_MODE], Ordering::Acquire) != control::CLOCK_MODE_TSC
        || TSC_FORBIDDEN.load(Ordering::Relaxed)
    {
        return clock::realtime_ns();
    }
    let selector = LoadWord::load(&page[control::CLOCK_SELECT], Ordering::Acquire);
    match inside.clock(selector).or_else(|| read_clock(inside)) {
        Some(params) => params.ns_at(clock::tsc()),
        None => clock::realtime_ns(),
    }
}

/// Takes the clock's parameters from the page: at most two looks, then the thread's last ones. The daemon may be
/// stopped or killed in the middle of an update; nobody waits for it.
#[cold]
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
            let params = ClockParams {
                base_tsc,
                base_ns,
                mult,
            };
            inside.keep_clock(selector, params);
            return Some(params);
        }
    }
    inside.last_clock()
}
