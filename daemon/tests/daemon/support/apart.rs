//! A daemon in a process of its own: its log, its descriptors and its CPU time are nobody else's.

use std::fs::{self, File};
use std::ops::{Deref, DerefMut};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use super::{Client, wait_for};

/// The daemon's binary, with a client.
pub(crate) struct Apart {
    client: Client,
    child: Child,
    folder: TempDir,
}

impl Apart {
    /// Starts the daemon with these lines of a configuration file.
    pub(crate) fn with(settings: &str) -> Self {
        Self::start(env!("CARGO_BIN_EXE_nrt-traced"), &[], settings)
    }

    /// The same, which may have so many descriptors.
    pub(crate) fn with_descriptors(most: u32, settings: &str) -> Self {
        let limit = format!("ulimit -n {most}; exec \"$@\"");
        let arguments = ["-c", &limit, "sh", env!("CARGO_BIN_EXE_nrt-traced")];
        Self::start("sh", &arguments, settings)
    }

    fn start(program: &str, arguments: &[&str], settings: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        write_settings(folder.path(), settings);
        let mut command = Command::new(program);
        let child = command
            .args(arguments)
            .env_remove("RUST_LOG")
            .env("NRT_TRACE_SOCKET", at("c.sock"))
            .env("NRT_TRACE_PRODUCER_SOCKET", at("p.sock"))
            .arg("--config")
            .arg(at("traced.toml"))
            .stdin(Stdio::null())
            .stderr(File::create(at("log")).unwrap())
            .spawn()
            .unwrap();
        wait_for("the daemon", || {
            UnixStream::connect(at("c.sock")).is_ok() && at("p.sock").exists()
        });
        let mut client = Client::of(&at("c.sock"));
        // Answered: the connection counts among its descriptors from now on.
        client.status();
        Self {
            client,
            child,
            folder,
        }
    }

    /// Changes the lines of its configuration file, and has it read them.
    pub(crate) fn reload(&self, settings: &str) {
        write_settings(self.folder.path(), settings);
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::HUP).unwrap();
    }

    /// Where producers attach.
    pub(crate) fn producer_socket(&self) -> PathBuf {
        self.folder.path().join("p.sock")
    }

    /// A second client, on a connection of its own.
    pub(crate) fn another(&self) -> Client {
        Client::of(&self.control_socket())
    }

    /// Where clients connect.
    pub(crate) fn control_socket(&self) -> PathBuf {
        self.folder.path().join("c.sock")
    }

    /// Memory of its own that is in use, bytes: without rings and names, which it shares.
    pub(crate) fn own_memory(&self) -> u64 {
        let text = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("RssAnon:"));
        let kib = line.unwrap().split_whitespace().next().unwrap();
        kib.parse::<u64>().unwrap() * 1024
    }

    /// Lines of the log that contain `words`.
    pub(crate) fn logged(&self, words: &str) -> Vec<String> {
        let log = fs::read_to_string(self.folder.path().join("log")).unwrap();
        log.lines()
            .filter(|line| line.contains(words))
            .map(str::to_owned)
            .collect()
    }

    /// Descriptors that the daemon has open.
    pub(crate) fn descriptors(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.child.id()))
            .unwrap()
            .count()
    }

    /// CPU time that it used, s.
    pub(crate) fn cpu(&mut self) -> f64 {
        Duration::from_nanos(self.client.status().cpu_ns).as_secs_f64()
    }

    /// Its number.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it still runs.
    pub(crate) fn is_alive(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }
}

fn write_settings(folder: &Path, settings: &str) {
    let text = format!("test_small_rings = true\n{settings}\n");
    fs::write(folder.join("traced.toml"), text).unwrap();
}

impl Deref for Apart {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl DerefMut for Apart {
    fn deref_mut(&mut self) -> &mut Client {
        &mut self.client
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}
