//! The command line of `nrt-traced`.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand};

use super::settings::{Environment, Sayings, Settings};
use super::value::Value;
use super::{Config, ConfigError, group};

/// The configuration file that is read when no other is named, if it is there.
pub const DEFAULT_FILE: &str = "/etc/nrt-trace/nrt-traced.toml";

/// Collects trace events from the processes of this host.
///
/// Programs attach on the producer socket; nrt-tracectl starts, stops and reads captures on the control socket. Ends
/// on SIGTERM or SIGINT; SIGHUP has the configuration read again. A flag overrides a variable of the environment
/// (NRT_TRACED_ and the key in capitals; for the sockets also NRT_TRACE_SOCKET and NRT_TRACE_PRODUCER_SOCKET), which
/// overrides the file. Exit status: 0 after a signal, 1 for a failure, 2 for bad usage or configuration.
#[expect(clippy::doc_markdown, reason = "it is the help's text")]
#[derive(Clone, Debug, Default, Parser)]
#[command(
    name = "nrt-traced",
    version,
    max_term_width = 100,
    args_conflicts_with_subcommands = true
)]
pub struct CommandLine {
    /// What to do other than to collect.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Settings.
    #[command(flatten)]
    pub flags: Flags,
}

/// What the program does other than to collect.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Looks for mistakes in a configuration file; prints each with its line, and exits with 2 if there is one
    CheckConfig {
        /// The file [default: /etc/nrt-trace/nrt-traced.toml, if it is there]
        file: Option<PathBuf>,
    },
    /// Prints the settings that flags, environment and file give together, and where each comes from
    PrintConfig {
        /// Print a file of all keys with their defaults instead, commented out
        #[arg(long)]
        sample: bool,
        /// Settings.
        #[command(flatten)]
        flags: Flags,
    },
}

/// Settings on the command line.
#[derive(Clone, Debug, Default, Args)]
pub struct Flags {
    /// Control socket [default: /run/nrt-trace/control.sock]
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,

    /// Socket that programs attach to [default: /run/nrt-trace/producer.sock]
    #[arg(long, value_name = "PATH")]
    pub producer_socket: Option<PathBuf>,

    /// Configuration file [default: /etc/nrt-trace/nrt-traced.toml, if it is there]
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
    /// [`ConfigError::Wrong`] with everything that is wrong, or the file can't be read.
    pub fn settings(&self) -> Result<Settings, ConfigError> {
        self.settings_with(&std::env::vars_os().collect())
    }

    /// The same, with an environment of the caller's.
    pub(super) fn settings_with(&self, environment: &Environment) -> Result<Settings, ConfigError> {
        let mut sayings = Sayings::default();
        let path = (self.config.as_deref()).unwrap_or_else(|| Path::new(DEFAULT_FILE));
        match text_of(path) {
            Ok(text) => sayings.add_file(&text, Some(path)),
            Err(error) if self.config.is_none() && error.kind() == io::ErrorKind::NotFound => {}
            Err(source) => {
                let path = path.to_owned();
                return Err(ConfigError::Read { path, source });
            }
        }
        sayings.add_environment(environment);
        for (key, flag, path) in [
            ("control_socket", "--socket", &self.socket),
            (
                "producer_socket",
                "--producer-socket",
                &self.producer_socket,
            ),
            ("state_dir", "--state-dir", &self.state_dir),
            ("proc_root", "--proc-root", &self.proc_root),
            ("sys_root", "--sys-root", &self.sys_root),
        ] {
            if let Some(path) = path {
                sayings.add_flag(key, flag, Value::Path(path.clone()));
            }
        }
        if self.host {
            sayings.add_flag("host", "--host", Value::Switch(true));
        }
        let mut settings = sayings.over(Config::default())?;
        let config = &mut settings.config;
        config.control_group = (config.control_group).or_else(group::default_control_group);
        Ok(settings)
    }
}

/// The text of a configuration file, which is never a long one: something else may be named by mistake.
fn text_of(path: &Path) -> io::Result<String> {
    const MOST: u64 = 1 << 20;
    let mut text = String::new();
    File::open(path)?.take(MOST + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MOST {
        return Err(io::Error::other("it has more than 1 MiB"));
    }
    Ok(text)
}

/// What a look for mistakes found, if none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checked {
    /// A file that can be used.
    Good,
    /// No file, where none has to be: the defaults hold.
    Absent,
}

/// Looks for mistakes in a configuration file alone: in the one named, which has to be there, or in [`DEFAULT_FILE`], which need not,
/// as for a daemon that starts.
///
/// # Errors
/// As [`Flags::settings`].
pub fn check_file(named: Option<&Path>) -> Result<Checked, ConfigError> {
    check_or_default(named, Path::new(DEFAULT_FILE))
}

pub(super) fn check_or_default(
    named: Option<&Path>,
    default: &Path,
) -> Result<Checked, ConfigError> {
    let path = named.unwrap_or(default);
    let text = match text_of(path) {
        Ok(text) => text,
        Err(error) if named.is_none() && error.kind() == io::ErrorKind::NotFound => {
            return Ok(Checked::Absent);
        }
        Err(source) => {
            let path = path.to_owned();
            return Err(ConfigError::Read { path, source });
        }
    };
    let mut sayings = Sayings::default();
    sayings.add_file(&text, Some(path));
    sayings.over(Config::default()).map(|_| Checked::Good)
}

/// Folds the parser's paragraphs into one line: the error and its tips.
#[must_use]
pub fn one_line(error: &clap::Error) -> String {
    let rendered = error.render().to_string();
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
