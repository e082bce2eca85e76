//! Field numbers and values of Perfetto's protocol, as far as they are used.

/// `Trace`
pub(crate) const PACKET: u32 = 1;

pub(crate) mod packet {
    pub(crate) const CLOCK_SNAPSHOT: u32 = 6;
    pub(crate) const TIMESTAMP: u32 = 8;
    pub(crate) const SEQUENCE: u32 = 10;
    pub(crate) const TRACK_EVENT: u32 = 11;
    pub(crate) const INTERNED: u32 = 12;
    pub(crate) const FLAGS: u32 = 13;
    pub(crate) const TIMESTAMP_CLOCK: u32 = 58;
    pub(crate) const DEFAULTS: u32 = 59;
    pub(crate) const TRACK: u32 = 60;
    pub(crate) const FIRST_ON_SEQUENCE: u32 = 87;

    /// What was interned on the sequence is forgotten.
    pub(crate) const FLAG_CLEARED: u64 = 1;
    /// The packet makes no sense without what was interned.
    pub(crate) const FLAG_NEEDS: u64 = 2;
}

pub(crate) mod clock {
    /// `ClockSnapshot`
    pub(crate) const CLOCKS: u32 = 1;
    pub(crate) const PRIMARY: u32 = 2;
    /// Of one of its clocks.
    pub(crate) const ID: u32 = 1;
    pub(crate) const TIME: u32 = 2;

    pub(crate) const REALTIME: u64 = 1;
    pub(crate) const MONOTONIC: u64 = 3;
    pub(crate) const BOOTTIME: u64 = 6;
}

pub(crate) mod event {
    pub(crate) const CATEGORY: u32 = 3;
    pub(crate) const ANNOTATION: u32 = 4;
    pub(crate) const KIND: u32 = 9;
    pub(crate) const NAME: u32 = 10;
    pub(crate) const TRACK: u32 = 11;
    pub(crate) const COUNTER: u32 = 30;
    pub(crate) const DOUBLE_COUNTER: u32 = 44;
    pub(crate) const FLOW: u32 = 47;

    pub(crate) const BEGIN: u64 = 1;
    pub(crate) const END: u64 = 2;
    pub(crate) const INSTANT: u64 = 3;
    pub(crate) const VALUE: u64 = 4;
}

pub(crate) mod annotation {
    pub(crate) const KEY: u32 = 1;
    pub(crate) const BOOL: u32 = 2;
    pub(crate) const UNSIGNED: u32 = 3;
    pub(crate) const SIGNED: u32 = 4;
    pub(crate) const POINTER: u32 = 7;
    pub(crate) const TEXT: u32 = 17;
}

pub(crate) mod interned {
    pub(crate) const CATEGORY: u32 = 1;
    pub(crate) const NAME: u32 = 2;
    pub(crate) const KEY: u32 = 3;
    pub(crate) const TEXT: u32 = 29;
    /// Of each entry.
    pub(crate) const ID: u32 = 1;
    pub(crate) const VALUE: u32 = 2;
}

pub(crate) mod track {
    pub(crate) const UUID: u32 = 1;
    pub(crate) const NAME: u32 = 2;
    pub(crate) const PROCESS: u32 = 3;
    pub(crate) const THREAD: u32 = 4;
    pub(crate) const PARENT: u32 = 5;
    pub(crate) const COUNTER: u32 = 8;

    pub(crate) const PROCESS_PID: u32 = 1;
    pub(crate) const PROCESS_ARGUMENT: u32 = 2;
    pub(crate) const PROCESS_NAME: u32 = 6;
    pub(crate) const PROCESS_LABEL: u32 = 8;
    pub(crate) const THREAD_PID: u32 = 1;
    pub(crate) const THREAD_TID: u32 = 2;
    pub(crate) const THREAD_NAME: u32 = 5;
    pub(crate) const COUNTER_UNIT: u32 = 3;
    pub(crate) const COUNTER_UNIT_NAME: u32 = 6;

    pub(crate) const UNIT_BYTES: u64 = 3;
}
