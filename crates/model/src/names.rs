//! Names of the numbers that payloads hold.

/// What a number without a name reads as.
pub const UNKNOWN: &str = "unknown";

const ALGORITHM: [&str; 12] = [
    "Ring",
    "Hier",
    "Mesh",
    "Kangaring",
    "Invalid",
    "RDH",
    "Single Step Mesh",
    "RDH",
    "UltraServer Mesh",
    "Mesh",
    "Bw Optimal Mesh",
    "Invalid",
];

const USAGE_TYPE: [&str; 23] = [
    "GENERIC",
    "INSTR_PE",
    "INSTR_ACT",
    "INSTR_POOL",
    "IO",
    "DRAM_SPILL",
    "WEIGHT",
    "NOTIFICATION",
    "ACT_TABLE",
    "INSTR_DVE",
    "INSTR_SP",
    "SCRATCHPAD",
    "TENSOR",
    "UCODE_LIB",
    "POOL_STDIO",
    "CC",
    "SCRATCHPAD_NOT_SHARED",
    "XT_CC",
    "DMA_RING",
    "DMA_RING_SPILL",
    "DMA_RING_IO",
    "DMA_RING_COLLECTIVES",
    "MAX",
];

const MEM_TYPE: [&str; 3] = ["INVALID", "HOST_DRAM", "HBM"];

const ENC_OP: [&str; 14] = [
    "ALLGATHER",
    "ALLREDUCE",
    "BROADCAST",
    "REDUCE",
    "REDUCE_SCATTER",
    "SEND",
    "RECV",
    "ALLTOALL",
    "PERMUTE",
    "PERMUTE_REDUCE",
    "PERMUTE_IMPLICIT",
    "PERMUTE_REDUCE_IMPLICIT",
    "ALLTOALL_V",
    "INVALID",
];

const CC_OP: [&str; 3] = ["ALLGATHER", "ALLREDUCE", "REDUCESCATTER"];

const DTYPE: [&str; 16] = [
    "UNKNOWN", "UINT64", "INT8", "UINT8", "INT16", "UINT16", "BFLOAT16", "FLOAT16", "INT32",
    "UINT32", "FLOAT32", "FP32R", "INT64", "FP8_E3", "FP8_E4", "FP8_E5",
];

fn lookup(table: &'static [&'static str], value: u64) -> &'static str {
    usize::try_from(value)
        .ok()
        .and_then(|i| table.get(i))
        .copied()
        .unwrap_or(UNKNOWN)
}

/// Algorithm of a collective (`algo` of type 8).
#[must_use]
pub fn algorithm(value: u64) -> &'static str {
    lookup(&ALGORITHM, value)
}

/// What device memory is used for (`usage_type` of types 34 and 35).
#[must_use]
pub fn usage_type(value: u64) -> &'static str {
    lookup(&USAGE_TYPE, value)
}

/// Where memory is (`mem_type` of types 30 to 33).
#[must_use]
pub fn mem_type(value: u64) -> &'static str {
    lookup(&MEM_TYPE, value)
}

/// Operation of the collectives engine (`enc_op` of type 43).
#[must_use]
pub fn enc_op(value: u64) -> &'static str {
    lookup(&ENC_OP, value)
}

/// Host collective (`cc_op` of type 40).
#[must_use]
pub fn cc_op(value: u64) -> &'static str {
    lookup(&CC_OP, value)
}

/// Element type (`dtype` of type 43).
#[must_use]
pub fn dtype(value: u64) -> &'static str {
    lookup(&DTYPE, value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_table_ends_where_neurons_does() {
        assert_eq!(
            (algorithm(0), algorithm(7), algorithm(11), algorithm(12)),
            ("Ring", "RDH", "Invalid", UNKNOWN)
        );
        assert_eq!(
            (usage_type(6), usage_type(22), usage_type(23)),
            ("WEIGHT", "MAX", UNKNOWN)
        );
        assert_eq!(
            (mem_type(0), mem_type(2), mem_type(3)),
            ("INVALID", "HBM", UNKNOWN)
        );
        assert_eq!(
            (enc_op(12), enc_op(13), enc_op(14)),
            ("ALLTOALL_V", "INVALID", UNKNOWN)
        );
        assert_eq!((cc_op(2), cc_op(3)), ("REDUCESCATTER", UNKNOWN));
        assert_eq!(
            (dtype(6), dtype(15), dtype(u64::MAX)),
            ("BFLOAT16", "FP8_E5", UNKNOWN)
        );
    }
}
