//! The machine's memory: `/proc/meminfo`.
//!
//! Not by `procfs`, whose `Meminfo` wants every line of a full kernel's to be there and whole.

use nrt_trace_proto::v1::HostMemory;

use super::text::{Bad, lines, words};

/// Reads `/proc/meminfo`.
pub(crate) fn parse(text: &[u8], bad: &mut Bad) -> HostMemory {
    let mut memory = HostMemory::default();
    for line in lines(text) {
        let mut words = words(line);
        let place = match words.next() {
            Some(b"MemTotal:") => &mut memory.total_bytes,
            Some(b"MemAvailable:") => &mut memory.available_bytes,
            Some(b"MemFree:") => &mut memory.free_bytes,
            Some(b"Buffers:") => &mut memory.buffers_bytes,
            Some(b"Cached:") => &mut memory.cached_bytes,
            Some(b"SwapTotal:") => &mut memory.swap_total_bytes,
            Some(b"SwapFree:") => &mut memory.swap_free_bytes,
            _ => continue,
        };
        // In KiB, whatever the unit behind it is called.
        let kib = words.next().and_then(|word| bad.number(word));
        *place = kib.and_then(|kib| kib.checked_mul(1024));
    }
    memory.used_bytes = used(&memory);
    memory
}

/// What is in use. A container's file may say that more is free than there is.
fn used(memory: &HostMemory) -> Option<u64> {
    let total = memory.total_bytes?;
    let rest = match memory.available_bytes {
        Some(available) => available,
        None => memory.free_bytes? + memory.buffers_bytes? + memory.cached_bytes?,
    };
    total.checked_sub(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_read_and_the_rest_is_absent() {
        let mut bad = Bad::default();
        let memory = parse(
            b"MemTotal: 1000 kB\nMemFree: 100 kB\nMemAvailable: 400 kB\n",
            &mut bad,
        );
        assert_eq!(memory.total_bytes, Some(1_024_000));
        assert_eq!(memory.used_bytes, Some(600 * 1024));
        assert_eq!((memory.swap_total_bytes, bad.0), (None, 0));
    }

    #[test]
    fn an_old_kernel_has_no_available() {
        let text = b"MemTotal: 1000 kB\nMemFree: 100 kB\nBuffers: 50 kB\nCached: 250 kB\n";
        assert_eq!(
            parse(text, &mut Bad::default()).used_bytes,
            Some(600 * 1024)
        );
    }

    #[test]
    fn nonsense_and_emptiness_are_absent() {
        let mut bad = Bad::default();
        let memory = parse(b"MemTotal: x kB\nMemAvailable: 5 kB\nMemFree:\n", &mut bad);
        assert_eq!(
            (memory.total_bytes, memory.used_bytes, bad.0),
            (None, None, 1)
        );
        assert_eq!(memory.available_bytes, Some(5 * 1024));
        assert_eq!(parse(b"", &mut bad), HostMemory::default());
        let memory = parse(b"MemTotal: 5 kB\nMemAvailable: 6 kB\n", &mut bad);
        assert_eq!(memory.used_bytes, None, "more than all is free");
    }
}
