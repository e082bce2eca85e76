//! What stays the same: the CPU's name, the memory there is.

use super::text::lines;

/// Longest name that is given: the C struct holds 255 bytes and a zero.
const NAME_BYTES: usize = 255;

/// The CPU's name from `/proc/cpuinfo`: the first `model name`, else implementer and part as ARM gives them, else what the
/// file says of the machine, else "unknown".
pub(crate) fn cpu_name(text: &[u8]) -> String {
    let value = |key: &str| {
        lines(text).find_map(|line| {
            let line = str::from_utf8(line).ok()?;
            let (name, value) = line.split_once(':')?;
            let value = value.trim();
            (name.trim().eq_ignore_ascii_case(key) && !value.is_empty()).then_some(value)
        })
    };
    let arm = || {
        let (implementer, part) = (value("CPU implementer")?, value("CPU part")?);
        Some(format!("implementer {implementer} part {part}"))
    };
    let named = |key| value(key).map(str::to_owned);
    let mut name = named("model name")
        .or_else(arm)
        .or_else(|| named("cpu model"))
        .or_else(|| named("machine"))
        .or_else(|| named("hardware"))
        .or_else(|| named("vendor_id"))
        .unwrap_or_else(|| "unknown".to_owned());
    name.truncate(name.floor_char_boundary(NAME_BYTES));
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p09_a_cpu_without_a_model_name_has_a_name() {
        let x86 = "processor\t: 0\nvendor_id\t: X\nmodel name\t: EPYC 9R14\n\nprocessor\t: 1\nmodel name\t: other\n";
        assert_eq!(cpu_name(x86.as_bytes()), "EPYC 9R14");
        let block =
            "processor\t: 0\nBogoMIPS\t: 2100.00\nCPU implementer\t: 0x41\nCPU part\t: 0xd40\n\n";
        assert_eq!(
            cpu_name(block.repeat(8).as_bytes()),
            "implementer 0x41 part 0xd40"
        );
        let raspberry =
            "processor\t: 0\nBogoMIPS\t: 38.40\n\nHardware\t: BCM2835\nModel\t\t: Raspberry Pi 4\n";
        assert_eq!(cpu_name(raspberry.as_bytes()), "BCM2835");
        let s390 = "vendor_id       : IBM/S390\n# processors    : 2\nprocessor 0: version = FF,  identification = 1,  machine = 8561\n";
        assert_eq!(cpu_name(s390.as_bytes()), "IBM/S390");
        for nothing in ["", "model name\t:\n", "\0\0", "processor : 0\n"] {
            assert_eq!(cpu_name(nothing.as_bytes()), "unknown", "{nothing:?}");
        }
    }

    #[test]
    fn a_long_name_fits_the_c_struct() {
        let name = cpu_name(format!("model name : a{}", "é".repeat(300)).as_bytes());
        assert_eq!(name.len(), 255);
    }
}
