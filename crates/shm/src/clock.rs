//! Clocks: the three of the kernel, and the time stamp counter calibrated against `CLOCK_REALTIME`.

use std::collections::VecDeque;

use nrt_trace_abi::clock::ClockParams;

/// The three clocks, read together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// `CLOCK_REALTIME`, ns.
    pub realtime_ns: u64,
    /// `CLOCK_MONOTONIC`, ns.
    pub monotonic_ns: u64,
    /// `CLOCK_BOOTTIME`, ns.
    pub boottime_ns: u64,
}

/// The C library's function: rustix looks for the vDSO by itself, where valgrind's auxiliary vector does not say that
/// it has taken it away, and ends the host with SIGSEGV.
fn read(id: libc::clockid_t) -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: writes one timespec to the address given, which is valid for the call. A clock that a kernel does not have
    // leaves the zeros.
    let _status = unsafe { libc::clock_gettime(id, &raw mut time) };
    // Clocks before 1970 read as 0.
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000
        + u64::try_from(time.tv_nsec).unwrap_or(0)
}

/// Reads the three clocks one right after the other.
#[must_use]
pub fn anchor() -> Anchor {
    Anchor {
        realtime_ns: read(libc::CLOCK_REALTIME),
        monotonic_ns: read(libc::CLOCK_MONOTONIC),
        boottime_ns: read(libc::CLOCK_BOOTTIME),
    }
}

/// `CLOCK_REALTIME` in ns, through the vDSO.
#[inline]
#[must_use]
pub fn realtime_ns() -> u64 {
    read(libc::CLOCK_REALTIME)
}

/// The time stamp counter; 0 on machines that have none.
#[inline]
#[must_use]
pub fn tsc() -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: every x86-64 CPU has the instruction. It faults only in processes that asked for that
        // (PR_SET_TSC), which `tsc_allowed` finds out before the counter is used.
        unsafe { core::arch::x86_64::_rdtsc() }
    }
    #[cfg(not(target_arch = "x86_64"))]
    0
}

/// Whether this process may read the counter (strict sandboxes turn it off with `PR_SET_TSC`).
#[must_use]
pub fn tsc_allowed() -> bool {
    if !cfg!(target_arch = "x86_64") {
        return false;
    }
    let mut mode: libc::c_int = 0;
    // SAFETY: PR_GET_TSC writes one int to the address in its second argument, which is valid for the call.
    let status = unsafe { libc::prctl(libc::PR_GET_TSC, &raw mut mode) };
    status == 0 && mode == libc::PR_TSC_ENABLE
}

/// A counter value and the time at which it was read.
#[derive(Clone, Copy, Debug)]
struct Pair {
    tsc: u64,
    ns: u64,
}

impl Pair {
    /// The tightest of a few readings of the clock between two readings of the counter. `tight`, in ticks, is what a
    /// reading takes that nothing came between; it is looked for a little longer, and learned.
    fn take(tight: &mut u64) -> Self {
        let mut best = (u64::MAX, Self { tsc: 0, ns: 0 });
        for round in 0..50 {
            if round >= 5 && best.0 <= *tight * 2 {
                break;
            }
            let before = tsc();
            let ns = realtime_ns();
            let width = tsc().wrapping_sub(before);
            if width < best.0 {
                best = (
                    width,
                    Self {
                        tsc: before.wrapping_add(width / 2),
                        ns,
                    },
                );
            }
        }
        // Upwards slowly: a machine may have become slower for good.
        *tight = best.0.min(tight.saturating_add(*tight / 16)).max(1);
        best.1
    }
}

/// The daemon's model of the time stamp counter against `CLOCK_REALTIME`.
#[derive(Debug)]
pub struct TscClock {
    /// Recent readings, oldest first: the slope is taken over about a second.
    history: VecDeque<Pair>,
    params: ClockParams,
    /// What a reading takes, in ticks.
    tight: u64,
}

