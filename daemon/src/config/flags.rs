//! The command line of `nrt-traced`.

use std::path::PathBuf;

use clap::Parser;

use super::{Config, ConfigError, group, raw};

/// Collects trace events from the processes of this host.
///
/// Programs attach on the producer socket; nrt-tracectl starts, stops and reads captures on the control socket. Ends
/// on SIGTERM or SIGINT. Exit status: 0 after a signal, 1 for a failure, 2 for bad usage or configuration.
#[derive(Clone, Debug, Default, Parser)]
#[command(name = "nrt-traced", version, max_term_width = 100)]
pub struct Flags {
    /// Control socket [default: /run/nrt-trace/control.sock]
    #[arg(
        long,
        value_name = "PATH",
        env = "NRT_TRACE_SOCKET",
        hide_env_values = true
    )]
    pub socket: Option<PathBuf>,

    /// Socket that programs attach to [default: /run/nrt-trace/producer.sock]
    #[arg(
        long,
        value_name = "PATH",
        env = "NRT_TRACE_PRODUCER_SOCKET",
        hide_env_values = true
    )]
    pub producer_socket: Option<PathBuf>,

    /// Configuration file (TOML); without it the defaults hold
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Folder of the daemon's lock and state [default: the folder of the control socket]
    #[arg(long, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,

    /// Sample the machine and the attached processes from the start on
    #[arg(long)]
    pub host: bool,

    /// Where the host monitor finds the kernel's /proc, as in a container that has the host's elsewhere
    #[arg(long, value_name = "DIR")]
    pub proc_root: Option<PathBuf>,

    /// Where it finds /sys, with the cgroups in fs/cgroup
    #[arg(long, value_name = "DIR")]
    pub sys_root: Option<PathBuf>,
}

impl Flags {
    /// The settings that flags, environment and file give together.
    ///
    /// # Errors
    /// As [`Config::from_toml`], or the file can't be read.
    pub fn resolve(self) -> Result<Config, ConfigError> {
        let mut config = Config::default();
        let mut state_dir = self.state_dir;
        if let Some(path) = self.config {
            let text = std::fs::read_to_string(&path).map_err(|source| ConfigError::Read {
                path: path.clone(),
                source,
            })?;
            let read = raw::parse(&text).and_then(|mut raw| {
                state_dir = state_dir.take().or_else(|| raw.state_dir.take());
                raw.apply(&mut config)
            });
            read.map_err(|error| ConfigError::InFile {
                path,
                error: Box::new(error),
            })?;
        }
        if let Some(path) = self.socket {
            config.control_socket = path;
        }
        if let Some(path) = self.producer_socket {
            config.producer_socket = path;
        }
        config.host.enabled |= self.host;
        if let Some(path) = self.proc_root {
            config.host.proc_root = path;
        }
        if let Some(path) = self.sys_root {
            config.host.sys_root = path;
        }
        config.state_dir = state_dir.unwrap_or_else(|| config.folder());
        config.control_group = (config.control_group).or_else(group::default_control_group);
        config.validate()?;
        Ok(config)
    }
}

/// The sockets' variables, and how the parser names the flags that they stand for.
const VARIABLES: [(&str, &str); 2] = [
    ("NRT_TRACE_SOCKET", "'--socket <PATH>'"),
    ("NRT_TRACE_PRODUCER_SOCKET", "'--producer-socket <PATH>'"),
];

/// Folds the parser's paragraphs into one line: the error and its tips.
#[must_use]
pub fn one_line(error: &clap::Error) -> String {
    let rendered = error.render().to_string();
    let empty = |variable| std::env::var_os(variable).is_some_and(|path| path.is_empty());
    for (variable, flag) in VARIABLES {
        // The parser blames the flag, which nobody gave.
        if rendered.contains(flag) && empty(variable) {
            return format!("{variable} is set, but to nothing: give it a path, or unset it");
        }
    }
    let parts: Vec<String> = rendered
        .split("\n\n")
        .map(|paragraph| paragraph.split_whitespace().collect::<Vec<_>>().join(" "))
        .filter(|text| {
            let frame = text.starts_with("Usage:") || text.starts_with("For more information");
            !text.is_empty() && !frame
        })
        .map(|text| text.trim_start_matches("error: ").to_owned())
        .collect();
    format!("{} (try --help)", parts.join("; "))
}
