//! What a run is asked to do.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::error::WorkloadError;

/// Size of a run. Also the options of the stand-alone program, and of a command that offers the workload.
#[derive(Clone, Debug, PartialEq, Eq, clap::Args)]
pub struct Config {
    /// Worker processes
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub processes: usize,
    /// Threads of each process; each drives one NeuronCore
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub threads: usize,
    /// Training steps
    #[arg(long, value_name = "N", default_value_t = 300)]
    pub steps: usize,
    /// Width of the model's layers
    #[arg(long, value_name = "N", default_value_t = 128)]
    pub size: usize,
    /// Rows of each thread's share of a batch
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub rows: usize,
    /// Fault injection: worker RANK kills itself in the middle of step STEP
    #[arg(long, value_name = "RANK@STEP", value_parser = parse_kill, hide = true)]
    pub kill: Option<Kill>,
}

/// A worker that is to end with SIGKILL, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kill {
    /// The worker.
    pub rank: usize,
    /// The step, counted from 0.
    pub step: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            processes: 4,
            threads: 2,
            steps: 300,
            size: 128,
            rows: 64,
            kill: None,
        }
    }
}

impl Config {
    /// Replicas of the model: every thread of every process holds one.
    #[must_use]
    pub const fn replicas(&self) -> usize {
        self.processes * self.threads
    }

    /// Checks every number.
    ///
    /// # Errors
    ///
    /// [`WorkloadError::Config`] names the option and what is allowed.
    pub fn check(&self) -> Result<(), WorkloadError> {
        let within = |option: &'static str, value: usize, low: usize, high: usize| {
            if (low..=high).contains(&value) {
                Ok(())
            } else {
                Err(WorkloadError::Config {
                    option,
                    value,
                    low,
                    high,
                })
            }
        };
        within("--processes", self.processes, 1, 64)?;
        within("--threads", self.threads, 1, 64)?;
        within("--steps", self.steps, 1, 10_000_000)?;
        within("--size", self.size, 4, 2048)?;
        within("--rows", self.rows, 1, 65_536)
    }
}

/// How to start a worker: the program, what comes before the worker's own options, and what to add to its environment.
#[derive(Clone, Debug)]
pub struct Launcher {
    /// The executable: `std::env::current_exe()` of a program that calls [`crate::run_worker`] for `arguments`.
    pub program: PathBuf,
    /// Arguments that select the worker, such as a hidden subcommand.
    pub arguments: Vec<OsString>,
    /// Variables to set beside those that name the worker's cores and rank.
    pub environment: Vec<(OsString, OsString)>,
}

/// Options of a worker process, as [`crate::run_parent`] writes them.
#[derive(Clone, Debug, clap::Args)]
pub struct WorkerArgs {
    /// The worker's number
    #[arg(long)]
    pub rank: usize,
    /// Folder of the sockets between the replicas
    #[arg(long)]
    pub links: PathBuf,
    /// Size of the run
    #[command(flatten)]
    pub config: Config,
}

impl WorkerArgs {
    /// The command line that parses to these options.
    #[must_use]
    pub fn to_arguments(&self) -> Vec<OsString> {
        let Config {
            processes,
            threads,
            steps,
            size,
            rows,
            kill,
        } = self.config;
        let mut out: Vec<OsString> = vec!["--links".into(), self.links.clone().into()];
        let numbers = [
            ("--rank", self.rank),
            ("--processes", processes),
            ("--threads", threads),
            ("--steps", steps),
            ("--size", size),
            ("--rows", rows),
        ];
        for (option, value) in numbers {
            out.extend([option.into(), value.to_string().into()]);
        }
        if let Some(Kill { rank, step }) = kill {
            out.extend(["--kill".into(), format!("{rank}@{step}").into()]);
        }
        out
    }
}

fn parse_kill(text: &str) -> Result<Kill, String> {
    let parsed = text.split_once('@').and_then(|(rank, step)| {
        Some(Kill {
            rank: rank.parse().ok()?,
            step: step.parse().ok()?,
        })
    });
    parsed.ok_or_else(|| "expected RANK@STEP, such as 1@50".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        worker: WorkerArgs,
    }

    #[derive(Debug, Parser)]
    struct Sizes {
        #[command(flatten)]
        config: Config,
    }

    #[test]
    fn a_workers_command_line_reads_back() {
        let config = Config {
            processes: 3,
            threads: 5,
            steps: 7,
            size: 9,
            rows: 11,
            kill: Some(Kill { rank: 2, step: 6 }),
        };
        let args = WorkerArgs {
            rank: 2,
            links: "/tmp/x".into(),
            config: config.clone(),
        };
        let line = [OsString::from("worker")]
            .into_iter()
            .chain(args.to_arguments());
        let back = Line::try_parse_from(line).unwrap().worker;
        assert_eq!(
            (back.rank, back.links.to_str(), back.config),
            (2, Some("/tmp/x"), config)
        );
    }

    #[test]
    fn the_defaults_are_the_same_by_option_and_by_value() {
        let Sizes { config } = Sizes::try_parse_from(["run"]).unwrap();
        assert_eq!(config, Config::default());
        config.check().unwrap();
    }

    #[test]
    fn a_number_out_of_range_is_told_with_what_is_allowed() {
        let text = Config {
            threads: 0,
            ..Config::default()
        }
        .check()
        .unwrap_err()
        .to_string();
        assert_eq!(text, "--threads 0 is not allowed: 1 to 64");
        assert!(
            Config {
                size: 3,
                ..Config::default()
            }
            .check()
            .is_err()
        );
    }
}
