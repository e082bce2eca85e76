//! The host monitor's samples as the struct that Neuron's own sampler fills.

use std::ffi::{c_char, c_int};
use std::mem::{offset_of, zeroed};

use nrt_trace_client::{HostStatsError, HostTick, host_stats};
use nrt_trace_model::Status;

use crate::boundary::{guarded, status};
use crate::c_array::CArray;

/// Busy share of a CPU, `cpu_util_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct CpuUtil {
    /// Percent; NaN where not known.
    pub util: f32,
    /// `CLOCK_REALTIME`, ns.
    pub timestamp: u64,
}

/// Resident memory of the process, `host_mem_usage_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct MemUsage {
    /// Bytes; -1 where not known.
    pub usage: i64,
    /// `CLOCK_REALTIME`, ns.
    pub timestamp: u64,
}

/// `host_stats_t`.
#[derive(Debug)]
#[repr(C)]
pub struct HostStats {
    /// CPUs of the machine: rows of `cpu_util_measurements`.
    pub num_cpus: u32,
    /// Name of the CPU.
    pub cpu_name: [c_char; 256],
    /// Total memory, bytes; 0 where not known.
    pub mem_capacity: u64,
    /// Time between two samples, s.
    pub sample_period_sec: f32,
    /// Samples that there are.
    pub num_samples: usize,
    /// Samples that there can be.
    pub max_samples: usize,
    /// A row of `max_samples` for each CPU.
    pub cpu_util_measurements: *mut *mut CpuUtil,
    /// One row of `max_samples`.
    pub mem_usage_measurements: *mut MemUsage,
}

const _: () = assert!(
    size_of::<CpuUtil>() == 16
        && offset_of!(CpuUtil, timestamp) == 8
        && size_of::<MemUsage>() == 16
        && offset_of!(MemUsage, timestamp) == 8
        && size_of::<HostStats>() == 312
        && offset_of!(HostStats, cpu_name) == 4
        && offset_of!(HostStats, mem_capacity) == 0x108
        && offset_of!(HostStats, sample_period_sec) == 0x110
        && offset_of!(HostStats, num_samples) == 0x118
        && offset_of!(HostStats, max_samples) == 0x120
        && offset_of!(HostStats, cpu_util_measurements) == 0x128
        && offset_of!(HostStats, mem_usage_measurements) == 0x130
);

impl HostStats {
    fn empty() -> Self {
        // SAFETY: numbers, characters and raw pointers, for all of which zero bytes are a value.
        unsafe { zeroed() }
    }
}

/// Rows of CPUs. Dropped, all of them are freed.
struct Rows {
    start: *mut *mut CpuUtil,
    len: usize,
}

impl Drop for Rows {
    fn drop(&mut self) {
        // SAFETY: `into_rows` filled it with len rows from calloc, or it is null with len 0; given away it is forgotten.
        unsafe { free_rows(self.start, self.len) };
    }
}

/// Frees rows and the array of them.
///
/// # Safety
/// `start` is null or an array from calloc of `len` rows from calloc, none of which is used any more.
unsafe fn free_rows(start: *mut *mut CpuUtil, len: usize) {
    if start.is_null() {
        return;
    }
    for i in 0..len {
        // SAFETY: i < len, so the address lies in the array.
        let place = unsafe { start.add(i) };
        // SAFETY: an element of the array, by the caller's promise.
        let row = unsafe { place.read() };
        // SAFETY: null or from calloc, and not used any more, by the caller's promise.
        unsafe { libc::free(row.cast()) };
    }
    // SAFETY: from calloc, and not used after this.
    unsafe { libc::free(start.cast()) };
}

