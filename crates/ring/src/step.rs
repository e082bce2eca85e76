//! Labelled steps: places where a test stops or kills a process. Without the feature `steps` they are nothing at all.

/// Every label, in the order in which successful calls pass them.
pub const LABELS: [&str; 14] = [
    "push:claimed",
    "push:found",
    "push:taken",
    "push:half",
    "push:written",
    "push:published",
    "push:drop",
    "push:dropped",
    "name:bytes",
    "name:entry",
    "name:half",
    "name:written",
    "name:published",
    "look:half",
];

#[cfg(feature = "steps")]
static HOOK: std::sync::OnceLock<fn(&'static str)> = std::sync::OnceLock::new();

/// Has `hook` called at each step, on the thread that takes it. The first hook stays.
#[cfg(feature = "steps")]
pub fn set_hook(hook: fn(&'static str)) {
    HOOK.get_or_init(|| hook);
}

/// The calling thread is at the step `label`.
#[cfg(feature = "steps")]
pub fn at(label: &'static str) {
    if let Some(hook) = HOOK.get() {
        hook(label);
    }
}

/// The calling thread is at the step `label`: of interest to tests only.
#[cfg(not(feature = "steps"))]
#[inline(always)]
pub const fn at(_label: &'static str) {}

/// The calling thread is about to copy word `at` of a record: half of it is behind it at the payload's first word.
#[cfg(feature = "steps")]
pub(crate) fn halfway(at: usize, label: &'static str) {
    if at == nrt_trace_abi::record::DATA_WORD {
        self::at(label);
    }
}

/// The calling thread is about to copy word `at` of a record: of interest to tests only.
#[cfg(not(feature = "steps"))]
#[inline(always)]
pub(crate) const fn halfway(_at: usize, _label: &'static str) {}
