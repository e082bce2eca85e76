//! Values of arguments: lists, numbers and durations, checked as they are read.

use std::time::Duration;

use nrt_trace_export::GroupKey;
use nrt_trace_model::filter;

/// Takes a filter away.
const ALL: &str = "all";

/// NeuronCores of a filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NcList(pub(crate) Vec<u32>);

/// Terms of an event filter: names, groups, exclusions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EventTerms(pub(crate) Vec<String>);

/// Parses a list of NeuronCores: numbers and inclusive ranges, or `all`, which is the empty list.
pub(crate) fn nc_list(text: &str) -> Result<NcList, String> {
    match text.trim() {
        ALL => Ok(NcList(Vec::new())),
        list => filter::parse_nc_list(list)
            .map(NcList)
            .map_err(|error| format!("{error}, or {ALL}")),
    }
}

/// Parses an event filter, and checks that every name in it exists and that something is selected; `all` is the empty list.
pub(crate) fn event_terms(text: &str) -> Result<EventTerms, String> {
    if text.trim() == ALL {
        return Ok(EventTerms(Vec::new()));
    }
    let terms: Vec<String> = text.split(',').map(|term| term.trim().to_owned()).collect();
    filter::parse_types(&terms).map_err(|error| format!("{error}, or {ALL}"))?;
    Ok(EventTerms(terms))
}

/// Parses a duration above 0, with its unit.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    match time(text) {
        Some(duration) if !duration.is_zero() => Ok(duration),
        _ => Err("a duration is a number above 0 with ms, s, m or h, such as 10s".to_owned()),
    }
}

/// A number with `ms`, `s`, `m` or `h`. A unit is always needed: half of those who leave it out mean another one.
fn time(text: &str) -> Option<Duration> {
    let unit_at = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(unit_at);
    let seconds = match unit.trim() {
        "ms" => 0.001,
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return None,
    };
    let value: f64 = number.parse().ok()?;
    Duration::try_from_secs_f64(value * seconds).ok()
}

/// Parses the time between two ticks of the host monitor, to milliseconds.
pub(crate) fn period(text: &str) -> Result<u32, String> {
    let parsed = duration(text)?;
    match u32::try_from(parsed.as_millis()) {
        Ok(ms @ 100..=60_000) => Ok(ms),
        _ => Err("it must be from 100ms to 60s".to_owned()),
    }
}

/// Parses a ring size: the daemon rounds small ones up and knows the upper limit, but 0 never makes sense.
pub(crate) fn ring_size(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("it must be a whole number, at least 1".to_owned()),
        Ok(size) => Ok(size),
    }
}

/// A moment of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    /// Nanoseconds since 1970.
    Absolute(u64),
    /// Nanoseconds since capturing began.
    Since(u64),
}

/// Parses a moment: nanoseconds since 1970, or a plus sign and the time since capturing began, which may be 0.
pub(crate) fn when(text: &str) -> Result<When, String> {
    const ALLOWED: &str = "a time is ns since 1970, or +TIME since capturing began, a number with ms, s, m or h, such as +1.5s";
    match text.strip_prefix('+') {
        Some(since) => {
            let since = time(since).ok_or(ALLOWED)?.as_nanos();
            let ns = u64::try_from(since).map_err(|_| "that is beyond 584 years".to_owned())?;
            Ok(When::Since(ns))
        }
        None => text
            .parse()
            .map(When::Absolute)
            .map_err(|_| ALLOWED.to_owned()),
    }
}

/// Parses a key of a primary group.
pub(crate) fn primary_key(text: &str) -> Result<GroupKey, String> {
    key_of(text, &GroupKey::ALL[..4])
}

/// Parses a key of a secondary group.
pub(crate) fn secondary_key(text: &str) -> Result<GroupKey, String> {
    key_of(text, &GroupKey::ALL)
}

fn key_of(text: &str, allowed: &[GroupKey]) -> Result<GroupKey, String> {
    let found = allowed.iter().find(|key| key.name() == text.trim());
    found.copied().ok_or_else(|| {
        let names: Vec<&str> = allowed.iter().map(|key| key.name()).collect();
        format!("a group is made by {}", names.join(", "))
    })
}

/// Parses a pid.
pub(crate) fn pid(text: &str) -> Result<i32, String> {
    match text.trim().parse() {
        Ok(pid) if pid > 0 => Ok(pid),
        _ => Err("a pid is a whole number above 0".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        assert_eq!(duration("10s"), Ok(Duration::from_secs(10)));
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("1.5m"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("2h"), Ok(Duration::from_secs(7200)));
        for bad in [
            "", "s", "0", "10", "0s", "-1s", "1d", "1..5s", "1e99h", "nan", "inf",
        ] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn moments_are_absolute_or_since_the_beginning() {
        assert_eq!(
            when("1796005265123456789"),
            Ok(When::Absolute(1_796_005_265_123_456_789))
        );
        assert_eq!(when("+1.5s"), Ok(When::Since(1_500_000_000)));
        assert_eq!(when("+0s"), Ok(When::Since(0)));
        for bad in ["", "+", "-1", "1.5s", "+x", "+0", "+-1s"] {
            assert!(when(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn groups_are_made_by_known_keys() {
        assert_eq!(primary_key("lnc_idx"), Ok(GroupKey::LncIdx));
        assert_eq!(secondary_key("worker_gid"), Ok(GroupKey::WorkerGid));
        let refused = primary_key("worker_gid").unwrap_err();
        assert!(
            refused.contains("instance_id, process_id, thread_id, lnc_idx"),
            "{refused}"
        );
    }

    #[test]
    fn periods_have_bounds() {
        assert_eq!(period("100ms"), Ok(100));
        assert_eq!(period("60s"), Ok(60_000));
        assert_eq!(period("1.5s"), Ok(1500));
        for bad in ["99ms", "61s", "2h", "x"] {
            assert!(period(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn all_is_a_filter_that_leaves_nothing_out() {
        assert_eq!(nc_list(" all"), Ok(NcList(Vec::new())));
        assert_eq!(nc_list("0-1"), Ok(NcList(vec![0, 1])));
        assert_eq!(event_terms("all"), Ok(EventTerms(Vec::new())));
        assert!(nc_list("al").unwrap_err().ends_with(", or all"));
        assert!(event_terms("every").unwrap_err().ends_with(", or all"));
    }

    #[test]
    fn a_ring_of_nothing_is_refused() {
        assert_eq!(ring_size("1"), Ok(1));
        for bad in ["0", "-1", "1k", ""] {
            assert_eq!(
                ring_size(bad).unwrap_err(),
                "it must be a whole number, at least 1"
            );
        }
    }

    #[test]
    fn pids_are_positive() {
        assert_eq!(pid("42"), Ok(42));
        for bad in ["0", "-7", "x"] {
            assert_eq!(pid(bad).unwrap_err(), "a pid is a whole number above 0");
        }
    }
}
