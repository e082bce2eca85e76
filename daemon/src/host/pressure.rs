//! Load averages and pressure stall information: `/proc/loadavg`, `/proc/pressure/*`.
//!
//! Pressure not by `procfs`, which wants both lines (old kernels have no `full` one for the CPU) and breaks off at a short
//! one.

use nrt_trace_proto::v1::{HostLoad, HostPressure, HostResource, HostStall};
use procfs::{FromRead, LoadAverage};

use super::text::{Bad, lines, words};

/// Reads `/proc/loadavg`.
pub(crate) fn load(text: &[u8], bad: &mut Bad) -> Option<HostLoad> {
    let load = bad.expect(LoadAverage::from_read(text).ok())?;
    Some(HostLoad {
        one: load.one,
        five: load.five,
        fifteen: load.fifteen,
        running: load.cur,
        tasks: load.max,
    })
}

/// Reads a file of `/proc/pressure`.
pub(crate) fn parse(resource: HostResource, text: &[u8], bad: &mut Bad) -> HostPressure {
    let mut pressure = HostPressure {
        resource: resource.into(),
        ..HostPressure::default()
    };
    for line in lines(text) {
        let mut words = words(line);
        let place = match words.next() {
            Some(b"some") => &mut pressure.some,
            Some(b"full") => &mut pressure.full,
            _ => continue,
        };
        let mut stall = HostStall::default();
        for word in words {
            if let Some(average) = word.strip_prefix(b"avg10=") {
                stall.avg10 = bad.decimal(average);
            } else if let Some(average) = word.strip_prefix(b"avg60=") {
                stall.avg60 = bad.decimal(average);
            } else if let Some(average) = word.strip_prefix(b"avg300=") {
                stall.avg300 = bad.decimal(average);
            } else if let Some(total) = word.strip_prefix(b"total=") {
                stall.total_us = bad.number(total);
            }
        }
        *place = Some(stall);
    }
    pressure
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn load_is_read_or_absent() {
        let mut bad = Bad::default();
        let load_of = load(b"0.25 1.50 2.00 3/400 12345\n", &mut bad).unwrap();
        assert_eq!(
            (load_of.one, load_of.running, load_of.tasks),
            (0.25, 3, 400)
        );
        for text in ["", "0.1 0.2", "a b c 1/2 3", "0.1 0.2 0.3 12 3"] {
            assert_eq!(load(text.as_bytes(), &mut bad), None, "{text}");
        }
        assert_eq!(bad.0, 4);
    }

    #[test]
    fn each_value_of_a_stall_stands_for_itself() {
        let mut bad = Bad::default();
        let text = b"some avg10=1.50 avg60=x avg300=0.00 total=77\nfull\nsome";
        let pressure = parse(HostResource::Memory, &text[..text.len() - 5], &mut bad);
        let some = pressure.some.unwrap();
        assert_eq!(
            (some.avg10, some.avg60, some.avg300, some.total_us),
            (Some(1.5), None, Some(0.0), Some(77))
        );
        assert_eq!(pressure.full, Some(HostStall::default()));
        assert_eq!((pressure.resource(), bad.0), (HostResource::Memory, 1));
        assert_eq!(parse(HostResource::Cpu, b"", &mut bad).some, None);
    }
}
