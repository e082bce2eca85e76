//! Status codes, and how much each of them matters.

use std::fmt;

/// What a code that is no [`Status`] is called.
pub const UNKNOWN: &str = "UNKNOWN";

/// One list of the codes, so that the enum, the names and the C header cannot drift apart.
macro_rules! statuses {
    ($($variant:ident = $code:literal, $name:literal, $meaning:literal;)*) => {
        /// What a call to the runtime came to. The values are those of the C enum `NRT_STATUS`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(i32)]
        pub enum Status {
            $(#[doc = $meaning] $variant = $code,)*
        }

        impl Status {
            /// All of them, by code.
            pub const ALL: [Self; [$($code),*].len()] = [$(Self::$variant),*];

            /// The status with this code; `None` for codes that nothing has, negative ones included.
            #[must_use]
            pub const fn from_code(code: i32) -> Option<Self> {
                match code {
                    $($code => Some(Self::$variant),)*
                    _ => None,
                }
            }

            /// The name in the C header.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// One sentence for people.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self {
                    $(Self::$variant => $meaning,)*
                }
            }
        }
    };
}

statuses! {
    Success = 0, "NRT_SUCCESS", "It was done.";
    Failure = 1, "NRT_FAILURE", "It failed, and no other code says why.";
    Invalid = 2, "NRT_INVALID", "An argument is not allowed.";
    InvalidHandle = 3, "NRT_INVALID_HANDLE", "A handle stands for nothing.";
    Resource = 4, "NRT_RESOURCE", "Memory or another resource ran out.";
    Timeout = 5, "NRT_TIMEOUT", "It took longer than it may.";
    HwError = 6, "NRT_HW_ERROR", "The device failed.";
    QueueFull = 7, "NRT_QUEUE_FULL", "A queue takes no more.";
    LoadNotEnoughNc = 9, "NRT_LOAD_NOT_ENOUGH_NC", "A model needs more NeuronCores than there are.";
    UnsupportedNeffVersion = 10, "NRT_UNSUPPORTED_NEFF_VERSION", "The model file's version is not supported.";
    FailHostMemAlloc = 11, "NRT_FAIL_HOST_MEM_ALLOC", "The host's memory for the device ran out.";
    Uninitialized = 13, "NRT_UNINITIALIZED", "The runtime was not initialized.";
    Closed = 14, "NRT_CLOSED", "The runtime was closed.";
    QueueEmpty = 15, "NRT_QUEUE_EMPTY", "A queue holds nothing.";
    ExecUnitUnrecoverable = 101, "NRT_EXEC_UNIT_UNRECOVERABLE", "An execution unit failed for good.";
    ExecBadInput = 1002, "NRT_EXEC_BAD_INPUT", "An execution's input is not allowed.";
    ExecCompletedWithNumErr = 1003, "NRT_EXEC_COMPLETED_WITH_NUM_ERR", "An execution ended with numerical errors.";
    ExecCompletedWithErr = 1004, "NRT_EXEC_COMPLETED_WITH_ERR", "An execution ended with errors.";
    ExecNcBusy = 1005, "NRT_EXEC_NC_BUSY", "The NeuronCore is in use.";
    ExecOob = 1006, "NRT_EXEC_OOB", "An execution went past the end of its memory.";
    CollPending = 1100, "NRT_COLL_PENDING", "A collective has not ended yet.";
    ExecHwErrCollectives = 1200, "NRT_EXEC_HW_ERR_COLLECTIVES", "The device failed in a collective.";
    ExecHwErrHbmUe = 1201, "NRT_EXEC_HW_ERR_HBM_UE", "Device memory has an error that cannot be corrected.";
    ExecHwErrNcUe = 1202, "NRT_EXEC_HW_ERR_NC_UE", "A NeuronCore has a memory error that cannot be corrected.";
    ExecHwErrDmaAbort = 1203, "NRT_EXEC_HW_ERR_DMA_ABORT", "A DMA engine gave up.";
    ExecSwNqOverflow = 1204, "NRT_EXEC_SW_NQ_OVERFLOW", "A notification queue overflowed.";
    ExecHwErrRepairableHbmUe = 1205, "NRT_EXEC_HW_ERR_REPAIRABLE_HBM_UE", "Device memory has an error that a repair can mend.";
    NetworkProxyFailure = 1206, "NRT_NETWORK_PROXY_FAILURE", "The network proxy failed.";
}

