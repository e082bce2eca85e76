//! Which daemon is meant.

use std::path::PathBuf;

use clap::Args;

/// Where the daemon's control socket is when nobody says otherwise.
pub(crate) const DEFAULT_SOCKET: &str = "/run/nrt-trace/control.sock";

/// Environment variable with the path of the control socket.
pub(crate) const SOCKET_VARIABLE: &str = "NRT_TRACE_SOCKET";

/// Which daemon.
#[derive(Args, Clone, Debug)]
pub(crate) struct SocketArg {
    /// Control socket of the daemon
    #[arg(
        long = "socket",
        global = true,
        value_name = "PATH",
        env = SOCKET_VARIABLE,
        hide_env_values = true,
        help_heading = "Global options",
        long_help = "Control socket of the daemon [default: /run/nrt-trace/control.sock]"
    )]
    path: Option<PathBuf>,
}

impl SocketArg {
    /// The path to connect to.
    pub(crate) fn path(&self) -> PathBuf {
        self.path
            .clone()
            .unwrap_or_else(|| PathBuf::from(DEFAULT_SOCKET))
    }

    /// Whether somebody named this daemon, so that no other answer will do.
    pub(crate) fn is_explicit(&self) -> bool {
        self.path.is_some()
    }
}
