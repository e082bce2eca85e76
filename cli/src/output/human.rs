//! Counts, bytes and times as people write them.

use std::time::Duration;

/// A count with thousands separated: `1,048,576`.
pub(crate) fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// "1 event", "2 events".
pub(crate) fn events(n: u64) -> String {
    format!("{} event{}", count(n), if n == 1 { "" } else { "s" })
}

/// "1 process", "2 processes".
pub(crate) fn processes(n: usize) -> String {
    format!("{n} process{}", if n == 1 { "" } else { "es" })
}

/// Bytes in binary units: `1.5 MiB`.
#[expect(clippy::cast_precision_loss, reason = "one decimal is shown")]
pub(crate) fn bytes(n: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if n < 1024 {
        return format!("{n} B");
    }
    let mut value = n as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1023.95 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// A share: `1.2 %`.
#[expect(clippy::cast_precision_loss, reason = "one decimal is shown")]
pub(crate) fn percent(part: u64, whole: u64) -> String {
    format!("{:.1} %", part as f64 * 100.0 / whole.max(1) as f64)
}

/// A rate of events: `1.25 M/s`.
#[expect(clippy::cast_precision_loss, reason = "three figures are shown")]
pub(crate) fn rate(events: u64, during: Duration) -> String {
    let seconds = during.as_secs_f64().max(1e-9);
    let rate = events as f64 / seconds;
    if rate >= 1e6 {
        format!("{:.2} M/s", rate / 1e6)
    } else if rate >= 1e3 {
        format!("{:.1} k/s", rate / 1e3)
    } else {
        format!("{rate:.0} /s")
    }
}

/// Bytes per second.
pub(crate) fn byte_rate(done: u64, during: Duration) -> String {
    let millis = during.as_millis().max(1);
    let rate = u128::from(done) * 1000 / millis;
    format!("{}/s", bytes(u64::try_from(rate).unwrap_or(u64::MAX)))
}

/// A span of time: `1.250 s`, `3 min 12 s`, `2 h 5 min`.
pub(crate) fn span(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0 => format!("{} ms", duration.as_millis()),
        1..60 => format!("{:.1} s", duration.as_secs_f64()),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        3600..86400 => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{} d {} h", seconds / 86400, seconds % 86400 / 3600),
    }
}

/// A moment, ns since 1970, as UTC with milliseconds: `2026-11-30 02:21:05.123 UTC`.
pub(crate) fn moment(realtime_ns: u64) -> String {
    let seconds = realtime_ns / 1_000_000_000;
    let (year, month, day) = civil(seconds / 86400);
    let of_day = seconds % 86400;
    format!(
        "{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}.{:03} UTC",
        of_day / 3600,
        of_day / 60 % 60,
        of_day % 60,
        realtime_ns / 1_000_000 % 1000
    )
}

/// Year, month and day of a day number counted from 1970-01-01, in the Gregorian calendar.
fn civil(mut days: u64) -> (u64, u64, u64) {
    let leap = |y: u64| (y.is_multiple_of(4) && !y.is_multiple_of(100)) || y.is_multiple_of(400);
    let mut year = 1970;
    loop {
        let length = if leap(year) { 366 } else { 365 };
        if days < length {
            break;
        }
        days -= length;
        year += 1;
    }
    let february = if leap(year) { 29 } else { 28 };
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    (year, month, days + 1)
}

/// Numbers as ranges, the way filters take them: `0-3,8`.
pub(crate) fn ranges(numbers: &[u32]) -> String {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let mut parts: Vec<(u32, u32)> = Vec::new();
    for n in sorted {
        match parts.last_mut() {
            Some((_, last)) if *last + 1 == n => *last = n,
            _ => parts.push((n, n)),
        }
    }
    let text: Vec<String> = parts
        .into_iter()
        .map(|(a, b)| {
            if a == b {
                a.to_string()
            } else {
                format!("{a}-{b}")
            }
        })
        .collect();
    text.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_grouped() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1_048_576), "1,048,576");
        assert_eq!(percent(12, 1000), "1.2 %");
        assert_eq!(percent(0, 0), "0.0 %");
        assert_eq!(events(1), "1 event");
        assert_eq!(events(12_345), "12,345 events");
    }

    #[test]
    fn bytes_take_the_largest_unit_that_reads_well() {
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(1024), "1.0 KiB");
        assert_eq!(bytes(128 << 20), "128.0 MiB");
        assert_eq!(bytes((1 << 20) - 1), "1.0 MiB");
    }

    #[test]
    fn times_read_as_a_clock_does() {
        assert_eq!(moment(0), "1970-01-01 00:00:00.000 UTC");
        assert_eq!(
            moment(951_782_400_000_000_000),
            "2000-02-29 00:00:00.000 UTC"
        );
        assert_eq!(
            moment(1_796_005_265_123_456_789),
            "2026-11-30 02:21:05.123 UTC"
        );
        assert_eq!(span(Duration::from_millis(1250)), "1.2 s");
        assert_eq!(span(Duration::from_secs(192)), "3 min 12 s");
    }

    #[test]
    fn ranges_are_what_filters_take() {
        assert_eq!(ranges(&[8, 0, 1, 2, 3, 2]), "0-3,8");
        assert_eq!(ranges(&[]), "");
        assert_eq!(ranges(&[5]), "5");
    }
}
