//! A host of its own for each test: a folder with two sockets, a state folder, and a daemon if it wants one.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::artifacts::artifacts;
use crate::document::Document;
use crate::run::{Ended, Running, run};
use crate::wait::until;

/// Prefixes of the variables that would reach into a test.
/// Cargo puts its folders into the loader's path, where a library of an earlier build may lie.
const FOREIGN_VARIABLES: [&str; 5] = ["NRT_", "NEURON_", "RANK", "CLAP", "LD_LIBRARY_PATH"];

/// Keys of a daemon that waits for as long as a busy machine may need.
pub const PATIENT: &str = "arm_timeout_ms = 10000\ndisarm_timeout_ms = 10000\n";

/// The host.
#[derive(Debug)]
pub struct Host {
    folder: TempDir,
    daemon: Option<Child>,
}

impl Host {
    /// A host without a daemon.
    ///
    /// # Panics
    ///
    /// If there is no room for a folder.
    #[must_use]
    pub fn new() -> Self {
        // Short, because a socket's path has 107 bytes.
        let folder = tempfile::Builder::new()
            .prefix("nrt-test-")
            .tempdir()
            .expect("a folder");
        Self {
            folder,
            daemon: None,
        }
    }

    /// A host with a daemon that is ready.
    ///
    /// # Panics
    ///
    /// If the daemon does not come up.
    #[must_use]
    pub fn with_daemon() -> Self {
        let mut host = Self::new();
        host.start_daemon(&[]);
        host
    }

    /// Starts the daemon and waits until it answers.
    ///
    /// # Panics
    ///
    /// If it ends, or does not answer.
    pub fn start_daemon(&mut self, arguments: &[&str]) {
        self.start_daemon_as(self.daemon_command(arguments));
    }

