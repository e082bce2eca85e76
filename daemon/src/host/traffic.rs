//! Disks and network interfaces: `/proc/diskstats`, `/proc/net/dev`.

use nrt_trace_proto::v1::{HostDisk, HostNetwork};
use procfs::DiskStat;

use super::text::{Bad, lines, words};

/// The kernel counts in sectors of this size, whatever the disk's own is.
const SECTOR_BYTES: u64 = 512;
/// Devices that stand on other devices, or on memory: what they move is counted below them, or is no disk's.
const VIRTUAL: [&str; 7] = ["loop", "ram", "zram", "dm-", "md", "sr", "fd"];

/// Sums `/proc/diskstats` over whole disks; `None` if there is none.
pub(crate) fn disks(text: &[u8], bad: &mut Bad) -> Option<HostDisk> {
    let disks: Vec<DiskStat> = lines(text)
        .filter_map(|line| {
            let line = str::from_utf8(line).ok();
            bad.expect(line.and_then(|line| DiskStat::from_line(line).ok()))
        })
        .filter(|disk| !VIRTUAL.iter().any(|prefix| disk.name.starts_with(prefix)))
        .collect();
    let whole = |disk: &&DiskStat| !disks.iter().any(|other| is_part(&disk.name, &other.name));
    let mut sum: Option<HostDisk> = None;
    for disk in disks.iter().filter(whole) {
        let sum = sum.get_or_insert_default();
        sum.reads = sum.reads.saturating_add(disk.reads);
        sum.writes = sum.writes.saturating_add(disk.writes);
        let bytes = |sectors: u64| sectors.saturating_mul(SECTOR_BYTES);
        sum.read_bytes = sum.read_bytes.saturating_add(bytes(disk.sectors_read));
        sum.written_bytes = sum
            .written_bytes
            .saturating_add(bytes(disk.sectors_written));
        sum.busy_ms = sum.busy_ms.saturating_add(disk.time_in_progress);
    }
    sum
}

/// Whether `name` is a partition of `disk`: `sda1` of `sda`, `nvme0n1p2` of `nvme0n1`.
fn is_part(name: &str, disk: &str) -> bool {
    name.strip_prefix(disk).is_some_and(|rest| {
        let digits = rest.strip_prefix('p').unwrap_or(rest);
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// Sums `/proc/net/dev` over all interfaces but the loopback; `None` if there is none, as in a network namespace of its own.
pub(crate) fn network(text: &[u8], bad: &mut Bad) -> Option<HostNetwork> {
    let mut sum: Option<HostNetwork> = None;
    // Without the two lines of headings.
    for line in lines(text).skip(2) {
        let Some(colon) = bad.expect(line.iter().position(|byte| *byte == b':')) else {
            continue;
        };
        if line[..colon].trim_ascii() == b"lo" {
            continue;
        }
        let mut numbers = [None; 11];
        for (number, word) in numbers.iter_mut().zip(words(&line[colon + 1..])) {
            *number = bad.number(word);
        }
        let [
            Some(got),
            Some(packets),
            Some(errors),
            ..,
            Some(sent),
            Some(out),
            Some(failed),
        ] = numbers
        else {
            continue;
        };
        let sum = sum.get_or_insert_default();
        for (place, number) in [
            (&mut sum.received_bytes, got),
            (&mut sum.received_packets, packets),
            (&mut sum.received_errors, errors),
            (&mut sum.sent_bytes, sent),
            (&mut sum.sent_packets, out),
            (&mut sum.sent_errors, failed),
        ] {
            *place = place.saturating_add(number);
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disks_are_counted_once() {
        let text = b"   7 0 loop0 9 0 9 9 9 0 9 9 0 9 9\n 8 0 sda 1 0 10 0 2 0 20 0 0 30 0\n \
                     8 1 sda1 1 0 10 0 2 0 20 0 0 30 0\n 259 0 nvme0n1 1 0 1 0 1 0 1 0 0 1 0\n \
                     259 1 nvme0n1p1 1 0 1 0 1 0 1 0 0 1 0\n 253 0 dm-0 5 0 5 0 5 0 5 0 0 5 0\n 8 16 sdb x\n";
        let mut bad = Bad::default();
        let sum = disks(text, &mut bad).unwrap();
        assert_eq!((sum.reads, sum.writes, sum.busy_ms), (2, 3, 31));
        assert_eq!((sum.read_bytes, sum.written_bytes), (11 * 512, 21 * 512));
        assert_eq!(bad.0, 1);
        assert_eq!(disks(b"", &mut bad), None);
        assert_eq!(disks(b"7 0 loop0 9 0 9 9 9 0 9 9 0 9 9\n", &mut bad), None);
    }

    #[test]
    fn the_loopback_alone_is_no_network() {
        let heading =
            "Inter-|   Receive  |  Transmit\n face |bytes packets errs|bytes packets errs\n";
        let lo = "    lo: 100 1 0 0 0 0 0 0 100 1 0 0 0 0 0 0\n";
        let mut bad = Bad::default();
        assert_eq!(network(format!("{heading}{lo}").as_bytes(), &mut bad), None);
        assert_eq!(network(b"", &mut bad), None);
        let text = format!(
            "{heading}{lo}  eth0:500 5 1 0 0 0 0 0 700 7 2 0 0 0 0 0\n  eth1: 1 1 1 0 0 0 0 0 1 1 1 0\n bad: 1 2\n"
        );
        let sum = network(text.as_bytes(), &mut bad).unwrap();
        assert_eq!(
            (
                sum.received_bytes,
                sum.received_packets,
                sum.received_errors
            ),
            (501, 6, 2)
        );
        assert_eq!(
            (sum.sent_bytes, sum.sent_packets, sum.sent_errors),
            (701, 8, 3)
        );
    }
}
