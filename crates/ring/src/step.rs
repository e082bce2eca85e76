//! Labelled steps: places where a test stops or kills a process. Without the feature `steps` they are nothing at all.

/// Every label, in the order in which a successful call passes them.
pub const LABELS: [&str; 13] = [
    "push:claimed",
    "push:looked",
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
