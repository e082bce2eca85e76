//! Places where a thread can be made to hang, for tests of the watchdog. Without the feature `failpoints` there are none.

/// Variable that names a folder: a thread hangs at a place as long as there is a file of its name.
#[cfg(feature = "failpoints")]
const VARIABLE: &str = "NRT_TRACED_FAILPOINTS";

/// The calling thread comes to a place.
#[cfg(feature = "failpoints")]
pub(crate) fn at(place: &str) {
    use std::path::PathBuf;
    use std::sync::OnceLock;
    use std::time::Duration;

    static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| std::env::var_os(VARIABLE).map(PathBuf::from));
    let Some(file) = folder.as_ref().map(|folder| folder.join(place)) else {
        return;
    };
    while file.exists() {
        std::thread::park_timeout(Duration::from_millis(1));
    }
}

/// The calling thread comes to a place: of no interest to a real daemon.
#[cfg(not(feature = "failpoints"))]
#[inline(always)]
pub(crate) const fn at(_place: &str) {}

/// Whether this variable is the one that this build looks at.
#[cfg(feature = "failpoints")]
pub(crate) fn is_variable(variable: &str) -> bool {
    variable == VARIABLE
}

/// Whether this variable is one that this build looks at: there is none.
#[cfg(not(feature = "failpoints"))]
pub(crate) const fn is_variable(_variable: &str) -> bool {
    false
}
