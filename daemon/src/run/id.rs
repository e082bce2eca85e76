//! Numbers of runs as people see them.

/// Number of a run, written as the command line tool does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunId(pub(crate) u64);

impl std::fmt::Display for RunId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}