impl Status {
    /// The C enum's value.
    #[must_use]
    pub const fn code(self) -> i32 {
        self as i32
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// How much a status matters to whoever watches a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u32)]
pub enum Priority {
    /// Nothing happened.
    None = 0,
    /// A call failed.
    Medium = 1,
    /// Something is slow or full.
    High = 2,
    /// The device or its memory failed.
    Critical = 3,
}

/// The name of a code; [`UNKNOWN`] for codes that nothing has.
#[must_use]
pub fn name(code: i32) -> &'static str {
    Status::from_code(code).map_or(UNKNOWN, Status::name)
}

/// The priority of a code.
///
/// The comparisons are Neuron's. Codes that nothing has are failures of a newer runtime, so they count as failures.
#[must_use]
pub const fn priority(code: i32) -> Priority {
    match code {
        0 => Priority::None,
        5 | 6 | 1204 | 1206 => Priority::High,
        1004 | 1200..=1203 | 1205 => Priority::Critical,
        _ => Priority::Medium,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The published codes, written down a second time: this list is the contract, the macro's is the work.
    const CODES: [(i32, &str); 28] = [
        (0, "NRT_SUCCESS"),
        (1, "NRT_FAILURE"),
        (2, "NRT_INVALID"),
        (3, "NRT_INVALID_HANDLE"),
        (4, "NRT_RESOURCE"),
        (5, "NRT_TIMEOUT"),
        (6, "NRT_HW_ERROR"),
        (7, "NRT_QUEUE_FULL"),
        (9, "NRT_LOAD_NOT_ENOUGH_NC"),
        (10, "NRT_UNSUPPORTED_NEFF_VERSION"),
        (11, "NRT_FAIL_HOST_MEM_ALLOC"),
        (13, "NRT_UNINITIALIZED"),
        (14, "NRT_CLOSED"),
        (15, "NRT_QUEUE_EMPTY"),
        (101, "NRT_EXEC_UNIT_UNRECOVERABLE"),
        (1002, "NRT_EXEC_BAD_INPUT"),
        (1003, "NRT_EXEC_COMPLETED_WITH_NUM_ERR"),
        (1004, "NRT_EXEC_COMPLETED_WITH_ERR"),
        (1005, "NRT_EXEC_NC_BUSY"),
        (1006, "NRT_EXEC_OOB"),
        (1100, "NRT_COLL_PENDING"),
        (1200, "NRT_EXEC_HW_ERR_COLLECTIVES"),
        (1201, "NRT_EXEC_HW_ERR_HBM_UE"),
        (1202, "NRT_EXEC_HW_ERR_NC_UE"),
        (1203, "NRT_EXEC_HW_ERR_DMA_ABORT"),
        (1204, "NRT_EXEC_SW_NQ_OVERFLOW"),
        (1205, "NRT_EXEC_HW_ERR_REPAIRABLE_HBM_UE"),
        (1206, "NRT_NETWORK_PROXY_FAILURE"),
    ];

    #[test]
    fn every_code_has_its_name_and_every_other_has_none() {
        let known = |code| CODES.iter().find(|(c, _)| *c == code);
        for code in (-10..2000).chain([i32::MIN, i32::MIN + 1, i32::MAX - 1, i32::MAX]) {
            let want = known(code).map_or("UNKNOWN", |(_, name)| name);
            assert_eq!(name(code), want, "{code}");
            let status = Status::from_code(code);
            assert_eq!(status.map(Status::code), known(code).map(|_| code));
        }
        assert!(
            Status::ALL.is_sorted() && Status::ALL.len() == CODES.len(),
            "by code, all of them"
        );
        assert_eq!(format!("{:>12}", Status::Invalid), " NRT_INVALID");
    }

    #[test]
    fn priorities_are_those_of_the_cascade() {
        let high = [5, 6, 1204, 1206];
        let critical = [1004, 1200, 1201, 1202, 1203, 1205];
        for code in (-10..2000).chain([i32::MIN, i32::MAX]) {
            let want = match code {
                0 => Priority::None,
                _ if high.contains(&code) => Priority::High,
                _ if critical.contains(&code) => Priority::Critical,
                _ => Priority::Medium,
            };
            assert_eq!(priority(code), want, "{code}");
        }
        let values = [
            Priority::None,
            Priority::Medium,
            Priority::High,
            Priority::Critical,
        ];
        assert_eq!(values.map(|p| p as u32), [0, 1, 2, 3]);
    }
}