/// A row for each CPU, with room for `room` samples.
fn rows(samples: &[HostTick<'_>], cpus: usize, room: usize) -> Result<Rows, Status> {
    let mut all = CArray::with_room(cpus)?;
    let mut made = Vec::new();
    made.try_reserve_exact(cpus).map_err(|_| Status::Resource)?;
    for cpu in 0..cpus {
        let mut row = CArray::with_room(room)?;
        for sample in samples {
            row.push(CpuUtil {
                util: sample.util(cpu).unwrap_or(f32::NAN),
                timestamp: sample.timestamp_ns(),
            });
        }
        made.push(row);
    }
    // Nothing fails from here on.
    for row in made {
        all.push(row.into_raw());
    }
    Ok(Rows {
        start: all.into_raw(),
        len: cpus,
    })
}

fn get() -> Result<HostStats, Status> {
    let given = host_stats().map_err(|error| match error {
        HostStatsError::NoDaemon(_) => Status::Uninitialized,
        HostStatsError::Timeout => Status::Timeout,
        HostStatsError::Refused(_) | HostStatsError::Memory => Status::Resource,
        _ => Status::Failure,
    })?;
    let size = |n: u64| usize::try_from(n).map_err(|_| Status::Resource);
    let cpus = size(given.cpus().into())?;
    let mut samples = Vec::new();
    let count = given.samples().len();
    samples
        .try_reserve_exact(count)
        .map_err(|_| Status::Resource)?;
    samples.extend(given.samples());
    let room = size(given.max_samples())?.max(count);
    let mut memory = CArray::with_room(room)?;
    for sample in &samples {
        let usage = sample
            .rss_bytes()
            .and_then(|bytes| i64::try_from(bytes).ok());
        memory.push(MemUsage {
            usage: usage.unwrap_or(-1),
            timestamp: sample.timestamp_ns(),
        });
    }
    let rows = std::mem::ManuallyDrop::new(rows(&samples, cpus, room)?);
    let mut stats = HostStats::empty();
    stats.num_cpus = given.cpus();
    // The last byte stays 0.
    for (place, byte) in stats.cpu_name[..255]
        .iter_mut()
        .zip(given.cpu_name().bytes())
    {
        *place = byte.cast_signed();
    }
    stats.mem_capacity = given.mem_capacity().unwrap_or(0);
    stats.sample_period_sec = given.period().as_secs_f32();
    stats.num_samples = count;
    stats.max_samples = room;
    stats.cpu_util_measurements = rows.start;
    stats.mem_usage_measurements = memory.into_raw();
    Ok(stats)
}

/// Fills `stats` with what the daemon's host monitor has sampled. What it held before is not freed.
///
/// # Safety
/// `stats` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrt_trace_host_stats_get(stats: *mut HostStats) -> c_int {
    status(|| {
        if stats.is_null() {
            return Err(Status::Invalid);
        }
        let given = get();
        let (filled, result) = match given {
            Ok(filled) => (filled, Ok(())),
            Err(error) => (HostStats::empty(), Err(error)),
        };
        // SAFETY: not null, so the caller's promise that it may be written.
        unsafe { stats.write(filled) };
        result
    })
}

/// Frees what `nrt_trace_host_stats_get` allocated, and sets all to 0.
///
/// # Safety
/// `stats` is null, or was filled by `nrt_trace_host_stats_get`, or is all 0; nobody uses its rows any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nrt_trace_host_stats_free(stats: *mut HostStats) {
    guarded((), || {
        // SAFETY: null or a HostStats, by the caller's promise.
        let Some(stats) = (unsafe { stats.as_mut() }) else {
            return;
        };
        let old = std::mem::replace(stats, HostStats::empty());
        let cpus = usize::try_from(old.num_cpus).unwrap_or(0);
        // SAFETY: null, or num_cpus rows that `get` allocated, by the caller's promise.
        unsafe { free_rows(old.cpu_util_measurements, cpus) };
        // SAFETY: null, or from calloc, by the caller's promise.
        unsafe { libc::free(old.mem_usage_measurements.cast()) };
    });
}

#[cfg(test)]
mod tests {
    use std::ptr;

    use super::*;

    #[test]
    fn freeing_is_idempotent_and_null_is_refused() {
        let mut stats = HostStats::empty();
        for _ in 0..2 {
            // SAFETY: all 0.
            unsafe { nrt_trace_host_stats_free(&raw mut stats) };
        }
        // SAFETY: null is allowed.
        unsafe { nrt_trace_host_stats_free(ptr::null_mut()) };
        // SAFETY: null is allowed.
        let code = unsafe { nrt_trace_host_stats_get(ptr::null_mut()) };
        assert_eq!(code, Status::Invalid.code());
    }

    #[test]
    fn rows_are_made_and_freed() {
        let made = rows(&[], 3, 10).unwrap();
        assert!(!made.start.is_null());
        drop(made);
        assert!(rows(&[], 0, 10).unwrap().start.is_null());
    }
}