    /// Starts a daemon by another command and waits until it answers.
    ///
    /// # Panics
    ///
    /// If it ends, or does not answer.
    pub fn start_daemon_as(&mut self, mut command: Command) {
        assert!(self.daemon.is_none(), "there is one");
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.path("daemon.log"))
            .expect("a log file");
        command.stdout(log.try_clone().expect("a copy")).stderr(log);
        let mut child = command.spawn().expect("the daemon can be started");
        let control = self.control_socket();
        until("the daemon to answer", || {
            if let Some(status) = child.try_wait().expect("a child can be asked") {
                panic!("the daemon ended ({status}): {}", self.daemon_log());
            }
            (UnixStream::connect(&control).is_ok() && self.producer_socket().exists()).then_some(())
        });
        self.daemon = Some(child);
    }

    /// The daemon's command, not started. Unless a configuration is among the arguments, it has one that lets a busy
    /// machine take its time: no process must look as if it did not answer.
    ///
    /// # Panics
    ///
    /// If the configuration can't be written.
    #[must_use]
    pub fn daemon_command(&self, arguments: &[&str]) -> Command {
        let mut command = self.command(&artifacts().traced);
        if !arguments.contains(&"--config") {
            let patient = self.path("patient.toml");
            fs::write(&patient, PATIENT).expect("the folder can be written");
            command.arg("--config").arg(patient);
        }
        command.args(arguments);
        command
    }

    /// Pid of the daemon.
    ///
    /// # Panics
    ///
    /// If there is none.
    #[must_use]
    pub fn daemon_pid(&self) -> u32 {
        self.daemon.as_ref().expect("a daemon").id()
    }

    /// Waits for the daemon's end and returns its exit status, `None` after a signal.
    ///
    /// # Panics
    ///
    /// If there is none, or it does not end.
    pub fn wait_daemon(&mut self) -> Option<i32> {
        let child = self.daemon.as_mut().expect("a daemon");
        let status = until("the daemon to end", || {
            child.try_wait().expect("a child can be asked")
        });
        self.daemon = None;
        status.code()
    }

    /// Ends the daemon with SIGTERM and returns its exit status.
    ///
    /// # Panics
    ///
    /// If there is none, or it does not end.
    pub fn stop_daemon(&mut self) -> Option<i32> {
        let daemon = self.daemon.as_ref().expect("a daemon");
        kill_process(Pid::from_child(daemon), Signal::TERM).expect("the daemon is there");
        self.wait_daemon()
    }

    /// What the daemon said so far, but for what its thread for the log has still to write.
    #[must_use]
    pub fn daemon_log(&self) -> String {
        fs::read_to_string(self.path("daemon.log")).unwrap_or_default()
    }

    /// The daemon's log once it has this text: nobody waits for the log, so that it comes after what it tells of.
    #[must_use]
    pub fn log_with(&self, text: &str) -> String {
        until(&format!("the log to say {text:?}"), || {
            Some(self.daemon_log()).filter(|log| log.contains(text))
        })
    }

    /// A path in the host's folder.
    #[must_use]
    pub fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The control socket, whether it is there or not.
    #[must_use]
    pub fn control_socket(&self) -> PathBuf {
        self.path("control.sock")
    }

    /// The producer socket, whether it is there or not.
    #[must_use]
    pub fn producer_socket(&self) -> PathBuf {
        self.path("producer.sock")
    }

    /// A command that runs in the host's folder with nothing but the host's sockets in its environment.
    #[must_use]
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.folder.path());
        command.stdin(Stdio::null());
        for (name, _) in std::env::vars_os() {
            let foreign = |prefix: &&str| name.as_encoded_bytes().starts_with(prefix.as_bytes());
            if FOREIGN_VARIABLES.iter().any(foreign) {
                command.env_remove(&name);
            }
        }
        command.env("NRT_TRACE_SOCKET", self.control_socket());
        command.env("NRT_TRACE_PRODUCER_SOCKET", self.producer_socket());
        // Whoever is started directly waits until the run that is on covers it.
        command.env("NRT_TRACE_WAIT_MS", "30000");
        // A recording without a daemon makes its sockets here.
        command.env("XDG_RUNTIME_DIR", self.folder.path());
        command
    }

    /// The command line's command, not started. What started the tests may ignore signals (`nohup`, a job in the background),
    /// which the command line would leave so.
    #[must_use]
    pub fn tracectl_command(&self, arguments: &[&str]) -> Command {
        let mut command = self.command("env");
        command.arg("--default-signal=HUP,INT,TERM");
        command.arg(&artifacts().tracectl).args(arguments);
        command
    }

    /// Runs the command line.
    #[must_use]
    pub fn tracectl(&self, arguments: &[&str]) -> Ended {
        run(self.tracectl_command(arguments))
    }

    /// The probe's command, not started.
    #[must_use]
    pub fn probe_command(&self, arguments: &[&str]) -> Command {
        let mut command = self.command(&artifacts().probe);
        command.args(arguments);
        command
    }

    /// Runs the probe to its end.
    #[must_use]
    pub fn probe(&self, arguments: &[&str]) -> Ended {
        run(self.probe_command(arguments))
    }

    /// A command that records the probe into `t.json`, not started.
    #[must_use]
    pub fn probe_recorded(&self, arguments: &[&str]) -> Command {
        let mut command = self.tracectl_command(&["record", "-o", "t.json", "--"]);
        command.arg(&artifacts().probe).args(arguments);
        command
    }

    /// Starts a probe that emits a batch for each line it is given, and waits until it is attached, and armed where a
    /// run covers it.
    ///
    /// # Panics
    ///
    /// If it ends.
    #[must_use]
    pub fn interactive_probe(&self, arguments: &[&str]) -> Running {
        self.interactive(self.probe_command(&[&["--interactive"], arguments].concat()))
    }

    /// As [`Host::interactive_probe`], by a command of the caller's making that has `--interactive`.
    ///
    /// # Panics
    ///
    /// If it ends.
    #[must_use]
    pub fn interactive(&self, command: Command) -> Running {
        let mut probe = Running::start(command);
        assert_eq!(probe.read_line(), "ready\n");
        let pid = probe.pid();
        until("the probe to attach", || {
            self.attached().contains(&pid).then_some(())
        });
        probe
    }

    /// Pids of the attached processes.
    ///
    /// # Panics
    ///
    /// If the daemon does not say.
    #[must_use]
    pub fn attached(&self) -> Vec<u32> {
        let listed = self.producers();
        let pids = listed.iter().filter_map(|p| p["pid"].as_u64());
        pids.filter_map(|pid| u32::try_from(pid).ok()).collect()
    }

    /// What `producers --format json` lists.
    ///
    /// # Panics
    ///
    /// If the daemon does not say.
    #[must_use]
    pub fn producers(&self) -> Vec<Value> {
        let answer = self.tracectl(&["producers", "--format", "json"]).ok();
        let mut answer: Value = serde_json::from_slice(&answer.stdout).expect("JSON");
        match answer["producers"].take() {
            Value::Array(listed) => listed,
            other => panic!("{other} is no list"),
        }
    }

    /// The state that lists show of a process: `attached`, `capturing` and so on; none if it is not listed. Of one that attached
    /// more than once, the last.
    ///
    /// # Panics
    ///
    /// If the daemon does not say.
    #[must_use]
    pub fn state_of(&self, pid: u32) -> Option<String> {
        let listed = self.producers();
        let mine = listed
            .iter()
            .filter(|p| p["pid"].as_u64() == Some(pid.into()))
            .max_by_key(|p| p["producer_id"].as_u64());
        Some(mine?["state"].as_str()?.to_owned())
    }

    /// Waits until a process is in the state that lists show.
    ///
    /// # Panics
    ///
    /// If the daemon does not say, or never says so.
    pub fn until_state(&self, pid: u32, wanted: &str) {
        until(&format!("process {pid} to be {wanted}"), || {
            (self.state_of(pid)? == wanted).then_some(())
        });
    }

    /// The value of one of the daemon's metrics that has no labels.
    ///
    /// # Panics
    ///
    /// If there is none of this name.
    #[must_use]
    pub fn metric(&self, name: &str) -> f64 {
        let text = self.tracectl(&["metrics"]).ok().text();
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        let value = line.unwrap_or_else(|| panic!("no {name} in {text}"));
        value.parse().expect("a number")
    }

    /// What `status --format json` says.
    ///
    /// # Panics
    ///
    /// If the daemon does not answer.
    #[must_use]
    pub fn status(&self) -> Value {
        serde_json::from_slice(&self.tracectl(&["status", "--format", "json"]).ok().stdout)
            .expect("JSON")
    }

    /// Fetches all unread events of the host's run.
    #[must_use]
    pub fn fetch(&self) -> Document {
        Document::parse(&self.tracectl(&["fetch", "-o", "-"]).ok().stdout)
    }
}

impl Default for Host {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        if thread::panicking() {
            #[expect(clippy::print_stderr, reason = "shown with the failed test")]
            {
                eprintln!("--- daemon log\n{}", self.daemon_log());
            }
        }
        if let Some(mut daemon) = self.daemon.take() {
            // Both fail only when it has been waited for.
            let _gone = daemon.kill();
            let _waited = daemon.wait();
        }
    }
}