impl TscClock {
    /// Two readings closer than this give too rough a slope to start with.
    const FIRST_BASELINE_NS: u64 = 10_000_000;
    /// Readings older than this are dropped: an older slope follows clock corrections too slowly.
    const BASELINE_NS: u64 = 1_000_000_000;
    /// A disagreement larger than this is a step of the clock, not drift: follow it at once.
    const STEP_NS: u64 = ClockParams::STEP_NS;
    /// When the line runs ahead of the clock by more than [`Self::CALM_NS`], it is slowed down so that they meet after
    /// this time.
    const MEET_NS: u64 = 20_000_000;
    /// A line that is ahead by no more than this is in time.
    const CALM_NS: u64 = 750;
    /// The time after which a line that is in time meets the clock: at most 7.5 ppm slower, so that it stays within a
    /// millisecond for a minute if it was the last of a daemon's life.
    const CALM_MEET_NS: u64 = 100_000_000;

    /// Calibrates over 10 ms. `None` where the kernel itself does not trust the counter (its clock source is not
    /// `tsc`), where it is not invariant, or where this process may not read it.
    #[must_use]
    pub fn calibrate() -> Option<Self> {
        if !tsc_allowed() || clocksource().as_deref() != Some("tsc") || !invariant() {
            return None;
        }
        let mut tight = u64::MAX / 32;
        let first = Pair::take(&mut tight);
        std::thread::sleep(std::time::Duration::from_nanos(Self::FIRST_BASELINE_NS));
        let second = Pair::take(&mut tight);
        let mult = slope(first, second)?;
        let params = ClockParams {
            base_tsc: second.tsc,
            base_ns: second.ns,
            mult,
        };
        Some(Self {
            history: VecDeque::from([first, second]),
            params,
            tight,
        })
    }

    /// The line that holds now.
    #[must_use]
    pub fn params(&self) -> ClockParams {
        self.params
    }

    /// Reads both clocks and gives the next line. Along consecutive lines time never runs backwards, unless the
    /// clock itself was set back.
    pub fn refresh(&mut self) -> ClockParams {
        let now = Pair::take(&mut self.tight);
        self.advance(now);
        self.params
    }

    fn advance(&mut self, now: Pair) {
        let predicted = self.params.ns_at(now.tsc);
        if predicted.abs_diff(now.ns) > Self::STEP_NS {
            // The clock was set: the rate is still right, what came before is of no use.
            self.history.clear();
            self.history.push_back(now);
            self.params = ClockParams {
                base_tsc: now.tsc,
                base_ns: now.ns,
                ..self.params
            };
            return;
        }
        self.history.push_back(now);
        while self.history.len() > 2
            && now.ns.saturating_sub(self.history[1].ns) >= Self::BASELINE_NS
        {
            self.history.pop_front();
        }
        let mult = match self.history.front() {
            Some(&oldest) if now.ns.saturating_sub(oldest.ns) >= Self::FIRST_BASELINE_NS => {
                slope(oldest, now).unwrap_or(self.params.mult)
            }
            _ => self.params.mult,
        };
        let ahead = predicted.saturating_sub(now.ns);
        let meet = if ahead <= Self::CALM_NS {
            Self::CALM_MEET_NS
        } else {
            Self::MEET_NS
        };
        // At most STEP_NS / MEET_NS = 5 % slower.
        let mult = mult - mult / meet * ahead;
        self.params = ClockParams {
            base_tsc: now.tsc,
            base_ns: now.ns.max(predicted),
            mult,
        };
    }
}

/// Nanoseconds per tick between two readings, times 2^64; `None` for a counter that is too slow for that.
fn slope(from: Pair, to: Pair) -> Option<u64> {
    let ticks = to.tsc.checked_sub(from.tsc).filter(|&ticks| ticks > 0)?;
    let ns = to.ns.checked_sub(from.ns)?;
    u64::try_from((u128::from(ns) << ClockParams::FRACTION_BITS) / u128::from(ticks)).ok()
}

/// The kernel's clock source, if it can be read.
#[must_use]
pub fn clocksource() -> Option<String> {
    let text =
        std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource")
            .ok()?;
    Some(text.trim_end().to_owned())
}

/// Whether the counter ticks at one rate in every power state.
fn invariant() -> bool {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let flags = info
        .lines()
        .find(|line| line.starts_with("flags"))
        .unwrap_or_default();
    ["constant_tsc", "nonstop_tsc"]
        .iter()
        .all(|want| flags.split_whitespace().any(|flag| flag == *want))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2.5 GHz.
    const MULT: u64 = u64::MAX / 5 * 2;

    fn clock() -> TscClock {
        let start = Pair {
            tsc: 1 << 40,
            ns: 1 << 60,
        };
        let params = ClockParams {
            base_tsc: start.tsc,
            base_ns: start.ns,
            mult: MULT,
        };
        TscClock {
            history: VecDeque::from([start]),
            params,
            tight: 100,
        }
    }

    /// A reading `ms` after the start of a clock that runs `ppm` fast and `off` ns away.
    fn reading(ms: u64, ppm: i64, off: i64) -> Pair {
        let ns = i64::try_from(ms * 1_000_000).unwrap();
        let ns = ns + ns / 1_000_000 * ppm + off;
        Pair {
            tsc: (1 << 40) + ms * 2_500_000,
            ns: (1u64 << 60).checked_add_signed(ns).unwrap(),
        }
    }

    #[test]
    fn refreshed_lines_never_run_backwards_and_stay_close_while_the_clock_slews() {
        let mut clock = clock();
        let mut last = 0;
        for step in 1..2000u64 {
            // Slews of 50 ppm either way, changing every 100 ms, with 30 ns of reading noise.
            let wave = i64::try_from(step % 20).unwrap();
            let off = if wave < 10 {
                wave * 500
            } else {
                (20 - wave) * 500
            } + wave % 3 * 30;
            let now = reading(step * 10, 0, off);
            assert!(clock.params.ns_at(now.tsc) >= last);
            clock.advance(now);
            let after = clock.params.ns_at(now.tsc);
            assert!(after >= last, "step {step}");
            assert!(
                after.abs_diff(now.ns) < 2_000,
                "step {step}: {} ns",
                after.abs_diff(now.ns)
            );
            last = after;
        }
    }

    /// However a daemon dies, its last line is good for a minute.
    #[test]
    fn a_line_that_is_in_time_stays_within_a_millisecond_for_a_minute() {
        let mut clock = clock();
        for step in 1..1000 {
            // 600 ns of noise, more than a reading between two others can have.
            clock.advance(reading(
                step * 10,
                0,
                i64::try_from(step % 3).unwrap() * 300,
            ));
            let later = reading(step * 10 + 60_000, 0, 0);
            if step > 100 {
                let error = clock.params.ns_at(later.tsc).abs_diff(later.ns);
                assert!(error < 1_000_000, "step {step}: {error} ns");
            }
        }
    }

    #[test]
    fn the_rate_is_learned() {
        let mut clock = clock();
        for step in 1..200 {
            clock.advance(reading(step * 10, 40, 0));
        }
        let minute_later = reading(2_000 + 60_000, 40, 0);
        let error = clock
            .params
            .ns_at(minute_later.tsc)
            .abs_diff(minute_later.ns);
        assert!(
            error < 100_000,
            "{error} ns after a minute without a refresh"
        );
    }

    #[test]
    fn a_step_of_the_clock_is_followed_at_once_in_either_direction() {
        for off in [3_600_000_000_000, -5_000_000_000] {
            let mut clock = clock();
            clock.advance(reading(10, 0, 0));
            let stepped = reading(20, 0, off);
            clock.advance(stepped);
            assert_eq!(clock.params.ns_at(stepped.tsc), stepped.ns);
        }
    }

    #[test]
    fn a_calibrated_counter_agrees_with_the_clock() {
        let Some(mut clock) = TscClock::calibrate() else {
            assert_ne!(
                clocksource().as_deref(),
                Some("tsc"),
                "the counter is trusted by the kernel"
            );
            return;
        };
        for _ in 0..100 {
            let params = clock.refresh();
            let (before, ns, after) = (realtime_ns(), params.ns_at(tsc()), realtime_ns());
            assert!(
                (before.saturating_sub(50_000)..=after + 50_000).contains(&ns),
                "{before} {ns} {after}"
            );
        }
    }
}
